// Command go-rules judges a rule of a CustomResourceDefinition (x-kubernetes-validations) as kube-apiserver 1.34 does, with its
// own packages: whether a definition with the rule is taken, and whether the rule holds for a value. Tests compare our
// judgement with it. Requests and answers are lines of JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type question struct {
	// The schema of the values, with the rule in it.
	Schema v1.JSONSchemaProps `json:"schema"`
	Value  any                `json:"value"`
	Old    any                `json:"old"`
}

type answer struct {
	// definition: no server takes a definition with this rule; refused: the rule does not hold; accepted.
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	// What evaluating the rule cost, of celconfig.RuntimeCELCostBudget. More than all of it: the rule cost too much.
	Cost int64 `json:"cost"`
}

func judge(asked question) (result answer) {
	defer func() {
		if cause := recover(); cause != nil {
			result = answer{Verdict: "refused", Message: fmt.Sprint(cause)}
		}
	}()
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&asked.Schema, &internal, nil); err != nil {
		return answer{Verdict: "definition", Message: err.Error()}
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return answer{Verdict: "definition", Message: err.Error()}
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true)
	compiled, err := rules.Compile(structural, model.SchemaDeclType(structural, false), celconfig.PerCallLimit, base, rules.NewExpressionsEnvLoader())
	if err != nil {
		return answer{Verdict: "definition", Message: err.Error()}
	}
	for _, one := range compiled {
		if one.Error != nil {
			return answer{Verdict: "definition", Message: one.Error.Detail}
		}
		if one.MessageExpressionError != nil {
			return answer{Verdict: "definition", Message: one.MessageExpressionError.Detail}
		}
	}
	validator := rules.NewValidator(structural, false, celconfig.PerCallLimit)
	errs, left := validator.Validate(context.Background(), field.NewPath("v"), structural, asked.Value, asked.Old, celconfig.RuntimeCELCostBudget)
	cost := celconfig.RuntimeCELCostBudget - left
	if len(errs) > 0 {
		return answer{Verdict: "refused", Message: errs.ToAggregate().Error(), Cost: cost}
	}
	return answer{Verdict: "accepted", Cost: cost}
}

func main() {
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	write := json.NewEncoder(output)
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var asked question
			// Kubernetes' reader keeps whole numbers whole, as values of objects are.
			if err := utiljson.Unmarshal([]byte(line), &asked); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			_ = write.Encode(judge(asked))
			_ = output.Flush()
		}
		if err != nil {
			return
		}
	}
}
