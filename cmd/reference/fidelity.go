package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// fidelityTitle starts local/FIDELITY.md.
const fidelityTitle = `<!-- Generated from the package comments below local/ by go run ./cmd/reference. -->

# What the local account has, and what it has not

A call, a property or a resource type that is not known here is an error that names it, never a silent success.
The exception is what a section calls stored without effect. Each section is what a package says of itself; the code
cites the AWS page that each behavior follows.
`

// fidelity returns a page with the package comments of the local account, one section for each package.
func fidelity(local string) ([]byte, error) {
	sections, fset := map[string]string{}, token.NewFileSet()
	var order []string
	err := filepath.WalkDir(local, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(local, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if _, seen := sections[name]; !seen {
			order = append(order, name)
			sections[name] = ""
		}
		if file.Name.Name != "main" && strings.HasPrefix(file.Doc.Text(), "Package ") {
			sections[name] += sectionOf(file.Doc)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(fidelityTitle)
	for _, name := range order {
		if sections[name] != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s", name, sections[name])
		}
	}
	return b.Bytes(), nil
}

func sectionOf(doc *ast.CommentGroup) string {
	var p comment.Parser
	printer := comment.Printer{HeadingLevel: 3, HeadingID: func(*comment.Heading) string { return "" }}
	return wrapLines(string(printer.Markdown(p.Parse(doc.Text()))))
}

// maxLine is the longest line of Markdown, in characters, where a word fits into it.
const maxLine = 120

// wrapLines breaks long lines of Markdown between words. The rest of a list item stays in it.
func wrapLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", len(line)-len(body))
		rest := indent
		if strings.HasPrefix(body, "- ") {
			rest += "  "
		}
		if utf8.RuneCountInString(line) <= maxLine {
			b.WriteString(line)
			continue
		}
		used := 0
		for i, word := range strings.Fields(body) {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
				b.WriteString(indent)
				used = len(indent)
			case used+1+n > maxLine:
				b.WriteString("\n" + rest)
				used = len(rest)
			default:
				b.WriteString(" ")
				used++
			}
			b.WriteString(word)
			used += n
		}
		b.WriteString("\n")
	}
	return b.String()
}
