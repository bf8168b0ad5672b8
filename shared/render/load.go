package render

// Loading templates: they are parsed once, and rejected if an interpolation could write anything other than an encoded value.

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/drover-run/drover/templates"
)

// load parses all template versions, once.
var load = sync.OnceValues(func() (map[string]*template.Template, error) {
	versions := map[string]*template.Template{}
	for _, version := range templates.Versions() {
		set, err := parseSet(templates.FS(), version)
		if err != nil {
			return nil, fmt.Errorf("templates/%s: %w", version, err)
		}
		versions[version] = set
	}
	return versions, nil
})

// parseSet parses the templates of a folder, each under its file name.
func parseSet(files fs.FS, folder string) (*template.Template, error) {
	set, err := template.New(folder).Option("missingkey=error").Funcs(encoders).ParseFS(files, path.Join(folder, "*.tmpl"))
	if err != nil {
		return nil, err
	}
	for _, t := range set.Templates() {
		if t.Tree == nil {
			continue
		}
		if err := checkEncoded(t.Name(), t.Root); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// checkEncoded returns an error for an interpolation whose last step is not an encoder of the file's language.
func checkEncoded(name string, root parse.Node) error {
	_, suffix, _ := strings.Cut(name, ".")
	allowed, ok := languages["."+suffix]
	if !ok {
		return fmt.Errorf("%s: the language of the file is not known by its name", name)
	}
	var walk func(parse.Node) error
	branch := func(list, elseList *parse.ListNode) error {
		if err := walk(list); err != nil {
			return err
		}
		if elseList == nil {
			return nil
		}
		return walk(elseList)
	}
	walk = func(node parse.Node) error {
		switch node := node.(type) {
		case *parse.ListNode:
			for _, child := range node.Nodes {
				if err := walk(child); err != nil {
					return err
				}
			}
			return nil
		case *parse.IfNode:
			return branch(node.List, node.ElseList)
		case *parse.RangeNode:
			return branch(node.List, node.ElseList)
		case *parse.WithNode:
			return branch(node.List, node.ElseList)
		case *parse.TextNode, *parse.CommentNode, *parse.TemplateNode, *parse.BreakNode, *parse.ContinueNode:
			return nil
		case *parse.ActionNode:
			if len(node.Pipe.Decl) > 0 { // an assignment writes nothing
				return nil
			}
			last := node.Pipe.Cmds[len(node.Pipe.Cmds)-1]
			if function, ok := last.Args[0].(*parse.IdentifierNode); ok && slices.Contains(allowed, function.Ident) {
				return nil
			}
			return fmt.Errorf("%s:%d: %s is not encoded: its last step must be one of %q", name, node.Line, node, allowed)
		}
		return fmt.Errorf("%s: %T is not allowed in a template", name, node)
	}
	return walk(root)
}
