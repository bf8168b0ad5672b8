package handler

// Alarms whose actions an upgrade disables. They are recorded first, and enabled before the upgrade ends.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/checker"
)

const alarmedSpec = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r1}
  network: {cidr: 10.0.0.0/16, zones: [eu-west-1a, eu-west-1b]}
  upgrade: {alarms: [lets, never, off, silent]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
`

// alarmFixture is a cluster under an upgrade. done is what was done to its alarms and its record, in order.
type alarmFixture struct {
	State
	Stacks
	Executions
	record *upgrade.Record
	// failing are the errors of calls, by name.
	failing map[string]error
	done    []string
	status  status.Status
}

func (a *alarmFixture) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Body: []byte(alarmedSpec), Version: "v1"}, nil
}

func (a *alarmFixture) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	kept := *a.record
	return &kept, "etag-1", nil
}

func (a *alarmFixture) PutUpgrade(_ context.Context, _ string, record *upgrade.Record, etag string) (string, error) {
	if err := a.failing["write"]; err != nil {
		return "", err
	}
	if etag != "etag-1" {
		return "", fmt.Errorf("unexpected condition %q", etag)
	}
	kept := *record
	a.record = &kept
	a.done = append(a.done, fmt.Sprintf("write %s %v", record.State, record.Alarms))
	return "etag-2", nil
}

func (a *alarmFixture) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&a.status)
	return nil
}

func (a *alarmFixture) Lease(context.Context, string) (store.Lease, error) { return store.Lease{}, nil }

func (a *alarmFixture) Describe(_ context.Context, named []string) ([]preflight.Alarm, error) {
	if fmt.Sprint(named) != "[lets never off silent]" {
		return nil, fmt.Errorf("unexpected alarms: %v", named)
	}
	a.done = append(a.done, "describe")
	return []preflight.Alarm{
		{Name: "lets", Actions: true, Silence: true}, {
			Name: "never", Actions: true,
		}, {Name: "off", Silence: true}, {Name: "silent", Actions: true, Silence: true},
	}, a.failing["describe"]
}

func (a *alarmFixture) DisableActions(_ context.Context, named []string) error {
	a.done = append(a.done, fmt.Sprintf("silence %v", named))
	return a.failing["silence"]
}

func (a *alarmFixture) EnableActions(_ context.Context, named []string) error {
	a.done = append(a.done, fmt.Sprintf("sound %v", named))
	return a.failing["sound"]
}

// stacksOf an account with one control plane.
type stacksOf struct {
	Stacks
	id string
}

func (s stacksOf) Describe(context.Context, string) (stack.Deployed, error) {
	return stack.Deployed{ID: s.id}, nil
}

func (a *alarmFixture) do(t *testing.T, in events.UpgradeRequest) (events.UpgradeResult, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	stacks := stacksOf{id: "stack-1"}
	h := &Handler{
		Checker: &checker.Checker{Specs: a, State: a, Stacks: stacks}, State: a, Stacks: stacks, Alarms: a,
		Planner: calm{during: func() {}}, Now: func() time.Time { return time.Unix(9000, 0) },
	}
	in.Cluster = "demo"
	return h.Handle(t.Context(), in)
}

func checking() *alarmFixture {
	return &alarmFixture{
		record: &upgrade.Record{
			Number: 2, Execution: "mine", Stack: "stack-1", State: upgrade.Checking, Alarms: []string{"silent"},
			Steps: []upgrade.Step{{Kind: upgrade.StepNodes}},
			Last:  &upgrade.Record{Number: 1},
		},
		failing: map[string]error{},
	}
}

func TestUpgradeSilencesAlarms(t *testing.T) {
	begin := events.UpgradeRequest{Action: events.UpgradeBegin, Execution: "mine"}
	t.Run("after it wrote which", func(t *testing.T) {
		a := checking()
		result, err := a.do(t, begin)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeGo, result.Outcome, result.Message)
		require.Equal(t, []string{
			"describe", "write Running [silent lets]", "silence [silent lets]",
		}, a.done, "each once, with those that are off already")
		require.Nil(t, a.record.Last)
	})
	t.Run("again when the call is repeated", func(t *testing.T) {
		a := checking()
		a.record.State = upgrade.Running
		_, err := a.do(t, begin)
		require.NoError(t, err)
		require.Equal(t, []string{"silence [silent]"}, a.done)
	})
	for what, want := range map[string][]string{
		"describe": {"describe"}, "write": {"describe"}, "silence": {"describe", "write Running [silent lets]", "silence [silent lets]"},
	} {
		t.Run("not when a call fails: "+what, func(t *testing.T) {
			a := checking()
			a.failing[what] = errors.New("throttled")
			_, err := a.do(t, begin)
			require.ErrorIs(t, err, a.failing[what])
			require.Equal(t, want, a.done)
		})
	}
	t.Run("not when another execution wrote in between", func(t *testing.T) {
		a := checking()
		a.failing["write"] = store.ErrConflict
		_, err := a.do(t, begin)
		require.Equal(t, "Transient", fault.NameOf(err))
		require.Equal(t, []string{"describe"}, a.done)
	})
	t.Run("not when the upgrade is another execution's", func(t *testing.T) {
		for _, action := range []events.UpgradeAction{events.UpgradeBegin, events.UpgradeNext, events.UpgradeFinish} {
			a := checking()
			_, err := a.do(t, events.UpgradeRequest{Action: action, Execution: "theirs"})
			require.Equal(t, "LeaseLost", fault.NameOf(err), action)
			require.Empty(t, a.done)
		}
	})
	t.Run("not when the cluster was deleted and recreated", func(t *testing.T) {
		a := checking()
		a.record.Stack = "stack-0"
		result, err := a.do(t, begin)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeStopped, result.Outcome)
		require.Empty(t, a.done)
	})
}

func TestUpgradeEndsWithAlarmsOn(t *testing.T) {
	for name, in := range map[string]events.UpgradeRequest{
		"by its own execution": {Action: events.UpgradeStop, Execution: "mine", Error: "StackFailed", Cause: "x"},
		"for one that is over": {Action: events.UpgradeStop, Execution: "theirs", Upgrade: events.Upgrade{Ended: "mine"}, Error: "x", Cause: "x"},
	} {
		t.Run("before its record says so, "+name, func(t *testing.T) {
			a := checking()
			a.record.State, a.record.Steps[0].Started = upgrade.Running, time.Unix(8000, 0)
			result, err := a.do(t, in)
			require.NoError(t, err)
			require.Equal(t, events.UpgradeStopped, result.Outcome)
			require.Equal(t, []string{"sound [silent]", "write Stopped []"}, a.done)
			require.Equal(t, time.Unix(9000, 0).UTC(), a.record.Ended)
		})
		t.Run("or not at all, "+name, func(t *testing.T) {
			a := checking()
			a.record.State, a.failing["sound"] = upgrade.Running, errors.New("throttled")
			_, err := a.do(t, in)
			require.ErrorIs(t, err, a.failing["sound"])
			require.Equal(t, []string{"silent"}, a.record.Alarms, "the retry still has their names")
			require.Equal(t, upgrade.Running, a.record.State)
		})
	}
	t.Run("not by an execution whose upgrade it is not", func(t *testing.T) {
		a := checking()
		result, err := a.do(t, events.UpgradeRequest{Action: events.UpgradeStop, Execution: "theirs", Error: "x", Cause: "x"})
		require.NoError(t, err)
		require.Equal(t, events.UpgradeStopped, result.Outcome)
		require.Empty(t, a.done)
	})
	t.Run("once", func(t *testing.T) {
		a := checking()
		a.record.State, a.record.Alarms = upgrade.Stopped, nil
		_, err := a.do(t, events.UpgradeRequest{Action: events.UpgradeStop, Execution: "mine", Error: "x", Cause: "x"})
		require.NoError(t, err)
		require.Empty(t, a.done)
		require.Equal(t, "Stopped", a.status.Upgrade.Phase, "but it is reported again")
	})
}
