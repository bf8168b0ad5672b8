package repotest

// The pages for contributors name identifiers of the code. A renamed identifier must not stay on a page.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	word = regexp.MustCompile(`\w+`)
	// identifier matches names such as walk, auditRun, status.Status, Handler.Now and clusters().
	identifier = regexp.MustCompile("^\\w+(\\.\\w+)*(\\(\\))?$")
	// declaredIn matches an identifier with its file. methodOf matches a type that has methods.
	declaredIn = regexp.MustCompile("`(\\w+)`\\s+(?:in|of)\\s+`([\\w/.]+\\.go)`")
	methodOf   = regexp.MustCompile("method\\s+of\\s+`(\\w+)`")
)

func TestPagesNameIdentifiersThatExist(t *testing.T) {
	t.Chdir(root)
	words, types := map[string]bool{}, map[string]bool{}
	tracked, err := exec.Command("git", "ls-files").Output()
	require.NoError(t, err)
	for file := range strings.Lines(string(tracked)) {
		file = strings.TrimSpace(file)
		if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".tmpl") && !strings.HasSuffix(file, ".yaml") {
			continue
		}
		body, err := os.ReadFile(filepath.FromSlash(file))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		for _, w := range word.FindAllString(string(body), -1) {
			words[w] = true
		}
		for _, declared := range regexp.MustCompile(`(?m)^type (\w+)`).FindAllStringSubmatch(string(body), -1) {
			types[declared[1]] = true
		}
	}
	named := 0
	for _, page := range []string{"CONTRIBUTING.md", "docs/architecture.md", "local/README.md"} {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(body), -1) {
			if !identifier.MatchString(span[1]) || strings.HasSuffix(span[1], ".go") {
				continue
			}
			for _, w := range word.FindAllString(span[1], -1) {
				if strings.ContainsFunc(w, unicode.IsUpper) && strings.ContainsFunc(w, unicode.IsLower) {
					assert.True(t, words[w], "%s names %s, and no file has the word %s", page, span[1], w)
					named++
				}
			}
		}
		for _, found := range declaredIn.FindAllStringSubmatch(string(body), -1) {
			source, err := os.ReadFile(filepath.FromSlash(found[2]))
			if os.IsNotExist(err) {
				continue // a file without its folder
			}
			require.NoError(t, err)
			assert.Regexp(t, `\b`+found[1]+`\b`, string(source), "%s names %s in %s", page, found[1], found[2])
			named++
		}
		for _, found := range methodOf.FindAllStringSubmatch(string(body), -1) {
			assert.True(t, types[found[1]] || strings.Contains(found[1], "."), "%s names the type %s", page, found[1])
			named++
		}
	}
	require.Greater(t, named, 80)
}
