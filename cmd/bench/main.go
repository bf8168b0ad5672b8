// Command bench measures the figures that drover promises. It prints each with its limit or its comparison as a table, and writes JSON
// lines to build/bench.jsonl. It needs the output of make local and no network. It exits with 1 if a limit is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// section measures related figures.
type section struct {
	name    string
	measure func(context.Context, *settings, *report) error
}

// sections in the order in which they must run: the functions are measured in an account without clusters, and the section of an unchanged
// cluster uses the one that was created before.
var sections = []section{
	{"render", measureRender}, {"functions", measureFunctions}, {"create", measureCreate}, {"unchanged", measureUnchanged},
	{"run", measureRun}, {"fleet", measureFleet}, {"fleet-compare", measureComparison},
	{"drain", measureDrain}, {"roll", measureRoll}, {"upgrade", measureUpgrade}, {"sweep", measureSweep}, {"page", measurePage},
}

// settings of a run.
type settings struct {
	// root is the repository, and build its build folder. Both are absolute, because the S3 gateway changes the working directory.
	root, build string
	// count is the number of trials and of rounds of cold starts. starts is the number of cold starts in a round.
	count, starts int
	// drain matches the names of the drains to measure. tools matches the names of the tools to measure in addition to drover.
	drain, tools *regexp.Regexp
	// nodes to roll.
	nodes int
	// patience bounds the trials of kubectl in one case. 0 is no bound.
	patience time.Duration
	account  *localAccount
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&only, "only", "", "measure only these, separated by commas: "+strings.Join(sectionNames(), ", "))
	flags.StringVar(&s.root, "root", ".", "the root of the repository")
	drain := flags.String("drain", "", "measure only the drains whose names match this regular expression, such as '^240 pods$'")
	tools := flags.String("tools", "", "measure these drains only with drover and the tools whose names match, such as relay")
	flags.DurationVar(&s.patience, "patience", 0, "stop the trials of kubectl in one drain case after this time, such as 15s; 0 is no limit")
	flags.IntVar(&s.nodes, "nodes", 20, "the number of nodes to roll")
	flags.IntVar(&s.count, "count", 5, "the number of trials, and of rounds of cold starts; the demo runs half as often")
	flags.IntVar(&s.starts, "starts", 20, "the number of cold starts, and of warm invocations, of each function in a round")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if s.drain, err = regexp.Compile(*drain); err != nil {
		return fmt.Errorf("-drain: %w", err)
	}
	if s.tools, err = regexp.Compile(*tools); err != nil {
		return fmt.Errorf("-tools: %w", err)
	}
	if s.count < 1 || s.starts < 1 || s.nodes < surge {
		return fmt.Errorf("-count and -starts must be at least 1, -nodes at least %d", surge)
	}
	if s.root, err = filepath.Abs(s.root); err != nil {
		return err
	}
	s.build = filepath.Join(s.root, "build")
	r := &report{out: out, machine: describeMachine()}
	fmt.Fprintf(out, "%s\n", r.machine)
	defer func() { s.account.Close() }()
	for _, section := range chosen {
		r.begin(section.name)
		if err := section.measure(ctx, &s, r); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		r.table()
	}
	file := filepath.Join(s.build, "bench.jsonl")
	if err := os.WriteFile(file, r.lines(), 0o644); err != nil { // #nosec G306 -- nothing secret
		return err
	}
	fmt.Fprintf(out, "\nThe figures as JSON lines: %s\n", file)
	return r.missedError()
}

func sectionNames() []string {
	var all []string
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

// choose keeps the order of sections.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(sectionNames(), name) {
			return nil, fmt.Errorf("-only: %q is not a section; use one of %s", name, strings.Join(sectionNames(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(sections), func(s section) bool { return !slices.Contains(names, s.name) }), nil
}
