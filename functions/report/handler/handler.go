// Package handler implements the report function, the last step of drover-converge. It records the verdict in the status, sends the
// notifications, and releases the lease. Then it checks for a newer spec, so that a spec that arrived during the run is not missed.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is what drover keeps: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	// UpdateStatus tells who listens before it writes.
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	// AmendStatus is UpdateStatus of a cluster that has a status.
	AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	Forget(ctx context.Context, cluster string) error
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	PutUpgrade(ctx context.Context, cluster string, record *upgrade.Record, etag string) (string, error)
}

// Handler reports.
type Handler struct {
	Specs Specs
	State State
	Now   func() time.Time
}

// verdict is what a round came to.
type verdict struct {
	status.Verdict
	// again is true when the same may succeed later without anybody's doing; quick when it may within minutes.
	again, quick bool
	// execution that it is the verdict on, and which of its tries.
	execution string
	try       int
}

// Handle ends a round.
func (h *Handler) Handle(ctx context.Context, in events.ReportRequest) (events.ReportResult, error) {
	v := judge(in)
	if in.Plan != nil && in.Plan.Fence > 0 {
		lease, err := h.State.Lease(ctx, in.Cluster)
		if err != nil {
			return events.ReportResult{}, err
		}
		if lease.GivenUp(in.Plan.Fence) {
			// By this execution, whose report was cut off then: all is told, and others may have told more since. What is left is to look.
			return h.end(ctx, in, v)
		}
		if err := lease.Check(in.Cluster, in.Execution, in.Plan.Fence); err != nil {
			logging.From(ctx).Warn("another execution took the cluster over", "cluster", in.Cluster, "error", err.Error())
			// Whether it converges is the other's to say, and to begin what comes after.
			return events.ReportResult{Failed: v.Phase != status.Deleted, Reason: err.Error()}, nil
		}
	}
	// Before anybody is told that the cluster is gone: who is cut off here does it again.
	if v.Phase == status.Deleted && in.Plan.Fence > 0 {
		if err := h.State.Forget(ctx, in.Cluster); err != nil {
			return events.ReportResult{}, err
		}
	}
	if err := h.served(ctx, in); err != nil {
		return events.ReportResult{}, err
	}
	outdated, err := h.outdated(ctx, in)
	if err != nil {
		return events.ReportResult{}, err
	}
	told, err := h.tell(ctx, in, &v, outdated)
	if err != nil {
		return events.ReportResult{}, err
	}
	switch {
	case !told:
		logging.From(ctx).Warn("the status is another execution's by now", "cluster", in.Cluster)
	case outdated:
		logging.From(ctx).Info("the spec is another by now: the next round has the word on it", "cluster", in.Cluster, "planned",
			in.Plan.SpecVersion)
	}
	if err := h.State.Release(ctx, in.Cluster, in.Execution); err != nil {
		return events.ReportResult{}, err
	}
	result, err := h.end(ctx, in, v)
	result.Again = result.Again || outdated && err == nil // also where the newer version was taken away again
	return result, err
}

// outdated says that a plan which changes nothing was made of a spec that is another by now. Such plans take no
// lease: the execution of the newer spec may have had its word already, as that the cluster is paused, and this one
// would be said over it.
func (h *Handler) outdated(ctx context.Context, in events.ReportRequest) (bool, error) {
	if in.Plan == nil || len(failures(in)) > 0 || in.Plan.Outcome != events.OutcomeUnchanged && in.Plan.Outcome != events.OutcomeStopped {
		return false, nil
	}
	version, err := h.version(ctx, in.Cluster)
	return err == nil && version != in.Plan.SpecVersion, err
}

// end says how the machine goes on after a round of which all is told.
func (h *Handler) end(ctx context.Context, in events.ReportRequest, v verdict) (events.ReportResult, error) {
	again, err := h.newer(ctx, in)
	result := events.ReportResult{Again: again, Failed: v.Phase == status.Failed, Reason: v.Message}
	if err != nil || again || !v.quick {
		return result, err
	}
	result.WaitSeconds, err = h.backOff(ctx, in)
	result.Again = result.WaitSeconds > 0
	return result, err
}

// newer says whether there is a spec that this round did not plan: its own execution may have left the cluster to this one.
func (h *Handler) newer(ctx context.Context, in events.ReportRequest) (bool, error) {
	version, err := h.version(ctx, in.Cluster)
	switch {
	case err != nil:
		return false, err
	case in.Plan != nil && version == in.Plan.SpecVersion && in.Plan.Accepted:
		return h.overwritten(ctx, in.Cluster, version)
	case in.Plan != nil:
		return version != in.Plan.SpecVersion, nil
	}
	if version == "" {
		return false, nil
	}
	// Planning failed, and nobody knows for which spec. One that was never acted on gets one try.
	again := false
	err = h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if version == s.SpecVersion {
			return // or written by a try of this very write, whose answer was lost
		}
		again, s.SpecVersion = true, version
		if s.Phase == status.Failed && s.RetryAt == nil {
			// If the answer of this report is lost, too, what is left of the try is this: the same report cannot tell itself from that of the try.
			s.RetryAt = at(h.Now(), backoff.Retries[0])
		}
	})
	return again, err
}

// overwritten says that the status has a spec rejected which planning accepted: a slow copy of admit, which had read
// an older one, had its word after this round. It begins an execution against that, and the cluster may have been
// left to this one.
func (h *Handler) overwritten(ctx context.Context, cluster, version string) (bool, error) {
	document, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) { // somebody deleted it: the sweep has it told anew
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c := document.Status.Condition(status.SpecAccepted)
	return document.Status.SpecVersion == version && c != nil && c.Reason == status.ReasonSpecInvalid, nil
}

// judge decides what a round came to.
func judge(in events.ReportRequest) verdict {
	if failures := failures(in); len(failures) > 0 {
		message := strings.Join(failures, "\n")
		return verdict{Verdict: status.Verdict{Phase: status.Failed, Message: message, Condition: status.Condition{
			// Views print "reason: message": a message that begins with its reason reads "StackFailed: StackFailed: …".
			Type: status.Converged, Status: "False", Reason: reason(in), Message: strings.TrimPrefix(message, reason(in)+": "),
		}}, again: passing(in), quick: quickly(in)}
	}
	if in.Plan.Outcome == events.OutcomeDeletes || in.Plan.Outcome == events.OutcomeGone {
		return verdict{Verdict: status.Verdict{Phase: status.Deleted, Message: "the cluster is gone", Condition: status.Condition{
			Type: status.Converged, Status: "False", Reason: status.ReasonDeleted,
		}}}
	}
	return verdict{Verdict: status.Judge(in.Plan)}
}

// failures lists what failed, one line each.
func failures(in events.ReportRequest) []string {
	var lines []string
	if in.Error != "" {
		lines = append(lines, cause(in.Error, in.Cause)+where(in.Error, in.Failed))
	}
	for _, result := range in.Results {
		if result.Error != "" {
			step := &events.FailedStep{Step: result.Step, Function: "change", Stack: result.Stack}
			lines = append(lines, cause(result.Error, result.Cause)+where(result.Error, step))
		}
	}
	if in.Plan == nil && len(lines) == 0 {
		lines = append(lines, "planning ended without a result")
	}
	return lines
}

// reason is the name of the first fault.
func reason(in events.ReportRequest) string {
	if in.Error != "" {
		return in.Error
	}
	for _, result := range in.Results {
		if result.Error != "" {
			return result.Error
		}
	}
	return fault.Name(&fault.Internal{})
}

// cause reads what a failed step said: a ChangeResult when a stack failed, Lambda's error object when a function did,
// words otherwise.
func cause(name, text string) string {
	var said struct {
		Cause        string `json:"cause"`
		ErrorMessage string `json:"errorMessage"`
	}
	if json.Unmarshal([]byte(text), &said) == nil {
		switch {
		case said.Cause != "":
			text = said.Cause
		case said.ErrorMessage != "":
			text = said.ErrorMessage
		}
	}
	if text == "" {
		return name
	}
	return name + ": " + text
}

// where says which step and function failed, and where the function's log is. A fault that is about a resource of AWS says so itself.
func where(name string, at *events.FailedStep) string {
	about := []string{
		fault.Name(&fault.StackFailed{}), fault.Name(&fault.ChangeRefused{}), fault.Name(&fault.LeaseLost{}), fault.Name(&fault.Superseded{}),
		fault.Name(&fault.LeftoversRemain{}),
	}
	if at == nil || at.Step == "" || slices.Contains(about, name) {
		return ""
	}
	stack := ""
	if at.Stack != "" {
		stack = " of stack " + at.Stack
	}
	return fmt.Sprintf(" (step %q%s, function %s, log group %s)", at.Step, stack, names.Function(at.Function), names.FunctionLogs(at.Function))
}

// tell writes a verdict into the status, which tells who listens. It returns false when the status was written by a later holder of
// the lease: that one gives the verdict. Of one that is outdated it is told alone what is no longer to come.
func (h *Handler) tell(ctx context.Context, in events.ReportRequest, v *verdict, outdated bool) (told bool, err error) {
	update, err := h.writer(ctx, in)
	if err != nil {
		return false, err
	}
	given := *v
	err = update(ctx, in.Cluster, func(s *status.Status) {
		*v = given // another try may have named the instances of another status
		switch told = !late(in, s); {
		case told && outdated && in.Plan.Outcome == events.OutcomeUnchanged:
			s.Reached(h.Now())
		case told && !outdated:
			v.name(in, s)
			v.execution, v.try = in.Execution, in.Try
			v.write(s, h.Now())
		}
	})
	if errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Warn("unknown cluster", "cluster", in.Cluster)
		return false, nil
	}
	return told, err
}

// writer is how the status is written. An execution that could not even plan makes none for a name without a spec: anybody may start one
// for any name.
func (h *Handler) writer(ctx context.Context, in events.ReportRequest) (func(context.Context, string, func(*status.Status)) error, error) {
	if in.Plan != nil {
		return h.State.UpdateStatus, nil
	}
	version, err := h.version(ctx, in.Cluster)
	if err != nil || version != "" {
		return h.State.UpdateStatus, err
	}
	return h.State.AmendStatus, nil
}

// late says whether a status is that of a later holder of the lease. An execution that could not even plan does not know which it
// would have been: it leaves what another one converges.
func late(in events.ReportRequest, s *status.Status) bool {
	if in.Plan == nil {
		return (s.Phase == status.Converging || s.Phase == status.Upgrading || s.Phase == status.Deleting) && s.Execution != in.Execution
	}
	return s.Fence > in.Plan.Seen
}

// name the instances for which a pool could not be changed: AWS's own reason tells only of signals that did not come.
func (v *verdict) name(in events.ReportRequest, s *status.Status) {
	const most = 3
	var lines []string
	for _, result := range in.Results {
		pool, is := strings.CutPrefix(result.Stack, names.PoolPrefix)
		if !is || result.Error == "" {
			continue
		}
		nodes := s.NotJoined(pool, in.Execution)
		for _, n := range nodes[:min(len(nodes), most)] {
			lines = append(lines, fmt.Sprintf("pool %s: instance %s did not join: %s", pool, n.Instance, n.Message))
		}
	}
	for _, line := range lines {
		v.Message += "\n" + line
		v.Condition.Message += "\n" + line
	}
}

// write a verdict into a status.
func (v *verdict) write(s *status.Status, now time.Time) {
	switch v.Phase {
	case status.Failed:
		v.retry(s, now)
		s.Execution = v.execution
	case status.Deleted:
		if s.Deletion != nil {
			v.Message = gone(s.Deletion)
		}
		v.Condition.Message = v.Message
		s.Plan, s.Stacks, s.Nodes = nil, nil, nil
		s.Upgrade, s.NextUpgrade, s.Upgrades, s.Replaced = nil, nil, nil, nil
		// What was no longer as it was made, or waited for a node, is no more.
		s.Unset(status.InSync, status.AddonsDeployed, status.AddonsSchedulable, status.RequestAccepted)
		s.Drift, s.DriftedAt = nil, nil
	}
	v.Apply(s, now)
}

// gone says what became of what Kubernetes made.
func gone(d *status.Deletion) string {
	message := fmt.Sprintf("the cluster is gone, with the %d things that Kubernetes made in the account", len(d.Removed))
	switch len(d.Removed) {
	case 0:
		message = "the cluster is gone; Kubernetes had made nothing in the account"
	case 1:
		message = "the cluster is gone, with the one thing that Kubernetes made in the account"
	}
	if len(d.Kept) > 0 {
		message += "; kept: " + strings.Join(d.Kept, ", ")
	}
	return message
}

// version returns the version of the newest spec; empty if there is none.
func (h *Handler) version(ctx context.Context, cluster string) (string, error) {
	return specs.Version(ctx, h.Specs, names.ClusterSpec(cluster))
}
