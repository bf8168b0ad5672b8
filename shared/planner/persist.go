package planner

import (
	"context"
	"encoding/json"
	"fmt"
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
		if change.RepairKey != "" {
			objects[change.RepairKey] = stack.RepairTemplate
		}
	}
	if err := p.addRelay(w, o.Plan, objects); err != nil {
		return "", err
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if err := p.State.PutOnce(ctx, key, objects[key]); err != nil {
			return "", err
		}
	}
	return names.Plan(body), nil
}

// addRelay adds the code of the relay if the control plane changes and has this version's. Code of an earlier version is in the bucket.
func (p *Planner) addRelay(w *work, changes plan.Plan, objects map[string][]byte) error {
	_, changed := changes.Find(names.ControlPlane)
	if !changed || !w.resolved.Spec.ControlPlane.Endpoint.NeedsRelay() || w.desired.Relay != p.Relay {
		return nil
	}
	body, err := p.RelayFile()
	if err != nil {
		return fmt.Errorf("reading the code of relays: %w", err)
	}
	if sha := names.SHA256(body); sha != p.Relay.SHA256 {
		return fmt.Errorf("the code of relays in the package of plan is another than that of this version: %s instead of %s; deploy drover again",
			sha, p.Relay.SHA256)
	}
	objects[p.Relay.Key()] = body
	return nil
}

// PersistDeletion writes the plan of a deletion to the state bucket and returns its key.
func (p *Planner) PersistDeletion(ctx context.Context, deletion plan.Plan) (planKey string, err error) {
	body, err := json.Marshal(deletion)
	if err != nil {
		return "", err
	}
	return names.Plan(body), p.State.PutOnce(ctx, names.Plan(body), body)
}
