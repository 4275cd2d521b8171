package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// kubeYAML is a body as kube-apiserver reads it: k8s.io/apimachinery pkg/runtime/serializer/json (release-1.34).
func kubeYAML(data []byte) (json.RawMessage, error) {
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	object, _, err := kubeJSON(converted)
	return object, err
}

// kubeJSON also returns what strict validation of fields finds.
func kubeJSON(data []byte) (json.RawMessage, []string, error) {
	var value any
	strict, err := kubejson.UnmarshalStrict(data, &value)
	if err != nil {
		return nil, nil, err
	}
	var found []string
	for _, one := range strict {
		found = append(found, one.Error())
	}
	written, err := json.Marshal(value)
	return written, found, err
}

// manifests are the objects of a file that kubectl applies, as it takes them apart: k8s.io/cli-runtime pkg/resource/visitor.go
// (release-1.34), StreamVisitor and FlattenListVisitor, over the decoders of k8s.io/apimachinery.
func manifests(data []byte) (json.RawMessage, error) {
	decoder := kubeyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	objects := []any{}
	for {
		raw := runtime.RawExtension{}
		if err := decoder.Decode(&raw); err == io.EOF {
			return json.Marshal(objects)
		} else if err != nil {
			return nil, err
		}
		raw.Raw = bytes.TrimSpace(raw.Raw)
		if len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
			continue
		}
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(raw.Raw, nil, nil)
		if err != nil {
			return nil, err
		}
		found, err := flattened(object)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
}

func flattened(object runtime.Object) ([]any, error) {
	if !meta.IsListType(object) {
		one, isObject := object.(*unstructured.Unstructured)
		if !isObject {
			return nil, fmt.Errorf("it is a %T", object)
		}
		if one.GetKind() == "" || one.GetAPIVersion() == "" || one.GetName() == "" {
			return nil, errors.New("apiVersion, kind and metadata.name are required")
		}
		return []any{one.Object}, nil
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return nil, err
	}
	objects := []any{}
	for _, item := range items {
		found, err := flattened(item)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Clusters       []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server                   string `json:"server"`
			TLSServerName            string `json:"tls-server-name,omitempty"`
			InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify,omitempty"`
			CertificateAuthorityData []byte `json:"certificate-authority-data,omitempty"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			Token string `json:"token,omitempty"`
		} `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster   string `json:"cluster"`
			User      string `json:"user"`
			Namespace string `json:"namespace,omitempty"`
		} `json:"context"`
	} `json:"contexts"`
}

// kubeconfigOf reads the fields of k8s.io/client-go tools/clientcmd/api/v1/types.go (release-1.34) that the tests compare,
// by the names that the current context leads to.
func kubeconfigOf(data []byte) (json.RawMessage, error) {
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var probe any
	if err := json.Unmarshal(converted, &probe); err != nil {
		return nil, err
	}
	var config kubeconfig
	// The serializer gives YAML to the case-sensitive decoder, after a conversion that does not know the types.
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(converted, &config); err != nil {
		return nil, err
	}
	for _, named := range config.Contexts {
		if named.Name != config.CurrentContext {
			continue
		}
		for _, cluster := range config.Clusters {
			if cluster.Name != named.Context.Cluster {
				continue
			}
			answer := map[string]any{
				"server": cluster.Cluster.Server, "tlsServerName": cluster.Cluster.TLSServerName,
				"insecure": cluster.Cluster.InsecureSkipTLSVerify, "ca": string(cluster.Cluster.CertificateAuthorityData),
				"namespace": named.Context.Namespace, "token": "",
			}
			for _, user := range config.Users {
				if user.Name == named.Context.User {
					answer["token"] = user.User.Token
				}
			}
			return json.Marshal(answer)
		}
	}
	return nil, errors.New("the current context leads nowhere")
}

// plainJSON is encoding/json, of one document with nothing after it.
func plainJSON(data []byte) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("there is more")
	}
	text := strings.Builder{}
	err := json.NewEncoder(&text).Encode(value)
	return json.RawMessage(text.String()), err
}
