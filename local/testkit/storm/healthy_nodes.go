package storm

// Invariant 13: no healthy node is replaced because drover, Lambda or AWS was slow, throttled or down. drover-join-node abandons an
// instance itself only if it could not check the node for a day.

import (
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// seeMachineCall observes the calls of Auto Scaling that state machines make themselves.
func (w *world) seeMachineCall(action string, parameters map[string]any) {
	group, _ := parameters["AutoScalingGroupName"].(string)
	instance, _ := parameters["InstanceId"].(string)
	abandons := strings.EqualFold(action, "CompleteLifecycleAction") && parameters["LifecycleActionResult"] == string(pool.Abandon)
	if !w.checksApply() || !abandons {
		return
	}
	cluster, _, _ := names.SplitStack(group)
	w.check(13, !w.isReady(cluster, instance), "%s of %s is abandoned at its launch hook, and its node is Ready", instance, group)
}

// isReady reports whether the node of an instance is Ready.
func (w *world) isReady(cluster, instance string) bool {
	api := w.API(names.EKSCluster(cluster))
	if api == nil {
		return false
	}
	for _, n := range api.Nodes() {
		if instanceOf(n) == instance {
			return n.Ready
		}
	}
	return false
}
