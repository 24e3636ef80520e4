// Command reference reports what Argo CD sees in rendered output.
//
// It reads a JSON list of {"name": ..., "input": ...} from standard input and writes a JSON list
// of {"name", "objects" | "error", "stage"} in the same order. The path is Argo CD's: the plugin
// server trims one final newline and splits with YAMLOrJSONDecoder, then the repo server parses
// each piece again with sigs.k8s.io/yaml. Objects without `kind` are not refused here, since
// these cases are about scalars and mappings.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	kubejson "k8s.io/apimachinery/pkg/util/json"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type testCase struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

type outcome struct {
	Name    string            `json:"name"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Error   string            `json:"error,omitempty"`
	Stage   string            `json:"stage,omitempty"`
}

// raw has the one method of Kubernetes' RawExtension that matters here.
type raw struct{ data []byte }

func (r *raw) UnmarshalJSON(in []byte) error {
	if in != nil && bytes.Equal(in, []byte("null")) {
		return nil
	}
	r.data = append(r.data[:0], in...)
	return nil
}

// split is Argo CD's SplitYAMLToString.
func split(text string) ([]string, error) {
	decoder := kubeyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var pieces []string
	for {
		piece := raw{}
		if err := decoder.Decode(&piece); err != nil {
			if errors.Is(err, io.EOF) {
				return pieces, nil
			}
			return nil, err
		}
		data := bytes.TrimSpace(piece.data)
		if len(data) == 0 || bytes.Equal(data, []byte("null")) {
			continue
		}
		pieces = append(pieces, string(data))
	}
}

func see(c testCase) (result outcome) {
	result.Name = c.Name
	defer func() {
		if p := recover(); p != nil {
			result = outcome{Name: c.Name, Stage: "panic", Error: fmt.Sprint(p)}
		}
	}()
	pieces, err := split(strings.TrimSuffix(c.Input, "\n"))
	if err != nil {
		result.Stage, result.Error = "decode", err.Error()
		return result
	}
	result.Objects = []json.RawMessage{}
	for _, piece := range pieces {
		data, err := yaml.YAMLToJSON([]byte(piece))
		var value interface{}
		if err == nil {
			err = kubejson.Unmarshal(data, &value)
		}
		var out bytes.Buffer
		if err == nil {
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			err = encoder.Encode(value)
		}
		if err != nil {
			return outcome{Name: c.Name, Stage: "reparse", Error: err.Error()}
		}
		result.Objects = append(result.Objects, bytes.TrimSpace(out.Bytes()))
	}
	return result
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	results := make([]outcome, 0, len(cases))
	for _, c := range cases {
		results = append(results, see(c))
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
