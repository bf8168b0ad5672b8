package autoscaling

// Lifecycle hooks: instances wait until a caller completes the action, or for the heartbeat timeout.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html

import (
	"context"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// The transitions of hooks.
const (
	launching = "autoscaling:EC2_INSTANCE_LAUNCHING"
	ending    = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// Hook of a group.
type Hook struct {
	LifecycleHookName, LifecycleTransition string
	// HeartbeatTimeout in seconds, 30 to 7200; default 3600.
	HeartbeatTimeout *int
	// DefaultResult is CONTINUE or ABANDON (default).
	DefaultResult        string
	NotificationMetadata string
}

// globalTimeout is the longest wait, with or without heartbeats: 48 hours or a hundred times the heartbeat timeout, whichever is less.
func (h *Hook) globalTimeout() time.Duration { return min(48*time.Hour, 100*h.timeout()) }

func (h *Hook) timeout() time.Duration { return time.Duration(*h.HeartbeatTimeout) * time.Second }

// putHook adds a hook, or changes the properties that the request contains.
func (g *group) putHook(h Hook) error {
	index := slices.IndexFunc(g.hooks, func(old *Hook) bool { return old.LifecycleHookName == h.LifecycleHookName })
	if index >= 0 {
		old := *g.hooks[index]
		if h.LifecycleTransition == "" {
			h.LifecycleTransition = old.LifecycleTransition
		}
		if h.HeartbeatTimeout == nil {
			h.HeartbeatTimeout = old.HeartbeatTimeout
		}
		if h.DefaultResult == "" {
			h.DefaultResult = old.DefaultResult
		}
		if h.NotificationMetadata == "" {
			h.NotificationMetadata = old.NotificationMetadata
		}
	}
	if h.HeartbeatTimeout == nil {
		hour := 3600
		h.HeartbeatTimeout = &hour
	}
	if h.DefaultResult == "" {
		h.DefaultResult = "ABANDON"
	}
	switch {
	case h.LifecycleHookName == "":
		return invalid("LifecycleHookName is required")
	case h.LifecycleTransition != launching && h.LifecycleTransition != ending:
		return invalid("Invalid Lifecycle Transition: %s", h.LifecycleTransition)
	case *h.HeartbeatTimeout < 30 || *h.HeartbeatTimeout > 7200:
		return invalid("HeartbeatTimeout must be between 30 and 7200 seconds: %d", *h.HeartbeatTimeout)
	case h.DefaultResult != "CONTINUE" && h.DefaultResult != "ABANDON":
		return invalid("Lifecycle Hook Default Result must be CONTINUE or ABANDON: %s", h.DefaultResult)
	case len(h.NotificationMetadata) > 4000:
		return invalid("NotificationMetadata must have length less than or equal to 4000")
	}
	if index >= 0 {
		g.hooks[index] = &h
		return nil
	}
	if len(g.hooks) >= 50 {
		return invalid("You have reached the limit of 50 lifecycle hooks for an AutoScalingGroup")
	}
	g.hooks = append(g.hooks, &h)
	return nil
}

// action is the wait of one instance at one hook.
type action struct {
	hook     Hook
	token    string
	deadline time.Time
	latest   time.Time // heartbeats do not extend the wait beyond this time
	result   string    // "" during the wait
	why      string
	cancel   context.CancelFunc // stops its timer
}

func (a *action) complete(result, why string) {
	if a.result == "" {
		a.result, a.why = result, why
		a.cancel()
	}
}

// startActions starts the wait at the group's hooks of a transition, if any. It abandons the actions of the previous transition: an
// instance that is terminated during its launch leaves its launch hooks. The caller holds the lock.
func (s *Service) startActions(g *group, m *member, transition string) []*action {
	abandon(m.actions)
	m.actions = nil
	for _, h := range g.hooks {
		if h.LifecycleTransition != transition {
			continue
		}
		now := s.now()
		a := &action{hook: *h, token: newID(), deadline: now.Add(h.timeout()), latest: now.Add(h.globalTimeout())}
		var ctx context.Context
		ctx, a.cancel = context.WithCancel(s.ctx)
		m.actions = append(m.actions, a)
		s.background(func(context.Context) { s.expire(ctx, a) })
		s.emitAction(g, m, a)
	}
	return m.actions
}

// abandon completes actions without a result.
func abandon(actions []*action) {
	for _, a := range actions {
		a.complete("ABANDON", "")
	}
}

// expire completes an action with its default result at the timeout.
func (s *Service) expire(ctx context.Context, a *action) {
	for {
		s.mu.Lock()
		left := a.deadline.Sub(s.now())
		if left <= 0 {
			a.complete(a.hook.DefaultResult, "Heartbeat Timeout")
			s.changedLocked()
		}
		s.mu.Unlock()
		if left <= 0 || s.config.Clock.Timer(ctx, left) != nil {
			return
		}
	}
}

// awaitActions waits until every action has a result. One ABANDON ends the others. In the meantime the instance may have new actions, if it
// is terminated during its launch.
func (s *Service) awaitActions(ctx context.Context, actions []*action) (abandoned *action, err error) {
	err = s.await(ctx, func() (bool, error) {
		for _, a := range actions {
			if a.result == "ABANDON" {
				abandoned = a
				return true, nil
			}
		}
		return !slices.ContainsFunc(actions, func(a *action) bool { return a.result == "" }), nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	abandon(actions)
	return abandoned, err
}

// active finds the action of a request.
func (g *group) active(hook, token, instanceID string) (*action, error) {
	for _, m := range g.members {
		for _, a := range m.actions {
			if a.result == "" && a.hook.LifecycleHookName == hook && (token == "" || a.token == token) && (instanceID == "" || m.id == instanceID) {
				return a, nil
			}
		}
	}
	if token != "" {
		return nil, invalid("No active Lifecycle Action found with token %s", token)
	}
	return nil, invalid("No active Lifecycle Action found with instance ID %s", instanceID)
}

// answer completes an action with the result CONTINUE or ABANDON, or records a heartbeat if the result is empty.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
func (s *Service) answer(caller iam.Caller, name, hook, token, instanceID, result string) error {
	operation := "CompleteLifecycleAction"
	if result == "" {
		operation = "RecordLifecycleActionHeartbeat"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	if err := s.allow(caller, operation, g, nil); err != nil {
		return err
	}
	if token == "" && instanceID == "" {
		return invalid("Either LifecycleActionToken or InstanceId is required")
	}
	if result != "" && result != "CONTINUE" && result != "ABANDON" {
		return invalid("LifecycleActionResult must be CONTINUE or ABANDON: %s", result)
	}
	a, err := g.active(hook, token, instanceID)
	if err != nil {
		return err
	}
	if result == "" {
		a.deadline = s.now().Add(a.hook.timeout())
		if a.deadline.After(a.latest) {
			a.deadline = a.latest
		}
		return nil
	}
	a.complete(result, "Lifecycle Action Completed with "+result+" Result")
	s.changedLocked()
	return nil
}
