package handler

// What is written into a status that others write, too: the end of an upgrade, an upgrade that waits for its cluster,
// and one that is refused.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// clusterState is a cluster as the upgrade function finds it.
type clusterState struct {
	State
	Stacks
	Executions
	Planner
	stack   stack.Deployed
	lease   store.Lease
	running bool
	after   status.AfterUpgrade
	status  *status.Status
	// failing are the errors of calls, by name.
	failing map[string]error
	writes  int
}

func (o *clusterState) Describe(context.Context, string) (stack.Deployed, error) {
	return o.stack, o.failing["describe"]
}

func (o *clusterState) Lease(context.Context, string) (store.Lease, error) { return o.lease, nil }

func (o *clusterState) Running(context.Context, string) (bool, error) { return o.running, nil }

func (o *clusterState) AfterUpgrade(context.Context, string) (status.AfterUpgrade, error) {
	return o.after, nil
}

func (o *clusterState) Status(context.Context, string) (*status.Cluster, error) {
	if o.status == nil {
		return nil, store.ErrNotFound
	}
	return &status.Cluster{Status: *o.status}, o.failing["status"]
}

func (o *clusterState) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	if o.status == nil {
		o.status = &status.Status{}
	}
	o.writes++
	change(o.status)
	return nil
}

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func (o *clusterState) handler() *Handler {
	return &Handler{
		Checker: &checker.Checker{Stacks: o}, State: o, Stacks: o, Executions: o, Planner: o, Now: func() time.Time { return noon },
	}
}

func TestEndOfAnUpgradeIsRecorded(t *testing.T) {
	ready := &status.Verdict{
		Phase: status.Ready, Message: "as specified", Condition: status.Condition{Type: status.Converged, Status: "True", Reason: "UpToDate"},
	}
	converged := func(s *status.Status, reason string) {
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: reason, Message: "before"}, noon)
	}
	for name, test := range map[string]struct {
		given func(*clusterState, *upgrade.Record)
		want  func(*testing.T, *status.Status)
	}{
		"with the fence of the lease that was read": {
			func(o *clusterState, _ *upgrade.Record) { o.lease.Fence, o.status.Fence = 7, 3 },
			func(t *testing.T, s *status.Status) { require.EqualValues(t, 7, s.Fence) },
		},
		"without changes that no execution makes": {
			func(*clusterState, *upgrade.Record) {},
			func(t *testing.T, s *status.Status) { require.Empty(t, s.Plan) },
		},
		"with the changes that an execution still makes": {
			func(o *clusterState, _ *upgrade.Record) { o.lease.Execution, o.running = "converge", true },
			func(t *testing.T, s *status.Status) { require.Len(t, s.Plan, 1) },
		},
		"with the changes that remain after one that is done": {
			func(_ *clusterState, r *upgrade.Record) { r.State = upgrade.Done },
			func(t *testing.T, s *status.Status) { require.Len(t, s.Plan, 1) },
		},
		"with the changes of the cluster that took the place of its own": {
			func(o *clusterState, _ *upgrade.Record) { o.stack.ID, o.status.Upgrade.Execution = "stack-2", "mine" },
			func(t *testing.T, s *status.Status) { require.Len(t, s.Plan, 1) },
		},
		"not over the upgrade of the cluster that took the place of its own": {
			func(o *clusterState, _ *upgrade.Record) { o.stack.ID, o.status.Upgrade.Execution = "stack-2", "theirs" },
			func(t *testing.T, s *status.Status) {
				require.Equal(t, "theirs", s.Upgrade.Execution)
				require.Empty(t, s.Upgrades)
			},
		},
		"as the phase when its cluster's spec requested it": {
			func(_ *clusterState, r *upgrade.Record) { r.Origin = upgrade.OriginSpec },
			func(t *testing.T, s *status.Status) {
				require.Equal(t, status.Stopped, s.Phase)
				require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Converged).Reason)
			},
		},
		"not as the phase when the spec of an earlier cluster requested it": {
			func(o *clusterState, r *upgrade.Record) {
				o.stack.ID, o.status.Upgrade.Execution, r.Origin = "stack-2", "mine", upgrade.OriginSpec
			},
			func(t *testing.T, s *status.Status) {
				require.Equal(t, "before", s.Message)
				require.Equal(t, "StackFailed", s.Condition(status.Converged).Reason)
			},
		},
		"not as the phase when the cluster is deleted": {
			func(o *clusterState, r *upgrade.Record) {
				o.status.Phase, r.Origin = status.Deleting, upgrade.OriginSpec
			},
			func(t *testing.T, s *status.Status) {
				require.Equal(t, status.Deleting, s.Phase)
				require.Equal(t, "before", s.Message)
			},
		},
		"not as the phase when a change was refused": {
			func(o *clusterState, r *upgrade.Record) {
				o.status.Phase, o.after.Verdict, r.Overridden = status.Stopped, ready, "r1"
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, status.Stopped, s.Phase) },
		},
		"with the verdict on a cluster that failed": {
			func(o *clusterState, _ *upgrade.Record) { o.after.Verdict = ready },
			func(t *testing.T, s *status.Status) { require.Equal(t, status.Ready, s.Phase) },
		},
		"with that verdict also while an execution begins that has not reported": {
			func(o *clusterState, _ *upgrade.Record) {
				o.after.Verdict, o.lease.Execution, o.running = ready, "converge", true
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, status.Ready, s.Phase) },
		},
		"without it while an execution converges": {
			func(o *clusterState, _ *upgrade.Record) {
				o.after.Verdict, o.lease.Execution, o.running = ready, "converge", true
				converged(o.status, status.ReasonConverging)
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, status.Converging, s.Phase) },
		},
		"with the checks of the same execution": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade.Execution, o.status.Upgrade.Checks = "mine", []status.Check{{Name: "NodesReady"}}
			},
			func(t *testing.T, s *status.Status) {
				require.Equal(t, []status.Check{{Name: "NodesReady"}}, s.Upgrade.Checks)
			},
		},
		"without the checks of another": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade.Execution, o.status.Upgrade.Checks = "theirs", []status.Check{{Name: "NodesReady"}}
			},
			func(t *testing.T, s *status.Status) { require.Empty(t, s.Upgrade.Checks) },
		},
		"before the one that was scheduled": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade = &status.Upgrade{Phase: status.UpgradeScheduled, To: "r3"}
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, "r3", s.NextUpgrade.To) },
		},
		"before the one that was delayed": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade = &status.Upgrade{Phase: status.UpgradeDelayed, To: "r3"}
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, "r3", s.NextUpgrade.To) },
		},
		"in the place of the one that was scheduled": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade = &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2"}
			},
			func(t *testing.T, s *status.Status) { require.Nil(t, s.NextUpgrade) },
		},
		"next to the next one": {
			func(o *clusterState, _ *upgrade.Record) {
				o.status.Upgrade, o.status.NextUpgrade = &status.Upgrade{Phase: status.UpgradeScheduled, To: "r3"}, &status.Upgrade{To: "r4"}
			},
			func(t *testing.T, s *status.Status) { require.Equal(t, "r4", s.NextUpgrade.To) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &clusterState{stack: stack.Deployed{ID: "stack-1"}, after: status.AfterUpgrade{Next: func(*status.Status) {}}}
			o.status = &status.Status{
				Phase: status.Failed, Message: "before", Upgrade: &status.Upgrade{To: "r0"}, Plan: []status.Change{{Stack: names.Addons}},
			}
			converged(o.status, "StackFailed")
			r := &upgrade.Record{
				Execution: "mine", Stack: "stack-1", State: upgrade.Stopped, Origin: upgrade.OriginCommand, Overridden: "r1",
				Target: upgrade.Target{Release: "r2"},
			}
			test.given(o, r)
			require.NoError(t, o.handler().callOf(r).recordStop(t.Context(), "it stopped"))
			test.want(t, o.status)
		})
	}
}

func TestRequestIsAcceptedWhenItsChecksBegin(t *testing.T) {
	for name, test := range map[string]struct {
		state  upgrade.State
		origin upgrade.Origin
		kept   bool
	}{
		"of an operator": {upgrade.Checking, upgrade.OriginCommand, false},
		"of a rollback":  {upgrade.Checking, upgrade.OriginRollback, false},
		"not of a spec":  {upgrade.Checking, upgrade.OriginSpec, true},
		"not later":      {upgrade.Running, upgrade.OriginCommand, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &clusterState{status: &status.Status{}}
			o.status.Refuse(status.ReasonUpgradeRefused, "an earlier one", noon)
			r := &upgrade.Record{Execution: "mine", State: test.state, Origin: test.origin}
			require.NoError(t, o.handler().callOf(r).recordProgress(t.Context(), nil, "the checks are running"))
			require.Equal(t, test.kept, o.status.Condition(status.RequestAccepted) != nil)
		})
	}
}

func TestWaitingUpgradeIsRecorded(t *testing.T) {
	at := func(release string) stack.Deployed {
		return stack.Deployed{
			Tags: map[string]string{names.TagRelease: release + "@sha"}, Outputs: map[string]string{"KubernetesVersion": "1.35"},
		}
	}
	wait := func(t *testing.T, o *clusterState, phase string) {
		t.Helper()
		var in events.UpgradeRequest
		in.Cluster, in.Execution, in.Origin, in.Started = "demo", "mine", "Spec", noon
		require.NoError(t, (&call{
			Handler: o.handler(), in: in,
		}).recordWaiting(t.Context(), upgrade.Target{Release: "r3", KubernetesVersion: "1.37"}, phase,
			"the cluster is busy"))
	}
	for _, phase := range []upgrade.State{upgrade.Checking, upgrade.Running} {
		t.Run("next to another that is "+string(phase), func(t *testing.T) {
			theirs := status.Upgrade{Phase: string(phase), Execution: "theirs", To: "r2", ToVersion: "1.36"}
			o := &clusterState{stack: at("r1"), status: &status.Status{Upgrade: &theirs}}
			wait(t, o, status.UpgradeDelayed)
			require.Equal(t, "theirs", o.status.Upgrade.Execution)
			require.Equal(t, []string{"r2", "1.36", "r3", "1.37", status.UpgradeDelayed},
				[]string{o.status.NextUpgrade.From, o.status.NextUpgrade.FromVersion, o.status.NextUpgrade.To, o.status.NextUpgrade.ToVersion,
					o.status.NextUpgrade.Phase})
			require.Empty(t, o.status.Upgrades)
			wait(t, o, status.UpgradeMissed)
			require.Equal(t, status.UpgradeMissed, o.status.Upgrades[0].Phase)
			require.Nil(t, o.status.Condition(status.Upgraded), "that is about the other one")
		})
		t.Run("in its own place when it is "+string(phase), func(t *testing.T) {
			o := &clusterState{
				stack: at("r1"), status: &status.Status{Upgrade: &status.Upgrade{Phase: string(phase), Execution: "mine", To: "r3", ToVersion: "1.37"}},
			}
			wait(t, o, status.UpgradeScheduled)
			require.Equal(t, []string{
				status.UpgradeScheduled, "r1", "1.35",
			}, []string{o.status.Upgrade.Phase, o.status.Upgrade.From, o.status.Upgrade.FromVersion})
			require.Nil(t, o.status.NextUpgrade)
		})
	}
	t.Run("in the place of one that is over", func(t *testing.T) {
		o := &clusterState{stack: at("r2"), status: &status.Status{
			Upgrade:     &status.Upgrade{Phase: "Stopped", Execution: "theirs", To: "r4", ToVersion: "1.38"},
			NextUpgrade: &status.Upgrade{Execution: "mine"},
		}}
		wait(t, o, status.UpgradeDelayed)
		require.Equal(t, []string{
			"mine", "r2", "1.35",
		}, []string{o.status.Upgrade.Execution, o.status.Upgrade.From, o.status.Upgrade.FromVersion})
		require.Nil(t, o.status.NextUpgrade)
		require.Nil(t, o.status.Condition(status.Upgraded))
		require.Empty(t, o.status.Upgrades)
	})
	t.Run("as missed, with its condition", func(t *testing.T) {
		o := &clusterState{stack: at("r1")}
		wait(t, o, status.UpgradeMissed)
		require.Equal(t, status.ReasonUpgradeMissed, o.status.Condition(status.Upgraded).Reason)
		require.Equal(t, status.UpgradeMissed, o.status.Upgrades[0].Phase)
	})
	t.Run("without a control plane", func(t *testing.T) {
		o := &clusterState{}
		wait(t, o, status.UpgradeDelayed)
		require.Equal(t, status.UpgradeDelayed, o.status.Upgrade.Phase)
		require.Empty(t, o.status.Upgrade.From)
	})
	t.Run("not when the control plane cannot be read", func(t *testing.T) {
		o := &clusterState{failing: map[string]error{"describe": errors.New("throttled")}}
		err := o.handler().callOf(nil).recordWaiting(t.Context(), upgrade.Target{}, status.UpgradeDelayed, "")
		require.ErrorIs(t, err, o.failing["describe"])
		require.Zero(t, o.writes)
	})
}

func TestImpossibleUpgrade(t *testing.T) {
	no, throttled := route.Stopf("there is no release r9"), errors.New("throttled")
	byHand := events.UpgradeRequest{Execution: "mine"}
	byHand.Cluster, byHand.Release = "demo", "r9"
	bySpec := byHand
	bySpec.Origin = "Spec"
	mine := &upgrade.Record{Execution: "mine", State: upgrade.Checking}
	accepted := func(s *status.Status) *status.Condition { return s.Condition(status.RequestAccepted) }
	t.Run("is refused when an operator requested it", func(t *testing.T) {
		o := &clusterState{status: &status.Status{Phase: status.Ready}}
		result, err := (&call{Handler: o.handler(), in: byHand}).refuse(t.Context(), nil, no)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeResult{Outcome: events.UpgradeRefused, Message: "there is no release r9"}, result)
		require.Equal(t, status.ReasonUpgradeRefused, accepted(o.status).Reason)
		require.Nil(t, o.status.Upgrade)
	})
	t.Run("is refused without a record when there is no cluster", func(t *testing.T) {
		for _, s := range []*status.Status{nil, {Phase: status.Deleted}} {
			o := &clusterState{status: s}
			result, err := (&call{Handler: o.handler(), in: byHand}).refuse(t.Context(), nil, no)
			require.NoError(t, err)
			require.Equal(t, events.UpgradeRefused, result.Outcome)
			require.Zero(t, o.writes)
		}
	})
	t.Run("is not refused when the status cannot be read", func(t *testing.T) {
		o := &clusterState{status: &status.Status{}, failing: map[string]error{"status": throttled}}
		_, err := (&call{Handler: o.handler(), in: byHand}).refuse(t.Context(), nil, no)
		require.ErrorIs(t, err, throttled)
		require.Zero(t, o.writes)
	})
	t.Run("stops when its execution claimed it", func(t *testing.T) {
		o := &clusterState{status: &status.Status{}}
		_, err := (&call{Handler: o.handler(), in: byHand}).refuse(t.Context(), mine, no)
		require.Equal(t, no, err)
		require.Zero(t, o.writes)
	})
	t.Run("is blocked when it began by itself", func(t *testing.T) {
		for _, r := range []*upgrade.Record{nil, mine} {
			for name, stack := range map[string]stack.Deployed{
				"":   {},
				"r1": {Tags: map[string]string{names.TagRelease: "r1@sha"}, Outputs: map[string]string{"KubernetesVersion": "1.35"}},
			} {
				o := &clusterState{stack: stack, status: &status.Status{}}
				_, err := (&call{Handler: o.handler(), in: bySpec}).refuse(t.Context(), r, no)
				require.ErrorIs(t, err, no)
				require.Equal(t, []string{"Blocked", name, "r9"}, []string{o.status.Upgrade.Phase, o.status.Upgrade.From, o.status.Upgrade.To})
				require.Equal(t, status.ReasonUpgradeBlocked, o.status.Condition(status.Upgraded).Reason)
				require.Len(t, o.status.Upgrades, 1)
			}
		}
	})
	t.Run("is tried again when AWS failed", func(t *testing.T) {
		o := &clusterState{status: &status.Status{}}
		_, err := (&call{Handler: o.handler(), in: bySpec}).refuse(t.Context(), nil, throttled)
		require.Equal(t, throttled, err)
		require.Zero(t, o.writes)
		o.failing = map[string]error{"describe": throttled}
		_, err = (&call{Handler: o.handler(), in: bySpec}).refuse(t.Context(), nil, no)
		require.ErrorIs(t, err, throttled)
		require.Zero(t, o.writes)
	})
}
