package passes

import (
	"errors"
	"time"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var errThrottled = errors.New("throttled")

// demo is the name of the cluster.
const demo = "demo"

func condition(kind, is, reason string) status.Condition {
	return status.Condition{Type: kind, Status: is, Reason: reason}
}

// anyState, anyStacks and anyGroups are all that some pass uses.
type anyState interface {
	WaiterState
	StatusLister
	EndedState
	UpgradeRecords
	ChannelState
	DueState
}

type anyStacks interface {
	WaiterStacks
	InstanceStacks
}

type anyGroups interface {
	HookGroups
	ProcessResumer
	work.LaunchFailures
}

// deps are what the passes use.
type deps struct {
	Specs               ChannelSpecs
	State               anyState
	Stacks              anyStacks
	Groups              anyGroups
	Executions          DueExecutions
	Upgrade             work.Upgrader
	EC2                 EndedInstances
	JoinNode, DrainNode Machine
	Resume              Resumer
	Admit               work.Admitter
	EventGrace          time.Duration
	Now                 func() time.Time
}

// depsOf returns an account as the passes see it.
func depsOf(a *sweeptest.Account) *deps {
	sweeptest.Quiet()
	machine := sweeptest.Machine{Account: a}
	return &deps{
		State: sweeptest.State{Account: a}, Executions: sweeptest.Executions{Account: a}, Stacks: sweeptest.Stacks{Account: a},
		Resume: a, Admit: a, EC2: sweeptest.EC2{Account: a},
		DrainNode: machine, JoinNode: machine, Upgrade: machine, Now: func() time.Time { return noon },
	}
}

func (d *deps) waiters() Waiters {
	return Waiters{State: d.State, Executions: d.Executions, Stacks: d.Stacks, Groups: d.Groups, Resume: d.Resume, Now: d.Now}
}

func (d *deps) missedSpecs() MissedSpecs {
	return MissedSpecs{Specs: d.Specs, State: d.State, Admit: d.Admit, Cache: &SpecCache{}, EventGrace: d.EventGrace, Now: d.Now}
}

func (d *deps) endedExecutions() EndedExecutions {
	return EndedExecutions{State: d.State, Executions: d.Executions, Now: d.Now}
}

func (d *deps) hooks() Hooks {
	return Hooks{Groups: d.Groups, EC2: d.EC2, JoinNode: d.JoinNode, DrainNode: d.DrainNode}
}

func (d *deps) instances() Instances {
	return Instances{Stacks: d.Stacks, Groups: d.Groups, JoinNode: d.JoinNode, DrainNode: d.DrainNode, Now: d.Now}
}

func (d *deps) ender() work.UpgradeEnder {
	return work.UpgradeEnder{Executions: d.Executions, Upgrade: d.Upgrade, Now: d.Now}
}

// dueOf returns the pass over an agenda.
func dueOf(a sweeptest.Agenda) Due {
	d := depsOf(a.Account)
	return Due{State: a, Executions: d.Executions, Late: work.LateUpgrades{Specs: sweeptest.Specs{}, State: a, Now: d.Now}, Now: d.Now}
}

func due(cluster string, ago time.Duration) store.Due {
	return store.Due{Cluster: cluster, At: noon.Add(-ago)}
}
