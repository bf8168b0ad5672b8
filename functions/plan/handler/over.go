package handler

import (
	"context"
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// PreviewOver is Preview with stacks that were read before, by name: one listing of all stacks serves the plans of all clusters.
func (h *Handler) PreviewOver(ctx context.Context, cluster string, deployed map[string]stack.Deployed) (plan.Preview, error) {
	over := *h
	over.Stacks = listed(deployed)
	w, seen, err := over.preview(ctx, cluster)
	if err == nil && seen.Reason == "" && seen.Unused == nil {
		seen.Next = over.toCome(&status.Status{}, w)
	}
	return seen, err
}

// listed are stacks that were read before.
type listed map[string]stack.Deployed

// Of returns what cloudformation.Stacks.Of would: what is expected, and what carries the cluster's tag besides.
func (l listed) Of(_ context.Context, cluster string, expected []string) (map[string]stack.Deployed, error) {
	found := maps.Clone(l)
	maps.DeleteFunc(found, func(name string, deployed stack.Deployed) bool {
		if deployed.Status == stack.InReview { // which has no tags yet
			return false
		}
		return stack.Absent(deployed.Status) || deployed.Tags[names.TagCluster] != cluster && !slices.Contains(expected, name)
	})
	return found, nil
}

// Owners knows none: what the audit finds to be made anew is planned once more by an execution, which asks.
func (l listed) Owners(context.Context, []string) (map[string]string, error) { return nil, nil }
