package storm

// The invariants, checked when they could break. The number of each check is that of docs/reliability.md, section
// Invariants.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// observations is the state of the checks. It has a lock of its own, because services set some of it in callbacks under
// their locks. Maps of stacks and of groups have full names as keys.
type observations struct {
	sync.Mutex

	// affectedStacks has the stacks of each cluster that a change of its spec affects since the cluster was last Ready. The name all means
	// all of them.
	affectedStacks map[string]map[string]bool
	// hasControlPlane has the clusters whose control plane was created.
	hasControlPlane map[string]bool

	// specReads is the last read by change of the spec of a stack's cluster.
	specReads map[string]specRead
	// deletionRequested has the stacks that change deleted in the call in which it read a spec that allowed it. A spec that arrives later
	// finds the stack in deletion, and drover recreates the stack.
	deletionRequested map[string]bool
	// deletionAllowed reports, for each stack in deletion that holds a cluster, whether its deletion was allowed when it began.
	deletionAllowed map[string]bool
	// deletionFailed has the stacks of control planes whose deletion failed.
	deletionFailed map[string]bool
	// volumesListed has the clusters whose API listed the volumes to retain since their control plane was created.
	volumesListed map[string]bool

	// minInService is the number of instances that must stay in service in each group whose stack is updated.
	minInService map[string]int
	// inPlace has the stacks of pools whose update is planned as a change in place.
	inPlace map[string]bool
	// suspendedMin is the minInService of groups that are not checked until their update ends. An autoscaler scaled the group during the
	// update, or the rollback failed.
	suspendedMin map[string]int
	// paceDesired is the desired capacity of a group when change read it to compute the pace of its next or current update. change cannot
	// consider what an autoscaler adds between that and CloudFormation's update.
	paceDesired map[string]int
	// lastGrowth is the last enlargement of a group by an autoscaler.
	lastGrowth map[string]growth
	// groupViews are the last observed states of groups.
	groupViews map[string]autoscaling.View
	// watchedGroups has the groups whose states are observed.
	watchedGroups map[string]bool
	// groupFull reports whether a group has all its instances in service. lastGroupFull is when a group last reached that.
	groupFull     map[string]bool
	lastGroupFull time.Time
	// autoscalerDesired is the last desired capacity that an autoscaler set while the group's stack was idle.
	autoscalerDesired map[string]int
	// replacedByAudit is the number of instances of a group that the audit replaced since all were in service. unhealthy holds those of the
	// group that were unhealthy at the last of these calls.
	replacedByAudit map[string]int
	unhealthy       map[string]map[string]bool

	// drainStarts is when the drain of an instance began. drainStartTurns is the turn: time may stand still between turns.
	drainStarts     map[string]time.Time
	drainStartTurns map[string]int
	// terminatingSince is when an instance was first observed terminating.
	terminatingSince map[string]time.Time
	// drainCalled has the instances for which the drain function ran. lastSweep is when the last sweep that ran began.
	drainCalled map[string]bool
	lastSweep   time.Time
	// wasInService has the instances that have been in service.
	wasInService map[string]bool
	// abandonedDrains has the instances whose drains CloudFormation stopped waiting for when it rolled their update back.
	abandonedDrains map[string]bool
	// lostInstances has the instances that a fault terminated, or whose Node an operator deleted. lastInstanceLost is when a fault last
	// terminated one.
	lostInstances    map[string]bool
	lastInstanceLost time.Time
	// recreatedRoles is when the role of a function was last deleted and created again.
	recreatedRoles map[string]time.Time
	// nodelessInstance is the instance of a cluster whose Node an operator deleted.
	nodelessInstance map[string]string

	// updatedByOperator has the stacks that an operator updates. They use the pace of the last roll, computed for the pool's size then.
	updatedByOperator map[string]bool
	// operatorChangeEnded is when an operator's update or deletion of a stack ended. It is zero while the operation is in flight.
	operatorChangeEnded map[string]time.Time
	// deletedRelays are the clusters whose relay an operator deleted.
	deletedRelays map[string]bool

	// rollbackRequested has the clusters for which an operator requested a rollback of an upgrade.
	rollbackRequested map[string]bool
	// rollingBack has the stacks that CloudFormation rolls back.
	rollingBack map[string]bool
	// seenUpgrades has the executions of upgrades that were observed.
	seenUpgrades map[string]bool

	// readiness of each cluster. writtenStatuses are the clusters whose status was written since the last check of readiness.
	readiness       map[string]*readiness
	writtenStatuses []string
	// previews is the preview of each cluster's newest upload, until it is judged.
	previews map[string]*expectation
	// handledEvents is the last event of each stack that was handled.
	handledEvents map[string]handledEvent
	// stackChanges is when the status of a stack of each name changed last.
	stackChanges map[string]time.Time
	// decodedRequests are the requests of functions, by their JSON.
	decodedRequests map[string]any
	// violations since the end of the last turn.
	violations []Violation
}

// specRead is a read of a spec by change, in the call with the task's token. mayDelete reports whether the spec allowed the deletion of the
// stack.
type specRead struct {
	task      string
	mayDelete bool
}

func newObserved() *observations {
	return &observations{
		handledEvents: map[string]handledEvent{}, stackChanges: map[string]time.Time{}, decodedRequests: map[string]any{},
		previews:        map[string]*expectation{},
		affectedStacks:  map[string]map[string]bool{},
		hasControlPlane: map[string]bool{}, minInService: map[string]int{}, suspendedMin: map[string]int{}, paceDesired: map[string]int{},
		lastGrowth:  map[string]growth{},
		inPlace:     map[string]bool{},
		groupViews:  map[string]autoscaling.View{},
		drainStarts: map[string]time.Time{}, terminatingSince: map[string]time.Time{}, drainStartTurns: map[string]int{},
		lostInstances: map[string]bool{},
		wasInService:  map[string]bool{}, deletionAllowed: map[string]bool{}, groupFull: map[string]bool{},
		operatorChangeEnded: map[string]time.Time{}, deletedRelays: map[string]bool{},
		updatedByOperator: map[string]bool{}, autoscalerDesired: map[string]int{}, abandonedDrains: map[string]bool{},
		replacedByAudit: map[string]int{},
		unhealthy:       map[string]map[string]bool{},
		watchedGroups:   map[string]bool{}, seenUpgrades: map[string]bool{},
		readiness: map[string]*readiness{}, rollbackRequested: map[string]bool{}, rollingBack: map[string]bool{},
		nodelessInstance: map[string]string{}, recreatedRoles: map[string]time.Time{},
		deletionRequested: map[string]bool{}, specReads: map[string]specRead{}, drainCalled: map[string]bool{},
		deletionFailed: map[string]bool{}, volumesListed: map[string]bool{},
	}
}

// checksApply reports whether checks count. After the turns have ended all remaining work continues at once and in no order.
func (w *world) checksApply() bool { return !w.turns.over() }

// check counts a check and records a violation unless it holds. The caller may hold any lock.
func (w *world) check(invariant int, holds bool, format string, arguments ...any) {
	w.observed.Lock()
	defer w.observed.Unlock()
	w.out.Checks[invariant]++
	if !holds {
		w.observed.violations = append(w.observed.violations, Violation{invariant, fmt.Sprintf(format, arguments...)})
	}
}

// after runs after every turn.
func (w *world) after(string) bool {
	if w.turns.count > maxTurns {
		w.violate(0, "work is still in flight after %d turns", w.turns.count)
	}
	w.seeReady()
	if w.fleet != nil {
		w.checkFleet()
	}
	w.observed.Lock()
	reported := w.observed.violations
	w.observed.violations = nil
	w.observed.Unlock()
	for _, v := range reported {
		w.violate(v.Invariant, "%s", v.What)
	}
	return !w.over()
}

const all = "all stacks"

// affectedStacks returns the set of affected stacks of a cluster, to which callers may add.
func (w *world) affectedStacks(cluster string) map[string]bool {
	if w.observed.affectedStacks[cluster] == nil {
		w.observed.affectedStacks[cluster] = map[string]bool{}
	}
	return w.observed.affectedStacks[cluster]
}

func (w *world) recordAffectedPool(cluster, pool string) {
	w.affectedStacks(cluster)[names.PoolStack(pool)] = true
}

// recordAffectedStacks records the stacks that a new spec affects.
func (w *world) recordAffectedStacks(cluster string, before, now *wish) {
	// A spec that cannot be read leaves the previous one unfinished. So does one whose release is deleted.
	if before != nil && !before.broken() && !before.paused && !w.isReleaseDeleted(before) && w.unsettledPart(cluster) == "" && !w.running() &&
		!w.hasPendingUpgrade(cluster) {
		w.observed.affectedStacks[cluster] = nil
	}
	touched := w.affectedStacks(cluster)
	if before == nil || now == nil || before.team != now.team || before.edits != now.edits || before.release() != now.release() ||
		now.channel != "" || now.at != before.at {
		touched[all] = true
		return
	}
	for _, p := range now.pools {
		if was := before.pool(p.name); was == nil || *was != p {
			w.recordAffectedPool(cluster, p.name)
		}
	}
	for _, p := range before.pools {
		if now.pool(p.name) == nil {
			w.recordAffectedPool(cluster, p.name)
		}
	}
}

// decodeRequest returns the request of a function. It keeps the result, because a function makes many calls in one invocation.
func decodeRequest[T any](w *world, asked []byte) (in T, ok bool) {
	w.observed.Lock()
	defer w.observed.Unlock()
	if in, ok = w.observed.decodedRequests[string(asked)].(T); ok {
		return in, true
	}
	if json.Unmarshal(asked, &in) != nil {
		return in, false
	}
	w.observed.decodedRequests[string(asked)] = in
	return in, true
}

// seeFunctionCall observes the calls of functions before they are answered.
func (w *world) seeFunctionCall(call endpoint.Call, asked []byte) {
	if !w.checksApply() {
		return
	}
	if harness.CalledBy(call) == "upgrade" {
		if in, ok := decodeRequest[events.UpgradeRequest](w, asked); ok {
			w.seeUpgrade(in)
		}
	}
	if harness.CalledBy(call) == "drain" {
		if in, ok := decodeRequest[events.DrainRequest](w, asked); ok && in.Lifecycle != nil {
			w.observed.Lock()
			w.observed.drainCalled[in.EC2InstanceID] = true
			w.observed.Unlock()
		}
	}
	if harness.CalledBy(call) == "change" && call.Action == "DescribeAutoScalingGroups" {
		if in, ok := decodeRequest[events.ChangeRequest](w, asked); ok {
			w.observed.Lock()
			group := names.Stack(in.Cluster, in.Stack)
			w.observed.paceDesired[group] = w.observed.groupViews[group].Desired
			w.observed.Unlock()
		}
	}
	if harness.CalledBy(call) == "change" && call.Action == "GetObject" {
		if in, ok := decodeRequest[events.ChangeRequest](w, asked); ok && strings.HasSuffix(call.Resource, "/"+names.ClusterSpec(in.Cluster)) {
			name := names.Stack(in.Cluster, in.Stack)
			now := specRead{in.TaskToken, w.mayDelete(in.Cluster, name)}
			w.observed.Lock()
			w.observed.specReads[name] = now
			w.observed.Unlock()
		}
	}
	if harness.CalledBy(call) != "change" || call.Service != "cloudformation" || !call.Mutating && !mutating(call.Action) {
		return
	}
	in, ok := decodeRequest[events.ChangeRequest](w, asked)
	if !ok || in.Stack == "" {
		return
	}
	lease := w.Lease(in.Cluster)
	w.check(4, lease.Execution == in.Execution || !w.alive(in.Execution), "%s of %s of %s by %s, and the lease is of %s",
		call.Action, in.Stack, in.Cluster, in.Execution, lease.Execution)
	if call.Action == "DeleteStack" {
		name := names.Stack(in.Cluster, in.Stack)
		w.observed.Lock()
		w.observed.deletionRequested[name] = w.observed.specReads[name] == specRead{in.TaskToken, true}
		w.observed.Unlock()
	}
	if call.Action == "ExecuteChangeSet" {
		w.seeExecution(in)
	}
	if pool, ok := strings.CutPrefix(in.Stack, names.PoolPrefix); ok {
		touched := w.observed.affectedStacks[in.Cluster]
		w.check(5, w.fleet != nil || touched[all] || touched[in.Stack], "%s of pool %s of %s: no change was about it", call.Action, pool,
			in.Cluster)
	}
}

// recordRollbackRequest records that an operator requests a rollback.
func (w *world) recordRollbackRequest(a act) {
	if a.upgrade.Rollback {
		w.observed.Lock()
		defer w.observed.Unlock()
		w.observed.rollbackRequested[a.cluster] = true
	}
}

// alive reports whether an execution runs. A function continues after its execution was stopped until it returns.
func (w *world) alive(execution string) bool {
	return slices.ContainsFunc(w.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
		return x.ARN == execution && x.Status == "RUNNING"
	})
}

func mutating(action string) bool {
	return slices.Contains([]string{"CreateChangeSet", "ExecuteChangeSet", "DeleteStack", "ContinueUpdateRollback", "CancelUpdateStack"},
		action)
}

// seeCall observes every call before it is answered.
func (w *world) seeCall(call endpoint.Call) error {
	if !w.checksApply() {
		return nil
	}
	w.turns.note(harness.CalledBy(call)+":", call.Service, call.Action)
	if call.Action == "DeleteVolume" {
		w.seeVolumeDeletion(call)
	}
	return nil
}

// seeAnswer observes every call after it was answered.
func (w *world) seeAnswer(call endpoint.Call) {
	if !w.checksApply() {
		return
	}
	if call.Service == "s3" && call.ErrorCode == "" {
		w.seeObject(call)
		if w.fleet != nil && call.Action == "PutObject" {
			w.fleet.seeWrite(w, call)
		}
	}
	if call.Caller == "" || harness.CalledBy(call) == "admin" {
		return
	}
	if call.Action == "SetInstanceHealth" && call.ErrorCode == "" {
		w.seeReplacement(call.Resource[strings.LastIndex(call.Resource, "/")+1:])
	}
	// Services use different codes.
	denied := strings.Contains(call.ErrorCode, "AccessDenied") || call.ErrorCode == "AuthorizationError" ||
		call.ErrorCode == "UnauthorizedOperation"
	w.observed.Lock()
	// A call before the deletion of the role, or at the same moment, may have a session of that role.
	earlier := !call.Time.After(w.observed.recreatedRoles[harness.CalledBy(call)])
	w.observed.Unlock()
	w.check(12, !denied || earlier, "%s may not %s %s: %s", harness.CalledBy(call), call.Service, call.Action, call.Error)
}

// clusterOf returns the cluster and the stack of a stack's full name.
func clusterOf(stackName string) (cluster, stack string) {
	rest, ours := strings.CutPrefix(stackName, names.Prefix)
	if !ours {
		return "", ""
	}
	cluster, stack, _ = strings.Cut(rest, "-")
	return cluster, stack
}

// seeResource observes resources before CloudFormation creates, changes or deletes them. Its error is their failure.
func (w *world) seeResource(step string, r resource.Request) error {
	if !w.checksApply() {
		return nil
	}
	cluster, stack := clusterOf(r.StackName)
	if cluster == "" {
		return nil
	}
	switch {
	case r.Type == "AWS::EKS::Cluster" && step == "update":
		was, _ := r.Old["Version"].(string)
		next, _ := r.Properties["Version"].(string)
		w.check(6, minorOf(next)-minorOf(was) <= 1, "the control plane of %s goes from %s to %s", cluster, was, next)
		w.observed.Lock()
		asked := w.fleet != nil || w.observed.rollbackRequested[cluster] || w.observed.rollingBack[r.StackName]
		w.observed.Unlock()
		w.check(6, minorOf(next) >= minorOf(was) || asked, "the control plane of %s is rolled back from %s to %s without a rollback",
			cluster, was, next)
	case step == "create" && (r.Type == "AWS::EC2::VPC" || r.Type == "AWS::EKS::Cluster"):
		w.check(3, !w.hasEKSCluster(cluster), "%s of %s is created next to the EKS cluster, which exists", r.LogicalID, r.StackName)
	case r.Type == "AWS::AutoScaling::AutoScalingGroup":
		w.seeGroup(step, cluster, stack, r)
	}
	if step == "delete" && (stack == names.ControlPlane || stack == names.Network) && !w.dropsRelay(cluster, r.LogicalID) {
		w.seeDeletion(cluster, r)
	}
	return w.failResource(step, r)
}

// seeDeletion observes the concurrent deletion of a control plane's or network's resources.
func (w *world) seeDeletion(cluster string, r resource.Request) {
	may := w.mayDelete(cluster, r.StackName)
	w.observed.Lock()
	if w.observed.deletionAllowed[r.StackName] {
		w.observed.Unlock()
		return
	}
	asked, standing := w.observed.deletionRequested[r.StackName], w.observed.hasControlPlane[cluster]
	delete(w.observed.deletionRequested, r.StackName)
	w.observed.deletionAllowed[r.StackName] = may || asked // a new spec no longer stops it
	w.observed.Unlock()
	w.check(3, asked || w.desired[cluster] == nil || !standing, "%s %s of %s is deleted without a request", r.Type, r.LogicalID, cluster)
	if standing || w.desired[cluster] == nil && w.Stacks(cluster)[strings.TrimPrefix(r.StackName, names.Stack(cluster, ""))] ==
		"DELETE_IN_PROGRESS" {
		w.check(11, may || asked, "%s %s of %s is deleted, and it is protected", r.Type, r.LogicalID, cluster)
	}
}

// mayDelete reports whether a stack that holds a cluster may be deleted under the cluster's current spec: because the whole
// cluster is deleted, or because the stack must be recreated. CloudFormation only accepts another deletion of a stack
// whose deletion failed.
func (w *world) mayDelete(cluster, stackName string) bool {
	if w.desired[cluster] == nil {
		return !w.protected[cluster] || w.protectionChanging[cluster]
	}
	w.observed.Lock()
	stuck := w.observed.deletionFailed[stackName]
	w.observed.Unlock()
	return stuck && (!w.protected[cluster] || !w.hasEKSCluster(cluster))
}

func minorOf(version string) int {
	_, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, _ := strconv.Atoi(minor)
	return n
}

// seeStack follows the operations of the control planes' stacks.
func (w *world) seeStack(stackName, is string) {
	if !w.checksApply() {
		return
	}
	cluster, stack := clusterOf(stackName)
	w.disturb(cluster)
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.stackChanges[stackName] = time.Now()
	if _, byHand := w.observed.operatorChangeEnded[stackName]; byHand && !strings.HasSuffix(is, "_IN_PROGRESS") {
		w.observed.operatorChangeEnded[stackName] = time.Now()
		if stack == names.Network { // another execution continues it
			delete(w.observed.deletionAllowed, stackName)
		}
	}
	if !strings.HasSuffix(is, "_IN_PROGRESS") {
		delete(w.observed.paceDesired, stackName)
		delete(w.observed.inPlace, stackName)
	}
	if is == "DELETE_FAILED" && stack == names.ControlPlane { // the next attempt reads the spec again
		delete(w.observed.deletionAllowed, stackName)
		w.observed.deletionFailed[stackName] = true
	}
	if is == "DELETE_COMPLETE" {
		delete(w.observed.deletionFailed, stackName)
		delete(w.observed.deletionAllowed, stackName)
		delete(w.observed.autoscalerDesired, stackName)
	}
	w.observed.rollingBack[stackName] = strings.Contains(is, "ROLLBACK")
	if is == "UPDATE_ROLLBACK_IN_PROGRESS" { // CloudFormation ends new instances after its hour, whatever the state of the old ones
		for _, i := range w.observed.groupViews[stackName].Instances {
			since, drained := w.observed.drainStarts[i.ID]
			w.observed.abandonedDrains[i.ID] = strings.HasPrefix(i.State, "Terminating") && drained && time.Since(since) >= 59*time.Minute
		}
	}
	switch {
	case stack == names.ControlPlane && (is == "CREATE_COMPLETE" || is == "UPDATE_COMPLETE"):
		w.observed.hasControlPlane[cluster] = true
		if is == "CREATE_COMPLETE" {
			delete(w.observed.volumesListed, cluster)
		}
	case stack == names.ControlPlane && is == "DELETE_COMPLETE":
		delete(w.observed.hasControlPlane, cluster)
	case strings.HasPrefix(stack, names.PoolPrefix) &&
		is == "UPDATE_ROLLBACK_FAILED": // the next attempt continues with the same group, which is larger by a batch
		if least, rolling := w.observed.minInService[stackName]; rolling {
			w.observed.suspendedMin[stackName] = least
			delete(w.observed.minInService, stackName)
		}
	case strings.HasPrefix(stack, names.PoolPrefix) && !strings.HasSuffix(is, "_IN_PROGRESS"):
		delete(w.observed.minInService, stackName)
		delete(w.observed.suspendedMin, stackName)
		delete(w.observed.updatedByOperator, stackName)
	}
}

// nodesNow checks periodically that no kubelet is newer than its control plane. A node with a faulty kubelet must not
// enter service.
func (w *world) nodesNow() {
	struck, serves := w.engine.Struck()[faults.KubeletVersion] > 0, map[string]bool{}
	w.observed.Lock()
	for _, v := range w.observed.groupViews {
		for _, i := range v.Instances {
			serves[i.ID] = i.State == "InService"
		}
	}
	w.observed.Unlock()
	for cluster := range w.desired {
		name := names.EKSCluster(cluster)
		api := w.API(name)
		if api == nil {
			continue
		}
		out, err := w.EKS.DescribeCluster(w.t.Context(), w.Admin(), eks.NamedInput{Name: name})
		if err != nil {
			continue
		}
		for _, n := range api.Nodes() {
			if struck && !serves[n.ProviderID[strings.LastIndex(n.ProviderID, "/")+1:]] {
				continue
			}
			w.check(6, minorOf(n.KubeletVersion) <= minorOf(out.Cluster.Version), "node %s of %s is %s, newer than its control plane, %s", n.Name,
				cluster, n.KubeletVersion, out.Cluster.Version)
		}
	}
}

// readable reports whether a status describes the present state.
func readable(s *status.Status) bool {
	return s.Phase != "" && s.Phase != status.Converging && (s.Phase == status.Ready || s.Message != "")
}
