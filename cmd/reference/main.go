// Command reference generates documents from comments in the source. docs/reference has a JSON Schema for editors and a field reference in
// Markdown for each kind and for the status of rollouts, from the doc comments, json tags and rules of the Go types. local/FIDELITY.md has
// the package comments of the local account. Run it from the root of the repository.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

func main() {
	err := errors.Join(write("shared/api", "examples", "docs/reference"), writeFidelity("local"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write generates the files from the source of package api.
func write(source, examples, target string) error {
	files, err := generate(source, examples)
	if err != nil {
		return err
	}
	status, err := generateStatus(filepath.Join(filepath.Dir(source), "rollout"))
	if err != nil {
		return err
	}
	maps.Copy(files, status)
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

func writeFidelity(local string) error {
	page, err := fidelity(local)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(local, "FIDELITY.md"), page, 0o644)
}
