package autoscaling

// Requests about a group's instances, processes, tags and metrics.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// terminateInstance is TerminateInstanceInAutoScalingGroup. It replaces the instance, or decrements the desired capacity.
func (s *Service) terminateInstance(caller iam.Caller, id string, decrement bool) (activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m, err := s.member(id)
	if err != nil {
		return activity{}, err
	}
	if err := s.allow(caller, "TerminateInstanceInAutoScalingGroup", g, nil); err != nil {
		return activity{}, err
	}
	if m.leaving() {
		return *m.activity, nil
	}
	if decrement {
		if g.desired-1 < g.min {
			return activity{}, invalid("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's "+
				"min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.min)
		}
		g.desired--
	}
	s.startTermination(g, m, fmt.Sprintf("At %s instance %s was taken out of service in response to a user request.", stamp(s.now()), m.id))
	s.reconcile(g, "")
	return *m.activity, nil
}

// setHealth is SetInstanceHealth. The grace period has no effect, see the package comment.
func (s *Service) setHealth(caller iam.Caller, id, status string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, m, err := s.member(id)
	if err != nil {
		return err
	}
	if err := s.allow(caller, "SetInstanceHealth", g, nil); err != nil {
		return err
	}
	if status != healthy && status != unhealthy {
		return invalid("Valid instance health states are: [Healthy, Unhealthy]: %s", status)
	}
	m.health = status
	s.changedLocked()
	s.reconcile(g, "")
	return nil
}

// suspend suspends or resumes processes. An empty list means all.
func (s *Service) suspend(caller iam.Caller, name string, list []string, suspend bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	action := "ResumeProcesses"
	if suspend {
		action = "SuspendProcesses"
	}
	if err := s.allow(caller, action, g, nil); err != nil {
		return err
	}
	if len(list) == 0 {
		list = processes
	}
	for _, p := range list {
		if !slices.Contains(processes, p) {
			return invalid("Scaling process: %s is invalid", p)
		}
	}
	for _, p := range list {
		switch {
		case !suspend:
			delete(g.suspended, p)
		case !g.suspended[p]:
			g.suspended[p], g.suspendedAt[p] = true, s.now()
		}
	}
	s.changedLocked()
	s.reconcile(g, "")
	return nil
}

// tag sets tags of a group, and removes those in remove.
func (s *Service) tag(caller iam.Caller, name string, set []Tag, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	if len(set) > 0 {
		if err := s.allow(caller, "CreateOrUpdateTags", g, s.conditions(Settings{}, set)); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		if err := s.allow(caller, "DeleteTags", g, map[string]string{"aws:TagKeys": iam.Values(remove...)}); err != nil {
			return err
		}
	}
	tags := slices.DeleteFunc(slices.Clone(g.tags), func(t Tag) bool {
		return slices.Contains(remove, t.Key) || slices.ContainsFunc(set, func(x Tag) bool { return x.Key == t.Key })
	})
	tags = append(tags, set...)
	if len(tags) > 50 {
		return wire.Errorf("LimitExceeded", "You have exceeded the limit of 50 tags for an AutoScalingGroup")
	}
	for _, t := range set {
		if t.Key == "" || len(t.Key) > 128 || len(t.Value) > 256 {
			return invalid("Tag keys have 1 to 128 characters, values at most 256: %s", t.Key)
		}
	}
	g.tags = sortTags(tags)
	s.changedLocked()
	return nil
}

// changeHook adds or changes a hook, or removes it.
func (s *Service) changeHook(caller iam.Caller, name string, h Hook, remove bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	action := "PutLifecycleHook"
	if remove {
		action = "DeleteLifecycleHook"
	}
	if err := s.allow(caller, action, g, nil); err != nil {
		return err
	}
	defer s.changedLocked()
	if !remove {
		return g.putHook(h)
	}
	before := len(g.hooks)
	g.hooks = slices.DeleteFunc(g.hooks, func(x *Hook) bool { return x.LifecycleHookName == h.LifecycleHookName })
	if len(g.hooks) == before {
		return invalid("No Lifecycle Hook found with name: %s", h.LifecycleHookName)
	}
	// Deleting a hook completes its actions: with ABANDON for launching instances, and with CONTINUE for terminating ones.
	// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteLifecycleHook.html
	for _, m := range g.members {
		for _, a := range m.actions {
			if a.hook.LifecycleHookName == h.LifecycleHookName {
				result := "ABANDON"
				if strings.HasPrefix(m.state, terminating) {
					result = "CONTINUE"
				}
				a.complete(result, "the lifecycle hook was deleted")
			}
		}
	}
	return nil
}

// collectMetrics enables or disables group metrics. An empty list means all.
func (s *Service) collectMetrics(caller iam.Caller, name string, metrics []string, enable bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	action := "DisableMetricsCollection"
	if enable {
		action = "EnableMetricsCollection"
	}
	if err := s.allow(caller, action, g, nil); err != nil {
		return err
	}
	if len(metrics) == 0 {
		metrics = groupMetrics
	}
	for _, m := range metrics {
		if !slices.Contains(groupMetrics, m) {
			return invalid("Invalid metric: %s", m)
		}
	}
	g.metrics = slices.DeleteFunc(g.metrics, func(m string) bool { return slices.Contains(metrics, m) })
	if enable {
		g.metrics = append(g.metrics, metrics...)
	}
	return nil
}
