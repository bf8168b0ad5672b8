package storm

// Requests of operators: rolls and upgrades that they start. Each is performed, recorded or refused, and the execution
// reports which.

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/shared/names"
)

// request is an execution that an operator started.
type request struct {
	execution, cluster string
	// pools to roll. Without any it is an upgrade.
	pools []string
	// paused reports whether the newest spec was paused when the execution started, the uploads-th of the cluster.
	paused  bool
	uploads int
}

// roll starts an execution that rolls pools.
func (w *world) roll(cluster string, pools ...string) {
	want := w.desired[cluster]
	w.requests = append(w.requests, request{
		execution: w.Converge(cluster, pools...), cluster: cluster, pools: pools,
		paused: want != nil && want.paused && !want.broken(), uploads: len(w.uploads[cluster]),
	})
}

// upgrade starts an execution that upgrades.
func (w *world) upgrade(in events.Upgrade) {
	w.requests = append(w.requests, request{execution: w.Upgrade(in), cluster: in.Cluster})
}

// answers checks the results of requests, once every execution has ended.
func (w *world) answers() {
	for _, r := range w.requests {
		x := w.Execution(r.execution)
		if x.Status == "SUCCEEDED" { // faults and operators end others
			if len(r.pools) > 0 {
				w.rollAnswer(r, x)
			} else {
				w.upgradeAnswer(r, x)
			}
		}
	}
}

// rollAnswer checks that a roll is either recorded or refused with a reason.
func (w *world) rollAnswer(r request, x stepfunctions.Execution) {
	var answer events.PlanResult
	_ = json.Unmarshal([]byte(x.Output), &answer) // an execution that starts an upgrade at its end has that one as its output
	refused := answer.Outcome == events.OutcomeRefused
	w.check(9, !refused || answer.Reason != "" && answer.Message != "", "%s: the roll %s is refused without a reason: %q", r.cluster,
		x.Name, x.Output)
	if r.paused && !w.uploadedBy(r, x.Stopped) {
		w.check(9, refused, "%s is paused, and the roll %s is not refused: %q", r.cluster, x.Name, x.Output)
	}
	rolls, err := w.State().Rolls(context.Background(), r.cluster)
	if err != nil || w.deleted[r.cluster] { // its rolls are removed with the cluster
		return
	}
	for _, pool := range r.pools {
		if refused {
			w.check(9, !rolls[pool].Truncate(time.Millisecond).Equal(x.Started.Truncate(time.Millisecond)),
				"%s: the roll %s of pool %s is refused, and recorded", r.cluster, x.Name, pool)
		} else {
			w.check(9, !rolls[pool].Truncate(time.Millisecond).Before(x.Started.Truncate(time.Millisecond)),
				"%s: the roll %s of pool %s is lost: %v", r.cluster, x.Name, pool, rolls)
		}
	}
}

// uploadedBy reports whether another spec of a request's cluster was uploaded before a time.
func (w *world) uploadedBy(r request, at time.Time) bool {
	all := w.uploads[r.cluster]
	return len(all) > r.uploads && !w.began.Add(all[r.uploads].at).After(at)
}

// upgradeAnswer checks that an upgrade that was refused, or had nothing to do, has a reason and began nothing.
func (w *world) upgradeAnswer(r request, x stepfunctions.Execution) {
	var answer events.UpgradeResult
	err := json.Unmarshal([]byte(x.Output), &answer)
	w.check(9, err == nil && answer.Message != "", "%s: the upgrade %s has no answer: %q", r.cluster, x.Name, x.Output)
	if answer.Outcome != events.UpgradeNothing && answer.Outcome != events.UpgradeRefused {
		return
	}
	record, _, err := w.State().Upgrade(context.Background(), r.cluster)
	w.check(2, err != nil || record == nil || record.Execution != r.execution, "%s: the upgrade %s is answered with %s, and recorded",
		r.cluster, x.Name, answer.Outcome)
	step := names.UpgradeStepExecution(r.cluster, r.execution, 0, 0)
	step = strings.TrimSuffix(step, "-0-0")
	for _, other := range w.StepFunctions.Executions() {
		w.check(2, !strings.HasPrefix(other.Name, step), "%s: the upgrade %s is answered with %s, and began step %s", r.cluster, x.Name,
			answer.Outcome, other.Name)
	}
}
