// Command go-kstatus judges objects as others do that wait for them: by kstatus, the rules of Flux and kpt, or by a health
// script, in the interpreter that Argo CD has. Requests and answers are lines of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type question struct {
	Object map[string]any `json:"object"`
	// Script is a health script of Argo CD; without it kstatus judges.
	Script string `json:"script"`
}

type answer struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func judge(text []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(text, &asked); err != nil {
		return answer{}, err
	}
	if asked.Script != "" {
		return byScript(asked)
	}
	// Whole numbers are int64 in Kubernetes' own decoder.
	object, err := json.Marshal(asked.Object)
	if err != nil {
		return answer{}, err
	}
	var decoded unstructured.Unstructured
	if err := decoded.UnmarshalJSON(object); err != nil {
		return answer{}, err
	}
	result, err := status.Compute(&decoded)
	if err != nil {
		return answer{}, err
	}
	return answer{Status: string(result.Status), Message: result.Message}, nil
}

// byScript gives the script what Argo CD gives it: the object as obj, and the libraries base, table, string and package
// without any that reaches the machine.
func byScript(asked question) (answer, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString} {
		state.Push(state.NewFunction(open))
		if err := state.PCall(0, 0, nil); err != nil {
			return answer{}, err
		}
	}
	state.SetGlobal("obj", valueOf(state, asked.Object))
	if err := state.DoString(asked.Script); err != nil {
		return answer{}, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return answer{}, errors.New("the script returns no table")
	}
	return answer{Status: lua.LVAsString(table.RawGetString("status")), Message: lua.LVAsString(table.RawGetString("message"))}, nil
}

func valueOf(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(valueOf(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, valueOf(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		result, err := judge(lines.Bytes())
		if err != nil {
			result = answer{Error: err.Error()}
		}
		text, err := json.Marshal(result)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", text)
	}
}
