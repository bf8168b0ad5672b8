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
	"github.com/drover-run/drover/local/aws/states"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// known is the state of the checks. It has a lock of its own, because services set some of it in callbacks under their
// locks.
type known struct {
	sync.Mutex
	// touched are the stacks of each cluster that a change of its spec affects since it was last Ready; all means all of
	// them.
	touched map[string]map[string]bool
	// standing are the clusters whose control plane was created. deleting are those whose spec is deleted and that may be
	// deleted.
	standing map[string]bool
	// going are the stacks that are deleted with their clusters.
	going map[string]bool
	// rolls has the number of instances that must stay in service, for each group whose stack is updated.
	rolls map[string]int
	// scaled are groups of rolls that are not judged until they are rolled back: an autoscaler scaled them during the roll,
	// or their rollback failed.
	scaled map[string]int
	// looked is the desired size of a group when change read it to compute the pace of its next or current update. change
	// cannot consider what an autoscaler adds between that and CloudFormation's update.
	looked map[string]int
	// looks is what change read last of the spec of a stack's cluster. unwanted are stacks that it started to delete after
	// that, in the same call, when they could be deleted. A spec that arrives later finds the stack in deletion, and the
	// stack is recreated.
	looks    map[string]look
	unwanted map[string]bool
	// surveyed are the clusters whose API listed the volumes to retain since their control plane was created.
	surveyed map[string]bool
	// stuck are the stacks of control planes that could not be deleted.
	stuck map[string]bool
	// grown is the last enlargement of a group by an autoscaler.
	grown map[string]growth
	// views are the last observed states of groups.
	views map[string]autoscaling.View
	// drains is the start of the drains of instances, by provider ID of the node.
	drains map[string]time.Time
	// drainTurns are the turns at which drains began. Time may stand still between turns.
	drainTurns map[string]int
	// ending is when instances were first seen terminating.
	ending map[string]time.Time
	// attended are instances for which a drain started. swept is the time of the last sweep.
	attended map[string]bool
	swept    time.Time
	// used instances have been in service.
	used map[string]bool
	// outlasting are instances whose drains CloudFormation stopped waiting for when it rolled their update back.
	outlasting map[string]bool
	// lost instances were terminated by a fault.
	lost map[string]bool
	// struck is when an instance was last lost. full is when a group last had all its instances in service again.
	struck, full time.Time
	whole        map[string]bool
	// byHand are stacks that an operator updates, with the pace of the last roll, which was computed for the pool's size
	// then.
	byHand map[string]bool
	// unstacked is when the deletion of stacks by an operator ended; zero while it is in flight.
	unstacked map[string]time.Time
	// nodeless are instances whose Node an operator deleted, by cluster.
	nodeless map[string]string
	// chosen is the last desired size of a group that an autoscaler set while the stack was idle.
	chosen map[string]int
	// unhealthy is the number of instances of a group that the audit replaced since all were in service.
	unhealthy map[string]int
	// watched groups.
	watched map[string]bool
	// back are the clusters for which a rollback was requested. undone are the stacks that CloudFormation rolls back.
	back, undone map[string]bool
	// begun are the executions of upgrades that were observed.
	begun map[string]bool
	// readiness of each cluster. written are those whose status was written since it was last checked.
	readiness map[string]*readiness
	written   []string
	said      []Violation
	// expected is the preview of each cluster's newest upload, until it is judged.
	expected map[string]*expectation
	// handled are the last events of stacks that were handled.
	handled map[string]handledEvent
	// asked are the requests of functions, by their JSON.
	asked map[string]any
}

// look is a read of a spec by change, in the call with the task's token. It decides whether the stack might be deleted.
type look struct {
	task  string
	mayGo bool
}

func newKnown() *known {
	return &known{
		handled: map[string]handledEvent{}, asked: map[string]any{}, expected: map[string]*expectation{}, touched: map[string]map[string]bool{},
		standing: map[string]bool{}, rolls: map[string]int{}, scaled: map[string]int{}, looked: map[string]int{}, grown: map[string]growth{},
		views:  map[string]autoscaling.View{},
		drains: map[string]time.Time{}, ending: map[string]time.Time{}, drainTurns: map[string]int{}, lost: map[string]bool{},
		used: map[string]bool{}, going: map[string]bool{}, whole: map[string]bool{}, unstacked: map[string]time.Time{},
		byHand: map[string]bool{}, chosen: map[string]int{}, outlasting: map[string]bool{}, unhealthy: map[string]int{},
		watched: map[string]bool{}, begun: map[string]bool{},
		readiness: map[string]*readiness{}, back: map[string]bool{}, undone: map[string]bool{}, nodeless: map[string]string{},
		unwanted: map[string]bool{}, looks: map[string]look{}, attended: map[string]bool{}, stuck: map[string]bool{}, surveyed: map[string]bool{},
	}
}

// judges is true while checks count. After the turns have ended all remaining work continues at once and in no order.
func (w *world) judges() bool { return !w.turns.over() }

// check counts a check and records a violation unless it holds. The caller may hold any lock.
func (w *world) check(invariant int, holds bool, format string, arguments ...any) {
	w.known.Lock()
	defer w.known.Unlock()
	w.out.Checks[invariant]++
	if !holds {
		w.known.said = append(w.known.said, Violation{invariant, fmt.Sprintf(format, arguments...)})
	}
}

// after runs after every turn.
func (w *world) after(string) bool {
	if w.turns.count > maxTurns {
		w.violate(0, "it does not come to rest: %d turns", w.turns.count)
	}
	w.seeReady()
	w.known.Lock()
	said := w.known.said
	w.known.said = nil
	w.known.Unlock()
	for _, v := range said {
		w.violate(v.Invariant, "%s", v.What)
	}
	return !w.over()
}

const all = "all stacks"

// touched returns the stacks of a cluster that were changed from outside.
func (w *world) touched(cluster string) map[string]bool {
	if w.known.touched[cluster] == nil {
		w.known.touched[cluster] = map[string]bool{}
	}
	return w.known.touched[cluster]
}

func (w *world) touchPool(cluster, pool string) { w.touched(cluster)[names.PoolStack(pool)] = true }

// touch records the stacks that a new spec affects.
func (w *world) touch(cluster string, before, now *wish) {
	// A spec that cannot be read leaves the previous one unfinished. So does one whose release is deleted.
	if before != nil && !before.broken() && !before.paused && !w.withheld(before) && w.unsettled(cluster) == "" && !w.running() &&
		!w.toCome(cluster) {
		w.known.touched[cluster] = nil
	}
	touched := w.touched(cluster)
	if before == nil || now == nil || before.team != now.team || before.release() != now.release() || now.channel != "" ||
		now.at != before.at {
		touched[all] = true
		return
	}
	for _, p := range now.pools {
		if was := before.pool(p.name); was == nil || *was != p {
			w.touchPool(cluster, p.name)
		}
	}
	for _, p := range before.pools {
		if now.pool(p.name) == nil {
			w.touchPool(cluster, p.name)
		}
	}
}

// askedFor returns the request of a function, which makes many calls in one invocation.
func askedFor[T any](w *world, asked []byte) (in T, ok bool) {
	w.known.Lock()
	defer w.known.Unlock()
	if in, ok = w.known.asked[string(asked)].(T); ok {
		return in, true
	}
	if json.Unmarshal(asked, &in) != nil {
		return in, false
	}
	w.known.asked[string(asked)] = in
	return in, true
}

// seeFunctionCall observes the calls of functions before they are answered.
func (w *world) seeFunctionCall(call endpoint.Call, asked []byte) {
	if !w.judges() {
		return
	}
	if harness.CalledBy(call) == "upgrade" {
		if in, ok := askedFor[events.UpgradeRequest](w, asked); ok {
			w.seeUpgrade(in)
		}
	}
	if harness.CalledBy(call) == "drain" {
		if in, ok := askedFor[events.DrainRequest](w, asked); ok && in.Lifecycle != nil {
			w.known.Lock()
			w.known.attended[in.EC2InstanceID] = true
			w.known.Unlock()
		}
	}
	if harness.CalledBy(call) == "change" && call.Action == "DescribeAutoScalingGroups" {
		if in, ok := askedFor[events.ChangeRequest](w, asked); ok {
			w.known.Lock()
			group := names.Stack(in.Cluster, in.Stack)
			w.known.looked[group] = w.known.views[group].Desired
			w.known.Unlock()
		}
	}
	if harness.CalledBy(call) == "change" && call.Action == "GetObject" {
		if in, ok := askedFor[events.ChangeRequest](w, asked); ok && strings.HasSuffix(call.Resource, "/"+names.ClusterSpec(in.Cluster)) {
			name := names.Stack(in.Cluster, in.Stack)
			now := look{in.TaskToken, w.mayGo(in.Cluster, name)}
			w.known.Lock()
			w.known.looks[name] = now
			w.known.Unlock()
		}
	}
	if harness.CalledBy(call) != "change" || call.Service != "cloudformation" || !call.Mutating && !mutating(call.Action) {
		return
	}
	in, ok := askedFor[events.ChangeRequest](w, asked)
	if !ok || in.Stack == "" {
		return
	}
	lease := w.Lease(in.Cluster)
	w.check(4, lease.Execution == in.Execution || !w.alive(in.Execution), "%s of %s of %s by %s, and the lease is of %s",
		call.Action, in.Stack, in.Cluster, in.Execution, lease.Execution)
	if call.Action == "DeleteStack" {
		name := names.Stack(in.Cluster, in.Stack)
		w.known.Lock()
		w.known.unwanted[name] = w.known.looks[name] == look{in.TaskToken, true}
		w.known.Unlock()
	}
	if pool, ok := strings.CutPrefix(in.Stack, names.PoolPrefix); ok {
		touched := w.known.touched[in.Cluster]
		w.check(5, touched[all] || touched[in.Stack], "%s of pool %s of %s: no change was about it", call.Action, pool, in.Cluster)
	}
}

// mayGoBack records that an operator requests a rollback.
func (w *world) mayGoBack(a act) {
	if a.upgrade.Rollback {
		w.known.Lock()
		defer w.known.Unlock()
		w.known.back[a.cluster] = true
	}
}

// alive is true if an execution runs. A function continues after its execution was stopped until it returns.
func (w *world) alive(execution string) bool {
	return slices.ContainsFunc(w.States.Executions(), func(x states.Execution) bool { return x.ARN == execution && x.Status == "RUNNING" })
}

func mutating(action string) bool {
	return slices.Contains([]string{"CreateChangeSet", "ExecuteChangeSet", "DeleteStack", "ContinueUpdateRollback", "CancelUpdateStack"},
		action)
}

// seeCall observes every call before it is answered.
func (w *world) seeCall(call endpoint.Call) error {
	if !w.judges() {
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
	if !w.judges() {
		return
	}
	if call.Service == "s3" && call.ErrorCode == "" {
		w.seeObject(call)
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
	w.check(12, !denied, "%s may not %s %s: %s", harness.CalledBy(call), call.Service, call.Action, call.Error)
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
	if !w.judges() {
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
		w.known.Lock()
		asked := w.known.back[cluster] || w.known.undone[r.StackName]
		w.known.Unlock()
		w.check(6, minorOf(next) >= minorOf(was) || asked, "the control plane of %s goes back from %s to %s, and nobody asked for that",
			cluster, was, next)
	case step == "create" && (r.Type == "AWS::EC2::VPC" || r.Type == "AWS::EKS::Cluster"):
		w.check(3, !w.hasEKSCluster(cluster), "%s of %s is made beside the EKS cluster, which is there", r.LogicalID, r.StackName)
	case r.Type == "AWS::AutoScaling::AutoScalingGroup":
		w.seeGroup(step, cluster, stack, r)
	}
	if step == "delete" && (stack == names.ControlPlane || stack == names.Network) {
		w.seeDeletion(cluster, r)
	}
	return w.failResource(step, r)
}

// seeDeletion observes the concurrent deletion of a control plane's or network's resources.
func (w *world) seeDeletion(cluster string, r resource.Request) {
	may := w.mayGo(cluster, r.StackName)
	w.known.Lock()
	if w.known.going[r.StackName] {
		w.known.Unlock()
		return
	}
	asked, standing := w.known.unwanted[r.StackName], w.known.standing[cluster]
	delete(w.known.unwanted, r.StackName)
	w.known.going[r.StackName] = may || asked // a new spec no longer stops it
	w.known.Unlock()
	w.check(3, asked || w.wishes[cluster] == nil || !standing, "%s %s of %s is deleted, and nobody asked for it", r.Type, r.LogicalID, cluster)
	if standing || w.wishes[cluster] == nil && w.Stacks(cluster)[strings.TrimPrefix(r.StackName, names.Stack(cluster, ""))] ==
		"DELETE_IN_PROGRESS" {
		w.check(11, may || asked, "%s %s of %s is deleted, and it is protected", r.Type, r.LogicalID, cluster)
	}
}

// mayGo is true if a stack that holds a cluster may be deleted under the cluster's current spec: because the whole
// cluster is deleted, or because the stack must be recreated. CloudFormation only accepts another deletion of a stack
// whose deletion failed.
func (w *world) mayGo(cluster, stackName string) bool {
	if w.wishes[cluster] == nil {
		return !w.protected[cluster] || w.turning[cluster]
	}
	w.known.Lock()
	stuck := w.known.stuck[stackName]
	w.known.Unlock()
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
	if !w.judges() {
		return
	}
	cluster, stack := clusterOf(stackName)
	w.disturb(cluster)
	w.known.Lock()
	defer w.known.Unlock()
	if _, byHand := w.known.unstacked[stackName]; byHand && !strings.HasSuffix(is, "_IN_PROGRESS") {
		w.known.unstacked[stackName] = time.Now()
		if stack == names.Network { // another execution continues it
			delete(w.known.going, stackName)
		}
	}
	if !strings.HasSuffix(is, "_IN_PROGRESS") {
		delete(w.known.looked, stackName)
	}
	if is == "DELETE_FAILED" && stack == names.ControlPlane { // the next attempt reads the spec again
		delete(w.known.going, stackName)
		w.known.stuck[stackName] = true
	}
	if is == "DELETE_COMPLETE" {
		delete(w.known.stuck, stackName)
		delete(w.known.going, stackName)
		delete(w.known.chosen, stackName)
	}
	w.known.undone[stackName] = strings.Contains(is, "ROLLBACK")
	if is == "UPDATE_ROLLBACK_IN_PROGRESS" { // CloudFormation ends new instances after its hour, whatever the state of the old ones
		for _, i := range w.known.views[stackName].Instances {
			since, drained := w.known.drains[i.ID]
			w.known.outlasting[i.ID] = strings.HasPrefix(i.State, "Terminating") && drained && time.Since(since) >= 59*time.Minute
		}
	}
	switch {
	case stack == names.ControlPlane && (is == "CREATE_COMPLETE" || is == "UPDATE_COMPLETE"):
		w.known.standing[cluster] = true
		if is == "CREATE_COMPLETE" {
			delete(w.known.surveyed, cluster)
		}
	case stack == names.ControlPlane && is == "DELETE_COMPLETE":
		delete(w.known.standing, cluster)
	case strings.HasPrefix(stack, names.PoolPrefix) &&
		is == "UPDATE_ROLLBACK_FAILED": // the next attempt continues with the same group, which is larger by a batch
		if least, rolling := w.known.rolls[stackName]; rolling {
			w.known.scaled[stackName] = least
			delete(w.known.rolls, stackName)
		}
	case strings.HasPrefix(stack, names.PoolPrefix) && !strings.HasSuffix(is, "_IN_PROGRESS"):
		delete(w.known.rolls, stackName)
		delete(w.known.scaled, stackName)
		delete(w.known.byHand, stackName)
	}
}

// nodesNow checks periodically that no kubelet is newer than its control plane. A node with a faulty kubelet must not
// enter service.
func (w *world) nodesNow() {
	struck, serves := w.engine.Struck()[faults.KubeletVersion] > 0, map[string]bool{}
	w.known.Lock()
	for _, v := range w.known.views {
		for _, i := range v.Instances {
			serves[i.ID] = i.State == "InService"
		}
	}
	w.known.Unlock()
	for cluster := range w.wishes {
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

// readable is true if a status describes the present state.
func readable(s *status.Status) bool {
	return s.Phase != "" && s.Phase != status.Converging && (s.Phase == status.Ready || s.Message != "")
}
