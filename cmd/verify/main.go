// Command verify proves drover in an AWS account: make verify. It deploys drover, creates clusters, changes and deletes them, and removes
// drover. Each step prints PASS, FAIL or SKIP. A report goes to a file. It uses the caller's AWS credentials.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/cmd/verify/steps"
)

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var options steps.Options
	var clean bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Prove drover in the AWS account of your credentials", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			if clean {
				return cleanup(options)
			}
			return verify(options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Drover, "drover", "build/drover", "the command drover")
	flags.StringVar(&options.Deploy, "deploy", "build/deploy", "the command deploy")
	flags.StringVar(&options.App, "app", "", "folder of a synthesized cloud assembly (default: the CDK app is synthesized)")
	flags.StringVar(&options.Dir, "dir", "build/verify", "folder of the report and of the specs")
	flags.StringVar(&options.Kubernetes, "kubernetes", "", "the newer of the two minor versions (default: EKS's default version)")
	flags.BoolVar(&clean, "clean", false, "only remove what earlier runs left")
	return cmd
}

// contexts returns the context of the steps, which the first interrupt ends, and that of the cleanup, which the second ends.
func contexts() (ctx, cleanup context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	cleanup, abort := context.WithCancel(context.Background())
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		fmt.Println("interrupted: cleaning up; interrupt again to stop at once, and then run make verify-clean")
		cancel()
		<-interrupts
		abort()
	}()
	return ctx, cleanup, func() { signal.Stop(interrupts); cancel(); abort() }
}

// verify runs all steps and writes the report.
func verify(options steps.Options) error {
	ctx, cleaning, stop := contexts()
	defer stop()
	meter := &runner.Meter{}
	target, err := steps.Open(ctx, options, meter)
	if err != nil {
		return err
	}
	version, err := target.Version(ctx)
	if err != nil {
		return err
	}
	run := &runner.Run{Clock: time.Now, Meter: meter, Show: func(line string) { fmt.Println(line) }}
	began := time.Now()
	if err := run.Do(ctx, cleaning, target.All()); err != nil {
		return err
	}
	account := "AWS"
	if target.Simulated {
		account = "a local account, which simulates AWS; times and costs are not those of AWS"
	}
	about := runner.About{
		{"drover", version}, {"account", account}, {"region", target.Region}, {"began", began.UTC().Format(time.RFC3339)},
		{"took", time.Since(began).Round(time.Second).String()},
	}
	file := filepath.Join(options.Dir, "report.md")
	report := run.Report(about, time.Now(), target.Redactor())
	if err := errors.Join(os.MkdirAll(options.Dir, 0o755), os.WriteFile(file, []byte(report), 0o644)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Println()
	for _, result := range run.Results {
		fmt.Println(firstLine(runner.Line(result)))
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped. The report, without account ID and secrets: %s\n", run.Count(runner.Passed),
		run.Count(runner.Failed), run.Count(runner.Skipped), file)
	return verdict(run)
}

// cleanup removes what earlier runs left.
func cleanup(options steps.Options) error {
	ctx, _, stop := contexts()
	defer stop()
	meter := &runner.Meter{}
	target, err := steps.Open(ctx, options, meter)
	if err != nil {
		return err
	}
	suffixes, err := target.Marked(ctx)
	if err != nil {
		return err
	}
	if len(suffixes) == 0 {
		fmt.Println("no run left anything in this account and region")
	}
	for _, suffix := range suffixes {
		target.Suffix = suffix
		run := &runner.Run{Clock: time.Now, Meter: meter, Show: func(line string) { fmt.Println(line) }}
		if err := errors.Join(run.Do(ctx, ctx, target.Cleanup()), verdict(run)); err != nil {
			return err
		}
	}
	return nil
}

// verdict is an error unless nothing failed.
func verdict(run *runner.Run) error {
	if !run.Failed() {
		return nil
	}
	return fmt.Errorf("%d steps failed", run.Count(runner.Failed))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
