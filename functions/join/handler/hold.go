package handler

// The next batch of a roll waits: neither CloudFormation nor an instance refresh waits for terminate hooks, so a new instance
// does not count before no other of its group is being drained, and the pool's pause is over.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/names"
)

// Pauses between two looks at the group within a call: a tenth of what has passed, so that few looks find soon enough what takes
// seconds and what takes minutes.
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

// wait until the next call: a twentieth of what has passed, so that what is waited for is found at most 5 % late.
func (w *work) wait(least int64) {
	w.result.Outcome = events.JoinWaiting
	w.result.WaitSeconds = max(least, min(mostWait, int64(w.elapsed/time.Second)/20))
	w.result.PausedSeconds = w.in.PausedSeconds
}

// signal tells CloudFormation of a new node, as soon as the next batch may begin.
func (w *work) signal(ctx, watching context.Context) error {
	if !w.refreshed() {
		free, err := w.free(ctx, watching)
		if err != nil {
			return err
		}
		if !free && w.elapsed <= w.Limit+w.SignalLimit {
			return nil
		}
		if !free {
			boundary.Log(ctx).Warn("not signalled", "instance", w.in.EC2InstanceID, "message", w.result.Message)
			w.result = events.JoinResult{Outcome: events.JoinReady, Node: w.result.Node, Message: "not signalled: " + w.result.Message}
			return nil
		}
	}
	w.result.Outcome = events.JoinReady
	return w.Stacks.Signal(ctx, w.stack(), names.GroupResource, w.in.EC2InstanceID, true)
}

// free says whether the next batch may begin. Otherwise the result says what it waits for and for how long.
func (w *work) free(ctx, watching context.Context) (bool, error) {
	for began := w.Now(); ; {
		group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
		if err != nil {
			return false, err
		}
		leaving := slices.DeleteFunc(group.Leaving(), func(id string) bool { return id == w.in.EC2InstanceID })
		// CloudFormation ends the next instances as soon as it hears of this one: by then it is in service.
		comes := !w.refreshed() && slices.ContainsFunc(group.Instances, func(i groups.Instance) bool {
			return i.ID == w.in.EC2InstanceID && i.State != groups.InService
		})
		if len(leaving) == 0 && !comes {
			return !w.pauses(group), nil
		}
		select {
		case <-time.After(min(lastPause, max(leastPause, w.Now().Sub(began)/10))):
		case <-watching.Done():
			w.wait(leastWait)
			what := "it is in service"
			if len(leaving) > 0 {
				what = strings.Join(leaving, ", ") + " are drained"
			}
			w.result.Message += "; it counts when " + what
			return false, ctx.Err()
		}
	}
}

// pauses says whether the pool's pause is still to be waited for: only while there is something to roll.
func (w *work) pauses(group groups.Group) bool {
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
func rolling(group groups.Group, instance string) bool {
	i := slices.IndexFunc(group.Instances, func(i groups.Instance) bool { return i.ID == instance })
	return i >= 0 && slices.ContainsFunc(group.Instances, func(other groups.Instance) bool {
		return other.TemplateVersion != group.Instances[i].TemplateVersion
	})
}
