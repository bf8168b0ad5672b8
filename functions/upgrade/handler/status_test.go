package handler

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestStatusKeepsTenUpgrades(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	h := &Handler{Now: func() time.Time { return now }}
	s := &status.Status{}
	for n := range 12 {
		r := &upgrade.Record{
			Number: int64(n), Execution: fmt.Sprint("x", n), Origin: upgrade.OriginCommand, State: upgrade.Running,
			Target: upgrade.Target{Release: fmt.Sprint("r", n)},
			Steps:  []upgrade.Step{{Kind: upgrade.StepNodes, Started: now.Add(time.Minute), Ended: now.Add(time.Hour)}}, Started: now,
		}
		h.callOf(r).apply(s, []status.Check{{Name: "NodesReady"}}, "the nodes", status.UpgradeEnd{})
		require.Len(t, s.Upgrades, min(n, 10), "only what is over")
		r.State, r.Ended = upgrade.Done, now.Add(2*time.Hour)
		for range 2 { // a killed call is repeated
			h.callOf(r).apply(s, nil, "it is over", status.UpgradeEnd{})
		}
		require.Len(t, s.Upgrades, min(n+1, 10))
		require.Equal(t, *s.Upgrade, s.Upgrades[0], "the newest first")
		now = now.Add(24 * time.Hour)
	}
	last, first := s.Upgrades[0], s.Upgrades[9]
	require.Equal(t, []string{"r11", "r2"}, []string{last.To, first.To})
	require.Equal(t, 2*time.Hour, last.Ended.Sub(*last.Started))
	require.Equal(t, 59*time.Minute, last.Steps[0].Ended.Sub(*last.Steps[0].Started))
	require.Equal(t, []status.Check{{Name: "NodesReady"}}, last.Checks, "the findings stay")
	require.Equal(t, *last.Started, *last.Checked, "and their time: no later checks ran")
}

// interruptedState is a cluster that other executions begin to converge, a number of times, between the read and the write of an
// upgrade's end. Each takes the lease and records that.
type interruptedState struct {
	State
	times  int
	lease  store.Lease
	status status.Status
}

func (c *interruptedState) Lease(context.Context, string) (store.Lease, error) { return c.lease, nil }

func (c *interruptedState) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	if c.times > 0 {
		c.begin()
	}
	change(&c.status)
	return nil
}

func (c *interruptedState) begin() {
	c.times--
	c.lease = store.Lease{Execution: fmt.Sprint("converge ", c.lease.Fence+1), Fence: c.lease.Fence + 1}
	c.status.Fence, c.status.Phase, c.status.Message = c.lease.Fence, status.Upgrading, "changing 1 of 6 stacks"
	c.status.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonConverging, Message: c.status.Message},
		time.Time{})
}

// Running reports that every holder of the lease runs.
func (c *interruptedState) Running(context.Context, string) (bool, error) { return true, nil }

func (c *interruptedState) Ended(context.Context, string) (string, error) { return "", nil }

// calm plans no changes. It calls during while it plans.
type calm struct {
	Planner
	during func()
}

func (c calm) AfterUpgrade(context.Context, string) (status.AfterUpgrade, error) {
	c.during()
	return status.AfterUpgrade{
		Next:    func(*status.Status) {},
		Verdict: &status.Verdict{Phase: status.Ready, Condition: status.Condition{Type: status.Converged, Status: "True"}},
		Observe: func(s *status.Status) { s.KubernetesVersion = "1.36" },
	}, nil
}

// The end of an upgrade keeps the status of a converge that began since it was read.
func TestUpgradeEndKeepsTheStatusOfANewConverge(t *testing.T) {
	r := &upgrade.Record{
		Number: 1, Execution: "x", Origin: upgrade.OriginCommand, State: upgrade.Stopped, Overridden: "r1", Target: upgrade.Target{Release: "r2"},
	}
	end := func(times int, planning bool) (*interruptedState, error) {
		c := &interruptedState{times: times, lease: store.Lease{Fence: 3}, status: status.Status{Fence: 3, Phase: status.Failed}}
		c.status.Set(status.Condition{Type: status.Converged, Status: "False", Reason: "StackFailed"}, time.Time{})
		during := func() {}
		if planning {
			during = func() {
				if c.times > 0 {
					c.begin()
				}
			}
		}
		h := &Handler{State: c, Executions: c, Planner: calm{during: during}, Now: time.Now}
		return c, h.callOf(r).recordProgress(t.Context(), nil, "it stopped")
	}
	c, err := end(0, false)
	require.NoError(t, err)
	require.Equal(t, status.Ready, c.status.Phase)
	require.Equal(t, "1.36", c.status.KubernetesVersion)
	for _, planning := range []bool{false, true} {
		c, err = end(1, planning)
		require.NoError(t, err)
		require.Equal(t, status.Converging, c.status.Phase, "the new execution reports its own result")
		require.Equal(t, "changing 1 of 6 stacks", c.status.Message)
		require.Empty(t, c.status.KubernetesVersion, "the new execution reports the version, too")
		require.Equal(t, "Stopped", c.status.Upgrade.Phase, "the upgrade has ended")
		require.EqualValues(t, 4, c.status.Fence)
	}
	c, err = end(100, false)
	var transient *fault.Transient
	require.ErrorAs(t, err, &transient, "the state machine retries")
	require.Nil(t, c.status.Upgrade)
}
