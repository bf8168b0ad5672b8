// Command reference writes docs/reference: a JSON Schema of each kind for editors, and a field reference in Markdown. Both
// come from the Go types: doc comments, json tags and rules. Run it from the top of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("shared/api", "docs/reference"); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write generates the files from the source of package api.
func write(source, target string) error {
	files, err := generate(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(target, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
