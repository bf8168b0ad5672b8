package handler

// An upgrade that drover started may have waited for hours. It is decided again before it begins.

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

// errBegins ends a check that continued and read the route of the upgrade.
var errBegins = errors.New("it begins")

// patient is a cluster for which an execution waited, with the record of its last upgrade.
type patient struct {
	State
	Stacks
	Executions
	Planner
	record   *upgrade.Record
	decision *upgrade.Decision
	err      error
	running  bool
	status   status.Status
	// decided are the records that were decided with.
	decided []*upgrade.Record
}

func (p *patient) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return p.record, "etag", nil
}

func (p *patient) NextUpgrade(_ context.Context, _ string, record *upgrade.Record) (*upgrade.Decision, error) {
	p.decided = append(p.decided, record)
	return p.decision, p.err
}

func (p *patient) Running(context.Context, string) (bool, error) { return p.running, nil }

func (p *patient) Describe(context.Context, string) (stack.Deployed, error) {
	return stack.Deployed{}, nil
}

func (p *patient) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{}, errBegins
}

func (p *patient) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&p.status)
	return nil
}

func (p *patient) check(t *testing.T, in events.UpgradeRequest) (events.UpgradeResult, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	h := &Handler{
		Checker: &checker.Checker{Specs: p, State: p, Stacks: p}, State: p, Stacks: p, Executions: p, Planner: p,
		Now: func() time.Time { return time.Unix(9000, 0) },
	}
	in.Cluster, in.Execution, in.Action = "demo", "mine", events.UpgradeCheck
	return h.Handle(t.Context(), in)
}

func TestUpgradeThatWaited(t *testing.T) {
	const key = "spec v1"
	var asked events.UpgradeRequest
	asked.Origin, asked.Key, asked.Release = string(upgrade.OriginSpec), key, "r2"
	start := &upgrade.Decision{Start: &upgrade.Start{Key: key}}
	records := map[string]*upgrade.Record{
		"without an earlier record":        nil,
		"after an upgrade that was done":   {Execution: "earlier", State: upgrade.Done},
		"after an upgrade that was cut":    {Execution: "earlier", State: upgrade.Running, Steps: []upgrade.Step{{}}},
		"after an upgrade that was barred": {Execution: "earlier", State: upgrade.Blocked},
	}
	for name, record := range records {
		for what, c := range map[string]struct {
			decision *upgrade.Decision
			outcome  events.UpgradeOutcome
			message  string
		}{
			"begins when it is still requested":              {start, "", ""},
			"leaves it to others when no upgrade is planned": {nil, "", ""},
			"does not begin once its window shut": {
				&upgrade.Decision{
					Pending: &upgrade.Pending{Key: key, Message: "its window is shut"},
				}, events.UpgradeNothing, "it does not begin now: its window is shut",
			},
			"does not begin once the spec changed": {
				&upgrade.Decision{Start: &upgrade.Start{Key: "spec v2"}}, events.UpgradeNothing, "nothing requests this upgrade any longer",
			},
			"does not begin once another waits": {
				&upgrade.Decision{
					Pending: &upgrade.Pending{Key: "spec v2", Message: "its window is shut"},
				}, events.UpgradeNothing, "nothing requests this upgrade any longer",
			},
			"does not begin once no upgrade is requested": {&upgrade.Decision{}, events.UpgradeNothing, "nothing requests this upgrade any longer"},
			"stops once its time is over": {
				&upgrade.Decision{Pending: &upgrade.Pending{Key: key, Missed: true, Message: "its time is over"}}, events.UpgradeStopped,
				"its time is over",
			},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				p := &patient{record: record, decision: c.decision}
				p.status.Upgrades = []status.Upgrade{{Execution: "earlier", Phase: "Done"}}
				p.status.Upgrade = &status.Upgrade{Execution: "mine", Phase: status.UpgradeScheduled}
				result, err := p.check(t, asked)
				require.Len(t, p.decided, 1)
				if record != nil {
					require.True(t, p.decided[0].State.Final(), "by a record without an execution")
				}
				if c.outcome == "" {
					require.ErrorIs(t, err, errBegins)
					return
				}
				require.NoError(t, err)
				require.Equal(t, events.UpgradeResult{Outcome: c.outcome, Message: c.message}, result)
				if c.outcome == events.UpgradeNothing {
					require.Equal(t, "earlier", p.status.Upgrade.Execution, "the status shows the last one again")
				}
			})
		}
	}
	t.Run("leaves what the status shows of another", func(t *testing.T) {
		for _, u := range []status.Upgrade{{Execution: "theirs", Phase: status.UpgradeScheduled}, {Execution: "mine", Phase: "Running"}} {
			p := &patient{decision: &upgrade.Decision{}}
			p.status.Upgrade = &u
			_, err := p.check(t, asked)
			require.NoError(t, err)
			require.Equal(t, &u, p.status.Upgrade)
		}
	})
	t.Run("fails when the decision fails", func(t *testing.T) {
		p := &patient{err: errors.New("throttled")}
		_, err := p.check(t, asked)
		require.ErrorIs(t, err, p.err)
	})
	t.Run("is not decided again once it is claimed", func(t *testing.T) {
		p := &patient{record: &upgrade.Record{Execution: "mine", State: upgrade.Checking}, decision: &upgrade.Decision{}}
		_, err := p.check(t, asked)
		require.ErrorIs(t, err, errBegins)
		require.Empty(t, p.decided)
	})
	t.Run("is not decided again when an operator started it", func(t *testing.T) {
		p := &patient{record: records["after an upgrade that was done"], decision: &upgrade.Decision{}}
		_, err := p.check(t, events.UpgradeRequest{})
		require.ErrorIs(t, err, errBegins)
		require.Empty(t, p.decided)
	})
	t.Run("waits while another execution upgrades", func(t *testing.T) {
		p := &patient{record: &upgrade.Record{Execution: "theirs", State: upgrade.Running, Key: "channel"}, running: true, decision: start}
		in := asked
		in.Started = time.Unix(9000, 0)
		result, err := p.check(t, in)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeBusy, result.Outcome)
		require.Empty(t, p.decided)
	})
}
