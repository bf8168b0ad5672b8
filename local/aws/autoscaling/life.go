package autoscaling

// The life of an instance in its group: launch, service and termination, with the hooks.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/wire"
)

const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

// runInstance launches an instance, puts it into service and checks its health, until startTermination cancels ctx.
func (s *Service) runInstance(ctx context.Context, g *group, m *member) {
	i, err := s.config.Instances.AwaitInstance(ctx, m.id, ec2.Running, ec2.ShuttingDown, ec2.Terminated)
	if ctx.Err() != nil {
		return
	}
	if err != nil || i.State != ec2.Running {
		s.terminateFailed(g, m, "Failed",
			"Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "+i.Reason)
		return
	}
	s.mu.Lock()
	if ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	actions := s.startActions(g, m, launching)
	if len(actions) > 0 {
		m.state = pendingWait
		s.changedLocked()
	}
	s.mu.Unlock()
	if len(actions) > 0 {
		// The health check begins in service. An instance that ends at its launch hook stays there until a caller completes the hook.
		// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
		abandoned, err := s.awaitActions(ctx, actions)
		if err != nil || ctx.Err() != nil {
			return
		}
		if abandoned != nil {
			s.terminateFailed(g, m, "Cancelled", "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token "+abandoned.token+
				" was abandoned: "+abandoned.why)
			return
		}
	}
	s.mu.Lock()
	if ctx.Err() != nil || m.leaving() {
		s.mu.Unlock()
		return
	}
	m.state = inService // Pending:Proceed ends at once
	g.failures, g.failingSince = 0, time.Time{}
	s.endActivity(g, m.activity, m, "Successful", "")
	s.changedLocked()
	if g.rebalances || g.rebalancing != nil {
		s.reconcile(g, "")
	}
	s.mu.Unlock()
	s.watch(ctx, g, m)
}

// terminateFailed terminates an instance that did not get into service. The group backs off before the next launch.
func (s *Service) terminateFailed(g *group, m *member, status, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.leaving() {
		return
	}
	s.endActivity(g, m.activity, m, status, reason)
	s.countFailure(g)
	s.startTermination(g, m, "At "+stamp(s.now())+" an instance was taken out of service in response to a launch failure.")
	s.reconcile(g, "")
}

// watch is the EC2 health check: an instance that another caller terminated is unhealthy.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/health-checks-overview.html
func (s *Service) watch(ctx context.Context, g *group, m *member) {
	// Any error except the end of ctx means that EC2 no longer has the instance.
	if _, err := s.config.Instances.AwaitInstance(ctx, m.id, ec2.ShuttingDown, ec2.Terminated); err != nil && ctx.Err() != nil {
		return
	}
	if s.config.Clock.Work(ctx, healthWork) != nil {
		return
	}
	// A suspended health check continues when it is resumed.
	if s.await(ctx, func() (bool, error) { return !g.suspended["HealthCheck"], nil }) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.health = unhealthy
	s.changedLocked()
	s.reconcile(g, "")
}

// startTermination starts the termination of an instance. The caller holds the lock.
func (s *Service) startTermination(g *group, m *member, cause string) {
	if m.leaving() {
		return
	}
	m.cancel()
	if m.activity != nil && m.activity.EndTime == nil {
		s.endActivity(g, m.activity, m, "Cancelled", "The instance was ended before it was in service.")
	}
	m.state = terminating
	m.activity = s.newActivity(g, "Terminating EC2 instance: "+m.id, cause)
	m.activity.instance, m.activity.zone, m.activity.subnet = m.id, m.zone, m.subnet
	s.changedLocked()
	s.background(func(ctx context.Context) { s.completeTermination(ctx, g, m) })
}

// completeTermination runs the termination hooks and terminates the instance, whatever their result.
func (s *Service) completeTermination(ctx context.Context, g *group, m *member) {
	s.mu.Lock()
	actions := s.startActions(g, m, ending)
	if len(actions) > 0 {
		m.state = terminatingWait
		s.changedLocked()
	}
	s.mu.Unlock()
	if len(actions) > 0 {
		if _, err := s.awaitActions(ctx, actions); err != nil {
			return
		}
	}
	s.mu.Lock()
	m.state = terminatingProceed
	s.changedLocked()
	s.mu.Unlock()
	// The instance ended already if EC2 no longer has it.
	if err := s.config.Instances.Terminate(m.id, "Client.UserInitiatedShutdown"); err == nil {
		if _, err := s.config.Instances.AwaitInstance(ctx, m.id, ec2.Terminated); err != nil && ctx.Err() != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(x *member) bool { return x == m })
	s.endActivity(g, m.activity, m, "Successful", "")
	s.changedLocked()
	s.reconcile(g, "")
}

func asError(err error, target **wire.Error) bool { return errors.As(err, target) }

// message of an AWS error without its code.
func message(err error) string {
	var known *wire.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}
