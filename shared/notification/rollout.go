package notification

// Changes of rollouts.

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/rollout"
)

// DescribeRollout returns the detail of a notice of a rollout.
func DescribeRollout(name string, n rollout.Notify) events.RolloutEvent {
	c := events.RolloutEvent{
		Rollout: name, Event: string(n.Event), Run: n.Run, Plan: n.Plan, Stage: n.Stage, Cluster: n.Cluster, Reason: n.Reason,
	}
	command := func(format string, args ...any) { c.Command = "drover rollout " + fmt.Sprintf(format, args...) }
	switch n.Event {
	case rollout.EventPlanned:
		c.Message = fmt.Sprintf("the plan %.12s waits for its start", n.Plan)
		command("start %s", name)
	case rollout.EventStarted:
		c.Message = fmt.Sprintf("run %d of the plan %.12s has started", n.Run, n.Plan)
	case rollout.EventProblem:
		c.Message = n.Reason
	case rollout.EventStageBegan:
		c.Message = fmt.Sprintf("the stage %s has begun", n.Stage)
	case rollout.EventStagePassed:
		c.Message = fmt.Sprintf("the stage %s has passed", n.Stage)
	case rollout.EventNeedsApproval:
		c.Message = fmt.Sprintf("the stage %s waits for an approval", n.Stage)
		command("approve %s %s", name, n.Stage)
	case rollout.EventMemberFailed:
		c.Message = fmt.Sprintf("%s failed in the stage %s: %s", n.Cluster, n.Stage, n.Reason)
		command("retry %s %s", name, n.Cluster)
	case rollout.EventMemberBlocked:
		c.Message = fmt.Sprintf("the check %s refused %s in the stage %s, and nothing was changed", n.Reason, n.Cluster, n.Stage)
		command("retry %s %s", name, n.Cluster)
	case rollout.EventLongWait:
		c.Message = fmt.Sprintf("%s has waited for a day in the stage %s: %s", n.Cluster, n.Stage, n.Reason)
		command("skip %s %s", name, n.Cluster)
	case rollout.EventFreezeOverridden:
		c.Message = fmt.Sprintf("the run ignores the freeze %s", n.Reason)
	case rollout.EventPaused:
		c.Message = fmt.Sprintf("the decision %s paused the run", n.Reason)
		command("resume %s", name)
	case rollout.EventHalted:
		c.Message = fmt.Sprintf("the run is halted: %s", n.Reason)
		if n.Stage != "" {
			c.Message = fmt.Sprintf("the run is halted in the stage %s: %s", n.Stage, n.Reason)
		}
		command("status %s", name)
	case rollout.EventRollingBack:
		c.Message = fmt.Sprintf("members of the stage %s return to their previous release: %s", n.Stage, n.Reason)
	case rollout.EventRunning:
		c.Message = "the run continues"
	case rollout.EventEnded:
		c.Message = fmt.Sprintf("run %d has ended: %s", n.Run, n.Reason)
	}
	return c
}

// rolloutUrgency returns Problem if an operator should act.
func rolloutUrgency(c events.RolloutEvent) string {
	switch rollout.Event(c.Event) {
	case rollout.EventEnded:
		if c.Reason != string(rollout.Done) {
			return Problem
		}
		return Result
	case rollout.EventStagePassed:
		return Result
	case rollout.EventStarted, rollout.EventStageBegan, rollout.EventRunning:
		return Progress
	}
	return Problem
}

// RolloutChanging sends the notices of changes of rollouts, and counts them.
func (n *Notifier) RolloutChanging(ctx context.Context, changes []events.RolloutEvent) error {
	var notices []Notice
	for _, c := range changes {
		message := c.Message
		if c.Command != "" {
			message += "\n\n" + c.Command
		}
		notices = append(notices, Notice{
			DetailType: events.RolloutChange, Detail: c,
			Subject: fmt.Sprintf("drover: rollout %.50s: %s", c.Rollout, c.Event), Message: message,
			Attributes: map[string]string{"rollout": c.Rollout, "state": c.Event, "urgency": rolloutUrgency(c)},
		})
	}
	if err := n.send(ctx, notices); err != nil {
		return err
	}
	for _, c := range changes {
		if err := metrics.Count(n.metrics, n.now(), "RolloutEvent", "event", c.Event); err != nil {
			return err
		}
	}
	return nil
}

// RolloutState counts an evaluation of an active run by the state of the run.
func (n *Notifier) RolloutState(state string) error {
	return metrics.Count(n.metrics, n.now(), "RolloutState", "state", state)
}
