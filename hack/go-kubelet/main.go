// Command go-kubelet judges KubeletConfigurations as kubelet 1.34 does when it starts: decoded strictly, leniently where only
// that fails, defaulted and validated. Tests compare our judgement with it. Requests and answers are lines of JSON;
// `go-kubelet gates` prints the feature gates that this kubelet knows.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
)

type question struct {
	Config json.RawMessage `json:"config"`
	Text   *string         `json:"text"`
}

type answer struct {
	Error string `json:"error,omitempty"`
	Stage string `json:"stage,omitempty"`
}

type gate struct {
	Name    string `json:"name"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
	Stage   string `json:"stage"`
}

func judge(text []byte) (result answer) {
	result.Stage = "decode"
	defer func() {
		if cause := recover(); cause != nil {
			result.Error = fmt.Sprint(cause)
		}
	}()
	_, codecs, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return answer{Error: err.Error(), Stage: "decode"}
	}
	config, err := codec.DecodeKubeletConfiguration(context.Background(), codecs, text)
	if err != nil {
		return answer{Error: err.Error(), Stage: "decode"}
	}
	// A host with cgroup v2 takes these two; the machine that runs this may have v1.
	config.FailCgroupV1, config.SingleProcessOOMKill = false, nil
	if err := validation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate); err != nil {
		return answer{Error: err.Error(), Stage: "validate"}
	}
	return answer{}
}

func gates() []gate {
	list := []gate{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		stage := string(spec.PreRelease)
		if spec.PreRelease == featuregate.GA {
			stage = "GA"
		}
		list = append(list, gate{Name: string(name), Default: spec.Default, Locked: spec.LockToDefault, Stage: stage})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

func main() {
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	write := json.NewEncoder(output)
	if len(os.Args) > 1 && os.Args[1] == "gates" {
		for _, one := range gates() {
			_ = write.Encode(one)
		}
		return
	}
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var asked question
			if err := json.Unmarshal([]byte(line), &asked); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			text := []byte(asked.Config)
			if asked.Text != nil {
				text = []byte(*asked.Text)
			}
			_ = write.Encode(judge(text))
			_ = output.Flush()
		}
		if err != nil {
			return
		}
	}
}

