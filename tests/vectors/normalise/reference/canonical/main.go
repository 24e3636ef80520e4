// Prints, for each line of standard input (a JSON string), the JSON of what Kubernetes makes of it:
// {"quantity": text or null, "duration": text or null}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<20)
	for in.Scan() {
		out := map[string]any{"quantity": nil, "duration": nil}
		var quantity resource.Quantity
		if json.Unmarshal(in.Bytes(), &quantity) == nil {
			out["quantity"] = quantity
		}
		var duration metav1.Duration
		if json.Unmarshal(in.Bytes(), &duration) == nil {
			out["duration"] = duration
		}
		text, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
