package notification

// Notifications about nodes.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// nodeNotices returns a notice for each node that entered a state in which an operator may have to act. Draining is no such
// state. Auto Scaling keeps replacing instances that do not join. So only the first such instance of a pool is
// notified, for each change and each message.
func nodeNotices(cluster string, before, after *status.Status) (notices []Notice) {
	for _, n := range after.Nodes {
		same := func(o status.Node) bool {
			alike := n.State == status.NodeNotJoined && o.Pool == n.Pool && o.Execution == n.Execution &&
				withoutIDs(o.Message) == withoutIDs(n.Message)
			return o.State == n.State && (o.Instance == n.Instance || alike)
		}
		if n.State == status.NodeDraining || slices.ContainsFunc(before.Nodes, same) {
			continue
		}
		name := cmp.Or(n.Name, n.Instance)
		notices = append(notices, Notice{
			DetailType: events.ClusterNodeChange,
			Detail: events.NodeChange{
				Cluster: cluster, Pool: n.Pool, Node: n.Name, Instance: n.Instance, State: string(n.State), Message: n.Message, Blocked: n.Blocked,
			},
			Subject:    fmt.Sprintf("drover: a node of %.50s is %s", cluster, n.State),
			Message:    fmt.Sprintf("%s of pool %s: %s", name, n.Pool, cmp.Or(n.Message, string(n.State))),
			Attributes: map[string]string{"cluster": cluster, "state": string(n.State), "urgency": Problem},
		})
	}
	return notices
}
