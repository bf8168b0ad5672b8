package cli

// Comparisons of plans: the newest with that of the run, and that of a file with the newest.

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// planDifference is a plan, and how it differs from another.
type planDifference struct {
	*plannedRollout
	// Than is the digest of the other plan, and empty if there is none. What says which plan that is.
	Than string `json:"than,omitempty"`
	What string `json:"what"`
	// Difference in sentences.
	Difference []string `json:"difference"`
}

// differs reports whether the plan changes a cluster and is another one.
func (d *planDifference) differs() bool { return d.Digest != d.Than && (d.Members > 0 || d.Than != "") }

func (d *planDifference) print(w io.Writer, wide bool) {
	d.plannedRollout.print(w, wide)
	switch {
	case d.Than == "":
		fmt.Fprintf(w, "\nthere is no %s to compare it with\n", d.What)
	case d.Than == d.Digest:
		fmt.Fprintf(w, "\nthe %s is the same\n", d.What)
	default:
		fmt.Fprintf(w, "\ndifference to the %s, %s:\n", d.What, d.Than)
		for _, line := range d.Difference {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

func rolloutDiffCommand() *cobra.Command {
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show the newest plan of a rollout, and how it differs from the plan of the newest run",
		Long: `Shows the newest plan of a rollout, as ` + "`drover rollout plan`" + ` prints it, and how it differs from the plan of the newest
run. Read it before you start a run: a start names the digest of this plan.`,
		Example: `  drover rollout diff kubernetes-1.37
  drover rollout diff kubernetes-1.37 -o wide`,
		Annotations: ExitCodes("the newest run has this plan, or the plan changes no cluster", "an error, also if there is no plan",
			"the plan is another one than that of the newest run"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(rolloutNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			d, err := diffRun(cmd.Context(), c.State, args[0])
			if err != nil {
				return err
			}
			return printDifference(cmd.OutOrStdout(), output, d)
		},
	}
	output = addOutputFlag(cmd, formatWide)
	return cmd
}

func printDifference(w io.Writer, output *outputFlag, d *planDifference) error {
	if !output.forMachines() {
		d.print(w, output.format == formatWide)
	} else if err := output.print(w, d); err != nil {
		return err
	}
	if d.differs() {
		return errFindings
	}
	return nil
}

// diffRun compares the newest plan of a rollout with that of its newest run.
func diffRun(ctx context.Context, state *store.State, name string) (*planDifference, error) {
	s, err := readRollout(ctx, state, name)
	switch {
	case err != nil:
		return nil, err
	case s.Plan == nil:
		return nil, fmt.Errorf("%s has no plan: %s", name, s.Message)
	}
	newest, err := state.RolloutPlan(ctx, s.Plan.Digest)
	if err != nil {
		return nil, err
	}
	d := &planDifference{plannedRollout: newPlanned(newest), What: "plan of a run", Difference: []string{}}
	if s.Run != nil {
		d.What, d.Than = fmt.Sprintf("plan of run %d", s.Run.Number), s.Run.Plan
		ran, err := state.RolloutPlan(ctx, s.Run.Plan)
		if err != nil {
			return nil, err
		}
		d.Difference = append(d.Difference, newest.Difference(ran)...)
	}
	return d, nil
}

// diffRollout plans the rollout of a file over the clusters that drover observed, and compares that with the newest plan.
func (c *Cell) diffRollout(ctx context.Context, m manifest) (*planDifference, error) {
	report, _, err := c.State.CellReport(ctx, names.Cell(c.render.Account, c.render.Region))
	switch {
	case err != nil:
		return nil, err
	case report == nil:
		return nil, errors.New("drover has not observed the clusters of this account and region yet: wait some minutes, or plan it offline " +
			"with `drover rollout plan`")
	}
	full, err := withStages(ctx, c.Specs, m)
	if err != nil {
		return nil, err
	}
	contents := map[string]rollout.Content{}
	for _, name := range full.Spec.Subject.Names() {
		object, err := c.Specs.Get(ctx, names.ReleaseSpec(name), api.MaxFile)
		if errors.Is(err, store.ErrNotFound) {
			continue // SubjectOf reports it with its line
		} else if err != nil {
			return nil, err
		}
		release, errs := api.ReadRelease(names.ReleaseSpec(name), object.Body, options(name))
		if len(errs) > 0 {
			return nil, errs.Err()
		}
		contents[name] = rollout.ContentOf(release, object.Body)
	}
	located := func(errs api.Errors) error { return errs.In(m.file, m.data).Err() }
	subject, errs := rollout.SubjectOf(full, contents)
	if len(errs) > 0 {
		return nil, located(errs)
	}
	p, errs := rollout.Compute(full, subject, report.Facts)
	if len(errs) > 0 {
		return nil, located(errs)
	}
	planned := newPlanned(p)
	planned.WillWait = rollout.Waits(p, report.Facts, nil, report.At)
	d := &planDifference{plannedRollout: planned, What: "newest plan", Difference: []string{}}
	s, _, err := c.State.RolloutStatus(ctx, m.name)
	if err != nil || s == nil || s.Plan == nil {
		return d, err
	}
	newest, err := c.State.RolloutPlan(ctx, s.Plan.Digest)
	if err != nil {
		return nil, err
	}
	d.Than, d.Difference = s.Plan.Digest, append(d.Difference, p.Difference(newest)...)
	return d, nil
}

// withStages returns the rollout of a file with its stages. Those of another rollout come from the specs bucket.
func withStages(ctx context.Context, specs uploads, m manifest) (*api.Rollout, error) {
	others := map[string]*api.Rollout{m.name: m.rollout}
	if like := m.rollout.Spec.Like; like != "" {
		object, err := specs.Get(ctx, names.Rollout(like), api.MaxFile)
		switch {
		case errors.Is(err, store.ErrNotFound): // WithStages reports it with its line
		case err != nil:
			return nil, err
		default:
			other, errs := api.ReadRollout(names.Rollout(like), object.Body, api.Options{Name: like})
			if len(errs) > 0 {
				return nil, errs.Err()
			}
			others[like] = other
		}
	}
	full, errs := rollout.WithStages(m.rollout, others)
	if len(errs) > 0 {
		return nil, errs.In(m.file, m.data).Err()
	}
	return full, nil
}
