package roll

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// maxJoinWait is how long the first batch waits for instances that are launching. If the image never joins, Auto
// Scaling launches new instances again and again, and only the roll brings another image.
const maxJoinWait = 15 * time.Minute

// Blocker is what the first batch waits for.
type Blocker struct {
	// Instances block the batch. It is empty if nothing blocks.
	Instances []string
	// Max is how long the batch waits for each instance.
	Max time.Duration
	// Draining reports whether the instances are being drained, and not launching.
	Draining bool
	// Began is when the oldest of the instances began to drain or launch. Deadline is when the wait for the youngest ends.
	Began, Deadline time.Time
}

// FirstBatch returns what blocks the first batch of a roll: instances that are being drained, for an earlier roll or a scale-in, then
// instances that are launching. Neither CloudFormation nor an instance refresh waits for them. Launching instances do not block if no
// instance serves, because then replacing them costs nothing, or if enough serve. drainTimeout is the pool's.
func FirstBatch(group pool.Group, drainTimeout time.Duration) Blocker {
	terminating, launching := group.AllTerminating(), group.Launching()
	switch serving := group.Serving(); {
	case len(terminating) > 0:
		return Blocker{
			Instances: terminating, Max: drainTimeout + backoff.DrainGrace, Draining: true,
		}
	case len(launching) > 0 && serving > 0 && serving < group.Desired:
		return Blocker{Instances: launching, Max: maxJoinWait}
	}
	return Blocker{}
}

// SetTimes sets Began and Deadline. It drops instances whose wait is over, unless that is all of them. began is when each instance began to
// drain or launch. An instance that is not in began is assumed to have begun with the wait of this execution.
func (b *Blocker) SetTimes(began map[string]time.Time, waited time.Duration, now time.Time) {
	var recent []string
	for _, instance := range b.Instances {
		at, found := began[instance]
		if !found {
			at = now.Add(-waited)
		}
		if b.Began.IsZero() || at.Before(b.Began) {
			b.Began = at
		}
		if deadline := at.Add(b.Max); deadline.After(now) {
			recent = append(recent, instance)
			if deadline.After(b.Deadline) {
				b.Deadline = deadline
			}
		}
	}
	if recent != nil {
		b.Instances = recent
	}
}

// Awaited returns what must happen first: the instances, and the state that they must reach. It is "" if nothing blocks.
func (b *Blocker) Awaited() string {
	if b.Draining {
		return wait(b.Instances, "has been drained", "have been drained")
	}
	return wait(b.Instances, "has joined", "have joined")
}

// Present returns the instances and their present state.
func (b *Blocker) Present() string {
	if b.Draining {
		return wait(b.Instances, "is still being drained", "are still being drained")
	}
	return wait(b.Instances, "has not joined", "have not joined")
}

// Left returns how much longer the batch waits, in whole seconds, rounded up. It is not positive once the wait is over. An execution waits
// no longer than Max in all: otherwise a pool that always drains a node would never be rolled.
func (b *Blocker) Left(waited time.Duration, now time.Time) time.Duration {
	return min((b.Deadline.Sub(now) + time.Second - 1).Truncate(time.Second), b.Max-waited)
}

// MayPassDrains reports whether a roll that adds a node first may begin during drains, because their pods need that node. See ADR 20.
func (b *Blocker) MayPassDrains(group pool.Group) bool {
	return b.Draining && group.Serving() >= group.Desired
}

// PendingReason returns why a pod of a drained instance cannot leave, if no node can run its replacement: then one more node helps. It is
// empty otherwise. nodes are those of the status.
func PendingReason(nodes []status.Node, instances []string) string {
	for _, node := range nodes {
		if slices.Contains(instances, node.Instance) && node.State == status.NodeBlocked && len(node.Pending) > 0 {
			return node.Pending[0].Pod + ": " + node.Pending[0].Why
		}
	}
	return ""
}

// AddsFirst reports whether a roll with these parameters adds a node before it takes one. It takes no old node before the new node's signal
// or the end of its launch hook. join holds both back while other nodes are being drained.
//   - A rolling update first grows the group to MinInstancesInService + MaxBatchSize, if that is more than its desired capacity:
//     https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
//   - An instance refresh launches before it terminates, if it must keep 100 % in service:
//     https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
func AddsFirst(group pool.Group, parameters map[string]string) bool {
	if minHealthy, refreshes := parameters[render.MinHealthyPercentage]; refreshes {
		return minHealthy == "100" && parameters[render.MaxHealthyPercentage] != "100"
	}
	return render.GrownSize(group.Desired, parameters) > group.Desired
}
