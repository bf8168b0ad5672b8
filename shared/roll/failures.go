package roll

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/status"
)

// failsAt is how many instances of an update must fail to join before the update fails. The first may be an accident.
const failsAt = 2

// FailsUpdate reports whether the nodes that failed to join during an execution fail its update. template is the launch template version of
// the last of them.
func FailsUpdate(notJoined []status.Node, template string) bool {
	return len(ofTemplate(notJoined, template)) >= failsAt
}

// ofTemplate returns the nodes that may have a launch template version. An unknown version may be any.
func ofTemplate(nodes []status.Node, template string) (same []status.Node) {
	for _, n := range nodes {
		if template == "" || n.Template == "" || n.Template == template {
			same = append(same, n)
		}
	}
	return same
}

// Failures counts the nodes of a pool and of a launch template version that failed to join, for Signals.IsNeeded. held counts the launching
// instances that wait at their hooks to fail the update. replaced counts the instances that failed so recently that a launching instance
// may be their replacement.
func Failures(nodes []status.Node, poolName, template string, launching []string, within time.Duration,
	now time.Time) (replaced, held int) {
	for _, node := range ofTemplate(nodes, template) {
		switch {
		case node.State != status.NodeNotJoined || node.Pool != poolName:
		case slices.Contains(launching, node.Instance):
			held++
		case now.Sub(node.Since) <= within:
			replaced++
		}
	}
	return replaced, held
}
