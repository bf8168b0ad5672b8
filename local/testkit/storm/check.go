package storm

// The invariants of DESIGN.md §4, at the moments at which they could be broken. Each check is named by its number there.

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

// known is what checks remember. Some of it comes from callbacks of services that hold their locks, so it has one of its own.
type known struct {
	sync.Mutex
	// touched are the stacks of each cluster that a change of its spec was about since it was last Ready; all is all of them.
	touched map[string]map[string]bool
	// standing are the clusters whose control plane was made; deleting those whose spec is gone and that may go.
	standing map[string]bool
	// going are the stacks that are being deleted with their clusters.
	going map[string]bool
	// rolls are the groups whose stacks are being updated: how many instances must stay in service.
	rolls map[string]int
	// scaled are those of them that are not judged before they are taken back: an autoscaler scaled them meanwhile, or their rollback failed.
	scaled map[string]int
	// looked is how many instances a group was to have when change looked at it to reckon the pace of the update that is next, or under way.
	// What an autoscaler wants more before CloudFormation comes to the group, nobody could reckon with.
	looked map[string]int
	// looks is what change saw when it last looked at the spec of a stack's cluster. unwanted are stacks that it began
	// to delete after it had looked in the same call, when they might go: a spec that comes after that look finds the
	// stack going, and it is made anew.
	looks    map[string]look
	unwanted map[string]bool
	// surveyed are the clusters whose API said which volumes to retain since their control plane was created.
	surveyed map[string]bool
	// stuck are the control planes' stacks that could not be deleted.
	stuck map[string]bool
	// grown says when an autoscaler enlarged a group last, and by how many.
	grown map[string]growth
	// inService is how many instances a group has, going how many are on their way out.
	views map[string]autoscaling.View
	// drains is since when instances are drained, by node's provider id.
	drains map[string]time.Time
	// drainTurns are the turns at which their drains began: time may stand still between turns.
	drainTurns map[string]int
	// ending is when instances were first seen to be terminated.
	ending map[string]time.Time
	// attended are instances that somebody came to drain; swept is when a sweep last came.
	attended map[string]bool
	swept    time.Time
	// used instances have been in service.
	used map[string]bool
	// outlasting are instances whose drains CloudFormation did not wait for any longer: it rolled their update back.
	outlasting map[string]bool
	// lost instances were taken by a fault.
	lost map[string]bool
	// struck is when an instance was lost last, full when a group last had all its instances in service again.
	struck, full time.Time
	whole        map[string]bool
	// byHand are stacks that somebody updates: by the pace of the last roll, which was for the size that the pool had then.
	byHand map[string]bool
	// unstacked is when stacks were gone that somebody deleted by hand; zero while they are going.
	unstacked map[string]time.Time
	// nodeless are instances of clusters whose Node somebody deleted.
	nodeless map[string]string
	// chosen is how many instances an autoscaler wanted of a group last, whose stack was at rest.
	chosen map[string]int
	// unhealthy is how many instances of a group the audit has replaced since all were in service.
	unhealthy map[string]int
	// watched groups.
	watched map[string]bool
	// back are the clusters that somebody asked to be rolled back, undone the stacks that CloudFormation takes back.
	back, undone map[string]bool
	// begun are the executions of upgrades that were seen.
	begun map[string]bool
	// readiness of each cluster; told are those whose status was written since it was looked at.
	readiness map[string]*readiness
	told      []string
	said      []Violation
	// expected is what a preview said of the newest upload of each cluster, until it is judged.
	expected map[string]*expectation
	// handled are the last events of stacks that were handled.
	handled map[string]handledEvent
	// asked are the requests of functions, by how they were written.
	asked map[string]any
}

// look at a spec by change, in the call that has the task's token: whether the stack might go.
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

// judges says whether what happens is judged. Once the turns are over it is not: all that still goes on does so at once then, in no order.
func (w *world) judges() bool { return !w.turns.over() }

// check counts a check and notes a violation unless it holds. It may be called with any lock held.
func (w *world) check(invariant int, holds bool, format string, arguments ...any) {
	w.known.Lock()
	defer w.known.Unlock()
	w.out.Checks[invariant]++
	if !holds {
		w.known.said = append(w.known.said, Violation{invariant, fmt.Sprintf(format, arguments...)})
	}
}

// after every turn.
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

// touched are the stacks of a cluster that somebody did something about.
func (w *world) touched(cluster string) map[string]bool {
	if w.known.touched[cluster] == nil {
		w.known.touched[cluster] = map[string]bool{}
	}
	return w.known.touched[cluster]
}

func (w *world) touchPool(cluster, pool string) { w.touched(cluster)[names.PoolStack(pool)] = true }

// touch notes what a new spec is about.
func (w *world) touch(cluster string, before, now *wish) {
	// A spec that cannot be read leaves what came before it undone, and so does one whose release is gone.
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

// askedFor is what a function was asked: it makes many calls in one invocation.
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

// seeFunctionCall sees the calls of functions before they are answered.
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

// mayGoBack notes that somebody asks for a rollback.
func (w *world) mayGoBack(a act) {
	if a.upgrade.Rollback {
		w.known.Lock()
		defer w.known.Unlock()
		w.known.back[a.cluster] = true
	}
}

// alive says whether an execution runs. A function goes on when its execution is stopped, until it has ended.
func (w *world) alive(execution string) bool {
	return slices.ContainsFunc(w.States.Executions(), func(x states.Execution) bool { return x.ARN == execution && x.Status == "RUNNING" })
}

func mutating(action string) bool {
	return slices.Contains([]string{"CreateChangeSet", "ExecuteChangeSet", "DeleteStack", "ContinueUpdateRollback", "CancelUpdateStack"},
		action)
}

// seeCall sees every call before it is answered.
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

// seeAnswer sees every call when it was answered.
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
	// Each service has its own word for it.
	denied := strings.Contains(call.ErrorCode, "AccessDenied") || call.ErrorCode == "AuthorizationError" ||
		call.ErrorCode == "UnauthorizedOperation"
	w.check(12, !denied, "%s may not %s %s: %s", harness.CalledBy(call), call.Service, call.Action, call.Error)
}

// clusterOf a stack's name, and the stack.
func clusterOf(stackName string) (cluster, stack string) {
	rest, ours := strings.CutPrefix(stackName, names.Prefix)
	if !ours {
		return "", ""
	}
	cluster, stack, _ = strings.Cut(rest, "-")
	return cluster, stack
}

// seeResource sees resources before CloudFormation makes, changes or deletes them; what it returns is their failure.
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
		w.check(3, !w.lives(cluster), "%s of %s is made beside the EKS cluster, which is there", r.LogicalID, r.StackName)
	case r.Type == "AWS::AutoScaling::AutoScalingGroup":
		w.seeGroup(step, cluster, stack, r)
	}
	if step == "delete" && (stack == names.ControlPlane || stack == names.Network) {
		w.seeDeletion(cluster, r)
	}
	return w.failResource(step, r)
}

// seeDeletion sees the resources of a control plane or network before they are deleted, several at once.
func (w *world) seeDeletion(cluster string, r resource.Request) {
	may := w.mayGo(cluster, r.StackName)
	w.known.Lock()
	if w.known.going[r.StackName] {
		w.known.Unlock()
		return
	}
	asked, standing := w.known.unwanted[r.StackName], w.known.standing[cluster]
	delete(w.known.unwanted, r.StackName)
	w.known.going[r.StackName] = may || asked // a new spec does not stop it any more
	w.known.Unlock()
	w.check(3, asked || w.wishes[cluster] == nil || !standing, "%s %s of %s is deleted, and nobody asked for it", r.Type, r.LogicalID, cluster)
	if standing || w.wishes[cluster] == nil && w.Stacks(cluster)[strings.TrimPrefix(r.StackName, names.Stack(cluster, ""))] ==
		"DELETE_IN_PROGRESS" {
		w.check(11, may || asked, "%s %s of %s is deleted, and it is protected", r.Type, r.LogicalID, cluster)
	}
}

// mayGo says whether a stack that holds a cluster may be deleted, as people want the cluster now: because all of it
// is to go, or because it can only be made anew, as CloudFormation takes nothing but another deletion of a stack that
// it could not delete.
func (w *world) mayGo(cluster, stackName string) bool {
	if w.wishes[cluster] == nil {
		return !w.protected[cluster] || w.turning[cluster]
	}
	w.known.Lock()
	stuck := w.known.stuck[stackName]
	w.known.Unlock()
	return stuck && (!w.protected[cluster] || !w.lives(cluster))
}

func minorOf(version string) int {
	_, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, _ := strconv.Atoi(minor)
	return n
}

// seeStackEvent follows what the control planes' stacks went through.
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
		if stack == names.Network { // whoever goes on with it is somebody else
			delete(w.known.going, stackName)
		}
	}
	if !strings.HasSuffix(is, "_IN_PROGRESS") {
		delete(w.known.looked, stackName)
	}
	if is == "DELETE_FAILED" && stack == names.ControlPlane { // whoever goes on with it looks anew
		delete(w.known.going, stackName)
		w.known.stuck[stackName] = true
	}
	if is == "DELETE_COMPLETE" {
		delete(w.known.stuck, stackName)
		delete(w.known.going, stackName)
		delete(w.known.chosen, stackName)
	}
	w.known.undone[stackName] = strings.Contains(is, "ROLLBACK")
	if is == "UPDATE_ROLLBACK_IN_PROGRESS" { // CloudFormation ends new instances whatever became of the old ones, when its hour is over
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
		is == "UPDATE_ROLLBACK_FAILED": // whoever continues it goes on with the same group, larger by a batch
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

// nodesNow are checked at times: no kubelet is newer than its control plane. One that a fault made so must not come into service.
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

// readable says that a status tells people what is.
func readable(s *status.Status) bool {
	return s.Phase != "" && s.Phase != status.Converging && (s.Phase == status.Ready || s.Message != "")
}
