package cli

// Exit codes, and how each command documents its own in --help.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of the command. docs/cli.md documents them.
const (
	exitDone   = 0
	exitFailed = 1
	// exitFindings is a result that automation must notice: diff found changes, or a dry run could not check everything.
	exitFindings = 2
)

// codedError is an error with an exit code of its own.
type codedError interface{ ExitCode() int }

// printedResult ends the command with an exit code. The command has printed its result before.
type printedResult struct{ code int }

func (p *printedResult) Error() string { return fmt.Sprintf("exit code %d", p.code) }

func (p *printedResult) ExitCode() int { return p.code }

var (
	errPrinted  = &printedResult{exitFailed}
	errFindings = &printedResult{exitFindings}
)

// exitCode returns the exit code of a command that ended with an error.
func exitCode(err error) int {
	var c codedError
	if errors.As(err, &c) {
		return c.ExitCode()
	}
	return exitFailed
}

// ExitCodesKey is the annotation of a command that documents its exit codes.
const ExitCodesKey = "exitCodes"

// ExitCodes documents the exit codes of a command, starting with 0. It is the value of cobra.Command.Annotations, and --help
// shows it.
func ExitCodes(meanings ...string) map[string]string {
	var lines []string
	for code, meaning := range meanings {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, meaning))
	}
	return map[string]string{ExitCodesKey: strings.Join(lines, "\n")}
}

// ShowExitCodes appends exit codes to the --help of a command and of its subcommands.
func ShowExitCodes(cmd *cobra.Command) {
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "{{with index .Annotations \"" + ExitCodesKey + "\"}}\nExit codes:\n{{.}}\n{{end}}")
}
