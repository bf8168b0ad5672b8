package roll

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/status"
)

// maxNotJoined instances of an update that fail to join fail the update. The first one may be an accident, and is replaced.
const maxNotJoined = 2

// FailsUpdate reports whether the nodes that failed to join during an execution fail its update. template is the launch template version of
// the last of them.
func FailsUpdate(notJoined []status.Node, template string) bool {
	return len(ofTemplate(notJoined, template)) >= maxNotJoined
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

// Failures counts the nodes of a pool and of a launch template version that failed to join, for Signals.IsNeeded. held are those of
// launching that wait at their hooks to fail the update. replaced are those that failed within a time, so that launching instances may
// replace them.
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
