package storm

// Changes of pools that a plan calls in place: none of their nodes is replaced.

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// seeExecution observes that change begins an update of a pool's stack. The check applies until the update or its rollback has ended.
func (w *world) seeExecution(in events.ChangeRequest) {
	if !strings.HasPrefix(in.Stack, names.PoolPrefix) {
		return
	}
	inPlace := slices.ContainsFunc(w.Status(in.Cluster).Plan, func(c status.Change) bool {
		return c.Stack == in.Stack && c.Effect == status.InPlace
	})
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.inPlace[names.Stack(in.Cluster, in.Stack)] = inPlace
}

// causesInPlace are in the causes of terminations that need no change of nodes: a scale-in, also of Auto Scaling that balances zones, and
// the replacement of an unhealthy instance.
var causesInPlace = []string{"in response to a difference between desired and actual capacity", "in response to an EC2 health check"}

// replacedInPlace returns the instances of a group that leave service between two states for another cause than those.
func replacedInPlace(was, now localautoscaling.View) (replaced []localautoscaling.InstanceView) {
	for _, i := range now.Instances {
		served := slices.ContainsFunc(was.Instances, func(before localautoscaling.InstanceView) bool {
			return before.ID == i.ID && before.State == pool.InService
		})
		allowed := slices.ContainsFunc(causesInPlace, func(cause string) bool { return strings.Contains(i.Activity, cause) })
		if served && strings.HasPrefix(i.State, pool.Terminating) && !allowed {
			replaced = append(replaced, i)
		}
	}
	return replaced
}
