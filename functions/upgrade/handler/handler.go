// Package handler leads the upgrade of a cluster: it claims it, plans its steps, checks before, opens one step after the other, proves
// each, checks again, and tells. What it knows is in the record of the state bucket, so that any call can be the last one or the
// first; the converge machine makes the steps.
package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State is what drover keeps: a subset of store.State.
type State interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	PutOnce(ctx context.Context, key string, body []byte) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Holder(ctx context.Context, cluster string, running func(ctx context.Context, execution string) (bool, error)) (execution string,
		err error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	PutUpgrade(ctx context.Context, cluster string, record *upgrade.Record, etag string) (string, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Stacks is what is deployed: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
}

// Executions tells whether an execution still runs, and how one ended: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	Ended(ctx context.Context, execution string) (string, error)
}

// Planner says what converging would change now, and why it would not, and what may begin: a subset of the plan function's handler.
type Planner interface {
	Preview(ctx context.Context, cluster string) (p plan.Plan, reason, message string, err error)
	// Decide says which upgrade is asked for and may begin now, given the record of the last; nil when nothing is planned at all.
	NextUpgrade(ctx context.Context, cluster string, record *upgrade.Record) (*upgrade.Decision, error)
	// After says what there is to tell when an upgrade is over.
	After(ctx context.Context, cluster string) (status.Afterwards, error)
}

// EKS is asked what runs, and which add-ons fit: a subset of eks.Versions.
type EKS interface {
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
	// Compat lists the versions of add-ons and what they run on.
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
	// Offered lists the Kubernetes versions that there are.
	Offered(ctx context.Context) ([]string, error)
	// RefreshInsights has EKS look at a cluster now; Refreshing says whether it still does.
	RefreshInsights(ctx context.Context, eksCluster string) error
	Refreshing(ctx context.Context, eksCluster string) (bool, error)
}

// Groups are the pools' Auto Scaling groups: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, name string) (pool.Group, bool, error)
}

// Nodes of a cluster, as its own API lists them: a subset of kube.Clusters.
type Nodes interface {
	Health(ctx context.Context, cluster, endpoint, authority string) ([]pool.NodeHealth, error)
}

// Instances of EC2: a subset of ec2.Capacity.
type Instances interface {
	RunningInstances(ctx context.Context, ids []string) ([]string, error)
}

// Facts are what the checks need to know: collect.Gatherer.
type Facts interface {
	Before(ctx context.Context, plan *preflight.Plan) (*preflight.Facts, error)
	After(ctx context.Context, plan *preflight.Plan) (*preflight.Facts, error)
}

// Alarms of CloudWatch: a subset of cloudwatch.Alarms.
type Alarms interface {
	Describe(ctx context.Context, names []string) ([]preflight.Alarm, error)
	DisableActions(ctx context.Context, names []string) error
	EnableActions(ctx context.Context, names []string) error
}

// Handler leads upgrades.
type Handler struct {
	Specs      Specs
	State      State
	Stacks     Stacks
	Executions Executions
	Planner    Planner
	EKS        EKS
	Groups     Groups
	Nodes      Nodes
	Instances  Instances
	Facts      Facts
	Alarms     Alarms
	// Patience is how long a call waits for EKS to look at a cluster; Pause is between two questions.
	Patience, Pause time.Duration
	Now             func() time.Time
	// IgnorePaused previews a paused spec as if it were not paused.
	IgnorePaused bool
}

// Handle does what the machine asks for.
func (h *Handler) Handle(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	result, err := h.do(ctx, in)
	var stopped *stop
	if errors.As(err, &stopped) {
		result, err = events.UpgradeResult{Outcome: events.UpgradeStopped, Message: stopped.message}, nil
	}
	if err == nil && in.Action == events.UpgradeCheck && slices.Contains(notBegun, result.Outcome) {
		err = h.forgo(ctx, in)
	}
	if errors.Is(err, store.ErrConflict) {
		err = &fault.Transient{Cause: err}
	}
	if err == nil {
		logging.From(ctx).Info("asked", "cluster", in.Cluster, "action", in.Action, "outcome", result.Outcome, "kind", result.Kind, "message",
			result.Message)
	}
	return result, err
}

// notBegun are the outcomes of checks after which an upgrade does not begin.
var notBegun = []events.UpgradeOutcome{events.UpgradeNothing, events.UpgradeStopped, events.UpgradeRefused}

// forgo takes out of the status what an execution waited to begin, and does not. Without a record there was nothing to wait for.
func (h *Handler) forgo(ctx context.Context, in events.UpgradeRequest) error {
	r, _, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil || r == nil {
		return err
	}
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) { s.Forgo(in.Execution) })
}

func (h *Handler) do(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	switch in.Action {
	case events.UpgradeCheck:
		if in.Look {
			return h.look(ctx, in)
		}
		return h.check(ctx, in)
	case events.UpgradeBegin:
		return h.begin(ctx, in)
	case events.UpgradeNext:
		return h.next(ctx, in)
	case events.UpgradeFinish:
		return h.finish(ctx, in)
	case events.UpgradeStop:
		return h.stop(ctx, in)
	}
	return events.UpgradeResult{}, &fault.Internal{Cause: fmt.Errorf("the upgrade function does not know the action %q", in.Action)}
}

// stop is a reason for people why an upgrade goes no further.
type stop struct{ message string }

func (s *stop) Error() string { return s.message }

func stopf(format string, args ...any) error { return &stop{fmt.Sprintf(format, args...)} }

// record as it was read: what is written is written only if nobody else wrote meanwhile.
type record struct {
	*upgrade.Record
	etag string
}

// own reads the record of the upgrade that an execution makes. One that another execution has taken over is *fault.LeaseLost; one of a
// cluster that is gone, whether or not there is another of its name, is *stop.
func (h *Handler) own(ctx context.Context, in events.UpgradeRequest) (record, error) {
	r, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return record{}, err
	}
	if r == nil || r.Execution != in.Execution {
		return record{}, &fault.LeaseLost{Cause: fmt.Errorf("the upgrade of %s is not this execution's any more", in.Cluster)}
	}
	of, err := h.of(ctx, in.Cluster, r)
	if err == nil && !of {
		err = stopf("the cluster was deleted, and perhaps made anew: this upgrade was of the one before")
	}
	return record{r, etag}, err
}

// of says whether a record is of the cluster that is there, and not of an earlier one of its name.
func (h *Handler) of(ctx context.Context, cluster string, r *upgrade.Record) (bool, error) {
	stack, err := h.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	return stack.ID == r.Stack, err
}

func (h *Handler) write(ctx context.Context, cluster string, r *record) (err error) {
	r.etag, err = h.State.PutUpgrade(ctx, cluster, r.Record, r.etag)
	return err
}
