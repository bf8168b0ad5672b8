package cli

// The plan of a rollout, from files alone.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

func rolloutPlanCommand() *cobra.Command {
	var output *outputFlag
	var facts, at string
	cmd := &cobra.Command{
		Use:   "plan FILE [FILE...]",
		Short: "Show the plan of a rollout: its stages, their clusters and what is left out; offline",
		Long: `Expands the rollout of the first FILE over the known clusters. Equal input gives equal output, so that a pull request can show it.

Clusters come from the specs among the other files and folders, or from a JSON list of facts (--facts). By default they are the specs
of the folder clusters next to the rollout's folder, as in the specs bucket. Releases, and a rollout that the rollout is like, come
from the files or from there. Specs imply that each cluster has the release of its spec. Freezes among the files hold clusters at the
time of --at.`,
		Example: `  drover rollout plan rollouts/kubernetes-1.37.yaml
  drover rollout plan rollouts/kubernetes-1.37.yaml clusters releases -o wide
  drover rollout plan rollouts/nodes.yaml --facts facts.json -o json`,
		Annotations:       ExitCodes("the plan changes no cluster", "an error, also if a stage has no cluster", "the plan changes clusters"),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := planFiles(args, facts, at)
			if err != nil {
				return err
			}
			if output.forMachines() {
				err = output.print(cmd.OutOrStdout(), p)
			} else {
				p.print(cmd.OutOrStdout(), output.format == formatWide)
			}
			if err == nil && p.Members > 0 {
				err = errFindings
			}
			return err
		},
	}
	cmd.Flags().StringVar(&facts, "facts", "", "a JSON file with facts of clusters, instead of their specs")
	cmd.Flags().StringVar(&at, "at", "", "the time for windows and freezes, such as 2026-11-26T10:00:00Z; default: of the newest fact")
	completeFlag(cmd, "facts", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "at", cobra.NoFileCompletions)
	output = addOutputFlag(cmd, formatWide)
	return cmd
}

// plannedRollout is the plan of a rollout, and what a reader wants to know in addition.
type plannedRollout struct {
	// Digest of the plan. It depends on nothing else in this document.
	Digest  string `json:"digest"`
	Members int    `json:"members"`
	// LeastTime is the shortest time of a run, without the time of the upgrades themselves and without waits.
	LeastTime string        `json:"leastTime"`
	Plan      *rollout.Plan `json:"plan"`
	// WillWait are members that cannot start yet.
	WillWait []rollout.Wait `json:"willWait,omitempty"`
}

// planFiles plans the rollout of the first file.
func planFiles(sources []string, factsFile, at string) (*plannedRollout, error) {
	first, err := readManifest(sources[0])
	switch {
	case err != nil:
		return nil, err
	case first.rollout == nil:
		return nil, fmt.Errorf("%s is of kind %s: name the file of a rollout first", sources[0], kindOr(first.data, api.KindCluster))
	}
	others, err := readFleet(sources)
	if err != nil {
		return nil, err
	}
	files := sortFiles(others)
	files.rollouts[first.name] = first.rollout
	if err := files.addNeighbors(first, factsFile == ""); err != nil {
		return nil, err
	}
	facts := files.facts()
	if factsFile != "" {
		if len(files.clusters) > 0 {
			return nil, errors.New("clusters come from specs or from --facts: name only one of them")
		}
		if facts, err = readFacts(factsFile); err != nil {
			return nil, err
		}
	}
	when, err := planTime(at, facts)
	if err != nil {
		return nil, err
	}
	located := func(errs api.Errors) error { return errs.In(first.file, first.data).Err() }
	full, errs := rollout.WithStages(first.rollout, files.rollouts)
	if len(errs) > 0 {
		return nil, located(errs)
	}
	subject, errs := rollout.SubjectOf(full, files.releases)
	if len(errs) > 0 {
		return nil, located(errs)
	}
	p, errs := rollout.Compute(full, subject, facts)
	if len(errs) > 0 {
		return nil, located(errs)
	}
	planned := newPlanned(p)
	planned.WillWait = rollout.Waits(p, facts, files.freezes, when)
	return planned, nil
}

// PrintPlan prints a plan in the format of drover rollout plan.
func PrintPlan(w io.Writer, p *rollout.Plan) { newPlanned(p).print(w, false) }

func newPlanned(p *rollout.Plan) *plannedRollout {
	return &plannedRollout{Digest: p.Digest(), Members: p.Size(), LeastTime: rollout.Duration(p.Least()).String(), Plan: p}
}

// kindOr returns the kind of a file, or the given one if it states none.
func kindOr(data []byte, otherwise string) string {
	if kind := api.KindOf(data); kind != "" {
		return kind
	}
	return otherwise
}

// planTime returns the time of --at, or that of the newest fact. It is zero if no fact has one.
func planTime(at string, facts []rollout.Fact) (when time.Time, err error) {
	if at != "" {
		if when, err = time.Parse(time.RFC3339, at); err != nil {
			return when, fmt.Errorf("--at: %q is not a time: use the form 2026-11-26T10:00:00Z", at)
		}
		return when, nil
	}
	for _, f := range facts {
		if f.Observed.After(when) {
			when = f.Observed
		}
	}
	return when, nil
}

// addNeighbors adds files that the rollout needs and that were not given, from the folders that the specs bucket has.
func (f *fleetFiles) addNeighbors(r manifest, needsClusters bool) error {
	if r.file == standardInput {
		return nil
	}
	folder := filepath.Dir(r.file)
	neighbor := func(parts ...string) string {
		return filepath.Join(append([]string{filepath.Dir(folder)}, parts...)...)
	}
	var sources []string
	if like := r.rollout.Spec.Like; like != "" && f.rollouts[like] == nil {
		sources = append(sources, filepath.Join(folder, like+".yaml"))
	}
	for _, name := range r.rollout.Spec.Subject.Names() {
		if _, found := f.releases[name]; !found {
			sources = append(sources, neighbor("releases", name+".yaml"))
		}
	}
	if needsClusters && len(f.clusters) == 0 {
		sources = append(sources, neighbor("clusters"))
	}
	sources = slices.DeleteFunc(sources, func(source string) bool {
		_, err := os.Stat(source)
		return os.IsNotExist(err) // reported as a missing object
	})
	more, err := readFleet(sources)
	if err != nil {
		return err
	}
	if f.add(more); !needsClusters {
		return nil
	}
	if len(f.clusters) == 0 {
		return fmt.Errorf("there are no clusters: name specs or a folder of specs, or use --facts; %s has none", neighbor("clusters"))
	}
	// The release of a spec gives the Kubernetes version of its cluster.
	return f.addReleases(neighbor("releases"))
}

// addReleases adds the releases that the specs of clusters name, from the folder of releases next to that of the rollout.
func (f *fleetFiles) addReleases(folder string) error {
	var sources []string
	for _, c := range f.clusters {
		name := c.Spec.Release.Name
		file := filepath.Join(folder, name+".yaml")
		if _, found := f.releases[name]; found || slices.Contains(sources, file) {
			continue
		}
		if _, err := os.Stat(file); err == nil {
			sources = append(sources, file)
		}
	}
	more, err := readFleet(sources)
	f.add(more)
	return err
}

// print writes the plan as text.
func (p *plannedRollout) print(w io.Writer, wide bool) {
	plan := p.Plan
	var releases []string
	for _, r := range plan.Subject.Releases {
		releases = append(releases, fmt.Sprintf("%s@%.12s", r.Name, r.SHA256))
	}
	fmt.Fprintf(w, "%s: release %s\n", plan.Rollout, strings.Join(releases, ", "))
	fmt.Fprintf(w, "plan %s\n", p.Digest)
	fmt.Fprintf(w, "%s in %s, %d left out, at least %s\n", view.Count(p.Members, "cluster"), view.Count(len(plan.Stages), "stage"),
		len(plan.LeftOut), inUnits(plan.Least()))
	stages := &view.Table{Columns: []view.Column{
		{Title: "NO"}, {Title: "STAGE"}, {Title: "CLUSTERS"}, {Title: "AT ONCE"}, {Title: "FAILURES"}, {Title: "SETTLE"}, {Title: "SOAK"},
		{Title: "DEADLINE"}, {Title: "GATES"},
	}}
	for i := range plan.Stages {
		s := &plan.Stages[i]
		stages.Add(view.Text(fmt.Sprint(s.Number)), view.Text(s.Name), view.Text(fmt.Sprint(len(s.Members))), view.Text(fmt.Sprint(s.Parallel())),
			view.Text(failures(s)), view.Text(inUnits(time.Duration(s.Settle))), view.Text(inUnits(time.Duration(s.Soak))),
			view.Text(inUnits(time.Duration(s.Deadline))), view.Text(gates(s)))
	}
	writeTable(w, stages)
	if wide {
		members := &view.Table{Columns: []view.Column{{Title: "NO"}, {Title: "CLUSTER"}, {Title: "FROM"}, {Title: "TO"}, {Title: "KUBERNETES"}}}
		for i := range plan.Stages {
			for _, m := range plan.Stages[i].Members {
				version := m.From.KubernetesVersion
				if m.To.KubernetesVersion != version {
					version += " → " + m.To.KubernetesVersion
				}
				members.Add(view.Text(fmt.Sprint(plan.Stages[i].Number)), view.Text(m.Cluster), view.Text(m.From.Release), view.Text(m.To.Release),
					view.Text(version))
			}
		}
		writeTable(w, members)
	}
	left := &view.Table{Columns: []view.Column{{Title: "LEFT OUT"}, {Title: "REASON"}, {Title: "MESSAGE"}}}
	for _, l := range plan.LeftOut {
		left.Add(view.Text(l.Cluster), view.Text(string(l.Reason)), view.Text(l.Message))
	}
	writeTable(w, left)
	waits := &view.Table{Columns: []view.Column{{Title: "WILL WAIT"}, {Title: "REASON"}, {Title: "UNTIL"}}}
	for _, wait := range p.WillWait {
		until := "-"
		if !wait.Until.IsZero() {
			until = wait.Until.UTC().Format(time.RFC3339)
		}
		waits.Add(view.Text(wait.Cluster), view.Text(string(wait.Reason)), view.Text(until))
	}
	writeTable(w, waits)
}

// writeTable writes a table below an empty line, unless it has no rows. The text does not depend on the terminal.
func writeTable(w io.Writer, t *view.Table) {
	if len(t.Rows) > 0 {
		fmt.Fprintln(w)
		t.Write(w, 0, false)
	}
}

// failures describes the failure budget of a stage.
func failures(s *rollout.Stage) string {
	text := fmt.Sprint(s.MaxFailures)
	if s.SharedFailures && s.Name != s.FromStage && s.MaxFailures > 0 {
		text += " in all of " + s.FromStage
	}
	if s.Budget == api.BudgetSoft {
		text += ", Soft"
	}
	return text
}

// gates describes what a stage waits for in addition to the stage before.
func gates(s *rollout.Stage) string {
	var all []string
	if len(s.Before) > 0 {
		all = append(all, "approval before")
	}
	if s.Window != nil {
		all = append(all, "window")
	}
	if len(s.Alarms) > 0 {
		all = append(all, view.Count(len(s.Alarms), "alarm"))
	}
	if len(s.After) > 0 {
		all = append(all, "approval after")
	}
	if s.Parallel() < min(s.MaxConcurrency, len(s.Members)) {
		all = append(all, fmt.Sprintf("maxConcurrency %d is not reached with Strict", s.MaxConcurrency))
	}
	return strings.Join(all, ", ")
}

// inUnits formats a duration in all of its units, such as "4d19h" and "15m".
func inUnits(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if n := d / unit.length; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit.name)
			d -= n * unit.length
		}
	}
	return b.String()
}
