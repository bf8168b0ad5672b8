package autoscaling

// Instance refresh: replacing the instances of a group in batches.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// Preferences of an instance refresh that are supported.
type Preferences struct {
	// MinHealthyPercentage (default 90) and MaxHealthyPercentage (100 to 200) of the desired capacity.
	MinHealthyPercentage, MaxHealthyPercentage *int
	// InstanceWarmup in seconds after an instance is in service. The default is the group's DefaultInstanceWarmup.
	InstanceWarmup *int
	// SkipMatching skips instances that already have the launch template.
	SkipMatching *bool
}

type refresh struct {
	id, status, reason string
	preferences        Preferences
	start              time.Time
	end                *time.Time
	total, left        int
	cancel             context.CancelFunc
	// waitsForTransitions makes a cancellation wait for launches and terminations in flight.
	waitsForTransitions bool
}

// startRefresh starts replacing the instances of a group.
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
		return nil, wire.Errorf("InstanceRefreshInProgress", "An Instance Refresh is already in progress "+
			"and blocks the execution of this Instance Refresh.")
	}
	low, high := 90, 100
	if p.MinHealthyPercentage != nil {
		low = *p.MinHealthyPercentage
	}
	if p.MaxHealthyPercentage != nil {
		high = *p.MaxHealthyPercentage
	}
	if low < 0 || low > 100 || high < 100 || high > 200 || high-low > 100 {
		return nil, invalid("MinHealthyPercentage must be between 0 and 100, MaxHealthyPercentage between 100 and 200, "+
			"and their difference at most 100: %d, %d", low, high)
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

// obsolete returns the instances that differ from what the group would launch now, or every instance if all is set. The caller holds the
// lock.
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

// refreshPatience is the time after which a refresh fails if new instances do not get into service: the documented "One-hour timeout".
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-refresh-overview.html#instance-refresh-limitations
const refreshPatience = time.Hour

// refreshing is a running instance refresh.
type refreshing struct {
	*Service
	run       *refresh
	group     *group
	obsolete  []*member
	low, high int // percentages
	warmup    time.Duration
	known     map[string]bool // instances that existed before
}

// refresh replaces instances until none is obsolete.
func (s *Service) refresh(ctx context.Context, g *group, r *refresh, obsolete []*member, low, high int) {
	f := &refreshing{Service: s, run: r, group: g, obsolete: obsolete, low: low, high: high, known: map[string]bool{}}
	s.mu.Lock()
	r.status = "InProgress"
	f.warmup = g.warmup(r.preferences)
	for _, m := range g.members {
		f.known[m.id] = true
	}
	g.failures, g.failingSince = 0, time.Time{}
	s.emit("EC2 Auto Scaling Instance Refresh Started", []string{g.arn}, map[string]any{
		"InstanceRefreshId": r.id, "AutoScalingGroupName": g.name,
	})
	s.mu.Unlock()
	var err error
	for more := len(obsolete) > 0; more && err == nil; {
		more, err = f.batch(ctx)
	}
	f.finish(ctx, err)
}

// batch replaces some instances. At least the minimum stays in service, and at most the maximum exists. If these leave no room, it replaces
// one instance, which ends before its replacement starts.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
func (f *refreshing) batch(ctx context.Context) (more bool, err error) {
	f.mu.Lock()
	g := f.group
	f.obsolete = slices.DeleteFunc(f.obsolete, func(m *member) bool { return m.leaving() })
	room := g.desired - (g.desired*f.low+99)/100
	surge := g.desired*f.high/100 - g.desired
	if f.high > 100 {
		surge = max(1, surge)
	}
	n := min(len(f.obsolete), max(1, room+surge))
	g.surge = min(surge, n)
	f.reconcile(g, "")
	surges := g.surge > 0
	f.mu.Unlock()
	if surges {
		if err := f.awaitReady(ctx); err != nil {
			return false, err
		}
	}
	if err := f.awaitRoom(ctx, n, max(1, room)); err != nil {
		return false, err
	}
	f.mu.Lock()
	batch := slices.Clone(f.obsolete[:min(n, len(f.obsolete))])
	g.surge = 0
	for _, m := range batch {
		f.startTermination(g, m, "At "+stamp(f.now())+" an instance was taken out of service in response to an instance refresh.")
	}
	f.reconcile(g, "")
	f.mu.Unlock()
	if err := f.awaitOutOfService(ctx, batch); err != nil {
		return false, err
	}
	if err := f.awaitReady(ctx); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.obsolete = slices.DeleteFunc(f.obsolete, func(m *member) bool { return m.leaving() })
	f.run.left = len(f.obsolete)
	return f.run.left > 0, nil
}

// awaitOutOfService waits for the end of a batch, unless new instances take too long. A drain may wait for the new instances and would
// never end then.
func (f *refreshing) awaitOutOfService(ctx context.Context, batch []*member) error {
	return f.await(ctx, func() (bool, error) { return f.areOutOfService(f.group, batch), f.tooSlow() })
}

// awaitRoom waits until n more instances may end while at most maxOut of the desired capacity are out of service.
// When a refresh begins, fewer may be in service, because instances of an earlier refresh never got there. Instances that are not in
// service are terminated first. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
func (f *refreshing) awaitRoom(ctx context.Context, n, maxOut int) error {
	g := f.group
	return f.await(ctx, func() (bool, error) {
		f.obsolete = slices.DeleteFunc(f.obsolete, func(m *member) bool { return m.leaving() })
		slices.SortStableFunc(f.obsolete, func(a, b *member) int { return a.serves() - b.serves() })
		serving := 0
		for _, m := range f.obsolete[:min(n, len(f.obsolete))] {
			serving += m.serves()
		}
		return serving == 0 || g.inService()-serving >= g.desired-maxOut, f.tooSlow()
	})
}

// serves is 1 for an instance in service, and 0 otherwise.
func (m *member) serves() int {
	if m.state == inService {
		return 1
	}
	return 0
}

// tooSlow returns an error if the new instances took too long.
func (f *refreshing) tooSlow() error {
	if g := f.group; !g.failingSince.IsZero() && f.config.Clock.Worked(f.now().Sub(g.failingSince)) >= refreshPatience {
		return errors.New("The new instances did not get into service within an hour: " + g.lastFailure())
	}
	return nil
}

// awaitReady waits until the desired number of instances is in service, after their launch hooks, and then for the warm-up.
func (f *refreshing) awaitReady(ctx context.Context) error {
	g := f.group
	err := f.await(ctx, func() (bool, error) {
		return g.inService() >= g.desired+g.surge, f.tooSlow()
	})
	if err != nil {
		return err
	}
	return f.config.Clock.Timer(ctx, f.warmup)
}

// finish ends the refresh. It terminates launched instances that are not in service first, because the group returns to its desired
// capacity.
func (f *refreshing) finish(ctx context.Context, err error) {
	if ctx.Err() != nil {
		_ = f.await(f.ctx, func() (bool, error) { return !f.run.waitsForTransitions || !f.group.hasTransitions(), nil })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g, now := f.group, f.now()
	event := "Succeeded"
	f.run.end, f.run.status = &now, "Successful"
	switch {
	case ctx.Err() != nil:
		f.run.status, event = "Cancelled", "Cancelled"
	case err != nil:
		f.run.status, f.run.reason, event = "Failed", err.Error(), "Failed"
	}
	g.surge = 0
	for _, m := range slices.Clone(g.members) {
		if g.size() > g.desired && !f.known[m.id] && !m.leaving() && m.state != inService {
			f.startTermination(g, m, "At "+stamp(now)+" an instance was taken out of service because its instance refresh ended.")
		}
	}
	f.emit("EC2 Auto Scaling Instance Refresh "+event, []string{g.arn}, map[string]any{
		"InstanceRefreshId": f.run.id, "AutoScalingGroupName": g.name,
	})
	f.changedLocked()
	f.reconcile(g, "")
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

// hasTransitions reports whether an instance is launching or terminating, also at a lifecycle hook.
func (g *group) hasTransitions() bool {
	return slices.ContainsFunc(g.members, func(m *member) bool { return m.state != inService })
}

// cancelRefresh stops a refresh. Replaced instances stay. With waitsForTransitions, it waits for launches and terminations in flight.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CancelInstanceRefresh.html
func (s *Service) cancelRefresh(caller iam.Caller, name string, waitsForTransitions bool) (string, error) {
	return s.endRefresh(caller, "CancelInstanceRefresh", name, waitsForTransitions)
}

// mayCall returns an error unless the caller may call an action on a group.
func (s *Service) mayCall(caller iam.Caller, action, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return err
	}
	return s.allow(caller, action, g, nil)
}

// endRefresh stops a refresh, if the caller may call an action.
func (s *Service) endRefresh(caller iam.Caller, action, name string, waitsForTransitions bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.group(name)
	if err != nil {
		return "", err
	}
	if err := s.allow(caller, action, g, nil); err != nil {
		return "", err
	}
	r := g.activeRefresh()
	if r == nil {
		return "", wire.Errorf("ActiveInstanceRefreshNotFound",
			"No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
	}
	r.status, r.reason, r.waitsForTransitions = "Cancelling", "Cancelled by user.", waitsForTransitions
	r.cancel()
	s.changedLocked()
	return r.id, nil
}
