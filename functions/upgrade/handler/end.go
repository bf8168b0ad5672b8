package handler

// How upgrades end: well, or not. Either way alarms are on again.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// finish checks the result.
func (h *Handler) finish(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	r, err := h.own(ctx, in)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	message := fmt.Sprintf("the cluster is at %s", r.Target)
	if r.State == upgrade.Done { // by a call that died
		return events.UpgradeResult{Outcome: events.UpgradeDone, Message: message}, h.tell(ctx, in.Cluster, r.Record, nil, message)
	}
	checks, err := h.postcheck(ctx, in.Cluster, r.Record)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if preflight.Blocks(checks) {
		found := "the result is not well: " + blocking(checks)
		if err := h.tell(ctx, in.Cluster, r.Record, checks, found); err != nil {
			return events.UpgradeResult{}, err
		}
		last := r.Steps[len(r.Steps)-1]
		if passed := h.Now().Sub(last.Ended); passed < settling {
			return busy(found, pause(passed, last.Ended.Sub(last.Started))), nil
		}
		return events.UpgradeResult{}, &stop{found}
	}
	if err := h.ends(ctx, in.Cluster, r, upgrade.Done); err != nil {
		return events.UpgradeResult{}, err
	}
	return events.UpgradeResult{Outcome: events.UpgradeDone, Message: message}, h.tell(ctx, in.Cluster, r.Record, checks, message)
}

// settling is how long pods and alarms get after the last step until what is not well counts.
const settling = 15 * time.Minute

// postcheck runs the checks of the end.
func (h *Handler) postcheck(ctx context.Context, cluster string, r *upgrade.Record) ([]status.Check, error) {
	j, err := h.retrace(ctx, cluster, r)
	if err != nil {
		return nil, err
	}
	plan := j.checked(cluster, r.Origin == upgrade.OriginRollback, r.Steps)
	facts, err := h.Facts.After(ctx, plan)
	if err != nil {
		return nil, err
	}
	var before preflight.Baseline
	object, err := h.State.Get(ctx, names.UpgradeBaseline(cluster, since(r)), baselineLimit)
	switch {
	case errors.Is(err, store.ErrNotFound): // it expires
		before.Lost = true
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(object.Body, &before); err != nil {
			return nil, fmt.Errorf("reading how the workloads of %s were: %w", cluster, err)
		}
	}
	return append([]status.Check{}, preflight.After(before, facts, plan)...), nil
}

// baselineLimit bounds how much is read of how workloads were, in bytes: a line each for a hundred thousand.
const baselineLimit = 16 << 20

// stop ends an upgrade that failed, and tells of it; of one that is over already, it tells what a call that died may not have told. It does
// nothing to one that is another execution's by now.
func (h *Handler) stop(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	why := reason(in.Error, in.Cause)
	r, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if r == nil || r.Execution != cmp.Or(in.Ended, in.Execution) {
		return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: why}, nil
	}
	if !r.State.Over() {
		if err := h.ends(ctx, in.Cluster, record{r, etag}, over(r)); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	under, err := h.under(ctx, in.Cluster, r)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	message := came(in.Cluster, r, why, under)
	return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: message}, h.tellOf(ctx, in.Cluster, r, message)
}

// ends an upgrade: alarms are on again, and its record says what became of it.
func (h *Handler) ends(ctx context.Context, cluster string, r record, as upgrade.State) error {
	if err := h.Alarms.EnableActions(ctx, r.Alarms); err != nil {
		return err
	}
	if r.State, r.Ended, r.Alarms = as, h.Now().UTC(), nil; as != upgrade.Blocked {
		if err := h.adopt(ctx, cluster, r.Record); err != nil {
			return err
		}
	}
	return h.write(ctx, cluster, &r)
}

// adopt has the end of an upgrade be the answer to the spec, if that names its target by now.
func (h *Handler) adopt(ctx context.Context, cluster string, r *upgrade.Record) error {
	spec, version, err := h.newest(ctx, cluster)
	var unusable *stop
	if err != nil && !errors.As(err, &unusable) {
		return err
	}
	r.Adopt(spec, version)
	return nil
}

// under says what is known of the step that an upgrade stopped at, when that was begun: it does not count before it
// is proved, and much of it may be there.
func (h *Handler) under(ctx context.Context, cluster string, r *upgrade.Record) (string, error) {
	if r.Step >= len(r.Steps) || r.Steps[r.Step].Started.IsZero() {
		return "", nil
	}
	s := r.Steps[r.Step]
	if s.Kind != upgrade.StepControlPlane {
		return "which was begun", nil
	}
	deployed, err := h.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	switch {
	case err != nil || deployed.ID != r.Stack:
		return "", err
	case stack.InProgress(deployed.Status):
		return "which CloudFormation is still at: " + deployed.Status, nil
	case deployed.Outputs["KubernetesVersion"] == s.KubernetesVersion:
		return "which is made, and still to be proved", nil
	}
	return "", nil // it was not begun, or taken back
}

// came says what an upgrade came to that is over, and why.
func came(cluster string, r *upgrade.Record, why, under string) string {
	switch r.State {
	case upgrade.Done:
		return fmt.Sprintf("the cluster is at %s", r.Target)
	case upgrade.Blocked:
		return why + ". Nothing was changed"
	}
	end := ". "
	if strings.Contains(why, "\n") {
		end = "\n"
	}
	return why + end + remains(cluster, r, under)
}

// remains says what is done, what is next, and how to go on: by the one command, and by what it starts, for who is at
// the console. under says what of the next is there.
func remains(cluster string, r *upgrade.Record, under string) string {
	var done []string
	for _, s := range r.Steps[:min(r.Step, len(r.Steps))] {
		done = append(done, told(s))
	}
	next := "the checks of the end"
	if r.Step < len(r.Steps) {
		next = told(r.Steps[r.Step])
	}
	if under != "" {
		next += ", " + under
	}
	what := ""
	switch {
	case len(done) > 0:
		what = "Done and kept: " + strings.Join(done, ", ") + ". "
	case under == "":
		what = "Nothing is done yet. "
	}
	on, input := fmt.Sprintf("`drover upgrade %s`", cluster), fmt.Sprintf(`{"cluster":%q}`, cluster)
	back := fmt.Sprintf("To go back: `drover upgrade %s --rollback`", cluster)
	if r.Origin == upgrade.OriginRollback { // without a word, drover upgrade goes to what the spec names
		on, input = fmt.Sprintf("`drover upgrade %s --rollback`", cluster), fmt.Sprintf(`{"cluster":%q,"rollback":true}`, cluster)
		back = fmt.Sprintf("To take the rollback back: `drover upgrade %s --to %s`", cluster, r.From.Release)
	}
	return fmt.Sprintf("%sNext: %s. To go on: %s, which starts drover-upgrade with %s. %s", what, next, on, input, back)
}

// reason reads what a failed step said: the description of an execution when the converge machine failed, Lambda's error object when a
// function did, words otherwise.
func reason(name, text string) string {
	var said struct {
		Error        string `json:"Error"`
		Cause        string `json:"Cause"`
		Status       string `json:"Status"`
		ExecutionARN string `json:"ExecutionArn"`
		ErrorMessage string `json:"errorMessage"`
	}
	_ = json.Unmarshal([]byte(text), &said) // other words are kept as they are
	switch {
	case name == upgradeStopped:
		return text
	case name == "States.Timeout":
		return "a step took longer than it may. What it began goes on: see drover status"
	case said.ExecutionARN != "":
		if said.Cause == "" {
			return fmt.Sprintf("%s is %s", said.ExecutionARN, said.Status)
		}
		return said.Cause
	case said.ErrorMessage != "":
		return name + ": " + said.ErrorMessage
	case text == "":
		return name
	}
	return name + ": " + text
}
