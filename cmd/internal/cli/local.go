package cli

// The local account is a separate program, drover-local. drover therefore links no simulator.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// localProgram is the name of the program that runs the local account. drover looks for it in its own folder, then in PATH.
const localProgram = "drover-local"

// localCommand replaces this process with drover-local. That program receives all flags and signals, and sets the exit code.
func localCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "local",
		Short:              "Run an AWS account on this machine, with drover deployed in it",
		DisableFlagParsing: true,
		ValidArgsFunction:  completeLocal,
		RunE:               func(_ *cobra.Command, args []string) error { return runLocal(args) },
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if err := runLocal([]string{"--help"}); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "drover:", err)
		}
	})
	return cmd
}

// runLocal returns only if drover-local cannot be started.
func runLocal(args []string) error {
	program, err := findLocal()
	if err != nil {
		return err
	}
	if err := syscall.Exec(program, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	return nil
}

// findLocal returns the path of drover-local. It searches the folder of drover, the folder that a link to drover resolves to, and PATH.
func findLocal() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	places := []string{own}
	if file, err := filepath.EvalSymlinks(own); err == nil {
		places = append(places, file)
	}
	for _, place := range places {
		if found, err := exec.LookPath(filepath.Join(filepath.Dir(place), localProgram)); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath(localProgram)
	if err != nil {
		return "", fmt.Errorf("%s is missing: `drover local` runs it from %s or from PATH; build it in a clone of drover with `make local`, "+
			"or with `go build -o %s ./cmd/drover-local`",
			localProgram, filepath.Dir(own), filepath.Join(filepath.Dir(own), localProgram))
	}
	return found, nil
}

// completeLocal runs drover-local to complete an argument or a flag.
func completeLocal(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	program, err := findLocal()
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	ask := exec.CommandContext(ctx, program, append(append([]string{cobra.ShellCompRequestCmd}, args...), typed)...)
	ask.Stderr = io.Discard
	answer, err := ask.Output()
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, directive, err := parseCompletion(answer)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	return found, directive
}

// parseCompletion parses the output of cobra's completion command: one candidate a line, then a colon and the directive.
func parseCompletion(answer []byte) ([]cobra.Completion, cobra.ShellCompDirective, error) {
	lines := strings.Split(string(bytes.TrimRight(answer, "\n")), "\n")
	last := len(lines) - 1
	number, ok := strings.CutPrefix(lines[last], ":")
	directive, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp, errors.New(localProgram + " did not answer with a list of candidates")
	}
	return lines[:last], cobra.ShellCompDirective(directive), nil
}
