package roll

// A rolling update counts the signals of all new instances, also of those that an autoscaler added. A signal that the update does not wait
// for yet would release its next batch before the present one has joined.
//
// The number of signals that the update waits for is the number of instances that it keeps, minus the instances that it has not replaced
// yet. It keeps MinInstancesInService + MaxBatchSize instances, or the group's MinSize if that is more: an autoscaler may have grown the
// group just before. Nodes signal in the order in which they became Ready.
//
// One of these signals is reserved for each launching instance. Otherwise CloudFormation would count the signal of a node that an
// autoscaler added, and that was Ready first, in place of the signal of a node of the batch. Two kinds of launching instances differ:
//   - An instance that replaces one that failed to join reserves none. Such an image never joins, and the reservation would hold all
//     signals until the update fails.
//   - An instance that waits at its hook to fail the update reserves one.
//
// AWS does not document which signals count. If only those of the batch count, the signal that seems surplus may be the one that the update
// waits for. Then the group does not change. After a while the signal is sent: see Gate.IsSettled.
//
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html

import (
	"strings"

	"github.com/drover-run/drover/shared/pool"
)

// MayAddNodes reports whether an autoscaler may have added nodes to the present update. Only then must signals be counted: otherwise the
// desired capacity equals the minimum, which CloudFormation raised.
func (g *Gate) MayAddNodes() bool { return g.Group.Desired > g.Group.Min && g.IsRolling() }

// Signals is what decides whether the update needs the signal of this instance.
type Signals struct {
	// Needed is how many signals the update waits for, and Earlier how many nodes signal before this one.
	Needed, Earlier int
	// Launching are the new instances that have not joined.
	Launching []string
}

// Signals counts signals. minDuringUpdate is how many instances the update keeps by its parameters, 0 without an update. It returns false
// if the count does not matter: every instance of the group belongs to the update.
func (g *Gate) Signals(minDuringUpdate int) (s Signals, counted bool) {
	kept := max(minDuringUpdate, g.Group.Min)
	own := g.node(g.Instance)
	if minDuringUpdate == 0 || g.Group.Desired <= kept || own == nil {
		return s, false
	}
	s.Needed = kept
	for _, i := range g.Group.Instances {
		if i.ID == g.Instance {
			continue
		}
		if i.TemplateVersion != g.template() {
			s.Needed--
			continue
		}
		node := g.node(i.ID)
		switch {
		case strings.HasPrefix(i.State, pool.Pending):
			s.Launching = append(s.Launching, i.ID)
		case i.State == pool.InService && node != nil && node.Ready && node.ReadyBefore(*own):
			s.Earlier++
		}
	}
	return s, true
}

// IsSurplus reports whether the update needs no more signals for its present batch.
func (s Signals) IsSurplus() bool { return s.Earlier >= s.Needed }

// IsNeeded reports whether the update needs this signal, even if every launching instance joins. replaced is the number of launching
// instances that may replace one that failed to join. held is the number of launching instances that wait to fail the update.
func (s Signals) IsNeeded(replaced, held int) bool {
	return s.Earlier < s.Needed-len(s.Launching)+min(replaced, len(s.Launching)-held)
}

// IsSettled reports whether nothing happens in the group: no instance launches or terminates, and enough serve.
func (g *Gate) IsSettled() bool {
	return len(g.Group.Launching()) == 0 && len(g.Group.AllTerminating()) == 0 && g.Group.Serving() >= g.Group.Desired
}

// AwaitedSignal is what a surplus signal waits for.
const AwaitedSignal = "the update needs another signal: an autoscaler added more nodes than the update replaces"

// AwaitedLaunches is what a signal waits for while launching instances may need it.
func (s Signals) AwaitedLaunches() string { return wait(s.Launching, "has joined", "have joined") }
