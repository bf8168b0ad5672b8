package repotest

// A comment of a field that begins with the name of a field must begin with its own: renames forget comments.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// listed matches a sentence of a field's comment that lists the values of the field, such as "Origin is what requested it: Spec or At."
var listed = regexp.MustCompile(`(?:^|\. )(?:\w+ ){1,3}is(?: [^.:;]*:)? ([A-Z]\w+(?:, [A-Z]\w+)*,? or [A-Z]\w+)[.:;]`)

// TestCommentsOfFieldsListAllValues compares lists of values with constants. If all words of a list are values of a type, or of one block
// of constants, then these are all of the values.
func TestCommentsOfFieldsListAllValues(t *testing.T) {
	t.Chdir(root)
	values, set := map[string][]string{}, token.NewFileSet()
	lists := map[string]string{}
	for _, s := range sources(t) {
		if s.test || !under(s.file, "shared", "events", "functions", "cmd") {
			continue
		}
		file, err := parser.ParseFile(set, s.file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok != token.CONST {
					break
				}
				for _, spec := range n.Specs {
					spec := spec.(*ast.ValueSpec)
					of := set.Position(n.Pos()).String()
					if named, isNamed := spec.Type.(*ast.Ident); isNamed {
						of = s.folder + "." + named.Name
					}
					for _, v := range spec.Values {
						if literal, isLiteral := v.(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
							text, err := strconv.Unquote(literal.Value)
							require.NoError(t, err)
							values[of] = append(values[of], text)
						}
					}
				}
			case *ast.Field:
				doc := strings.Join(strings.Fields(n.Doc.Text()), " ")
				for _, found := range listed.FindAllStringSubmatch(doc, -1) {
					lists[set.Position(n.Pos()).String()] = found[1]
				}
			}
			return true
		})
	}
	checked := 0
	for at, list := range lists {
		words := regexp.MustCompile(`\w+`).FindAllString(strings.Replace(list, " or ", " ", 1), -1)
		var missing []string // of the values with the fewest that are not in the list
		for _, all := range values {
			if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) }) {
				continue
			}
			others := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return slices.Contains(words, v) })
			if checked++; missing == nil || len(others) < len(missing) {
				missing = others
			}
		}
		require.Empty(t, missing, "%s: the comment lists %s", at, list)
	}
	require.Greater(t, checked, 5)
}
