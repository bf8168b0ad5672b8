// Package handler implements the upgrade function: it checks an upgrade, starts its steps, verifies each, and ends it. The state machine
// drover-upgrade calls it once for each action. drover-converge makes the steps. The record upgrades/<cluster>.json holds everything that a
// later call needs, so that any call may be repeated.
package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// State is the state bucket: a subset of store.State.
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
	Assignment(ctx context.Context, cluster string) (*rollout.CellAssignment, string, error)
	PutAssignment(ctx context.Context, assignment *rollout.CellAssignment, etag string) (string, error)
}

// Stacks describes stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
}

// Executions reports whether an execution runs, and how it ended: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	Ended(ctx context.Context, execution string) (string, error)
}

// Planner plans the cluster: what the plan function would do now.
type Planner interface {
	Preview(ctx context.Context, cluster string) (p plan.Plan, reason, message string, err error)
	// NextUpgrade returns the requested upgrade and whether it may begin now, given the last record. It returns nil if no upgrade is planned.
	NextUpgrade(ctx context.Context, cluster string, record *upgrade.Record) (*upgrade.Decision, error)
	// AfterUpgrade returns what the status shows after an upgrade.
	AfterUpgrade(ctx context.Context, cluster string) (status.AfterUpgrade, error)
}

// EKS describes and rolls back control planes, and refreshes insights: a subset of eks.Reader.
type EKS interface {
	// RollBack starts the rollback of a control plane. refused is why EKS does not start it.
	RollBack(ctx context.Context, eksCluster, version string) (refused string, err error)
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
	// RefreshInsights starts a refresh of a cluster's insights. Refreshing reports whether it still runs.
	RefreshInsights(ctx context.Context, eksCluster string) error
	Refreshing(ctx context.Context, eksCluster string) (bool, error)
}

// Groups are the pools' Auto Scaling groups: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, name string) (pool.Group, bool, error)
}

// Nodes lists the nodes of a cluster with the Kubernetes API: a subset of kube.Clusters.
type Nodes interface {
	Health(ctx context.Context, cluster string, api stack.API) ([]pool.NodeHealth, error)
}

// Instances describes EC2 instances: a subset of ec2.Capacity.
type Instances interface {
	RunningInstances(ctx context.Context, ids []string) ([]string, error)
}

// Facts collects the input of the checks: collect.Gatherer.
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

// Handler runs upgrades.
type Handler struct {
	// Checker computes routes.
	Checker    *checker.Checker
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
	// Patience is how long one call waits for a refresh of insights. It polls after each Pause.
	Patience, Pause time.Duration
	Now             func() time.Time
}

// actions by name. Each returns a *route.StopError if the upgrade does not continue.
var actions = map[events.UpgradeAction]func(context.Context, *call) (events.UpgradeResult, error){
	events.UpgradeCheck:  check,
	events.UpgradeBegin:  begin,
	events.UpgradeNext:   next,
	events.UpgradeFinish: finish,
	events.UpgradeStop:   stop,
}

// Handle runs one action.
func (h *Handler) Handle(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	action, found := actions[in.Action]
	if !found {
		return events.UpgradeResult{}, &fault.Internal{Cause: fmt.Errorf("the upgrade function does not know the action %q", in.Action)}
	}
	c := &call{Handler: h, in: in}
	result, err := action(ctx, c)
	var stopped *route.StopError
	if errors.As(err, &stopped) {
		result, err = events.UpgradeResult{Outcome: events.UpgradeStopped, Message: stopped.Message}, nil
	}
	if err == nil && in.Action == events.UpgradeCheck && slices.Contains(notBegun, result.Outcome) {
		err = c.clearPending(ctx)
	}
	if errors.Is(err, store.ErrConflict) {
		err = &fault.Transient{Cause: err}
	}
	if err == nil {
		logging.From(ctx).Info("upgrade action finished", "cluster", in.Cluster, "action", in.Action, "outcome", result.Outcome, "kind",
			result.Kind, "message", result.Message)
	}
	return result, err
}

// notBegun are the outcomes of a check after which the upgrade does not begin.
var notBegun = []events.UpgradeOutcome{events.UpgradeNothing, events.UpgradeStopped, events.UpgradeRefused}

// call is one call of the function.
type call struct {
	*Handler
	in events.UpgradeRequest
	// record is the record of this upgrade, and etag its version. The check claims it; every later action loads it with loadOwned.
	record *upgrade.Record
	etag   string
}

// loadOwned reads the record of this execution's upgrade. If another execution has claimed the record, the error is
// *fault.LeaseLost. If the cluster was deleted or recreated since, it is *route.StopError.
func (c *call) loadOwned(ctx context.Context) (err error) {
	if c.record, c.etag, err = c.State.Upgrade(ctx, c.in.Cluster); err != nil {
		return err
	}
	if c.record == nil || c.record.Execution != c.in.Execution {
		return &fault.LeaseLost{Cause: fmt.Errorf("another execution has taken over the upgrade of %s", c.in.Cluster)}
	}
	current, err := c.Checker.IsCurrent(ctx, c.in.Cluster, c.record)
	if err == nil && !current {
		err = route.Stopf("%s", ofDeletedCluster)
	}
	return err
}

// ofDeletedCluster is why an upgrade of an earlier cluster of the same name stops.
const ofDeletedCluster = "the cluster was deleted, and possibly recreated: this upgrade belongs to the deleted one"

// write writes the record, unless another execution has written it since.
func (c *call) write(ctx context.Context) (err error) {
	c.etag, err = c.State.PutUpgrade(ctx, c.in.Cluster, c.record, c.etag)
	return err
}

// clearPending removes this execution's pending upgrade from the status. Only an upgrade that waits for another one is there, so it needs a
// record.
func (c *call) clearPending(ctx context.Context) error {
	last, _, err := c.State.Upgrade(ctx, c.in.Cluster)
	if err != nil || last == nil {
		return err
	}
	return c.State.UpdateStatus(ctx, c.in.Cluster, func(s *status.Status) { s.DropQueued(c.in.Execution) })
}
