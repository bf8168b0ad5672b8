package planner

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
)

// Persist writes what the changes need to the state bucket: the plan, the release, templates and user data. Every key contains the hash
// of its content, so a repeated call changes nothing. It returns the key of the plan.
func (p *Planner) Persist(ctx context.Context, o *Outcome) (planKey string, err error) {
	body, err := json.Marshal(o.Plan)
	if err != nil {
		return "", err
	}
	w := &o.work
	sha := names.SHA256(w.release)
	objects := map[string][]byte{names.PinnedRelease(sha): w.release, names.Plan(body): body}
	maps.Copy(objects, w.rendered.UserData)
	for _, stack := range w.rendered.Stacks {
		change, changes := o.Plan.Find(stack.Name)
		if changes {
			objects[stack.TemplateKey] = stack.Template
		}
		if change.FirstKey != "" {
			objects[change.FirstKey] = stack.FirstTemplate
		}
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if err := p.State.PutOnce(ctx, key, objects[key]); err != nil {
			return "", err
		}
	}
	return names.Plan(body), nil
}

// PersistDeletion writes the plan of a deletion to the state bucket and returns its key.
func (p *Planner) PersistDeletion(ctx context.Context, deletion plan.Plan) (planKey string, err error) {
	body, err := json.Marshal(deletion)
	if err != nil {
		return "", err
	}
	return names.Plan(body), p.State.PutOnce(ctx, names.Plan(body), body)
}
