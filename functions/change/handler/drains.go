package handler

// Nodes are replaced batch by batch, and each batch waits for the nodes that join and the drains of the one before:
// join holds it back by its signals. Nothing holds the first one back but this: neither CloudFormation nor an
// instance refresh looks whether instances that an earlier roll, or a scale-in, had end are still being drained, or
// whether those that an autoscaler added serve.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

const (
	// beyond its pool's own time a drain gets this much more: its pods their grace periods, their volumes ten minutes.
	beyond = 15 * time.Minute
	// joins is how long instances that come are waited for. Those of an image with which none joins come again and again, and only the roll
	// brings another.
	joins = 15 * time.Minute
)

// Pauses between two looks, in seconds: a quarter of what has passed, so that a few dozen looks are enough for drains of hours.
const (
	leastPause = 10
	mostPause  = 300
)

// What waits for drains and joins, as the status names it.
const (
	aRoll     = "nodes are replaced"
	lessRoom  = "the pool is made smaller"
	goingBack = "the rollback goes on"
)

// held says whether what a change does to a group must not happen yet. Then the step looks again after a while, as it
// does after somebody else's update: whatever came meanwhile counts, a newer spec, another holder of the lease. Each
// instance is waited for until a drain, or a join, of its own has had its time, whichever execution looks; and an
// execution waits no longer than that in all, or a pool that always has a node on its way out would never be rolled.
// Passes says that the change takes no node before it has added one and waited for the drains: see ADR 20.
func (s *step) held(ctx context.Context, what string, group pool.Group, stackStatus string, passes bool) (bool, error) {
	if s.in.WaitedSeconds == nil {
		return false, nil
	}
	waited := *s.in.WaitedSeconds
	first, err := s.before(ctx, group)
	if err != nil {
		return false, err
	}
	left := min(int64((first.until.Sub(s.Resume.Now())+time.Second-1)/time.Second), first.most-waited)
	if passes && first.drains && left > 0 && group.Serving() >= group.Desired {
		why, err := s.starved(ctx, first.instances)
		if err != nil {
			return false, err
		}
		if why != "" {
			logging.From(ctx).Info("passing drains", "stack", s.change.StackName, "instances", first.instances, "reason", why)
			return false, s.tell(ctx, &status.Waits{Message: what + " beside the drains of " + strings.Join(first.instances, ", ") +
				": their pods need a node that this change adds"})
		}
	}
	switch {
	case len(first.instances) == 0 && waited == 0:
		return false, nil
	case len(first.instances) == 0:
		return false, s.tell(ctx, nil)
	case left <= 0:
		message := fmt.Sprintf("%s though %s %s: it has waited for %s", what, strings.Join(first.instances, ", "), first.still,
			first.waited(s.Resume.Now()))
		logging.From(ctx).Warn("wait exceeded", "stack", s.change.StackName, "reason", message)
		return false, s.tell(ctx, &status.Waits{Message: message})
	}
	pause := min(max(leastPause, min(mostPause, waited/4)), left)
	message := fmt.Sprintf("%s when %s %s", what, strings.Join(first.instances, ", "), first.over)
	logging.From(ctx).Info("waiting", "stack", s.change.StackName, "reason", message, "waitedSeconds", waited)
	until := s.Resume.Now().Add(seconds(left)).UTC()
	if err := s.tell(ctx, &status.Waits{Message: message, Until: until}); err != nil {
		return true, err
	}
	return true, s.Resume.Later(ctx, s.waiter("", true), stackStatus, pause)
}

// first is what must be over before nodes of a group are replaced: what its instances must be, what they still are, and for how many
// seconds each is waited for. Without instances it is nothing.
type first struct {
	instances   []string
	over, still string
	most        int64
	drains      bool
	// since is when the oldest of them began, until when the youngest has had its time.
	since, until time.Time
}

// waited is for how long they have been waited for, whoever did.
func (f first) waited(now time.Time) time.Duration { return now.Sub(f.since).Truncate(time.Second) }

// before the nodes of a group are replaced. Where nothing serves, nothing is lost by replacing what comes.
func (s *step) before(ctx context.Context, group pool.Group) (first, error) {
	var f first
	going, coming := group.Going(), group.Coming()
	switch serving := group.Serving(); {
	case len(going) > 0:
		f = first{instances: going, over: "are drained", still: "are still drained", most: s.change.Pace.DrainSeconds +
			int64(beyond/time.Second), drains: true}
	case len(coming) > 0 && serving > 0 && serving < group.Desired:
		f = first{instances: coming, over: "have joined", still: "have not joined", most: int64(joins / time.Second)}
	default:
		return first{}, nil
	}
	began, err := s.Groups.Began(ctx, s.change.Pace.Group, f.instances)
	if err != nil {
		return first{}, err
	}
	now, recent := s.Resume.Now(), []string(nil)
	for _, instance := range f.instances {
		at, found := began[instance]
		if !found {
			at = now.Add(-seconds(*s.in.WaitedSeconds)) // nobody knows better
		}
		if f.since.IsZero() || at.Before(f.since) {
			f.since = at
		}
		if until := at.Add(seconds(f.most)); until.After(now) {
			recent = append(recent, instance)
			if until.After(f.until) {
				f.until = until
			}
		}
	}
	if recent != nil { // the others have had their time
		f.instances = recent
	}
	return f, nil
}

// differs says whether the change gives its nodes something else than they have. A roll that was only asked for would come to the same.
func (s *step) differs() bool {
	return slices.ContainsFunc(s.change.Reasons, func(r status.Reason) bool { return !strings.HasSuffix(r.Field, ".rollAt") })
}

// addsFirst says whether replacing nodes with these parameters adds one before it takes any, and takes none before
// that one's signal, or its hook's end, which join holds back while others are drained.
//   - A rolling update grows the group first to MinInstancesInService and MaxBatchSize together, if that is more than it is to have:
//     https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
//   - A refresh launches before it terminates if it may not go below 100 %:
//     https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
func addsFirst(group pool.Group, want map[string]string) bool {
	if least, refreshes := want[render.MinHealthyPercentage]; refreshes {
		return least == "100" && want[render.MaxHealthyPercentage] != "100"
	}
	return render.Grows(group.Desired, want) > group.Desired
}

// starved says why the pods of nodes that are drained cannot leave, if that is because no node can run their
// replacements: only then does a node more help. It is empty otherwise, and where the status does not say.
func (s *step) starved(ctx context.Context, instances []string) (string, error) {
	cluster, err := s.State.Status(ctx, s.in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, node := range cluster.Status.Nodes {
		if slices.Contains(instances, node.Instance) && node.State == status.NodeBlocked && len(node.Pending) > 0 {
			return node.Pending[0].Pod + ": " + node.Pending[0].Why, nil
		}
	}
	return "", nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// tell the status what the stack waits for. If the lease went to another holder, it is for that one to tell.
func (s *step) tell(ctx context.Context, waits *status.Waits) error {
	if err := s.State.CheckLease(ctx, s.in.Cluster, s.in.Execution, s.in.Fence); err != nil {
		return err
	}
	return s.State.UpdateStatus(ctx, s.in.Cluster, func(st *status.Status) { st.Wait(s.change.Stack, waits) })
}
