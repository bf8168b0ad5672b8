package autoscaling

// CloudFormation's handling of a group's instances: waiting for the first ones, AutoScalingRollingUpdate, AutoScalingInstanceRefresh.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
)

// handlerTimeout is the time that CloudFormation waits for the instances of a new group: timeoutInMinutes of the resource type's create
// handler. It is real time, because the instances take real time.
const handlerTimeout = 360 * time.Minute

// hopeless reports whether CloudFormation fails a group: three consecutive launches failed for each desired instance. The real number is
// not documented.
func (g *group) hopeless() bool { return g.failures >= 3*max(1, g.desired) }

// lastFailure returns the reason of the last failed launch.
func (g *group) lastFailure() string {
	last := ""
	for _, a := range g.activities {
		if a.launch && a.StatusCode != "Successful" && a.StatusCode != "InProgress" {
			last = a.StatusMessage
		}
	}
	return last
}

// rollingUpdate is the policy AutoScalingRollingUpdate.
type rollingUpdate struct {
	MaxBatchSize, MinInstancesInService, MinActiveInstancesPercent, MinSuccessfulInstancesPercent *int
	PauseTime                                                                                     string
	SuspendProcesses                                                                              []string
	WaitOnResourceSignals                                                                         *bool
}

type updatePolicy struct {
	AutoScalingRollingUpdate   *rollingUpdate
	AutoScalingInstanceRefresh *struct {
		Strategy    string
		Preferences Preferences
	}
}

type creationPolicy struct {
	AutoScalingCreationPolicy *struct{ MinSuccessfulInstancesPercent *int }
	ResourceSignal            *struct {
		Count   *int
		Timeout string
	}
}

var durationForm = regexp.MustCompile(`^PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?$`)

// parseDuration reads ISO 8601 durations of at most an hour: PT#H#M#S.
func parseDuration(text string, byDefault time.Duration) (time.Duration, error) {
	if text == "" {
		return byDefault, nil
	}
	m := durationForm.FindStringSubmatch(text)
	if m == nil || text == "PT" {
		return 0, fmt.Errorf("%q is no duration of the form PT#H#M#S", text)
	}
	var d time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if m[i+1] != "" {
			n, err := strconv.Atoi(m[i+1])
			if err != nil {
				return 0, fmt.Errorf("%q is no duration: %w", text, err)
			}
			d += time.Duration(n) * unit
		}
	}
	return d, nil
}

func isoDuration(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d > 0:
		return fmt.Sprintf("PT%dH", d/time.Hour)
	case d%time.Minute == 0 && d > 0:
		return fmt.Sprintf("PT%dM", d/time.Minute)
	}
	return fmt.Sprintf("PT%dS", d/time.Second)
}

// stabilize waits until the instances of a new group are in service. CloudFormation does so, as its error "Group did not stabilize" shows.
func (s *Service) stabilize(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, handlerTimeout)
	defer cancel()
	unstable := func(g *group, last string) error {
		return fmt.Errorf("Group did not stabilize. {current/minSize/maxSize} group size = {%d/%d/%d}. Failed Scaling Activity: %s",
			g.inService(), g.min, g.max, last)
	}
	var state error
	err := s.await(ctx, func() (bool, error) {
		g, err := s.group(name)
		if err != nil {
			return false, err
		}
		state = unstable(g, g.lastFailure())
		if g.hopeless() {
			return false, state
		}
		return g.inService() >= g.desired, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return state
	}
	return err
}

// awaitCreationSignals waits for the signals of a CreationPolicy.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-creationpolicy.html
func (s *Service) awaitCreationSignals(ctx context.Context, r resource.Request, policy creationPolicy) error {
	timeout, err := parseDuration(policy.ResourceSignal.Timeout, 5*time.Minute)
	if err != nil {
		return err
	}
	w := signalWait{service: s, request: r, percent: 100, total: 1}
	if policy.ResourceSignal.Count != nil {
		w.total = *policy.ResourceSignal.Count
	}
	if p := policy.AutoScalingCreationPolicy; p != nil && p.MinSuccessfulInstancesPercent != nil {
		w.percent = *p.MinSuccessfulInstancesPercent
	}
	if err := w.wait(ctx, w.total, timeout); err != nil {
		return err
	}
	return w.verdict()
}

// signalWait counts the signals of an operation.
type signalWait struct {
	service           *Service
	request           resource.Request
	total, percent    int
	success, failures int
	seen              map[string]bool
	// counts reports whether the signals of an instance count. nil counts all.
	counts func(instance string) bool
}

// wait receives n signals. Missing signals count as failures at the timeout. It returns early if success is out of reach.
func (w *signalWait) wait(ctx context.Context, n int, timeout time.Duration) error {
	timer, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	for n > 0 {
		turn := w.service.config.Clock.Ticket("autoscaling: signals of " + w.request.StackName)
		select {
		case signal := <-w.request.Signals:
			turn()
			if w.seen[signal.UniqueID] || w.counts != nil && !w.counts(signal.UniqueID) {
				continue
			}
			w.seen[signal.UniqueID] = true
			n--
			if signal.Success {
				w.success++
			} else {
				w.failures++
			}
			if w.hopeless() {
				return w.verdict()
			}
		case <-timer.Done():
			turn()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.failures += n
			w.request.Progress(fmt.Sprintf("Failed to receive %d resource signal(s) for the current batch.  "+
				"Each resource signal timeout is counted as a FAILURE.", n))
			if w.hopeless() {
				return w.verdict()
			}
			return nil
		case <-w.service.ctx.Done():
			return w.service.ctx.Err()
		}
	}
	return nil
}

func (w *signalWait) neededSignals() int { return (w.total*w.percent + 99) / 100 }

func (w *signalWait) hopeless() bool { return w.total-w.failures < w.neededSignals() }

func (w *signalWait) verdict() error {
	if w.success >= w.neededSignals() {
		return nil
	}
	if w.failures > 0 && len(w.seen) > w.success {
		return fmt.Errorf("Received %d FAILURE signal(s) out of %d.  Unable to satisfy %d%% MinSuccessfulInstancesPercent requirement",
			len(w.seen)-w.success, w.total, w.percent)
	}
	return fmt.Errorf("Received %d SUCCESS signal(s) out of %d.  Unable to satisfy %d%% MinSuccessfulInstancesPercent requirement",
		w.success, w.total, w.percent)
}

// roll is a running rolling update.
type roll struct {
	*Service
	request      resource.Request
	group        *group
	obsolete     []*member
	batch, least int
	max          int // the group's
	final        int // the desired capacity at the end
	minFinal     int
	signals      *signalWait // nil if the update does not wait for signals
	pause        time.Duration
	done         int
	known        map[string]bool // instances that are neither new nor awaited
	began        time.Time
}

// rollingUpdate replaces the obsolete instances of an updated group, or all of them.
func (s *Service) rollingUpdate(ctx context.Context, r resource.Request, name string, policy *rollingUpdate, all bool) error {
	u := &roll{Service: s, request: r, batch: 1, known: map[string]bool{}}
	if policy.MaxBatchSize != nil {
		u.batch = *policy.MaxBatchSize
	}
	if policy.MinInstancesInService != nil {
		u.least = *policy.MinInstancesInService
	}
	waits := policy.WaitOnResourceSignals != nil && *policy.WaitOnResourceSignals
	byDefault := time.Duration(0)
	if waits {
		byDefault = 5 * time.Minute
	}
	var err error
	if u.pause, err = parseDuration(policy.PauseTime, byDefault); err != nil {
		return err
	}
	if u.pause > time.Hour {
		return fmt.Errorf("The maximum PauseTime is one hour (PT1H), not %s", policy.PauseTime)
	}
	// First the group stabilizes, as in Eucalyptus (AWSAutoScalingAutoScalingGroupResourceAction), which imitates CloudFormation. AWS does not
	// document it.
	if err := s.stabilize(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	g, err := s.group(name)
	if err == nil {
		u.group = g
		u.obsolete, err = s.obsolete(g, all)
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	for _, m := range g.members {
		u.known[m.id] = true
	}
	u.final, u.minFinal = g.desired, g.min
	u.max, u.began = g.max, s.now()
	s.mu.Unlock()
	if u.batch < 1 {
		return fmt.Errorf("MaxBatchSize must be at least 1: %d", u.batch)
	}
	if u.least >= u.max {
		return errors.New("MinInstancesInService must be less than the autoscaling group's MaxSize")
	}
	if len(u.obsolete) == 0 {
		return nil
	}
	if waits {
		u.signals = &signalWait{service: s, request: r, percent: 100, total: len(u.obsolete), counts: u.counts}
		if policy.MinSuccessfulInstancesPercent != nil {
			u.signals.percent = *policy.MinSuccessfulInstancesPercent
		}
	}
	resume, err := s.suspendFor(r, name, policy.SuspendProcesses)
	if err != nil {
		return err
	}
	err = u.run(ctx)
	return errors.Join(err, resume())
}

// counts reports whether the update counts the signals of an instance: if it was launched since the update began. Signals of others do not
// count, such as those of instances that failed in an update that is now rolled back. By the other reading of questions.OtherSignals,
// those of instances that a user added by SetDesiredCapacity do not count either.
func (u *roll) counts(instance string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.known[instance] && slices.ContainsFunc(u.group.activities, func(a *activity) bool {
		return a.launch && a.instance == instance && !a.StartTime.Before(u.began) &&
			!(u.config.Readings.Other(questions.OtherSignals) && strings.Contains(a.Cause, explicitlySet))
	})
}

// run replaces the batches in sequence. The messages are those of CloudFormation's events.
func (u *roll) run(ctx context.Context) error {
	// To keep enough instances in service, the group grows during the update, within its maximum.
	during := u.final
	if u.least > 0 {
		during = max(u.final, min(u.least+u.batch, u.max))
		u.batch = min(u.batch, max(1, during-u.least))
	}
	announce := fmt.Sprintf("Rolling update initiated. Terminating %d obsolete instance(s) in batches of %d", len(u.obsolete), u.batch)
	if u.least > 0 {
		announce += fmt.Sprintf(", while keeping at least %d instance(s) in service", u.least)
	}
	announce += "."
	if u.signals != nil {
		announce += fmt.Sprintf(" Waiting on resource signals with a timeout of %s when new instances are added to the autoscaling group.",
			isoDuration(u.pause))
	}
	u.request.Progress(announce)
	if u.least > 0 && during > u.minFinal {
		u.request.Progress(fmt.Sprintf("Temporarily setting autoscaling group MinSize and DesiredCapacity to %d.", during))
		if err := u.resize(during, during); err != nil {
			return err
		}
	}
	total := len(u.obsolete)
	if added := during - u.final; added > 0 {
		if u.signals != nil { // if more instances are added than replaced, all that it waits for must succeed
			u.signals.total = max(total, added)
		}
		if err := u.waitForNew(ctx, added); err != nil {
			return err
		}
	}
	fresh := during - total // instances that stay
	for len(u.obsolete) > 0 {
		n := min(u.batch, len(u.obsolete))
		batch := u.obsolete[:n]
		u.obsolete = u.obsolete[n:]
		replaced := min(n, max(0, u.final-fresh))
		fresh += replaced
		ids := make([]string, n)
		for i, m := range batch {
			ids[i] = m.id
		}
		list := "[" + strings.Join(ids, ",") + "]"
		u.request.Progress(fmt.Sprintf("Terminating instance(s) %s; replacing with %d new instance(s).", list, replaced))
		if err := u.terminate(batch, n-replaced); err != nil {
			return err
		}
		if err := u.awaitOutOfService(ctx, u.group, batch); err != nil {
			return err
		}
		u.done += n
		u.request.Progress(fmt.Sprintf("Successfully terminated instance(s) %s (Progress %d%%).", list, (u.done*100+total/2)/total))
		if replaced > 0 {
			if err := u.waitForNew(ctx, replaced); err != nil {
				return err
			}
		}
	}
	if u.signals != nil {
		if err := u.signals.verdict(); err != nil {
			return err
		}
	}
	return u.resize(u.minFinal, u.final)
}

// resize changes the sizes with UpdateAutoScalingGroup.
func (u *roll) resize(least, desired int) error {
	return u.update(u.request.Caller, u.group.name, Settings{MinSize: &least, DesiredCapacity: &desired})
}

// terminate terminates instances. The last ones are not replaced, and the desired capacity is decremented with them.
func (u *roll) terminate(batch []*member, unreplaced int) error {
	for i, m := range batch {
		decrement := i >= len(batch)-unreplaced
		if decrement {
			// The temporary minimum must not prevent it.
			u.mu.Lock()
			u.group.min = min(u.group.min, u.group.desired-1)
			u.mu.Unlock()
		}
		_, err := u.terminateInstance(u.request.Caller, m.id, decrement)
		if err != nil && !strings.Contains(err.Error(), "No managed instance found") {
			return err
		}
	}
	return nil
}

// awaitOutOfService waits until instances are out of service or, if CloudFormation waits for termination hooks, until they ended.
func (s *Service) awaitOutOfService(ctx context.Context, g *group, batch []*member) error {
	return s.await(ctx, func() (bool, error) { return s.areOutOfService(g, batch), nil })
}

// areOutOfService is the condition of awaitOutOfService. The caller holds the lock.
func (s *Service) areOutOfService(g *group, batch []*member) bool {
	return !slices.ContainsFunc(batch, func(m *member) bool {
		return !m.leaving() || s.waitsForHooks(g) && slices.Contains(g.members, m)
	})
}

// waitForNew waits for new instances: for their signals, or until they are in service and the pause is over.
func (u *roll) waitForNew(ctx context.Context, n int) error {
	if u.signals != nil {
		u.request.Progress(fmt.Sprintf("New instance(s) added to autoscaling group - Waiting on %d resource signal(s) with a timeout of %s.", n,
			isoDuration(u.pause)))
		return u.signals.wait(ctx, n, u.pause)
	}
	err := u.await(ctx, func() (bool, error) {
		if u.group.hopeless() {
			return false, fmt.Errorf("Group did not stabilize. {current/minSize/maxSize} group size = {%d/%d/%d}. Failed Scaling Activity: %s",
				u.group.inService(), u.group.min, u.group.max, u.group.lastFailure())
		}
		fresh := 0
		for _, m := range u.group.members {
			if m.state == inService && !u.known[m.id] {
				fresh++
			}
		}
		return fresh >= n, nil
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	for _, m := range u.group.members {
		if m.state == inService {
			u.known[m.id] = true
		}
	}
	u.mu.Unlock()
	return u.config.Clock.Timer(ctx, u.pause)
}

// suspendFor suspends processes during an update. Processes that were suspended before stay suspended.
func (s *Service) suspendFor(r resource.Request, name string, list []string) (resume func() error, err error) {
	s.mu.Lock()
	g, err := s.group(name)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(p string) bool { return g.suspended[p] })
	s.mu.Unlock()
	if len(list) == 0 {
		return func() error { return nil }, nil
	}
	if err := s.suspend(r.Caller, name, list, true); err != nil {
		return nil, err
	}
	return func() error { return s.suspend(r.Caller, name, list, false) }, nil
}
