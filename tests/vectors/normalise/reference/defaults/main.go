// Reads a JSON list of {"schema": ..., "object": ...} and prints the list of the objects as the API server
// defaults them: defaulting, then nulls that the schema does not allow are taken away.
package main

import (
	"encoding/json"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

type testCase struct {
	Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
	Object any                             `json:"object"`
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var cases []testCase
	check(json.NewDecoder(os.Stdin).Decode(&cases))
	out := []any{}
	for _, one := range cases {
		var internal apiextensions.JSONSchemaProps
		check(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&one.Schema, &internal, nil))
		structural, err := schema.NewStructural(&internal)
		check(err)
		defaulting.Default(one.Object, structural)
		defaulting.PruneNonNullableNullsWithoutDefaults(one.Object, structural)
		out = append(out, one.Object)
	}
	check(json.NewEncoder(os.Stdout).Encode(out))
}
