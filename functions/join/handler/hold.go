package handler

// The next batch of a roll waits: neither CloudFormation nor an instance refresh need wait for terminate hooks, so a new instance
// does not count before no other of its pool is being drained, for whatever reason, and the pool's pause is over; and only as a
// node that is still what the pool waits for.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"

	"github.com/drover-run/drover/shared/render"
)

// Pauses between two looks at the group within a call: a tenth of what has passed since the instance joined, as far
// as the call knows, so that few looks find soon enough what takes seconds and what takes hours.
const (
	leastPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Waits between two calls, in seconds.
const (
	leastWait      = 1
	leastBlindWait = 10
	mostWait       = 60
	// mostPause is less than half of the launch hook's timeout, so that each call's heartbeat is in time.
	mostPause = 400
)

// between two calls is a twentieth of what has passed, so that what is waited for is found at most 5 % late.
func (w *work) between() time.Duration { return min(mostWait*time.Second, w.elapsed/20) }

// wait until the next call.
func (w *work) wait(least int64) {
	w.result.Outcome = events.JoinWaiting
	w.result.WaitSeconds = max(least, int64(w.between()/time.Second))
	w.result.PausedSeconds = w.in.PausedSeconds
}

// signal tells CloudFormation of a new node, as soon as the next batch may begin.
func (w *work) signal(ctx, watching context.Context) error {
	if !w.refreshed() {
		free, err := w.free(ctx, watching)
		if err != nil {
			return err
		}
		if !free && (w.elapsed <= w.Limit+w.SignalLimit || w.elapsed <= w.HoldLimit && (w.spare || w.changes(ctx))) {
			return nil
		}
		if !free {
			logging.From(ctx).Warn("not signalled", "instance", w.in.EC2InstanceID, "message", w.result.Message)
			w.result = events.JoinResult{Outcome: events.JoinReady, Node: w.result.Node, Message: "not signalled: " + w.result.Message}
			return nil
		}
	}
	w.result.Outcome = events.JoinReady
	if w.replaced {
		w.result.Message += "; it is replaced, too, and nobody waits for it"
		return nil
	}
	return w.Stacks.Signal(ctx, w.stack(), names.GroupResource, w.in.EC2InstanceID, true)
}

// changes says whether CloudFormation still changes the pool's stack, as far as anybody can tell. It gives an update up after an hour
// without signals; but where it waits for terminate hooks, too, the hour begins when the last drain is over, and it needs the signals
// after that.
func (w *work) changes(ctx context.Context) bool {
	deployed, err := w.Stacks.Describe(ctx, w.stack())
	if err != nil {
		logging.From(ctx).Warn("reading the stack", "cluster", w.pool.Cluster, "pool", w.pool.Pool, "error", err.Error())
	}
	return err != nil || stack.InProgress(deployed.Status)
}

// free says whether the next batch may begin. Otherwise the result says what it waits for and for how long.
func (w *work) free(ctx, watching context.Context) (bool, error) {
	for began := w.Now().Add(-w.waited); ; {
		group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
		if err != nil {
			return false, err
		}
		if w.replaced = !w.refreshed() && behind(group, w.in.EC2InstanceID); w.replaced {
			return true, nil
		}
		if w.refreshed() && lastBatch(group) {
			return true, nil
		}
		leave := w.others(group)
		// CloudFormation ends the next instances as soon as it hears of this one: by then it is in service.
		comes := !w.refreshed() && slices.ContainsFunc(group.Instances, func(i pool.Instance) bool {
			return i.ID == w.in.EC2InstanceID
		}) && !group.Serves(w.in.EC2InstanceID)
		var what string
		switch {
		case leave != "":
			what = leave
		case comes:
			what = "it is in service"
		default:
			what = w.nodesHold(watching, group)
			if what == "" && w.refreshed() {
				return !w.pauses(group), nil
			}
			if what == "" {
				if what, err = w.awaits(ctx, group); err != nil {
					return false, err
				}
				if w.spare = what != ""; !w.spare {
					return !w.pauses(group), nil
				}
			}
		}
		pause := min(lastPause, max(leastPause, w.Now().Sub(began)/10))
		again := time.After(pause)
		if end, bounded := watching.Deadline(); bounded && time.Until(end) <= pause { // by then its time is over, and what it waits for is known
			again = nil
		}
		select {
		case <-again:
		case <-watching.Done():
			w.wait(leastWait)
			w.result.Message += "; it counts when " + what
			return false, ctx.Err()
		}
	}
}

// lastBatch reports whether an instance refresh has no instance left to replace: those of an older launch template are on their way out,
// and all others are current. There is no next batch to hold back. The refresh ends although nodes are still drained, and a newer spec
// can be planned: it may be what their drains need. See docs/adr/0020.
func lastBatch(group pool.Group) bool {
	outdated := func(i pool.Instance) bool {
		return strings.HasPrefix(i.State, pool.Terminating) && i.TemplateVersion != group.TemplateVersion
	}
	return group.TemplateVersion != "" && len(group.Outdated()) == 0 && slices.ContainsFunc(group.Instances, outdated)
}

// awaits says what must happen before CloudFormation waits for this signal, or nothing when it does: a rolling update
// counts the signals of all new instances, those too that an autoscaler added meanwhile. One that it does not wait
// for yet would let it take its next batch before this one is over.
//
// It has waited for as many as the group is to have during the update, less those that it has still to replace; those
// who were Ready first signal first. That is the group's MinSize meanwhile, more than it was to be if an autoscaler
// enlarged the group just before. Where no node must stay, CloudFormation leaves MinSize alone, and takes as many at
// once as the pool had: a signal more lets it take none that must stay.
//
// Those who are still on their way in do not count as awaited: one that an autoscaler added, and that was Ready
// before them, would answer for one of the last batch, and the next would go while that has not joined. But one that
// never joins comes again and again, and would hold all of them until the update fails: whoever takes the place of
// one that has just failed holds nobody. As many serve by then as the update goes by. One that is to fail the update
// holds them: CloudFormation would take its next batch just before it hears of that.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (w *work) awaits(ctx context.Context, group pool.Group) (string, error) {
	if group.Desired <= group.Min || !rolling(group, w.in.EC2InstanceID) { // CloudFormation has both grow, and nobody else the first
		return "", nil
	}
	if !w.described {
		deployed, err := w.Stacks.Describe(ctx, w.stack())
		if err != nil {
			return "", err
		}
		w.described, w.during = true, 0
		least, err := strconv.Atoi(deployed.Parameters[render.MinInstancesInService])
		batch, err2 := strconv.Atoi(deployed.Parameters[render.MaxBatchSize])
		if err == nil && err2 == nil && least > 0 && stack.InProgress(deployed.Status) {
			w.during = least + batch
		}
	}
	during := max(w.during, group.Min)
	if w.during == 0 || group.Desired <= during {
		return "", nil
	}
	own := slices.IndexFunc(w.nodes, func(n pool.Node) bool { return n.Instance == w.in.EC2InstanceID })
	if own < 0 {
		return "", nil
	}
	awaited, before := during, 0
	var coming []string
	for _, i := range group.Instances {
		if i.ID == w.in.EC2InstanceID {
			continue
		}
		if i.TemplateVersion != version(group, w.in.EC2InstanceID) {
			awaited--
			continue
		}
		node := slices.IndexFunc(w.nodes, func(n pool.Node) bool { return n.Instance == i.ID })
		switch {
		case strings.HasPrefix(i.State, pool.Pending):
			coming = append(coming, i.ID)
		case i.State == pool.InService && node >= 0 && w.nodes[node].Ready && w.nodes[node].ReadyBefore(w.nodes[own]):
			before++
		}
	}
	switch {
	case before >= awaited:
		return "the update waits for a node more: an autoscaler wants more of them than are replaced", nil
	case before < awaited-len(coming):
		return "", nil
	}
	replaced, held := w.failedLately(ctx, version(group, w.in.EC2InstanceID), coming)
	if before < awaited-len(coming)+min(replaced, len(coming)-held) {
		return "", nil
	}
	return strings.Join(coming, ", ") + " have joined", nil
}

// others says that other instances of the group are on their way out, or nothing.
func (w *work) others(group pool.Group) string {
	leaving := slices.DeleteFunc(group.Leaving(), func(id string) bool { return id == w.in.EC2InstanceID })
	if len(leaving) == 0 {
		return ""
	}
	return strings.Join(leaving, ", ") + " are drained"
}

// nodesHold says what must become of the pool's nodes before the next batch may begin, or nothing.
func (w *work) nodesHold(ctx context.Context, group pool.Group) string {
	if seen, unseen := w.see(ctx); !seen {
		return unseen
	}
	var own *pool.Node
	if i := slices.IndexFunc(w.nodes, func(n pool.Node) bool { return n.Instance == w.in.EC2InstanceID }); i >= 0 {
		own = &w.nodes[i]
	}
	if lacks := own.Missing(w.pool.Readiness); lacks != "" {
		return "it is what it was: " + lacks
	}
	if what := w.drained(group); what != "" {
		return what
	}
	return w.unready(group)
}

// unready says which of the new nodes that a roll has brought are not Ready any more, or nothing: another batch of
// the same kind would take more of the old ones away. One whose Node object is gone holds nobody: its machine ended,
// as spot instances do, and its group replaces it after the update.
func (w *work) unready(group pool.Group) string {
	if !rolling(group, w.in.EC2InstanceID) {
		return ""
	}
	own := version(group, w.in.EC2InstanceID)
	var lacking []string
	for _, node := range w.nodes {
		if node.Instance != w.in.EC2InstanceID && group.Serves(node.Instance) && version(group, node.Instance) == own &&
			node.Missing(w.pool.Readiness) != "" {
			lacking = append(lacking, node.Name)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return strings.Join(lacking, ", ") + " are Ready again"
}

// see the pool's nodes, or say that the cluster must be asked for them. One that is gone has none.
func (w *work) see(ctx context.Context) (seen bool, unseen string) {
	cluster, err := w.open(ctx)
	if errors.Is(err, kube.ErrNoCluster) {
		return false, ""
	}
	var nodes []pool.Node
	if err == nil {
		nodes, err = cluster.PoolNodes(ctx, w.pool.Pool)
	}
	if err != nil {
		return false, "the cluster can be asked: " + err.Error()
	}
	w.nodes = nodes
	return true, ""
}

// drained says which nodes are though their instances are in service, or nothing: by hand, or for a spot instance that goes.
func (w *work) drained(group pool.Group) string {
	var drained []string
	for _, node := range w.nodes {
		if node.Draining && node.Instance != w.in.EC2InstanceID && group.Serves(node.Instance) {
			drained = append(drained, node.Name)
		}
	}
	if len(drained) == 0 {
		return ""
	}
	return strings.Join(drained, ", ") + " are drained"
}

// pauses says whether the pool's pause is still to be waited for: only while there is something to roll.
func (w *work) pauses(group pool.Group) bool {
	if w.pool.Update == nil || w.in.PausedSeconds >= w.pool.Update.PauseSeconds || !rolling(group, w.in.EC2InstanceID) {
		return false
	}
	w.result.Outcome = events.JoinWaiting
	w.result.WaitSeconds = min(mostPause, w.pool.Update.PauseSeconds-w.in.PausedSeconds)
	w.result.PausedSeconds = w.in.PausedSeconds + w.result.WaitSeconds
	w.result.Message += fmt.Sprintf("; it counts after the pool's pause of %d s", w.pool.Update.PauseSeconds)
	return true
}

// rolling says whether a group has instances of another launch template version than this one's.
func rolling(group pool.Group, instance string) bool {
	own := version(group, instance)
	return own != "" && slices.ContainsFunc(group.Instances, func(other pool.Instance) bool { return other.TemplateVersion != own })
}

// version of the launch template that an instance of a group was started with, "" when it is none.
func version(group pool.Group, instance string) string {
	for _, i := range group.Instances {
		if i.ID == instance {
			return i.TemplateVersion
		}
	}
	return ""
}

// behind says whether an instance is of an older launch template than its group's: an update that is under way replaces it like the others.
func behind(group pool.Group, instance string) bool {
	own := version(group, instance)
	return own != "" && group.TemplateVersion != "" && own != group.TemplateVersion
}
