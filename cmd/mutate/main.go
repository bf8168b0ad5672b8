// Command mutate runs gremlins over the packages whose tests must notice a changed operator. It prints a table, and fails if a package's
// tests notice too few changes. .gremlins.yaml says what gremlins changes. docs/reliability.md says how to read the result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

const gremlins = "github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0"

var packages = []string{
	"shared/drain", "shared/plan", "shared/upgrade", "shared/preflight", "shared/roll", "shared/store",
	"functions/change/handler", "functions/clean/handler", "functions/join/handler", "functions/report/handler",
}

// goCommand stands in for go while gremlins runs. gremlins counts a mutant as killed if go test exits with 1, and as not viable if it exits
// with 2. go test exits with 1 also if the mutant does not compile.
const goCommand = `#!/bin/sh
out=$(%q "$@" 2>&1)
code=$?
case $out in *'[build failed]'*) code=2 ;; esac
printf '%%s\n' "$out"
exit $code
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mutate(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func mutate(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	// go test compiles with several processes itself.
	workers := flags.Int("workers", max(1, runtime.NumCPU()/2), "the number of mutants to test at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := packages
	if flags.NArg() > 0 {
		chosen = nil
		for _, name := range flags.Args() {
			chosen = append(chosen, filepath.ToSlash(filepath.Clean(name)))
		}
	}
	folder, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := prepare(ctx, folder)
	if err != nil {
		return err
	}
	var counts []count
	for i, name := range chosen {
		fmt.Fprintf(out, "\n%s (%d of %d)\n", name, i+1, len(chosen))
		c, err := r.run(ctx, name, *workers, out)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		counts = append(counts, c)
	}
	fmt.Fprintln(out)
	printTable(out, counts)
	return belowLimit(counts)
}

// runner runs gremlins in a copy of the repository. gremlins copies the whole module for each worker, and the module's folder also holds
// what was built.
type runner struct {
	source, tools string
	environment   []string
}

func prepare(ctx context.Context, folder string) (*runner, error) {
	r := &runner{source: filepath.Join(folder, "source"), tools: filepath.Join(folder, "tools")}
	for _, name := range []string{r.source, r.tools} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return nil, err
		}
	}
	if err := copyFiles(ctx, r.source); err != nil {
		return nil, err
	}
	goPath, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, goPath, "install", gremlins)
	install.Env = append(os.Environ(), "GOBIN="+r.tools)
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return nil, fmt.Errorf("install gremlins: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.tools, "go"), fmt.Appendf(nil, goCommand, goPath), 0o755); err != nil {
		return nil, err
	}
	// gremlins derives each mutant's time limit from the first run of the tests. That run must not be a cached result.
	r.environment = append(os.Environ(), "PATH="+r.tools+string(os.PathListSeparator)+os.Getenv("PATH"), "GOFLAGS=-count=1", "TMPDIR="+folder)
	return r, nil
}

// copyFiles copies what git tracks, and new files that it does not ignore.
func copyFiles(ctx context.Context, to string) error {
	listed, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("listing the files of the repository: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) run(ctx context.Context, name string, workers int, out io.Writer) (count, error) {
	result := filepath.Join(r.tools, "result.json")
	if err := os.RemoveAll(result); err != nil {
		return count{}, err
	}
	command := exec.CommandContext(ctx, filepath.Join(r.tools, "gremlins"), "unleash", "--workers", strconv.Itoa(workers),
		"--output", result, "./"+name)
	command.Dir, command.Env, command.Stdout, command.Stderr = r.source, r.environment, out, os.Stderr
	if err := command.Run(); err != nil {
		return count{}, fmt.Errorf("running gremlins: %w", err)
	}
	data, err := os.ReadFile(result)
	if err != nil {
		return count{}, fmt.Errorf("gremlins found nothing to change: %w", err)
	}
	return parse(name, data)
}
