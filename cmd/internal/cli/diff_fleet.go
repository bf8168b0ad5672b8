package cli

// What uploading the file of a freeze or of a decision would change.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// comparison is what diff finds.
type comparison interface {
	print(w io.Writer)
	differs() bool
}

// fileDifference is the plan of a file that is not uploaded, compared with the newest plan.
type fileDifference struct{ *planDifference }

func (d fileDifference) print(w io.Writer) { d.planDifference.print(w, false) }

// freezeDifference is what uploading a freeze would change.
type freezeDifference struct {
	Freeze string `json:"freeze"`
	// Uploaded is new, same or changed: the file, compared with the uploaded one.
	Uploaded string `json:"uploaded"`
	// Joins and Leaves are observed clusters that the file selects and the uploaded one does not, and the other way round.
	Joins  []string `json:"joins"`
	Leaves []string `json:"leaves"`
}

func (d *freezeDifference) differs() bool { return d.Uploaded != "same" }

func (d *freezeDifference) print(w io.Writer) {
	switch d.Uploaded {
	case "same":
		fmt.Fprintf(w, "freeze %s: no change\n", d.Freeze)
		return
	case "new":
		fmt.Fprintf(w, "freeze %s is new\n", d.Freeze)
	default:
		fmt.Fprintf(w, "freeze %s changes\n", d.Freeze)
	}
	if len(d.Joins) > 0 {
		fmt.Fprintf(w, "%s would be held: %s\n", view.Count(len(d.Joins), "cluster"), shorten(d.Joins))
	}
	if len(d.Leaves) > 0 {
		fmt.Fprintf(w, "%s would no longer be held: %s\n", view.Count(len(d.Leaves), "cluster"), shorten(d.Leaves))
	}
}

// shorten lists the first of some names.
func shorten(list []string) string {
	const most = 10
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// diffFreeze compares the file of a freeze with the uploaded one, over the clusters that drover observed.
func (c *Cell) diffFreeze(ctx context.Context, m manifest) (*freezeDifference, error) {
	d := &freezeDifference{Freeze: m.name, Uploaded: "new", Joins: []string{}, Leaves: []string{}}
	object, err := c.Specs.Get(ctx, m.key, api.MaxFile)
	var old *api.Freeze
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case bytes.Equal(object.Body, m.data):
		d.Uploaded = "same"
		return d, nil
	default:
		d.Uploaded = "changed"
		old, _ = api.ReadFreeze(m.key, object.Body, api.Options{Name: m.name}) // an invalid one holds nothing
	}
	report, _, err := c.State.CellReport(ctx, names.Cell(c.render.Account, c.render.Region))
	if err != nil || report == nil {
		return d, err
	}
	for i := range report.Facts {
		labels := report.Facts[i].AllLabels()
		before, after := old != nil && old.Spec.Clusters.Matches(labels), m.freeze.Spec.Clusters.Matches(labels)
		switch {
		case after && !before:
			d.Joins = append(d.Joins, report.Facts[i].Cluster)
		case before && !after:
			d.Leaves = append(d.Leaves, report.Facts[i].Cluster)
		}
	}
	slices.Sort(d.Joins)
	slices.Sort(d.Leaves)
	return d, nil
}

// decisionDifference is what uploading a decision would do.
type decisionDifference struct {
	Decision string `json:"decision"`
	Rollout  string `json:"rollout"`
	// Applies reports whether the decision is new, and names the plan to which its verb applies now.
	Applies bool   `json:"applies"`
	Message string `json:"message"`
}

func (d *decisionDifference) differs() bool { return d.Applies }

func (d *decisionDifference) print(w io.Writer) {
	fmt.Fprintf(w, "decision %s: %s\n", d.Decision, d.Message)
}

// diffDecision reports whether a decision would apply now.
func diffDecision(ctx context.Context, state *store.State, m manifest) (*decisionDifference, error) {
	spec := &m.decision.Spec
	d := &decisionDifference{Decision: m.name, Rollout: spec.Rollout}
	answer, err := state.DecisionAnswer(ctx, spec.Rollout, m.name)
	switch {
	case err == nil:
		d.Message = "it was answered before, and has no further effect: " + answer.Message
		return d, nil
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	case spec.Verb.Brakes():
		d.Applies, d.Message = true, fmt.Sprintf("%s of %s applies to any plan", spec.Verb, spec.Rollout)
		return d, nil
	}
	s, err := readRollout(ctx, state, spec.Rollout)
	if err != nil {
		return nil, err
	}
	switch digest, err := planFor(s, spec.Verb); {
	case err != nil:
		d.Message = "it would be refused: " + err.Error()
	case digest != spec.Plan:
		d.Message = fmt.Sprintf("it would be refused: it names the plan %.12s, and %s has the plan %.12s", spec.Plan, spec.Rollout, digest)
	default:
		d.Applies, d.Message = true, fmt.Sprintf("%s of %s applies to the plan %.12s", spec.Verb, spec.Rollout, digest)
	}
	return d, nil
}
