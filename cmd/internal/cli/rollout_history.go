package cli

// The history of a rollout: its runs, and the decisions of users with their answers.

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

// rolloutHistory is the past of a rollout, the newest first.
type rolloutHistory struct {
	Rollout   string         `json:"rollout"`
	Runs      []pastRun      `json:"runs"`
	Decisions []pastDecision `json:"decisions"`
}

// pastRun is a summary of a run.
type pastRun struct {
	Number  int64            `json:"number"`
	Plan    string           `json:"plan"`
	State   rollout.RunState `json:"state"`
	Started time.Time        `json:"started"`
	Ended   time.Time        `json:"ended,omitzero"`
	// Members by their state.
	Members map[rollout.State]int `json:"members"`
}

// pastDecision is an uploaded decision and its answer; the answer is absent until drover has read the decision.
type pastDecision struct {
	Name   string           `json:"name"`
	At     time.Time        `json:"at"`
	Spec   api.DecisionSpec `json:"spec"`
	Answer *rollout.Answer  `json:"answer,omitempty"`
	// Invalid is why the file is no decision.
	Invalid string `json:"invalid,omitempty"`
}

func rolloutHistoryCommand() *cobra.Command {
	var output *outputFlag
	var limit int
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the runs of a rollout, and the decisions of users with their answers",
		Long: `Shows the newest runs of a rollout with the states of their members, and the newest decisions: with their reasons, and
each answer says what a decision did, or why it did nothing.`,
		Example: `  drover rollout history kubernetes-1.37
  drover rollout history kubernetes-1.37 --limit 100 -o json`,
		Annotations:       ExitCodes("the history is printed", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(rolloutNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit %d: use 1 or more", limit)
			}
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			h, err := readHistory(cmd.Context(), c.Specs, c.State, args[0], limit)
			if err != nil {
				return err
			}
			if output.forMachines() {
				return output.print(cmd.OutOrStdout(), h)
			}
			newDisplay(cmd.OutOrStdout(), false).history(h)
			return nil
		},
	}
	output = addOutputFlag(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "how many runs and how many decisions at most")
	return cmd
}

// readHistory reads the newest runs and decisions of a rollout.
func readHistory(ctx context.Context, specs store.Objects, state *store.State, name string, limit int) (*rolloutHistory, error) {
	record, etag, err := state.RolloutRecord(ctx, name)
	if err != nil {
		return nil, err
	}
	h := &rolloutHistory{Rollout: name, Runs: []pastRun{}, Decisions: []pastDecision{}}
	if h.Runs, err = readRuns(ctx, state, record, limit); err != nil {
		return nil, err
	}
	if h.Decisions, err = readDecisions(ctx, specs, record, limit); err != nil {
		return nil, err
	}
	if etag == "" && len(h.Decisions) == 0 {
		_, err := readRollout(ctx, state, name)
		return h, err
	}
	return h, nil
}

// readRuns reads the newest runs: that of the record, and those that ended before.
func readRuns(ctx context.Context, state *store.State, record *rollout.Record, limit int) ([]pastRun, error) {
	count := int(min(int64(limit), max(0, record.Number)))
	runs := make([]pastRun, count)
	err := overview.Each(ctx, count, func(ctx context.Context, i int) error {
		run := record.Run
		if number := record.Number - int64(i); run == nil || run.Number != number {
			var err error
			if run, err = state.EndedRun(ctx, record.Rollout, number); errors.Is(err, store.ErrNotFound) {
				return nil // it expired
			} else if err != nil {
				return err
			}
		}
		runs[i] = pastRun{Number: run.Number, Plan: run.Plan, State: run.State, Started: run.Started, Ended: run.Ended,
			Members: map[rollout.State]int{}}
		for _, m := range run.Members {
			runs[i].Members[m.State]++
		}
		return nil
	})
	return slices.DeleteFunc(runs, func(r pastRun) bool { return r.Number == 0 }), err
}

// readDecisions reads the newest decisions on a rollout, and their answers from its record.
func readDecisions(ctx context.Context, specs store.Objects, record *rollout.Record, limit int) ([]pastDecision, error) {
	entries, err := specs.List(ctx, names.Decisions+record.Rollout+"/")
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(entries, func(a, b store.Entry) int { return b.Modified.Compare(a.Modified) })
	entries = entries[:min(limit, len(entries))]
	answers := record.AllAnswers()
	all := make([]pastDecision, len(entries))
	err = overview.Each(ctx, len(entries), func(ctx context.Context, i int) error {
		object, err := specs.Get(ctx, entries[i].Key, api.MaxFile)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		_, name, _ := names.DecisionOfKey(entries[i].Key)
		all[i] = pastDecision{Name: name, At: object.Modified}
		if answer, ok := answers[name]; ok {
			all[i].Answer = &answer
		}
		decision, errs := api.ReadDecision(entries[i].Key, object.Body, api.Options{Name: name})
		if len(errs) > 0 {
			all[i].Invalid = errs.Error()
		} else {
			all[i].Spec = decision.Spec
		}
		return nil
	})
	return slices.DeleteFunc(all, func(d pastDecision) bool { return d.At.IsZero() }), err
}

// history shows runs and decisions.
func (d *display) history(h *rolloutHistory) {
	d.say("%s: %s, %s", h.Rollout, view.Count(len(h.Runs), "run"), view.Count(len(h.Decisions), "decision"))
	runs := &view.Table{Columns: []view.Column{
		{Title: "RUN"}, {Title: "STATE"}, {Title: "PLAN"}, {Title: "STARTED"}, {Title: "ENDED"}, {Title: "MEMBERS", Min: 16},
	}}
	for _, r := range h.Runs {
		runs.Add(view.Text(fmt.Sprint(r.Number)), view.Cell{Text: string(r.State), Tone: rolloutTones[string(r.State)]},
			view.Text(r.Plan[:min(minDigest, len(r.Plan))]), view.Text(timeText(r.Started)), view.Text(timeText(r.Ended)),
			view.Text(counts(r.Members)))
	}
	d.table(runs)
	decisions := &view.Table{Columns: []view.Column{
		{Title: "TIME"}, {Title: "DECISION"}, {Title: "ON"}, {Title: "RESULT"}, {Title: "ANSWER", Min: 20, Wrap: true}, {Title: "REASON",
			Min: 12},
	}}
	for _, x := range h.Decisions {
		verb, on, result, answer := cmp.Or(string(x.Spec.Verb), "-"), cmp.Or(x.Spec.Stage, strings.Join(x.Spec.Clusters, ","), x.Spec.Freeze,
			"-"),
			view.Cell{Text: "pending", Tone: view.Moving}, "-"
		switch {
		case x.Invalid != "":
			result, answer = view.Cell{Text: "invalid", Tone: view.Bad}, x.Invalid
		case x.Answer != nil && x.Answer.Applied:
			result, answer = view.Cell{Text: "applied", Tone: view.Good}, x.Answer.Message
		case x.Answer != nil:
			result, answer = view.Cell{Text: "refused", Tone: view.Bad}, x.Answer.Message
		}
		decisions.Add(view.Text(timeText(x.At)), view.Text(verb), view.Text(on), result, view.Text(answer), view.Text(cmp.Or(x.Spec.Reason, "-")))
	}
	d.table(decisions)
}

// timeText formats a time, or "-" if it is zero.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// counts lists the numbers of members by state, in the order of the states.
func counts(members map[rollout.State]int) string {
	var all []string
	for _, state := range rollout.States() {
		if n := members[state]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, state))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}
