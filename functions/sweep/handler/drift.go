package handler

// What is no longer as it was made: of the stacks what planning says, of the nodes what Auto Scaling and Kubernetes say.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// maxFindings bounds the findings that are recorded for one cluster.
const maxFindings = 20

// compare compares an idle cluster with its desired state, and repairs or records the differences. It skips a cluster
// whose stacks are being changed, and one whose status was written after the stacks were listed. Unhealthy nodes are
// handled first, even if the spec is invalid.
func (r *round) compare(ctx context.Context, cluster string, s *status.Status) error {
	if s.UpdatedAt.After(r.now) {
		return nil
	}
	stacks := r.stacks[cluster]
	for _, recorded := range stacks {
		if stack.InProgress(recorded.Status) {
			return nil
		}
	}
	if err := r.version(ctx, cluster, s); err != nil {
		return err
	}
	if err := r.statuses(ctx, cluster, s); err != nil {
		return err
	}
	unwell, err := r.replace(ctx, cluster, s)
	if err != nil {
		return err
	}
	seen, err := r.Planner.PreviewWith(ctx, cluster, stacks)
	if err != nil {
		return err
	}
	p, unusable := seen.Plan, seen.Reason
	if seen.Unused != nil { // whatever is refused of the last good one
		unusable = seen.Unused.Reason
	}
	if accepted := s.Condition(status.SpecAccepted); accepted != nil && accepted.Reason == status.ReasonReleaseUnusable &&
		unusable != accepted.Reason {
		return r.start(ctx, cluster, s, names.RetryReleaseArrived)
	}
	if r.untold(cluster, s, seen.Next) {
		return r.start(ctx, cluster, s, names.RetryUpgradePending)
	}
	if unfinished(s) && unusable == "" && len(p.Changes) == 0 {
		return r.finish(ctx, cluster, s)
	}
	planned, findings, repairable := judge(s, p, seen.Reason, seen.Message, stacks, r.now)
	if s.Phase != status.Upgrading { // which replaces them
		findings = append(findings, outdated(cluster, stacks, r.groups)...)
	}
	few, err := r.short(ctx, cluster)
	if err != nil {
		return err
	}
	elsewhere, err := r.moved(ctx, cluster)
	if err != nil {
		return err
	}
	findings = slices.Concat(elsewhere, planned, findings, few, unwell)
	if err := r.forget(ctx, cluster, s); err != nil {
		return err
	}
	if err := r.tell(ctx, cluster, s, findings, planned, repairable); err != nil {
		return err
	}
	// What is only told may have been found long before: repairs reckon from when there was something to repair.
	since := r.now
	if s.DriftedAt != nil {
		since = *s.DriftedAt
	}
	if !repairable {
		return nil
	}
	if err := r.remember(ctx, cluster, p); err != nil {
		return err
	}
	_, err = r.repeat(ctx, cluster, s, names.RetryDrift, since)
	return err
}

// version tells what the control plane has come to, where nobody did: who stops an execution while CloudFormation
// moves it leaves nobody who waits for that.
func (r *round) version(ctx context.Context, cluster string, s *status.Status) error {
	is := plan.KubernetesVersion(r.stacks[cluster])
	if is == "" || is == s.KubernetesVersion {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(now *status.Status) {
		if now.KubernetesVersion == s.KubernetesVersion { // and nobody has meanwhile
			now.KubernetesVersion = is
		}
	})
}

// statuses records the statuses of stacks whose events were lost.
func (r *round) statuses(ctx context.Context, cluster string, s *status.Status) error {
	listed := func(o status.Stack) string { return cmp.Or(r.stacks[cluster][o.Name].Status, "DELETE_COMPLETE") }
	stale := func(o status.Stack) bool { return o.Status != listed(o) && !o.ReportedAt.After(r.now) }
	if !slices.ContainsFunc(s.Stacks, stale) {
		return nil
	}
	return r.State.UpdateStatus(ctx, cluster, func(now *status.Status) {
		if now.UpdatedAt.After(r.now) {
			return
		}
		for i, recorded := range now.Stacks {
			if !stale(recorded) {
				continue
			}
			now.Stacks[i] = status.Stack{
				Name: recorded.Name, Status: listed(recorded), Since: r.now.UTC(), ReportedAt: r.now.UTC(), Waits: recorded.Waits,
				External: r.stacks[cluster][recorded.Name].Status == "" && (stack.WasCreated(recorded.Status) || recorded.External),
			}
		}
	})
}

// unfinished says that the last execution ended without a verdict: it was stopped, and CloudFormation went on with
// what it had begun. What was uploaded since is not what it was about.
func unfinished(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Failed && s.ObservedVersion == s.SpecVersion && c != nil && (c.Reason == status.ReasonExecutionEnded ||
		c.Reason == status.ReasonConverging)
}

// finish has the verdict given on such a cluster of which nothing is left to change: whoever stopped the execution
// meant what was to come after.
func (r *round) finish(ctx context.Context, cluster string, s *status.Status) error {
	_, err := r.repeat(ctx, cluster, s, names.RetryAbortedExecution, s.Condition(status.Converged).
		LastTransitionTime)
	return err
}

// paused says that people want nothing done.
func paused(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && c.Reason == status.ReasonPaused
}

// judge says what of a cluster's stacks is not as it was made, by its phase and by what became of planning: what
// planning itself found, and what else the listing says of them. A spec that is not used does no harm: the plan is
// then that of the last good one.
func judge(s *status.Status, p plan.Plan, reason, message string, stacks map[string]stack.Deployed,
	now time.Time) (planned, others []string, repairable bool) {
	switch {
	case paused(s):
		return nil, nil, false
	case s.Phase == status.Failed, s.Phase == status.Upgrading:
		// The plan is what could not be made, or is being made. The next try, and the upgrade's next step, mend the rest too.
		planned = lost(s, p)
		if reason == status.ReasonChangeRefused && len(planned) > 0 { // nor will the next try make them
			planned = append(planned, message)
		}
		return planned, nil, false
	case reason == "", reason == status.ReasonSpecInvalid, reason == status.ReasonReleaseUnusable:
		planned, repairable = drifted(p, now)
		for i, line := range planned {
			if !repairable && strings.HasSuffix(line, status.MissingSuffix) { // the audit does not, as that would change the rest, too
				planned[i] += fmt.Sprintf(": run drover converge %s, which creates it", p.Cluster)
			}
		}
		return planned, besides(p, stacks), repairable
	case reason == status.ReasonChangeRefused && !refused(s):
		planned, _ = drifted(p, now)
		return append(planned, message), besides(p, stacks), false
	case reason == status.ReasonChangeRefused:
		return append(lost(s, p), untagged(p, stacks)...), nil, false
	}
	return nil, nil, false
}

// refused says that the status tells of a change that is refused already.
func refused(s *status.Status) bool {
	c := s.Condition(status.Converged)
	return s.Phase == status.Stopped && c != nil && c.Reason == status.ReasonChangeRefused
}

// lost tells of stacks that were there when the cluster was last converged and are gone.
func lost(s *status.Status, p plan.Plan) (findings []string) {
	for _, recorded := range s.Stacks {
		change, planned := p.Find(recorded.Name)
		stood := stack.WasCreated(recorded.Status) || recorded.External && recorded.Status == "DELETE_COMPLETE"
		if planned && stood && change.Operation == plan.Create && change.Reasons[0].Old == "absent" {
			findings = append(findings, status.Missing(recorded.Name))
		}
	}
	return findings
}

// untagged tells of stacks that may not be changed for they lost their tag, also when a newer spec was refused because of that.
func untagged(p plan.Plan, stacks map[string]stack.Deployed) (findings []string) {
	for _, change := range p.Changes {
		if reason, missing := change.MissingTag(stacks[change.Stack]); missing {
			findings = append(findings, reason.Line())
		}
	}
	return findings
}

// remember writes stacks into the status that are no more than a change set and in no spec: only by its status does planning know them.
func (r *round) remember(ctx context.Context, cluster string, p plan.Plan) error {
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

// tell says in the status what was found, which of it planning did, and since when there is something to repair. A
// cluster in which nothing was ever found has no such condition.
func (r *round) tell(ctx context.Context, cluster string, before *status.Status, findings, planned []string, repairable bool) error {
	if in := before.Condition(status.InSync); len(findings) == 0 && (in == nil || in.Status == "True") && before.DriftedAt == nil {
		return nil
	}
	now := status.InSyncAgain()
	if len(findings) > 0 {
		if more := len(findings) - maxFindings; more > 0 {
			findings = append(findings[:maxFindings], fmt.Sprintf("and %d more", more))
		}
		now.Status, now.Reason, now.Message = "False", status.ReasonDrifted, strings.Join(findings, "\n")
		logging.From(ctx).Warn("a cluster is not what it was", "cluster", cluster, "findings", findings)
	}
	return r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.Set(now, r.now)
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

// drifted tells what planning found of stacks that were what they should be, and whether converging mends it all. It does not where
// only drover's own rendering explains a difference: a new drover changes no cluster, only people do.
func drifted(p plan.Plan, now time.Time) (findings []string, repairable bool) {
	repairable = len(p.Changes) > 0
	for _, change := range p.Changes {
		if dueLately(change, now) {
			continue
		}
		for _, reason := range change.Reasons {
			line := fmt.Sprintf("stack %s: %s is %q instead of %q", change.Stack, reason.Field, reason.Old, reason.New)
			switch {
			case change.Operation == plan.Create && reason.Old == "absent":
				line = status.Missing(change.Stack)
			case change.DeletesOrphan():
				line = fmt.Sprintf("stack %s belongs to a control plane that is gone: it is made anew", change.Stack)
			case change.Operation == plan.Delete:
				line = fmt.Sprintf("stack %s is not in the spec", change.Stack)
			case !mends(change.Stack, reason):
				repairable = false
				line = fmt.Sprintf("stack %s differs from what its spec makes now (%s): drover or a person changed since it was made; run drover "+
					"converge %s to change it",
					change.Stack, reason.Field, p.Cluster)
			}
			findings = append(findings, line)
		}
	}
	return findings, repairable
}

// besides tells what the listing of stacks says that planning does not look at.
func besides(p plan.Plan, stacks map[string]stack.Deployed) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		stack := stacks[name]
		_, planned := p.Find(name)
		switch {
		case !planned && stack.Tags[names.TagCluster] == "":
			findings = append(findings, fmt.Sprintf("stack %s (%s) is in no spec and is not tagged as drover's: delete it if nobody needs it",
				name, stack.Status))
		case stack.Drifted:
			findings = append(findings, fmt.Sprintf("CloudFormation's drift detection found resources of stack %s changed by hand: aws "+
				"cloudformation describe-stack-resource-drifts --stack-name %s", name, names.Stack(p.Cluster, name)))
		}
	}
	return findings
}

// rollsBegin is how long after its time a roll is in time: the sweep starts it within five minutes.
const rollsBegin = 10 * time.Minute

// dueLately says whether all that a change is for is a roll whose time has just come: people asked for that, and it is no drift to be told.
func dueLately(change plan.Change, now time.Time) bool {
	for _, reason := range change.Reasons {
		at, err := time.Parse(time.RFC3339, reason.New)
		if !strings.HasSuffix(reason.Field, ".rollAt") || err != nil || now.Sub(at) > rollsBegin {
			return false
		}
	}
	return len(change.Reasons) > 0
}

// mends says whether converging a cluster to the spec that it was converged to before takes a reason away.
func mends(stack string, reason status.Reason) bool {
	switch {
	case reason.Field == "checksum."+stack: // nobody but people takes the tag away
		return reason.Old == ""
	case strings.HasSuffix(reason.Field, ".rollAt"): // its time came, and nobody made the roll
		return true
	case strings.HasPrefix(reason.Field, "tags."), strings.HasPrefix(reason.Field, "status."), strings.HasPrefix(reason.Field,
		"terminationProtection."),
		strings.Contains(reason.Field, ".outputs."), strings.Contains(reason.Field, ".parameters."):
		return true
	}
	return false
}

// outdated tells of instances that were launched from an older version of their pool's launch template though the pool is at rest.
func outdated(cluster string, stacks map[string]stack.Deployed, all map[string]pool.Group) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		pool, ok := strings.CutPrefix(name, names.PoolPrefix)
		group := all[names.Group(cluster, pool)]
		if !ok || !stack.Settled(stacks[name].Status) || group.TemplateVersion == "" {
			continue
		}
		var old []string
		for _, i := range group.Instances {
			if i.IsInService() && i.TemplateVersion != group.TemplateVersion {
				old = append(old, i.ID)
			}
		}
		if len(old) > 0 {
			findings = append(findings, fmt.Sprintf("pool %s: instances of an older launch template: %s: roll the pool", pool,
				strings.Join(old, ", ")))
		}
	}
	return findings
}

// replace has Auto Scaling replace nodes that are not Ready for long, by way of their drain. Of a paused cluster they are only told.
func (r *round) replace(ctx context.Context, cluster string, s *status.Status) ([]string, error) {
	control := r.stacks[cluster][names.ControlPlane]
	endpoint, authority := control.Outputs["ClusterEndpoint"], control.Outputs["ClusterCertificateAuthority"]
	if endpoint == "" {
		return nil, nil
	}
	nodes, err := r.Nodes.Health(ctx, cluster, endpoint, authority)
	if err != nil {
		logging.From(ctx).Warn("nodes cannot be looked at", "cluster", cluster, "error", err.Error())
		return []string{"the nodes could not be looked at: " + lasting(err).Error()}, nil
	}
	pools := map[string]pool.Group{}
	for name, deployed := range r.stacks[cluster] {
		if pool, ok := strings.CutPrefix(name, names.PoolPrefix); ok && stack.Settled(deployed.Status) {
			if group, there := r.groups[names.Group(cluster, pool)]; there {
				pools[pool] = group
			}
		}
	}
	instances, findings, alone := unwell(nodes, pools, r.now)
	if paused(s) || len(instances) == 0 {
		return findings, nil
	}
	if alone {
		next, err := r.again(ctx, cluster, s)
		if err != nil || !next.IsZero() {
			return append(findings, fmt.Sprintf("replacing the cluster's only node does not help: not before %s again",
				next.UTC().Format(time.RFC3339))), err
		}
	}
	for _, instance := range instances {
		logging.From(ctx).Warn("replacing a node that is not Ready", "cluster", cluster, "instance", instance)
		if err := r.Groups.Unhealthy(ctx, instance); err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// lasting is an error without the connection that it came from, so that the same words tell of the same thing.
func lasting(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// again says when a cluster's only node may be replaced: now, which is the zero time and is counted, or later. Each replacement that does
// not help has the next one wait twice as long, up to a day. A node that was well for two days has helped.
func (r *round) again(ctx context.Context, cluster string, s *status.Status) (next time.Time, err error) {
	const day = 24 * time.Hour
	now := status.Replaced{Count: 1, At: r.now.UTC().Truncate(time.Second)}
	if last := s.Replaced; last != nil && r.now.Sub(last.At) < 2*day {
		next = last.At.Add(min(period<<min(last.Count, 10), day))
		if r.now.Before(next.Add(-period / 2)) {
			return next, nil
		}
		now.Count = last.Count + 1
	}
	return time.Time{}, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Replaced = &now })
}

func describe(n pool.NodeHealth) string {
	if n.Name == "" {
		return fmt.Sprintf("instance %s of pool %s is in service without a node", n.Instance, n.Pool)
	}
	return fmt.Sprintf("node %s (%s) of pool %s is not Ready since %s: %s", n.Name, n.Instance, n.Pool, n.Since.UTC().Format(time.RFC3339),
		n.Message)
}

// patience is how long a node may not be Ready before it is replaced: most nodes that come back do so within minutes.
const patience = 20 * time.Minute

// unwell chooses the instances to replace: of each pool that is at rest the one whose node is not Ready for the longest time, or is not
// there at all. None where more than one and more than a third of the cluster's nodes are not Ready: then something else is wrong, and
// new nodes would fare no better. None that a person cordoned: somebody is at it. alone says that the cluster has no other node.
func unwell(nodes []pool.NodeHealth, pools map[string]pool.Group, now time.Time) (instances, findings []string, alone bool) {
	known := map[string]pool.NodeHealth{}
	for _, n := range nodes {
		known[n.Instance] = n
	}
	total, sick := 0, 0
	chosen := map[string]pool.NodeHealth{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		moving := false
		for _, i := range pools[name].Instances {
			if !i.IsInService() {
				moving = true // one at a time
				continue
			}
			total++
			n, there := known[i.ID]
			if !there {
				n = pool.NodeHealth{Instance: i.ID, Pool: name}
			}
			if n.Ready {
				continue
			}
			sick++
			if there && (now.Sub(n.Since) < patience || n.Cordoned) {
				continue
			}
			findings = append(findings, describe(n))
			if first, ok := chosen[name]; !ok || n.Since.Before(first.Since) {
				chosen[name] = n
			}
		}
		if moving {
			delete(chosen, name)
		}
	}
	if sick > 1 && sick*3 > total {
		return nil, append(findings, fmt.Sprintf("%d of %d nodes are not Ready: none is replaced while that many are", sick, total)), false
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		instances = append(instances, chosen[name].Instance)
	}
	return instances, findings, total == 1
}
