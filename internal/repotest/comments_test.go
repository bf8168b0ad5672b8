package repotest

// A comment of a field that begins with the name of a field must begin with its own: renames forget comments.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// subject matches the first word of a comment that says what a field is.
var subject = regexp.MustCompile(`^(\w+)(?:,? and \w+)? (?:is|are|has|have|says|say|reports|report|names|name|counts|lists|limits)\b`)

// TestCommentsOfFields reads the comments of the fields of all structs. The first word of one is the name of another field if that is in
// the same struct, or is capitalized and in any struct.
func TestCommentsOfFields(t *testing.T) {
	t.Chdir(root)
	var structs []*ast.StructType
	set, names := token.NewFileSet(), map[string]bool{}
	for _, s := range sources(t) {
		file, err := parser.ParseFile(set, s.file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if n, ok := n.(*ast.StructType); ok {
				structs = append(structs, n)
			}
			return true
		})
	}
	own := func(f *ast.Field) (names []string) {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
		return names
	}
	for _, s := range structs {
		for _, f := range s.Fields.List {
			for _, name := range own(f) {
				names[name] = names[name] || ast.IsExported(name)
			}
		}
	}
	checked := 0
	for _, s := range structs {
		var siblings []string
		for _, f := range s.Fields.List {
			siblings = append(siblings, own(f)...)
		}
		for _, f := range s.Fields.List {
			found := subject.FindStringSubmatch(f.Doc.Text())
			if found == nil || len(f.Names) == 0 {
				continue
			}
			checked++
			if first := found[1]; !slices.Contains(own(f), first) && (names[first] || slices.Contains(siblings, first)) {
				t.Errorf("%s: the comment of %v begins with %s", set.Position(f.Pos()), own(f), first)
			}
		}
	}
	require.Greater(t, checked, 1000)
}
