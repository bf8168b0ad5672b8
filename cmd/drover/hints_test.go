package main

// What drover tells people to type.

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
	// hint is a command of drover's, as far as it goes: people quote it, or end the sentence.
	hint = regexp.MustCompile("\\bdrover (validate|render|diff|apply|delete|status|versions|upgrade|drain|roll|local)\\b((?: " +
		"[^\\s;,:`)\"]+)*)")
	verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
)

// Every command in a status, a notice or an error can be pasted: it is whole, with names and not words for them, and its flags are there.
func TestCommandsThatPeopleAreToldToTypeCanBeTyped(t *testing.T) {
	var bad []string
	found := 0
	for _, dir := range []string{"shared", "functions", "cmd/drover"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				literal, is := n.(*ast.BasicLit)
				if !is || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				for _, told := range hint.FindAllString(verb.ReplaceAllString(text, "demo"), -1) {
					found++
					if err := typed(strings.TrimRight(told, ".")); err != nil {
						bad = append(bad, fmt.Sprintf("%s: %s: %s", path, told, err))
					}
				}
				return true
			})
			return nil
		}))
	}
	require.Empty(t, bad)
	require.Greater(t, found, 8)
	for _, bad := range []string{
		"drover upgrade", "drover upgrade with rollback", "drover upgrade CLUSTER --rollback", "drover upgrade demo --back",
	} {
		require.Error(t, typed(bad), bad)
	}
}

// typed is what comes of a command before it does anything.
func typed(command string) error {
	words := strings.Fields(command)[1:]
	cmd, rest, err := root().Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	for _, arg := range cmd.Flags().Args() {
		if arg == strings.ToUpper(arg) {
			return fmt.Errorf("%s stands for a name, and nobody has such", arg)
		}
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
