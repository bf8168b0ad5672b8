package main

// The last part of the demo is a rollout: a canary and two clusters of production get new node images. drover creates the three clusters
// while the demo cluster is rolled and upgraded, so that the demo waits for the rollout only.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
)

// fleetDemo is what is uploaded for the rollout.
type fleetDemo struct {
	clusters []fleetFile
	release  fleetFile
	rollout  fleetFile
	// base is the release with which the clusters are created: that of the demo's upgrade.
	base fleetFile
}

// fleetFile is a file of the folder.
type fleetFile struct {
	name string
	body []byte
}

// readFleetDemo reads the folder of --fleet: clusters, the next release and the rollout.
func readFleetDemo(o localOptions, d demo) (*fleetDemo, error) {
	f := &fleetDemo{}
	files, err := filepath.Glob(filepath.Join(o.fleet, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		named := fleetFile{strings.TrimSuffix(filepath.Base(file), ".yaml"), body}
		var errs api.Errors
		switch kind := api.KindOf(body); kind {
		case api.KindCluster:
			_, errs = api.ReadCluster(file, body, cli.FileOptions(file))
			f.clusters = append(f.clusters, named)
		case api.KindRelease:
			_, errs = api.ReadRelease(file, body, cli.FileOptions(file))
			f.release = named
		case api.KindRollout:
			_, errs = api.ReadRollout(file, body, cli.FileOptions(file))
			f.rollout = named
		default:
			return nil, fmt.Errorf("%s: the kind %q has no place in the folder of --fleet", file, kind)
		}
		if err := errs.Err(); err != nil {
			return nil, err
		}
	}
	if len(f.clusters) == 0 || f.release.body == nil || f.rollout.body == nil {
		return nil, fmt.Errorf("--fleet %s: the folder needs clusters, a release and a rollout, one in each file", o.fleet)
	}
	base, body, err := cli.ReadRelease(o.upgrade, o.demo, d.cluster)
	if err != nil {
		return nil, err
	}
	f.base = fleetFile{base.Metadata.Name, body}
	return f, nil
}

// create uploads the clusters. It does not wait for them.
func (f *fleetDemo) create(ctx context.Context, show *timeline, c *cli.Cell) error {
	if _, err := c.Specs.Put(ctx, names.ReleaseSpec(f.base.name), f.base.body); err != nil {
		return err
	}
	for _, cluster := range f.clusters {
		if _, err := c.Specs.Put(ctx, names.ClusterSpec(cluster.name), cluster.body); err != nil {
			return err
		}
		show.line("uploaded", cluster.name, "a cluster of the fleet, for the rollout at the end")
	}
	return nil
}

// run starts the rollout, approves each stage that needs it, and waits for the end.
func (f *fleetDemo) run(ctx context.Context, out io.Writer, show *timeline, a *account.Account, c *cli.Cell) error {
	fmt.Fprintln(out)
	show.Wait("the clusters of the fleet")
	for _, cluster := range f.clusters {
		s, err := awaitRest(ctx, c, cluster.name, cli.AnyUpload)
		if err != nil {
			return err
		}
		if s.Phase != status.Ready {
			return fmt.Errorf("%s is %s: %s", cluster.name, s.Phase, s.Message)
		}
	}
	if err := a.Settle(ctx); err != nil { // then drover has observed them
		return err
	}
	started := time.Now()
	name := f.rollout.name
	if _, err := c.Specs.Put(ctx, names.ReleaseSpec(f.release.name), f.release.body); err != nil {
		return err
	}
	show.line("uploaded", "", "release %s, with newer node images", f.release.name)
	if _, err := c.Specs.Put(ctx, names.Rollout(name), f.rollout.body); err != nil {
		return err
	}
	show.line("uploaded", "", "rollout %s", name)
	show.Wait("the plan")
	s, err := awaitRollout(ctx, c, name, func(s *rollout.Status) bool { return s.Plan != nil || len(s.Problems) > 0 })
	if err != nil {
		return err
	}
	if s.Plan == nil || s.Plan.Members != len(f.clusters) {
		return fmt.Errorf("the plan of rollout %s does not have the %d clusters of the fleet: %s %+v", name, len(f.clusters), s.Message,
			s.Problems)
	}
	plan, err := c.State.RolloutPlan(ctx, s.Plan.Digest)
	if err != nil {
		return err
	}
	show.Wait("")
	fmt.Fprintln(out)
	cli.PrintPlan(out, plan)
	fmt.Fprintln(out)
	if err := f.decide(ctx, show, c, api.DecisionSpec{Rollout: name, Verb: api.VerbStart, Plan: s.Plan.Digest}); err != nil {
		return err
	}
	run, err := f.follow(ctx, show, c, s.Plan.Digest)
	if err != nil {
		return err
	}
	took := time.Since(started)
	rows, err := (&overview.Reader{Objects: c.State}).Read(ctx)
	if err != nil {
		return err
	}
	show.Wait("")
	fmt.Fprintln(out)
	cli.PrintFleet(out, rows)
	for _, row := range rows {
		if f.has(row.Name) && row.Release != f.release.name {
			return fmt.Errorf("%s is at release %s after the rollout", row.Name, row.Release)
		}
	}
	fmt.Fprintf(out, "\nThe rollout %s moved %d clusters to release %s, %.1f s after the upload of the release. Production began %.1f s "+
		"after the canary had passed.\n", name, len(f.clusters), f.release.name, took.Seconds(), lead(run))
	return nil
}

func (f *fleetDemo) has(cluster string) bool {
	return slices.ContainsFunc(f.clusters, func(c fleetFile) bool { return c.name == cluster })
}

// lead returns the seconds from the end of the first stage to the start of the last.
func lead(run *rollout.RunStatus) float64 {
	first, last := run.Stages[0], run.Stages[len(run.Stages)-1]
	return last.Began.Sub(first.Passed).Seconds()
}

// follow prints the progress of each stage until the run is done. It approves a stage once, when the stage needs it.
func (f *fleetDemo) follow(ctx context.Context, show *timeline, c *cli.Cell, plan string) (*rollout.RunStatus, error) {
	name, approved, printed := f.rollout.name, map[string]bool{}, map[string]string{}
	say := func(key, text string) {
		if printed[key] != text {
			printed[key] = text
			cluster, ofMember := strings.CutPrefix(key, "member ")
			if !ofMember {
				cluster = ""
			}
			show.line("rollout", cluster, "%s", strings.TrimSpace(text))
		}
	}
	for {
		s, err := awaitRollout(ctx, c, name, func(s *rollout.Status) bool { return s.Run != nil })
		if err != nil {
			return nil, err
		}
		cli.SayRun(say, s.Run)
		switch {
		case s.Run.State == rollout.Done:
			return s.Run, nil
		case s.Run.State.Final() || s.Run.Halt != nil:
			return nil, fmt.Errorf("run %d of rollout %s is %s: %s", s.Run.Number, name, s.Run.State, s.Message)
		}
		show.Wait(s.Message)
		for i := range s.Run.Stages {
			stage := &s.Run.Stages[i]
			if stage.Needs == "" || approved[stage.Name] {
				continue
			}
			approved[stage.Name] = true
			if err := f.decide(ctx, show, c, api.DecisionSpec{
				Rollout: name, Verb: api.VerbApprove, Stage: stage.Name, Plan: plan, Reason: "the canary is well",
			}); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for rollout %s: %s", name, s.Message), ctx.Err())
		}
	}
}

// decide makes a decision as drover rollout does, and prints its answer.
func (f *fleetDemo) decide(ctx context.Context, show *timeline, c *cli.Cell, spec api.DecisionSpec) error {
	show.line("decision", "", "drover rollout %s --plan %.12s",
		strings.Join(strings.Fields(strings.ToLower(string(spec.Verb))+" "+spec.Rollout+" "+spec.Stage), " "), spec.Plan)
	show.Wait("the answer")
	answer, err := c.Decide(ctx, spec)
	if err != nil {
		return err
	}
	show.line("decision", "", "applied: %s", answer)
	return nil
}

// awaitRollout waits for a status of a rollout.
func awaitRollout(ctx context.Context, c *cli.Cell, name string, holds func(*rollout.Status) bool) (*rollout.Status, error) {
	for {
		s, _, err := c.State.RolloutStatus(ctx, name)
		if err != nil {
			return nil, err
		}
		if s != nil && holds(s) {
			return s, nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for rollout %s: %w", name, ctx.Err())
		}
	}
}
