package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
)

func name(t reflect.Type) string {
	p := strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")
	p = strings.TrimPrefix(p, "k8s.io/apimachinery/pkg/apis/")
	p = strings.TrimPrefix(p, "k8s.io/apimachinery/pkg/")
	return p + "." + t.Name()
}

var types = map[string]map[string]string{}

func text(t reflect.Type) string {
	switch name(t) {
	case "api/resource.Quantity":
		return "quantity"
	case "util/intstr.IntOrString":
		return "int-or-string"
	case "meta/v1.Time", "meta/v1.MicroTime":
		return "time"
	case "meta/v1.Duration":
		return "duration"
	case "runtime.RawExtension", "meta/v1.FieldsV1", "runtime.Unknown":
		return "any"
	}
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + text(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + text(t.Elem())
	case reflect.Map:
		return "{}" + text(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Int16, reflect.Uint32, reflect.Uint64, reflect.Uint8, reflect.Int8:
		return "int"
	case reflect.Float32, reflect.Float64:
		return "float"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		n := name(t)
		if _, ok := types[n]; !ok {
			types[n] = map[string]string{}
			fields(t, types[n])
		}
		return n
	}
	panic(t.String())
}

func fields(t reflect.Type, into map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("json"), ",")
		if parts[0] == "-" {
			continue
		}
		if parts[0] == "" && (f.Anonymous || len(parts) > 1 && parts[1] == "inline") {
			fields(f.Type, into)
			continue
		}
		s := text(f.Type)
		for _, p := range parts[1:] {
			if p == "omitempty" {
				s += "?"
			}
		}
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			s += " " + key
		}
		into[parts[0]] = s
	}
}

func main() {
	kinds := map[string]string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || strings.HasSuffix(gvk.Kind, "List") || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery") {
			continue
		}
		if _, ok := t.FieldByName("ObjectMeta"); !ok {
			continue
		}
		g := gvk.Group
		if g != "" {
			g += "/"
		}
		kinds[g+gvk.Version+"/"+gvk.Kind] = text(t)
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	e.Encode(map[string]any{"kinds": kinds, "types": types})
}
