package planner

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// Record writes the outcome into the status: the stacks as they were read, what will change, and why. The execution makes the changes.
func (o *Outcome) Record(s *status.Status, execution string, now time.Time) {
	w := &o.work
	if s.GoodVersion != w.version {
		s.Failures, s.RetryAt, s.FailedTry = 0, nil, 0
	}
	if s.PlannedVersion != w.newest {
		s.Unset(status.RequestAccepted) // an earlier spec refused that request
	}
	s.PlannedVersion, s.GoodVersion, s.Deletion = w.newest, w.version, nil
	if w.rejected == nil { // admission may not have read it yet
		s.RecordAccepted(w.acceptedUpload())
	}
	w.recordDeployed(s, now)
	s.Plan = nil
	for _, change := range o.Plan.Changes {
		planned := status.Change{Stack: change.Stack, Operation: string(change.Operation), Effect: change.Effect, Reasons: change.Reasons}
		if change.Stack == names.ControlPlane {
			planned.KubernetesVersion = w.resolved.Spec.KubernetesVersion
		}
		s.Plan = append(s.Plan, planned)
	}
	recordAddons(s, o.Plan.AddonsWait, now)
	s.Warn(o.Plan.Warnings, now)
	if o.tagsRead {
		s.WarnTags(o.tagProblems, now)
	}
	s.WarnRelay(o.Plan.RelayOutdated, now)
	s.RecordRolledNodes(w.rolled, now)
	w.recordPending(s, now)
	if len(o.Plan.Changes) > 0 {
		upgrading := w.record != nil && !w.record.State.Final()
		s.PlannedAt = w.readAt.UTC()
		s.Set(acceptance(w.rejected), now)
		s.BeginConverge(execution, upgrading, fmt.Sprintf("changing %d of %d stacks", len(o.Plan.Changes), len(w.rendered.Stacks)), now)
	}
}

// recordDeployed writes the deployed state into the status, as far as planning reads it. A stack that the spec no longer has stays listed
// until it is deleted: an event of its deletion may arrive after the deletion's end.
func (w *work) recordDeployed(s *status.Status, now time.Time) {
	s.Release = w.resolved.Spec.Release.Name
	// The deployed version, not the planned one, because the update of the control plane may fail. It is empty without a control plane.
	s.KubernetesVersion = plan.KubernetesVersion(w.deployed)
	s.TemplateVersion = w.resolved.Spec.TemplateVersion
	s.Endpoint = w.deployed[names.ControlPlane].Outputs["ClusterEndpoint"]
	var stacks []status.Stack
	listed := map[string]bool{}
	for _, stack := range w.rendered.Stacks {
		if deployed, ok := w.deployed[stack.Name]; ok {
			stacks = append(stacks, status.Stack{Name: stack.Name, Status: deployed.Status})
			listed[stack.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.deployed)) {
		if !listed[name] {
			stacks = append(stacks, status.Stack{Name: name, Status: w.deployed[name].Status})
		}
	}
	s.Observe(stacks, w.readAt, now)
}

// acceptance is the condition of the newest spec.
func acceptance(rejected *Stop) status.Condition {
	if rejected != nil {
		return status.Condition{Type: status.SpecAccepted, Status: "False", Reason: rejected.Reason, Message: rejected.Message}
	}
	return status.Condition{Type: status.SpecAccepted, Status: "True", Reason: status.ReasonValid}
}

// recordAddons records whether the add-ons that need nodes wait for one. A cluster whose add-ons never waited has no such condition.
func recordAddons(s *status.Status, wait bool, now time.Time) {
	switch {
	case wait:
		s.Set(status.Condition{
			Type: status.AddonsDeployed, Status: "False", Reason: status.ReasonNoNodes,
			Message: "stack " + names.NodeAddons + " waits for the first node: no pool has one, and none has a minSize above 0",
		}, now)
	case s.Condition(status.AddonsDeployed) != nil:
		s.Set(status.Condition{Type: status.AddonsDeployed, Status: "True", Reason: status.ReasonHasNodes}, now)
	}
}
