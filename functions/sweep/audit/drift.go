package audit

// Differences from the desired state. The planner finds drifted stacks. Auto Scaling and the Kubernetes API find unhealthy nodes.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// maxFindings bounds the findings that are recorded for one cluster.
const maxFindings = 20

// auditCluster compares a cluster without a running operation with its desired state, and repairs or records the
// differences. It skips a cluster whose stacks are being changed, and one whose status was written after the stacks
// were listed. Unhealthy nodes are handled before planning, so also if the spec is invalid.
func (r *auditRun) auditCluster(ctx context.Context, cluster string, s *status.Status) error {
	if s.UpdatedAt.After(r.now) {
		return nil
	}
	stacks := r.stacks[cluster]
	if r.hasStackOperation(cluster) {
		return nil
	}
	if err := r.syncVersion(ctx, cluster, s); err != nil {
		return err
	}
	if err := r.syncStatuses(ctx, cluster, s); err != nil {
		return err
	}
	unhealthy, err := r.replaceNodes(ctx, cluster, s)
	if err != nil {
		return err
	}
	seen, err := r.Planner.PreviewWith(ctx, cluster, stacks)
	if err != nil {
		return err
	}
	p, unusable := seen.Plan, seen.Reason
	if seen.Unused != nil { // even if the last good spec is rejected too
		unusable = seen.Unused.Reason
	}
	if accepted := s.Condition(status.SpecAccepted); accepted != nil && accepted.Reason == status.ReasonReleaseUnusable &&
		unusable != accepted.Reason {
		return r.startConverge(ctx, cluster, s, names.RetryReleaseArrived)
	}
	if err := r.syncLabels(ctx, cluster, s, seen.Accepted); err != nil {
		return err
	}
	if r.mustPlanUpgrade(cluster, s, seen.Next) {
		return r.startConverge(ctx, cluster, s, names.RetryUpgradePending)
	}
	if isUnfinished(s) && unusable == "" && len(p.Changes) == 0 {
		return r.settleAborted(ctx, cluster, s)
	}
	planned, findings, repairable := stackFindings(s, p, seen.Reason, seen.Message, stacks, r.now)
	if s.Phase != status.Upgrading { // the upgrade replaces them
		findings = append(findings, outdatedInstances(cluster, stacks, r.groups)...)
	}
	missing, err := r.missingInstances(ctx, cluster)
	if err != nil {
		return err
	}
	controlPlane, err := r.controlPlaneDrift(ctx, cluster, seen.Access)
	if err != nil {
		return err
	}
	findings = slices.Concat(controlPlane, planned, findings, missing, unhealthy)
	if err := r.pruneNodes(ctx, cluster, s); err != nil {
		return err
	}
	if err := r.recordFindings(ctx, cluster, s, findings, planned, repairable); err != nil {
		return err
	}
	// DriftedAt may be earlier than this audit. The pauses between repairs count from it.
	since := r.now
	if s.DriftedAt != nil {
		since = *s.DriftedAt
	}
	if !repairable {
		return nil
	}
	if err := r.recordInReview(ctx, cluster, p); err != nil {
		return err
	}
	_, err = r.repeatConverge(ctx, cluster, s, names.RetryDrift, since)
	return err
}

// syncLabels records the labels of the accepted spec in a status that an earlier version of drover wrote without them. The spec is the
// same: the cluster is not planned again.
func (r *auditRun) syncLabels(ctx context.Context, cluster string, s *status.Status, accepted *status.Upload) error {
	differ := func(s *status.Status) bool {
		return accepted != nil && s.AcceptedVersion() == accepted.Version && !maps.Equal(s.Accepted.Labels, accepted.Labels)
	}
	if !differ(s) {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(now *status.Status) {
		if differ(now) {
			now.RecordAccepted(*accepted)
		}
	})
}

// syncVersion records the deployed version after an execution was aborted during a control plane update.
func (r *auditRun) syncVersion(ctx context.Context, cluster string, s *status.Status) error {
	deployed := plan.KubernetesVersion(r.stacks[cluster])
	if deployed == "" || deployed == s.KubernetesVersion {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(recorded *status.Status) {
		if recorded.KubernetesVersion == s.KubernetesVersion { // unless another function has recorded it since
			recorded.KubernetesVersion = deployed
		}
	})
}

// syncStatuses records the statuses of stacks whose events were lost.
func (r *auditRun) syncStatuses(ctx context.Context, cluster string, s *status.Status) error {
	listed := func(o status.Stack) string { return cmp.Or(r.stacks[cluster][o.Name].Status, stack.DeleteComplete) }
	stale := func(o status.Stack) bool { return o.Status != listed(o) && !o.ReportedSince(r.now) }
	if !slices.ContainsFunc(s.Stacks, stale) {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(recorded *status.Status) {
		if recorded.UpdatedAt.After(r.now) {
			return
		}
		for i, old := range recorded.Stacks {
			if !stale(old) {
				continue
			}
			recorded.Stacks[i] = status.Stack{
				Name: old.Name, Status: listed(old), Since: r.now.UTC(), ReportedAt: r.now.UTC(), Delay: old.Delay,
				External: r.stacks[cluster][old.Name].Status == "" && (stack.WasCreated(old.Status) || old.External),
			}
		}
	})
}

// isUnfinished reports whether the last execution ended without a verdict: it was aborted, and CloudFormation finished the operation in
// flight. A newer spec has its own execution.
func isUnfinished(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Failed && s.ObservedVersion == s.PlannedVersion && c != nil && (c.Reason == status.ReasonExecutionEnded ||
		c.Reason == status.ReasonConverging)
}

// settleAborted converges an unfinished cluster that needs no change, so that it gets its verdict. The execution that would have reported
// it was aborted.
func (r *auditRun) settleAborted(ctx context.Context, cluster string, s *status.Status) error {
	_, err := r.repeatConverge(ctx, cluster, s, names.RetryAbortedExecution, s.Condition(status.Converged).
		LastTransitionTime)
	return err
}

// isPaused reports whether the cluster is paused.
func isPaused(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && c.Reason == status.ReasonPaused
}

// stackFindings returns the findings about a cluster's stacks: planned are those of the planner, others those of the
// listing. They depend on the phase and on the result of planning. If the newest spec is rejected, the plan is that
// of the last good spec.
func stackFindings(s *status.Status, p plan.Plan, reason, message string, stacks map[string]stack.Deployed,
	now time.Time) (planned, others []string, repairable bool) {
	switch {
	case isPaused(s):
		return nil, nil, false
	case s.Phase == status.Failed, s.Phase == status.Upgrading:
		// The plan has the changes that failed or are in flight. The next retry, or the next step, also repairs the rest.
		planned = missingStacks(s, p)
		if reason == status.ReasonChangeRefused && len(planned) > 0 { // the next retry will not make them
			planned = append(planned, message)
		}
		return planned, nil, false
	case reason == "", reason == status.ReasonSpecInvalid, reason == status.ReasonReleaseUnusable,
		reason == status.ReasonAddonWithoutPermission:
		found, repairable := driftFindings(p, now)
		for _, f := range found {
			if !repairable && f.missing { // a repair would change the rest, too
				f.message += fmt.Sprintf(": run drover converge %s to create it", p.Cluster)
			}
			planned = append(planned, f.message)
		}
		return planned, unplannedStacks(p, stacks), repairable
	case reason == status.ReasonChangeRefused && !isRefused(s):
		found, _ := driftFindings(p, now)
		for _, f := range found {
			planned = append(planned, f.message)
		}
		return append(planned, message), unplannedStacks(p, stacks), false
	case reason == status.ReasonChangeRefused:
		return append(missingStacks(s, p), untaggedStacks(p, stacks)...), nil, false
	}
	return nil, nil, false
}

// isRefused reports whether the status already shows a refused change.
func isRefused(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && c.Reason == status.ReasonChangeRefused
}

// missingStacks finds stacks that existed when the cluster was last converged, and no longer exist.
func missingStacks(s *status.Status, p plan.Plan) (findings []string) {
	for _, recorded := range s.Stacks {
		change, planned := p.Find(recorded.Name)
		existed := stack.WasCreated(recorded.Status) || recorded.External && recorded.Status == stack.DeleteComplete
		if planned && existed && change.Operation == plan.Create && change.Reasons[0].Old == "absent" {
			findings = append(findings, status.Missing(recorded.Name))
		}
	}
	return findings
}

// untaggedStacks finds stacks that may not be changed because they lost their tag, also if that is why a newer spec was refused.
func untaggedStacks(p plan.Plan, stacks map[string]stack.Deployed) (findings []string) {
	for _, change := range p.Changes {
		if reason, missing := change.MissingTag(stacks[change.Stack]); missing {
			findings = append(findings, reason.Line())
		}
	}
	return findings
}

// recordInReview records stacks in review that no spec has. Planning finds them only by the status: they have no tags yet.
func (r *auditRun) recordInReview(ctx context.Context, cluster string, p plan.Plan) error {
	inReview := func(c plan.Change) bool {
		return c.Operation == plan.Delete && r.stacks[cluster][c.Stack].Status == stack.InReview
	}
	if !slices.ContainsFunc(p.Changes, inReview) {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		for _, change := range p.Changes {
			if inReview(change) {
				s.SetStack(status.Stack{Name: change.Stack, Status: stack.InReview}, r.now)
			}
		}
	})
}

// recordFindings writes all findings to the condition InSync, the findings of planning to Drift, and to DriftedAt since when something can
// be repaired. A cluster without any finding so far has no such condition.
func (r *auditRun) recordFindings(ctx context.Context, cluster string, before *status.Status, findings, planned []string,
	repairable bool) error {
	if in := before.Condition(status.InSync); len(findings) == 0 && (in == nil || in.Status == "True") && before.DriftedAt == nil {
		return nil
	}
	inSync := status.InSyncAgain()
	if len(findings) > 0 {
		if more := len(findings) - maxFindings; more > 0 {
			findings = append(findings[:maxFindings], fmt.Sprintf("and %d more", more))
		}
		inSync.Status, inSync.Reason, inSync.Message = "False", status.ReasonDrifted, strings.Join(findings, "\n")
		logging.From(ctx).Warn("drift detected", "cluster", cluster, "findings", findings)
	}
	return r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.Set(inSync, r.now)
		s.Drift = planned
		switch {
		case !repairable:
			s.DriftedAt = nil
		case s.DriftedAt == nil:
			at := r.now.UTC()
			s.DriftedAt = &at
		}
	})
}

// finding is a difference that planning found.
type finding struct {
	message string
	// missing reports whether the stack does not exist.
	missing bool
}

// driftFindings returns what planning found, and whether converging repairs all of it. It is false if a difference exists only because this
// version of drover renders the stack differently: a new version must change no cluster.
func driftFindings(p plan.Plan, now time.Time) (findings []finding, repairable bool) {
	repairable = len(p.Changes) > 0
	for _, change := range p.Changes {
		if rollJustDue(change, now) {
			continue
		}
		for _, reason := range change.Reasons {
			missing, line := false, fmt.Sprintf("stack %s: %s is %q instead of %q", change.Stack, reason.Field, reason.Old, reason.New)
			switch {
			case change.Operation == plan.Create && reason.Old == "absent":
				missing, line = true, status.Missing(change.Stack)
			case change.DeletesOrphan():
				line = fmt.Sprintf("stack %s belongs to a deleted control plane: drover recreates it", change.Stack)
			case change.Operation == plan.Delete:
				line = fmt.Sprintf("stack %s is not in the spec", change.Stack)
			case reason.Field == plan.RelayFunction:
				line = fmt.Sprintf("the relay %s was deleted outside drover: drover recreates it", names.Relay(p.Cluster))
			case !isRepairable(change.Stack, reason):
				repairable = false
				line = fmt.Sprintf("stack %s differs from what drover renders now (%s): drover was updated, or the stack was changed outside drover; "+
					"run drover converge %s to update it",
					change.Stack, reason.Field, p.Cluster)
			}
			findings = append(findings, finding{line, missing})
		}
	}
	return findings, repairable
}

// unplannedStacks finds what the listing of stacks shows and planning ignores.
func unplannedStacks(p plan.Plan, stacks map[string]stack.Deployed) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		deployed := stacks[name]
		_, planned := p.Find(name)
		switch {
		case !planned && deployed.Tags[names.TagCluster] == "":
			findings = append(findings, fmt.Sprintf("stack %s (%s) is in no spec and has no tag of drover: delete it if it is not needed",
				name, deployed.Status))
		case deployed.Drifted:
			findings = append(findings, fmt.Sprintf("CloudFormation's drift detection found changed resources in stack %s: "+
				"aws cloudformation describe-stack-resource-drifts --stack-name %s", name, names.Stack(p.Cluster, name)))
		}
	}
	return findings
}

// rollStartLimit is how long after its time a roll counts as punctual: the sweep starts it within five minutes.
const rollStartLimit = 10 * time.Minute

// rollJustDue reports whether the only reason of a change is a roll whose time has just come: that is no drift.
func rollJustDue(change plan.Change, now time.Time) bool {
	for _, reason := range change.Reasons {
		at, err := time.Parse(time.RFC3339, reason.New)
		if !strings.HasSuffix(reason.Field, ".rollAt") || err != nil || now.Sub(at) > rollStartLimit {
			return false
		}
	}
	return len(change.Reasons) > 0
}

// isRepairable reports whether converging to the same spec as before removes the reason.
func isRepairable(stackName string, reason status.Reason) bool {
	switch {
	case reason.Field == "checksum."+stackName: // the tag was removed outside drover
		return reason.Old == ""
	case strings.HasSuffix(reason.Field, ".rollAt"): // its time came, and no execution made the roll
		return true
	case strings.HasPrefix(reason.Field, "tags."), strings.HasPrefix(reason.Field, "status."),
		strings.HasPrefix(reason.Field, "terminationProtection."),
		strings.Contains(reason.Field, ".outputs."), strings.Contains(reason.Field, ".parameters."):
		return true
	}
	return false
}

// outdatedInstances finds instances of an older version of their pool's launch template, though the pool is idle. Versions that made
// the same nodes are not older: see render.NodesSince.
func outdatedInstances(cluster string, stacks map[string]stack.Deployed, all map[string]pool.Group) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		poolName, ok := strings.CutPrefix(name, names.PoolPrefix)
		group := all[names.Group(cluster, poolName)]
		if !ok || !stack.Settled(stacks[name].Status) || group.TemplateVersion == "" {
			continue
		}
		var old []string
		for _, i := range group.Instances {
			if i.IsInService() && !group.IsCurrent(i, stacks[name].Outputs[render.NodesSince]) {
				old = append(old, i.ID)
			}
		}
		if len(old) > 0 {
			findings = append(findings, fmt.Sprintf("pool %s has instances of an older launch template: %s: roll the pool", poolName,
				strings.Join(old, ", ")))
		}
	}
	return findings
}
