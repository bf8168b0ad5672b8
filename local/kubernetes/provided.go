package kubernetes

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// providedFolder is the variable that names a folder with Kubernetes programs, as the tests of many Kubernetes projects use
// it. Build takes programs of the right version from there, and compiles the others.
const providedFolder = "KUBEBUILDER_ASSETS"

// versionTimeout bounds the run of a program that prints its version.
const versionTimeout = 20 * time.Second

var versionNumber = regexp.MustCompile(`v?(\d+\.\d+\.\d+[^\s,]*)`)

// takeProvided copies the programs in from that have the required version into bin. It returns the others.
func takeProvided(ctx context.Context, module, from, bin string, wanted []program, progress func(string)) (rest []program, err error) {
	for _, p := range wanted {
		file := filepath.Join(from, p.name)
		if _, err := os.Stat(file); err != nil || strings.HasPrefix(p.pkg, own) {
			rest = append(rest, p)
			continue
		}
		required, err := p.version(module)
		if err != nil {
			return nil, err
		}
		found, err := versionOf(ctx, file)
		if err == nil && found == required {
			if err := copyProgram(file, filepath.Join(bin, p.name)); err != nil {
				return nil, fmt.Errorf("copying %s: %w", file, err)
			}
			progress(fmt.Sprintf("using %s %s of %s", p.name, required, providedFolder))
			continue
		}
		if err != nil {
			progress(fmt.Sprintf("not using %s: its version is unknown: %v", file, err))
		} else {
			progress(fmt.Sprintf("not using %s: its version is %s, and %s is needed", file, found, required))
		}
		rest = append(rest, p)
	}
	return rest, nil
}

// version returns the version of a program that the nested module requires, without a leading v.
func (p program) version(module string) (string, error) {
	if strings.HasPrefix(p.pkg, "k8s.io/kubernetes/") {
		return strings.TrimPrefix(Version, "v"), nil
	}
	body, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("finding the module of the Kubernetes programs: %w", err)
	}
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && (p.pkg == fields[0] || strings.HasPrefix(p.pkg, fields[0]+"/")) {
			return strings.TrimPrefix(fields[1], "v"), nil
		}
	}
	return "", fmt.Errorf("finding the version of %s: %s/go.mod does not require its module", p.name, module)
}

// versionOf runs a program for its version, without a leading v.
func versionOf(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	arguments := []string{"--version"}
	if filepath.Base(file) == "kubectl" {
		arguments = []string{"version", "--client"}
	}
	out, err := exec.CommandContext(ctx, file, arguments...).Output()
	if err != nil {
		return "", err
	}
	found := versionNumber.FindStringSubmatch(string(out))
	if found == nil {
		return "", fmt.Errorf("it printed no version")
	}
	return found[1], nil
}

// copyProgram copies a file, and renames it at the end: an interrupted copy never leaves a partial program.
func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	partial, err := os.CreateTemp(filepath.Dir(to), ".partial-")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name())
	if _, err := io.Copy(partial, source); err != nil {
		partial.Close()
		return err
	}
	if err := partial.Close(); err != nil {
		return err
	}
	if err := os.Chmod(partial.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(partial.Name(), to)
}
