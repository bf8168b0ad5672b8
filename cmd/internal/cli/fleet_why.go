package cli

// The fleet why command: why one cluster has what it has, and what it waits for.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// whyCluster is what is known of one cluster in the fleet.
type whyCluster struct {
	Cluster string `json:"cluster"`
	// Row is the summary of its status; nil if it has none.
	Row *overview.Row `json:"row,omitempty"`
	// Rollouts that select the cluster, by name.
	Rollouts []whyRollout `json:"rollouts"`
	// Assignment is what a run set for the cluster last; nil if none did.
	Assignment *rollout.CellAssignment `json:"assignment,omitempty"`
	// Freezes that hold the cluster now.
	Freezes []whyFreeze `json:"freezes"`
	// Fact is what drover observed last; nil if it has not observed the cluster.
	Fact *rollout.Fact `json:"fact,omitempty"`
}

// whyRollout is what a rollout means for one cluster.
type whyRollout struct {
	Name string `json:"name"`
	// Run and Stage of the cluster; 0 and empty if it is only in the newest plan, or left out of it.
	Run      int64            `json:"run,omitempty"`
	RunState rollout.RunState `json:"runState,omitempty"`
	Stage    string           `json:"stage,omitempty"`
	// Member is its state in the run.
	Member *rollout.MemberRun `json:"member,omitempty"`
	// LeftOut is why the newest plan does not change the cluster.
	LeftOut *rollout.LeftOut `json:"leftOut,omitempty"`
	// Meaning explains the state and the reason, Next is what a user has to do before the rollout continues.
	Meaning string `json:"meaning,omitempty"`
	Next    string `json:"next,omitempty"`
}

// whyFreeze is a freeze that holds the cluster.
type whyFreeze struct {
	Name   string    `json:"name"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

func fleetWhyCommand() *cobra.Command {
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "why CLUSTER",
		Short: "Explain one cluster: its release, the rollouts that select it, and what it waits for",
		Long: `Shows the health and the release of one cluster, its state in each rollout that selects it with the reason and what that means,
the freezes that hold it, and its window. It reads documents of the state bucket, and asks no cluster.`,
		Example: `  drover fleet why shop-eu-7
  drover fleet why shop-eu-7 -o json`,
		Annotations:       ExitCodes("the cluster is explained", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			why, err := explain(cmd.Context(), c.State, names.Cell(c.render.Account, c.render.Region), args[0], time.Now())
			if err != nil {
				return err
			}
			if output.forMachines() {
				return output.print(cmd.OutOrStdout(), why)
			}
			newDisplay(cmd.OutOrStdout(), false).why(why)
			return nil
		},
	}
	output = addOutputFlag(cmd)
	return cmd
}

// explain reads what is known of one cluster.
func explain(ctx context.Context, state *store.State, cell, cluster string, now time.Time) (*whyCluster, error) {
	w := &whyCluster{Cluster: cluster, Rollouts: []whyRollout{}, Freezes: []whyFreeze{}}
	document, err := state.Status(ctx, cluster)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknown(cluster)
	case unreadable(err):
		row := overview.Unreadable(cluster, err)
		w.Row = &row
	case err != nil:
		return nil, err
	default:
		row := overview.Summarize(document)
		w.Row = &row
	}
	all, err := readRollouts(ctx, state)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		r, err := explainIn(ctx, state, s, cluster)
		if err != nil {
			return nil, err
		}
		if r != nil {
			w.Rollouts = append(w.Rollouts, *r)
		}
	}
	if w.Assignment, _, err = state.Assignment(ctx, cluster); err != nil {
		return nil, err
	}
	report, _, err := state.CellReport(ctx, cell)
	if err != nil {
		return nil, err
	}
	labels := w.Row.Labels
	if report != nil {
		if i := slices.IndexFunc(report.Facts, func(f rollout.Fact) bool { return f.Cluster == cluster }); i >= 0 {
			w.Fact = &report.Facts[i]
			labels = w.Fact.AllLabels()
		}
	}
	freezes, _, err := state.CellFreezes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range freezes.Freezes {
		f := &freezes.Freezes[i]
		for _, what := range []api.Stop{api.StopRollouts, api.StopUpgrades} {
			if found, until := api.Frozen(freezes.Freezes[i:i+1], what, labels, now); found != nil {
				w.Freezes = append(w.Freezes, whyFreeze{f.Metadata.Name, f.Spec.Reason, until})
				break
			}
		}
	}
	return w, nil
}

// explainIn returns what a rollout means for a cluster; nil if it does not select it.
func explainIn(ctx context.Context, state *store.State, s *rollout.Status, cluster string) (*whyRollout, error) {
	r := &whyRollout{Name: s.Metadata.Name}
	if s.Run != nil {
		for i := range s.Run.Stages {
			stage := &s.Run.Stages[i]
			for j := range stage.Members {
				if m := &stage.Members[j]; m.Cluster == cluster {
					r.Run, r.RunState, r.Stage, r.Member = s.Run.Number, s.Run.State, stage.Name, m
					r.Meaning = overview.Meaning(m.State, m.Reason)
				}
			}
		}
	}
	if r.Member != nil && activeRun(s) != nil {
		r.Next = nextDecision(s)
		return r, nil
	}
	if s.Plan == nil {
		return orNil(r), nil
	}
	newest, err := state.RolloutPlan(ctx, s.Plan.Digest)
	if errors.Is(err, store.ErrNotFound) {
		return orNil(r), nil // it expired
	} else if err != nil {
		return nil, err
	}
	for i := range newest.LeftOut {
		if newest.LeftOut[i].Cluster == cluster {
			r.LeftOut = &newest.LeftOut[i]
		}
	}
	for i := range newest.Stages {
		for j := range newest.Stages[i].Members {
			if newest.Stages[i].Members[j].Cluster == cluster {
				r.Stage, r.Next = newest.Stages[i].Name, nextDecision(s)
			}
		}
	}
	return orNil(r), nil
}

// orNil returns nil for a rollout that does not select the cluster.
func orNil(r *whyRollout) *whyRollout {
	if r.Member == nil && r.LeftOut == nil && r.Stage == "" {
		return nil
	}
	return r
}

// why explains a cluster.
func (d *display) why(w *whyCluster) {
	row := w.Row
	about := fmt.Sprintf("%s is %s (%s): release %s, Kubernetes %s", w.Cluster, row.Health, row.Phase, cmp.Or(row.Release, "-"),
		cmp.Or(row.KubernetesVersion, "-"))
	if row.Target != "" {
		about += ", on its way to " + row.Target
	}
	d.head(string(row.Health), about)
	if row.Reason != "" && row.WaitsFor != "" {
		d.say("%s: %s", row.Reason, d.words(row.WaitsFor))
	}
	for i := range w.Rollouts {
		d.whyRollout(&w.Rollouts[i])
	}
	if len(w.Rollouts) == 0 {
		d.say("no rollout selects it")
	}
	for _, f := range w.Freezes {
		until := "until its file is deleted"
		if !f.Until.IsZero() {
			until = "until " + view.Relative(d.now, f.Until)
		}
		d.say("%s", strings.TrimSuffix(fmt.Sprintf("freeze %s holds it %s: %s", f.Name, until, f.Reason), ": "))
	}
	switch f := w.Fact; {
	case f == nil:
		d.say("drover has not observed it for rollouts yet")
	case f.Opening != nil && f.Opening.Never:
		d.say("its window does not open again")
	case f.Opening != nil && f.Opening.Opens.After(d.now):
		d.say("its window opens %s", view.Relative(d.now, f.Opening.Opens))
	}
}

func (d *display) whyRollout(r *whyRollout) {
	switch {
	case r.Member != nil:
		m := r.Member
		text := fmt.Sprintf("rollout %s, run %d (%s), stage %s: %s", r.Name, r.Run, r.RunState, r.Stage, m.State)
		if reason := reasonOf(m); reason != "" {
			text += ", " + reason
		}
		text += ", since " + view.Age(d.now, m.Since)
		if !m.Until.IsZero() {
			text += ", until " + view.Relative(d.now, m.Until)
		}
		d.say("%s", text)
		if r.Meaning != "" {
			d.say("  %s", r.Meaning)
		}
	case r.LeftOut == nil:
		d.say("rollout %s would change it in stage %s", r.Name, r.Stage)
	}
	if r.LeftOut != nil {
		d.say("%s", strings.TrimSuffix(fmt.Sprintf("the newest plan of %s leaves it out: %s: %s", r.Name, r.LeftOut.Reason, r.LeftOut.Message),
			": "))
	}
	if r.Next != "" {
		d.say("  %s", r.Next)
	}
}
