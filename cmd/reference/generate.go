package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// kinds that users write, by the name of their files.
var kinds = map[string]reflect.Type{
	"cluster":  reflect.TypeFor[api.Cluster](),
	"release":  reflect.TypeFor[api.Release](),
	"channels": reflect.TypeFor[api.Channels](),
	"rollout":  reflect.TypeFor[api.Rollout](),
	"decision": reflect.TypeFor[api.Decision](),
	"freeze":   reflect.TypeFor[api.Freeze](),
}

// generate returns the files of the reference by name.
func generate(source, examples string) (map[string][]byte, error) {
	docs, err := readComments(source)
	if err != nil {
		return nil, err
	}
	clusters, err := readChanges(examples)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, kind := range kinds {
		schema, err := schemaOf(kind, name, docs)
		if err != nil {
			return nil, err
		}
		files[name+".schema.json"] = schema
		var done changes
		if name == "cluster" {
			done = clusters
		}
		files[name+".md"] = markdownOf(kind, docs, done)
	}
	return files, nil
}

// comments are the doc comments of package api: of types by "Type", of fields by "Type.Field".
type comments map[string]string

func readComments(dir string) (comments, error) {
	docs, fset := comments{}, token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				docs.read(types)
			}
		}
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s: no types", dir)
	}
	return docs, nil
}

func (c comments) read(types *ast.GenDecl) {
	for _, spec := range types.Specs {
		t := spec.(*ast.TypeSpec)
		c[t.Name.Name] = oneLine(types.Doc)
		structure, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				c[t.Name.Name+"."+name.Name] = oneLine(field.Doc)
			}
		}
	}
}

// field returns the comment of a field, with the field's name in YAML.
func (c comments) field(t reflect.Type, f reflect.StructField, yamlName string) string {
	text := c[t.Name()+"."+f.Name]
	if rest, ok := strings.CutPrefix(text, f.Name+" "); ok {
		return yamlName + " " + rest
	}
	return text
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// elem is the type behind pointers.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
