// Command go-readers says what Go's standard library, and the Go libraries of Kubernetes, container engines and Ignition, read
// in bytes that the project's own readers read as well. Tests compare the two. Requests and answers are lines of JSON.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"time"
)

type question struct {
	Reader string `json:"reader"`
	Bytes  []byte `json:"bytes"`
}

type block struct {
	Label   string `json:"label"`
	Headers int    `json:"headers"`
	Der     []byte `json:"der"`
}

type certificate struct {
	Der        []byte `json:"der"`
	CommonName string `json:"commonName"`
	NotBefore  string `json:"notBefore"`
	NotAfter   string `json:"notAfter"`
}

type request struct {
	CommonName     string   `json:"commonName"`
	Organizations  []string `json:"organizations"`
	DNSNames       []string `json:"dnsNames"`
	IPAddresses    []string `json:"ipAddresses"`
	EmailAddresses []string `json:"emailAddresses"`
	URIs           []string `json:"uris"`
	PublicKey      []byte   `json:"publicKey"`
	Signed         bool     `json:"signed"`
}

type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Linkname string `json:"linkname"`
	Mode     int64  `json:"mode"`
	Contents []byte `json:"contents"`
}

type answer struct {
	Error        string          `json:"error,omitempty"`
	Blocks       []block         `json:"blocks,omitempty"`
	Certificates []certificate   `json:"certificates,omitempty"`
	Request      *request        `json:"request,omitempty"`
	Entries      []entry         `json:"entries,omitempty"`
	Bytes        []byte          `json:"bytes,omitempty"`
	JSON         json.RawMessage `json:"json,omitempty"`
	URL          *parsedURL      `json:"url,omitempty"`
	Strict       []string        `json:"strict,omitempty"`
	Requests     []httpRequest   `json:"requests,omitempty"`
	Reference    *imageReference `json:"reference,omitempty"`
	Sections     []string        `json:"sections,omitempty"`
	Version      string          `json:"version,omitempty"`
}

type parsedURL struct {
	Scheme string `json:"scheme"`
	Opaque string `json:"opaque"`
	Query  string `json:"query"`
	Text   string `json:"text"`
}

// Unpacked bytes beyond this are an error: a test's input must not fill the memory.
const mostBytes = 16 << 20

func blocksOf(data []byte) []block {
	var blocks []block
	for {
		one, rest := pem.Decode(data)
		if one == nil {
			return blocks
		}
		blocks = append(blocks, block{one.Type, len(one.Headers), one.Bytes})
		data = rest
	}
}

// What crypto/x509's CertPool takes from a text: only certificates without headers that can be parsed.
func certificatesOf(data []byte) []certificate {
	var certificates []certificate
	for _, one := range blocksOf(data) {
		if one.Label != "CERTIFICATE" || one.Headers > 0 {
			continue
		}
		parsed, err := x509.ParseCertificate(one.Der)
		if err != nil {
			continue
		}
		certificates = append(certificates, certificate{
			parsed.Raw, parsed.Subject.CommonName, parsed.NotBefore.UTC().Format(time.RFC3339), parsed.NotAfter.UTC().Format(time.RFC3339),
		})
	}
	return certificates
}

// The first block, as the API server and its signer take it (k8s.io/kubernetes pkg/apis/certificates ParseCSR).
func requestOf(data []byte) (*request, error) {
	one, _ := pem.Decode(data)
	if one == nil || one.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("no block CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(one.Bytes)
	if err != nil {
		return nil, err
	}
	result := request{
		CommonName:     parsed.Subject.CommonName,
		Organizations:  parsed.Subject.Organization,
		DNSNames:       parsed.DNSNames,
		EmailAddresses: parsed.EmailAddresses,
		PublicKey:      parsed.RawSubjectPublicKeyInfo,
		Signed:         parsed.CheckSignature() == nil,
	}
	for _, ip := range parsed.IPAddresses {
		result.IPAddresses = append(result.IPAddresses, ip.String())
	}
	for _, uri := range parsed.URIs {
		result.URIs = append(result.URIs, uri.String())
	}
	return &result, nil
}

func entriesOf(data []byte) ([]entry, error) {
	var entries []entry
	reader := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		contents, err := io.ReadAll(io.LimitReader(reader, mostBytes))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{header.Name, string(header.Typeflag), header.Linkname, header.Mode, contents})
	}
}

func unzipped(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	contents, err := io.ReadAll(io.LimitReader(reader, mostBytes+1))
	if err == nil && len(contents) > mostBytes {
		return nil, errors.New("too large")
	}
	return contents, err
}

func answerTo(asked question) (result answer) {
	var err error
	switch asked.Reader {
	case "pem":
		result.Blocks = blocksOf(asked.Bytes)
	case "bundle":
		result.Certificates = certificatesOf(asked.Bytes)
	case "request":
		result.Request, err = requestOf(asked.Bytes)
	case "tar":
		result.Entries, err = entriesOf(asked.Bytes)
	case "gzip":
		result.Bytes, err = unzipped(asked.Bytes)
	case "json":
		result.JSON, err = plainJSON(asked.Bytes)
	case "kubeJson":
		result.JSON, result.Strict, err = kubeJSON(asked.Bytes)
	case "kubeYaml":
		result.JSON, err = kubeYAML(asked.Bytes)
	case "manifests":
		result.JSON, err = manifests(asked.Bytes)
	case "kubeconfig":
		result.JSON, err = kubeconfigOf(asked.Bytes)
	case "url":
		var parsed *url.URL
		if parsed, err = url.Parse(string(asked.Bytes)); err == nil {
			result.URL = &parsedURL{parsed.Scheme, parsed.Opaque, parsed.RawQuery, parsed.String()}
		}
	case "http":
		result.Requests = httpRequestsOf(asked.Bytes)
	case "reference":
		result.Reference, err = imageReferenceOf(string(asked.Bytes))
	case "image":
		result.JSON, err = imageOf(asked.Bytes)
	case "unit":
		result.Sections, err = unitOf(asked.Bytes)
	case "ignition":
		result.JSON, err = ignitionOf(asked.Bytes)
	case "version":
		result.Version = runtime.Version()
	default:
		err = fmt.Errorf("there is no reader %q", asked.Reader)
	}
	if err != nil {
		result = answer{Error: err.Error()}
	}
	return result
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			var asked question
			result := answer{}
			if parseError := json.Unmarshal(line, &asked); parseError != nil {
				result.Error = parseError.Error()
			} else {
				result = answerTo(asked)
			}
			text, marshalError := json.Marshal(result)
			if marshalError != nil {
				text = []byte(`{"error":"the answer cannot be written"}`)
			}
			output.Write(append(text, '\n'))
			output.Flush()
		}
		if err != nil {
			return
		}
	}
}
