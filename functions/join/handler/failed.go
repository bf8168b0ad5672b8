package handler

// What an instance that does not join means for the update under way: the second one fails it, and CloudFormation
// rolls back at once, instead of waiting for an hour for a signal that no instance will send. Its rollback takes
// nodes out, too, and begins whoever of the failed batch is still drained: so it hears of the failure when nobody is.
// Until then the instance stays at its hook.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// enough instances of a pool that did not join have an update fail: one may have had bad luck, and is replaced.
const enough = 2

// failed tells of an instance that did not join, and CloudFormation too when it is not the first of an update. It says whether that waits,
// and the result for what.
func (w *work) failed(ctx context.Context) (waits bool) {
	group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
	w.template = version(group, w.in.EC2InstanceID)
	var of, drains string
	if err == nil {
		if of, err = w.fails(ctx, group); of == updating {
			drains = w.drains(ctx, group)
		}
	}
	message, fails := w.result.Message, false
	w.update(ctx, func(s *status.Status) {
		w.result.Message = message
		w.set(s, status.NodeNotJoined, message)
		fails = of != "" && s.Converges() && len(alike(s.NotJoined(w.pool.Pool, s.Execution), w.template)) >= enough
		if waits = fails && drains != ""; waits {
			w.result.Message += drains
			w.set(s, status.NodeNotJoined, w.result.Message)
		}
	})
	if fails && !waits {
		err = errors.Join(err, w.Stacks.Signal(ctx, w.stack(), names.GroupResource, w.in.EC2InstanceID, false))
	}
	if err != nil {
		logging.From(ctx).Error("failing the update", "cluster", w.pool.Cluster, "pool", w.pool.Pool, "error", err.Error())
	}
	return waits
}

const updating, creating = "UPDATE_IN_PROGRESS", "CREATE_IN_PROGRESS"

// fails says what of the pool's stack an instance that does not join may fail, or nothing. A rollback goes by signals, too, and must not be
// failed by instances of what it rolls back; those of a launch template that an update replaces say nothing of it.
func (w *work) fails(ctx context.Context, group pool.Group) (string, error) {
	if behind(group, w.in.EC2InstanceID) {
		return "", nil
	}
	deployed, err := w.Stacks.Describe(ctx, w.stack())
	if err != nil || deployed.Status != updating && deployed.Status != creating {
		return "", err
	}
	return deployed.Status, nil
}

// drains says which others of the pool are on their way out, for which failing the update waits, and for how long it does; or nothing. It
// waits as long as an instance that did join waits with its signal, and CloudFormation for any. While an instance refresh does the rolling,
// CloudFormation hears no signals.
func (w *work) drains(ctx context.Context, group pool.Group) string {
	if w.refreshed() || w.elapsed > w.Limit+w.SignalLimit {
		return ""
	}
	what := w.others(group)
	if w.in.GivenUp != "" {
		// Nobody calls again, and the cluster may be why it was given up. So it does not fail the update at all beside drains: another
		// instance is launched in its place, which joins, or does not and fails the update when its time has come.
		if what != "" {
			what = "; the update is not failed for it while " + what
		}
		return what
	}
	if what == "" {
		seen, unseen := w.see(ctx)
		if what = unseen; seen {
			what = w.drained(group)
		}
	}
	if what == "" {
		return ""
	}
	latest := w.in.Started.Add(w.Limit + w.SignalLimit).UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s%s, by %s at the latest", failedWhen, what, latest)
}

// failedWhen begins what is told of an instance that is to fail the update.
const failedWhen = "; the update is failed when "

// gone is an instance that somebody else took from its hook. If it was to fail the update, it does not any more.
func (w *work) gone(ctx context.Context) {
	w.result = events.JoinResult{Outcome: events.JoinGone, Message: "the instance does not wait at the hook"}
	w.update(ctx, func(s *status.Status) {
		for i, n := range s.Nodes {
			if n.Instance == w.in.EC2InstanceID {
				s.Nodes[i].Message, _, _ = strings.Cut(n.Message, failedWhen)
			}
		}
	})
}

// alike are those nodes that may be of a version of the launch template: of some nobody knows.
func alike(nodes []status.Node, template string) (same []status.Node) {
	for _, n := range nodes {
		if template == "" || n.Template == "" || n.Template == template {
			same = append(same, n)
		}
	}
	return same
}

// boot is how long it takes at most until one that takes the place of another waits at its hook.
const boot = 5 * time.Minute

// failedLately counts instances of the pool and of a version of the launch template that did not join: those in whose place others may be
// coming now, and those of coming that are held at their hooks themselves, before they fail the update.
func (w *work) failedLately(ctx context.Context, template string, coming []string) (replaced, held int) {
	cluster, err := w.State.Status(ctx, w.pool.Cluster)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			logging.From(ctx).Warn("reading the status", "cluster", w.pool.Cluster, "error", err.Error())
		}
		return 0, 0
	}
	for _, node := range alike(cluster.Status.Nodes, template) {
		switch {
		case node.State != status.NodeNotJoined || node.Pool != w.pool.Pool:
		case slices.Contains(coming, node.Instance):
			held++
		case w.Now().Sub(node.Since) <= w.Limit+boot:
			replaced++
		}
	}
	return replaced, held
}
