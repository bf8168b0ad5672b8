package handler

// How upgrades end: well, or not. Either way alarms are on again.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

// finish checks the result.
func (h *Handler) finish(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	r, err := h.own(ctx, in)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	message := fmt.Sprintf("the cluster is at %s", r.Target)
	if r.State != upgrade.Done {
		r.State, r.Ended, r.Alarms = upgrade.Done, h.Now().UTC(), nil
		if err := h.write(ctx, in.Cluster, &r); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	return events.UpgradeResult{Outcome: events.UpgradeDone, Message: message}, h.tell(ctx, in.Cluster, r.Record, nil, message)
}

// stop ends an upgrade that failed. It does nothing to one that is another execution's by now.
func (h *Handler) stop(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	why := reason(in.Error, in.Cause)
	r, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	mine := record{r, etag}
	if r == nil || r.Execution != cmp.Or(in.Ended, in.Execution) || r.State.Over() {
		return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: why}, nil
	}
	message := why + ". " + remains(r)
	if r.State, r.Ended, r.Alarms = upgrade.Stopped, h.Now().UTC(), nil; !changed(r) {
		r.State, message = upgrade.Blocked, why+". Nothing was changed"
	}
	if err := h.write(ctx, in.Cluster, &mine); err != nil {
		return events.UpgradeResult{}, err
	}
	return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: message}, h.tell(ctx, in.Cluster, r, nil, message)
}

// remains says what is done, what is next, and how to go on.
func remains(r *upgrade.Record) string {
	var done []string
	for _, s := range r.Steps[:min(r.Step, len(r.Steps))] {
		done = append(done, told(s))
	}
	next := "the checks of the end"
	if r.Step < len(r.Steps) {
		next = told(r.Steps[r.Step])
	}
	what := "Nothing is done yet"
	if len(done) > 0 {
		what = "Done and kept: " + strings.Join(done, ", ")
	}
	return fmt.Sprintf("%s. Next: %s. To go on, start drover-upgrade again with the same input, or drover upgrade; to go back, with rollback", what, next)
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
