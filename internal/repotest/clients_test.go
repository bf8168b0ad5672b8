package repotest

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// holders are the structs that may hold a client of the SDK, and why.
var holders = map[string]string{
	"shared/aws/cloudformation/stacks.go":         "resource tagging has eight operations",
	"shared/aws/leftovers/leftovers.go":           "resource tagging has eight operations",
	"shared/lambdaruntime/documents/documents.go": "S3's client is reachable by an interface of its own",
}

// Adapters hold operations, and not clients of the SDK: see call.Operation. With clients, the function plan had 44 MB instead of 28.
func TestAdaptersHoldOperations(t *testing.T) {
	t.Chdir(root)
	met := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !under(s.folder, "shared", "functions") {
			continue
		}
		services := map[string]bool{}
		for _, spec := range s.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if service, ok := strings.CutPrefix(imported, "github.com/aws/aws-sdk-go-v2/service/"); ok {
				if spec.Name != nil {
					service = spec.Name.Name
				}
				services[service] = true
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			fields, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				pointer, _ := field.Type.(*ast.StarExpr)
				if pointer == nil {
					continue
				}
				if selector, ok := pointer.X.(*ast.SelectorExpr); ok && selector.Sel.Name == "Client" {
					if from, ok := selector.X.(*ast.Ident); ok && services[from.Name] {
						met[s.file] = true
						require.Contains(t, holders, s.file, "hold the operations of %s that you need: see call.Operation", from.Name)
					}
				}
			}
			return true
		})
	}
	require.Len(t, met, len(holders), "remove a file that holds no client")
}
