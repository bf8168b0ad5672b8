package main

// Commands in drover's messages.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// hint matches a drover command in a message. A quote or the end of a sentence ends the command.
	hint = regexp.MustCompile("\\bdrover (validate|render|diff|apply|delete|status|versions|upgrade|drain|roll|local)\\b((?: " +
		"[^\\s;,:`)\"]+)*)")
	verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
)

// Users can paste every command in a status, a notification or an error. It is complete, has names instead of placeholders, and its flags
// exist.
func TestCommandsInMessages(t *testing.T) {
	var bad []string
	found := 0
	for _, dir := range []string{"shared", "functions", "cmd/internal/cli", "cmd/drover-local"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				expression, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text, ok := constant(expression)
				for _, command := range hint.FindAllString(verb.ReplaceAllString(text, "demo"), -1) {
					found++
					if err := parseCommand(strings.TrimRight(command, ".")); err != nil {
						bad = append(bad, fmt.Sprintf("%s: %s: %s", path, command, err))
					}
				}
				return !ok
			})
			return nil
		}))
	}
	require.Empty(t, bad)
	require.Greater(t, found, 8)
	for _, bad := range []string{
		"drover upgrade", "drover upgrade with rollback", "drover upgrade CLUSTER --rollback", "drover upgrade demo --back",
	} {
		require.Error(t, parseCommand(bad), bad)
	}
}

// constant returns the text of a string literal or of a concatenation of literals.
func constant(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, first := constant(e.X)
		right, second := constant(e.Y)
		return left + right, first && second
	}
	return "", false
}

// parseCommand parses a command and validates its arguments. It does not run the command.
func parseCommand(command string) error {
	words := strings.Fields(command)[1:]
	cmd, rest, err := tree().Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	for _, arg := range cmd.Flags().Args() {
		if arg == strings.ToUpper(arg) {
			return fmt.Errorf("%s is a placeholder, not a name", arg)
		}
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
