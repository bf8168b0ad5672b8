package autoscaling

// Instance refresh: replacing the instances of a group batch by batch.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html

import (
	"context"
	"slices"
	"time"

	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/wire"
)

// Preferences of an instance refresh, those that are supported.
type Preferences struct {
	// MinHealthyPercentage (default 90) and MaxHealthyPercentage (100 to 200) of the desired capacity.
	MinHealthyPercentage, MaxHealthyPercentage *int
	// InstanceWarmup in seconds after an instance is in service; default the group's DefaultInstanceWarmup.
	InstanceWarmup *int
	// SkipMatching leaves instances that have the launch template already.
	SkipMatching *bool
}

type refresh struct {
	id, status, reason string
	preferences        Preferences
	start              time.Time
	end                *time.Time
	total, left        int
	cancel             context.CancelFunc
}

// startRefresh starts to replace the instances of a group.
func (s *Service) startRefresh(caller iam.Caller, name string, p Preferences) (*refresh, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return nil, err
	}
	if err := s.allow(caller, "StartInstanceRefresh", g, nil); err != nil {
		return nil, err
	}
	if r := g.activeRefresh(); r != nil {
		return nil, wire.Errorf("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	low, high := 90, 100
	if p.MinHealthyPercentage != nil {
		low = *p.MinHealthyPercentage
	}
	if p.MaxHealthyPercentage != nil {
		high = *p.MaxHealthyPercentage
	}
	if low < 0 || low > 100 || high < 100 || high > 200 || high-low > 100 {
		return nil, invalid("MinHealthyPercentage must be between 0 and 100, MaxHealthyPercentage between 100 and 200, and their difference at most 100: %d, %d", low, high)
	}
	obsolete, err := s.obsolete(g, p.SkipMatching == nil || !*p.SkipMatching)
	if err != nil {
		return nil, err
	}
	r := &refresh{id: newID(), status: "Pending", preferences: p, start: s.now(), total: len(obsolete), left: len(obsolete)}
	g.refreshes = append(g.refreshes, r)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(s.ctx)
	s.background(func(context.Context) { s.refresh(ctx, g, r, obsolete, low, high) })
	s.changedLocked()
	return r, nil
}

func (g *group) activeRefresh() *refresh {
	if len(g.refreshes) > 0 && g.refreshes[len(g.refreshes)-1].end == nil {
		return g.refreshes[len(g.refreshes)-1]
	}
	return nil
}

// obsolete are the instances that are not what the group would launch now; with all, every one. The lock is held.
func (s *Service) obsolete(g *group, all bool) ([]*member, error) {
	specification, overrides := g.template()
	template, err := s.config.Instances.LaunchTemplate(specification.LaunchTemplateId, specification.LaunchTemplateName, specification.Version)
	if err != nil {
		return nil, invalid("%s", message(err))
	}
	var old []*member
	for _, m := range g.members {
		typ := slices.ContainsFunc(overrides, func(o Override) bool { return o.InstanceType == "" || o.InstanceType == m.typ })
		subnet := slices.Contains(g.settings.Subnets, m.subnet)
		if !m.leaving() && (all || m.template.ID != template.ID || m.template.Version != template.Version || !typ || !subnet) {
			old = append(old, m)
		}
	}
	return old, nil
}

// refresh replaces instances so that never fewer than low and never more than high percent of the desired capacity are
// there; when neither leaves room, one at a time.
func (s *Service) refresh(ctx context.Context, g *group, r *refresh, obsolete []*member, low, high int) {
	s.mu.Lock()
	r.status = "InProgress"
	desired := g.desired
	warmup := g.warmup(r.preferences)
	s.emit("EC2 Auto Scaling Instance Refresh Started", []string{g.arn}, map[string]any{"InstanceRefreshId": r.id, "AutoScalingGroupName": g.name})
	s.mu.Unlock()
	room := desired - (desired*low+99)/100
	surge := desired*high/100 - desired
	if high > 100 && surge == 0 {
		surge = 1
	}
	batch := max(1, room, surge)
	finish := func(status, event string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.now()
		g.surge, r.end, r.status = 0, &now, status
		s.emit("EC2 Auto Scaling Instance Refresh "+event, []string{g.arn}, map[string]any{"InstanceRefreshId": r.id, "AutoScalingGroupName": g.name})
		s.changedLocked()
		s.reconcile(g, "")
	}
	for len(obsolete) > 0 {
		n := min(batch, len(obsolete))
		s.mu.Lock()
		if surge > 0 {
			g.surge = n
			s.reconcile(g, "")
		}
		s.mu.Unlock()
		ready := func() (bool, error) { return g.inService() >= min(g.desired, desired)+g.surge, nil }
		if surge > 0 && s.await(ctx, ready) == nil {
			_ = s.config.Clock.Timer(ctx, warmup) // a cancelled one is seen below
		}
		s.mu.Lock()
		if ctx.Err() == nil {
			g.surge = 0
			for _, m := range obsolete[:n] {
				s.end(g, m, "At "+stamp(s.now())+" an instance was taken out of service in response to an instance refresh.")
			}
			s.reconcile(g, "")
		}
		s.mu.Unlock()
		if s.await(ctx, ready) != nil || surge == 0 && s.config.Clock.Timer(ctx, warmup) != nil {
			finish("Cancelled", "Cancelled")
			return
		}
		obsolete = obsolete[n:]
		s.mu.Lock()
		r.left = len(obsolete)
		s.mu.Unlock()
	}
	finish("Successful", "Succeeded")
}

func (g *group) warmup(p Preferences) time.Duration {
	seconds := p.InstanceWarmup
	if seconds == nil {
		seconds = g.settings.DefaultInstanceWarmup
	}
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds) * time.Second
}

// cancelRefresh stops a refresh; what was replaced stays so.
func (s *Service) cancelRefresh(caller iam.Caller, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return "", err
	}
	if err := s.allow(caller, "CancelInstanceRefresh", g, nil); err != nil {
		return "", err
	}
	r := g.activeRefresh()
	if r == nil {
		return "", wire.Errorf("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
	}
	r.status, r.reason = "Cancelling", "Cancelled by user."
	r.cancel()
	s.changedLocked()
	return r.id, nil
}
