// Package handler runs the passes of the sweep function: those of package passes every two minutes, and those of
// package audit every 15. The passes also audit clusters for which an inspection was requested. If one pass fails,
// the others still run.
package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/audit"
	"github.com/drover-run/drover/functions/sweep/passes"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// State is the state bucket, as all passes use it: a subset of store.State.
type State interface {
	passes.WaiterState
	passes.StatusLister
	passes.EndedState
	passes.UpgradeRecords
	passes.ChannelState
	passes.DueState
	passes.FleetState
	audit.State
	audit.ReleaseStatuses
	audit.IgnoredUploads
}

// Stacks reads the deployed stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	passes.WaiterStacks
	passes.InstanceStacks
	passes.FleetStacks
	audit.Stacks
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	passes.HookGroups
	passes.ProcessResumer
	audit.Groups
}

// Executions are those of drover-converge: a subset of stepfunctions.Executions.
type Executions interface {
	passes.DueExecutions
	audit.Executions
}

// Resumer ends tasks that wait for stacks: waiter.Resumer.
type Resumer interface {
	passes.Resumer
	audit.Superseder
}

// Handler sweeps and audits.
type Handler struct {
	// Specs is the bucket of specs and releases. State is the state bucket.
	Specs  passes.ChannelSpecs
	State  State
	Stacks Stacks
	Groups Groups
	// Nodes and EKS read clusters. Planner plans them over Snapshot.
	Nodes   audit.Nodes
	EKS     audit.EKS
	Planner audit.Planner
	// Instances finds instances that ended at their launch hooks. Functions finds the relays of private clusters.
	Instances passes.EndedInstances
	Functions passes.RelayFunctions
	Snapshot  audit.Snapshot
	// Executions are those of drover-converge. Upgrade, JoinNode and DrainNode are the other state machines.
	Executions          Executions
	Upgrade             work.Upgrader
	JoinNode, DrainNode passes.Machine
	// Resumer, Admit and Publish handle what lost events were about.
	Resumer  Resumer
	Admit    work.Admitter
	Releases audit.ReleaseChecker
	// Fleet starts the function fleet. Cell is that of this deployment; without it, there are no rollouts.
	Fleet passes.FleetFunctions
	Cell  string
	// Parallel is how many clusters are handled at the same time. EventGrace is the age from which an upload without an
	// event counts as missed.
	Parallel   int
	EventGrace time.Duration
	Now        func() time.Time

	caches caches
}

// caches hold what the function need not read again while it lives.
type caches struct {
	specs    passes.SpecCache
	upgrades passes.UpgradeCache
	channels passes.ChannelCache
	relays   work.RelayCache
	releases audit.ReleaseCache
	ignored  audit.IgnoredCache
}

// pass is one pass, by name.
type pass struct {
	name string
	run  func(ctx context.Context) error
}

// Handle sweeps or audits once. With Ended it only handles the end of that execution, and with Look it only observes those clusters. It
// returns the errors of all passes.
func (h *Handler) Handle(ctx context.Context, in events.Sweep) (struct{}, error) {
	if in.Ended != nil {
		return struct{}{}, h.endedExecutions().Handle(ctx, *in.Ended)
	}
	if len(in.Look) > 0 {
		return struct{}{}, h.fleet().Look(ctx, in.Look)
	}
	list := h.sweep()
	if in.Audit {
		list = h.audit()
	}
	var failed []error
	for _, p := range list {
		if err := p.run(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return struct{}{}, errors.Join(failed...)
}

// audit runs the passes over releases and channels before those over clusters, because planning reads the releases of this listing. The
// next sweep starts the clusters whose channel moved.
func (h *Handler) audit() []pass {
	releases := audit.Releases{
		Specs: h.Specs, State: h.State, Checker: h.Releases, Cache: &h.caches.releases, EventGrace: h.EventGrace, Now: h.Now,
	}
	ignored := audit.Ignored{Specs: h.Specs, State: h.State, Cache: &h.caches.ignored, Now: h.Now}
	return []pass{
		{"releases", releases.Run},
		{"channels", h.channels().Run},
		{"audit", h.clusters().Run},
		{"ignored uploads", ignored.Run},
		{"fleet", h.startFleet},
	}
}

// sweep handles instances at hooks first, because their hooks time out, and a node is then terminated with its pods. If the function is
// interrupted, the later passes wait for the next sweep.
func (h *Handler) sweep() []pass {
	var groups []pool.Group
	var changing map[string]bool
	hooks := passes.Hooks{Groups: h.Groups, EC2: h.Instances, JoinNode: h.JoinNode, DrainNode: h.DrainNode}
	waiters := passes.Waiters{
		State: h.State, Executions: h.Executions, Stacks: h.Stacks, Groups: h.Groups, Resume: h.Resumer, Now: h.Now,
	}
	specs := passes.MissedSpecs{
		Specs: h.Specs, State: h.State, Admit: h.Admit, Cache: &h.caches.specs, Parallel: h.Parallel, EventGrace: h.EventGrace, Now: h.Now,
	}
	upgrades := passes.Upgrades{
		State: h.State, Ender: work.UpgradeEnder{Executions: h.Executions, Upgrade: h.Upgrade, Now: h.Now}, Cache: &h.caches.upgrades,
		Parallel: h.Parallel,
	}
	instances := passes.Instances{Stacks: h.Stacks, Groups: h.Groups, JoinNode: h.JoinNode, DrainNode: h.DrainNode, Now: h.Now}
	relays := passes.Relays{
		Stacks: h.Stacks, Functions: h.Functions, State: h.State, Cache: &h.caches.relays, Parallel: h.Parallel, Now: h.Now,
	}
	due := passes.Due{
		State: h.State, Executions: h.Executions, Late: work.LateUpgrades{Specs: h.Specs, State: h.State, Now: h.Now},
		Auditor: h.clusters(), Now: h.Now,
	}
	return []pass{
		{"groups", func(ctx context.Context) (err error) { groups, err = h.Groups.All(ctx); return err }},
		{"hooks", func(ctx context.Context) error { return hooks.Run(ctx, groups) }},
		{"waiters", func(ctx context.Context) (err error) { changing, err = waiters.Run(ctx); return err }},
		{"missed specs", specs.Run},
		{"ended executions", h.endedExecutions().Run},
		{"upgrades", upgrades.Run},
		{"instances", func(ctx context.Context) error { return instances.Run(ctx, groups, changing) }},
		{"channels", h.channels().Run},
		{"relays", relays.Run},
		{"due work", due.Run},
		{"fleet", h.fleet().Run},
	}
}

// endedExecutions handles ends of executions of drover-converge: those that events report, and those that the sweep finds.
func (h *Handler) endedExecutions() passes.EndedExecutions {
	return passes.EndedExecutions{State: h.State, Executions: h.Executions, Now: h.Now}
}

// fleet is the pass over clusters of rollouts.
func (h *Handler) fleet() passes.Fleet {
	return passes.Fleet{
		State: h.State, Stacks: h.Stacks, Nodes: h.Nodes, Functions: h.Fleet, Cell: h.Cell, Parallel: h.Parallel, Now: h.Now,
	}
}

// startFleet has the function fleet observe what changed without an event, and all clusters every six hours.
func (h *Handler) startFleet(ctx context.Context) error {
	if h.Cell == "" {
		return nil
	}
	return h.Fleet.Start(ctx, names.Function("fleet"), []byte(`{"audit":true}`))
}

// channels is the pass that both the sweep and the audit run.
func (h *Handler) channels() passes.Channels {
	return passes.Channels{Specs: h.Specs, State: h.State, Cache: &h.caches.channels, Parallel: h.Parallel, Now: h.Now}
}

// clusters audits clusters: all of them, or those that the sweep names.
func (h *Handler) clusters() audit.Audit {
	return audit.Audit{
		Specs: h.Specs, State: h.State, Stacks: h.Stacks, Groups: h.Groups, Nodes: h.Nodes, EKS: h.EKS, Planner: h.Planner,
		Snapshot: h.Snapshot, Executions: h.Executions, DrainNode: h.DrainNode, Upgrade: h.Upgrade, Admit: h.Admit,
		Supersede: h.Resumer, Relays: &h.caches.relays,
		Parallel: h.Parallel, EventGrace: h.EventGrace, Now: h.Now,
	}
}
