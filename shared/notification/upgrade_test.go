package notification

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

func TestUpgradesThatAreTold(t *testing.T) {
	at, later := now.Add(time.Hour), now.Add(2*time.Hour)
	scheduled := func(at time.Time) *status.Upgrade {
		return &status.Upgrade{
			Phase: status.UpgradeScheduled, From: "r1", To: "r2", ToVersion: "1.37", Origin: "Channel", At: &at, Message: "it waits for the window",
		}
	}
	phase := func(phase, message string) *status.Upgrade {
		return &status.Upgrade{Phase: phase, From: "r1", To: "r2", Origin: "Channel", Message: message}
	}
	running := func(done int) *status.Upgrade {
		u := phase("Running", "")
		for i, name := range []string{"control plane to 1.37", "nodes"} {
			step := status.UpgradeStep{Name: name}
			if i <= done {
				step.Started = &now
			}
			if i < done {
				step.Ended = &now
			}
			u.Steps = append(u.Steps, step)
		}
		return u
	}
	over := phase("Done", "")
	over.Ended, over.To = &now, "r1"
	missed := &status.Upgrade{Phase: status.UpgradeMissed, To: "r0", Origin: "At", At: &at}
	tests := map[string]struct {
		before, after *status.Upgrade
		want          string
	}{
		"nothing": {nil, nil, ""},
		"one that is to come": {
			nil, scheduled(at), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), within five minutes of " +
				"2026-11-20T13:00:00Z: it waits for the window",
		},
		"and still is": {scheduled(at), scheduled(at), ""},
		"at another time": {
			scheduled(at), scheduled(later), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), within five " +
				"minutes of 2026-11-20T14:00:00Z: it waits for the window",
		},
		"taken back": {
			scheduled(at), nil, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was taken " +
				"back: it does not begin",
		},
		"and the last one shows again": {
			scheduled(at), over, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was taken " +
				"back: it does not begin",
		},
		"one that is late": {
			scheduled(at), phase(status.UpgradeDelayed, "the cluster is busy"), "problem: drover: the upgrade of demo is Delayed: release r1 to " +
				"r2: the cluster is busy",
		},
		"and waits for the next": {
			phase(status.UpgradeDelayed, "the cluster is being converged by a"), phase(status.UpgradeDelayed,
				"the cluster is being converged by b"), "",
		},
		"one that was given up": {
			phase(status.UpgradeDelayed, "busy"), phase(status.UpgradeMissed, "for two hours"),
			"problem: drover: the upgrade of demo is Missed: release r1 to r2: for two hours",
		},
		"that was told": {phase(status.UpgradeMissed, "for two hours"), nil, ""},
		"one that does not begin": {
			nil, phase("Blocked", "an older release"), "problem: drover: the upgrade of demo is Blocked: release r1 to r2: an older release",
		},
		"and still does not": {phase("Blocked", "an older release"), phase("Blocked", "an older release"), ""},
		"taken back, and what was missed shows again": {
			scheduled(at), missed, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was taken " +
				"back: it does not begin",
		},
		"which was taken back":        {phase("Blocked", "an older release"), nil, ""},
		"and what it hid shows again": {phase("Blocked", "an older release"), over, ""},
		"as what was missed did":      {phase(status.UpgradeMissed, "for two hours"), over, ""},
		"one that begins": {
			scheduled(at), phase("Checking", "the checks run"), "progress: drover: the upgrade of demo is Checking: release r1 " +
				"to r2: the checks run",
		},
		"a step":        {running(0), running(1), "progress: drover: the upgrade of demo is Running: release r1 to r2: nodes"},
		"within a step": {running(1), running(1), ""},
		"one that is blocked": {
			phase("Checking", ""), phase("Blocked", "2 checks"), "problem: drover: the upgrade of demo is Blocked: release r1 to r2: 2 checks",
		},
		"the end": {running(1), phase("Done", ""), "result: drover: the upgrade of demo is Done: release r1 to r2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, n := range Diff("demo", &status.Status{
				Upgrade: test.before, Upgrades: []status.Upgrade{*over, *missed},
			}, &status.Status{Upgrade: test.after}) {
				require.Empty(t, got)
				require.Equal(t, events.ClusterUpgradeChange, n.DetailType)
				require.Equal(t, n.Detail.(events.UpgradeChange).Phase, n.Attributes["state"])
				got = n.Attributes["urgency"] + ": " + n.Subject + ": " + n.Message
			}
			require.Equal(t, test.want, got)
		})
	}
}

// What was found in advance is told with the notice that an upgrade is to come, and again when it is something else.
func TestFindingsInAdvance(t *testing.T) {
	at := now.Add(time.Hour)
	to := func(checks ...status.Check) *status.Status {
		return &status.Status{
			Upgrade: &status.Upgrade{Phase: status.UpgradeScheduled, From: "r1", To: "r2", Origin: "At", At: &at, Checks: checks},
		}
	}
	blocks, warns := status.Check{
		Name: "BudgetsAllow", Blocks: true, Message: "shop/web allows none.", Next: "Raise it.",
	}, status.Check{Name: "SupportDates", Message: "soon."}
	urgency := func(before, after *status.Status) string {
		told := Diff("demo", before, after)
		if len(told) == 0 {
			return ""
		}
		require.Len(t, told, 1)
		return told[0].Attributes["urgency"]
	}
	require.Equal(t, Problem, urgency(to(), to(blocks)))
	require.Equal(t, "release r1 to r2, within five minutes of 2026-11-20T13:00:00Z\nBudgetsAllow: shop/web allows none. Raise it.",
		Diff("demo", to(), to(blocks))[0].Message)
	other := blocks
	other.Message = "shop/web allows none of 3."
	require.Empty(t, urgency(to(blocks), to(other)), "the same check found the same, in other words")
	require.Equal(t, Problem, urgency(to(blocks), to(blocks, warns)))
	require.Equal(t, Progress, urgency(to(blocks), to(warns)), "what blocked was mended")
	blocked := to(blocks)
	blocked.Upgrade.Phase, blocked.Upgrade.At, blocked.Upgrade.Execution = "Blocked", nil, "x"
	require.Equal(t, Progress, urgency(blocked, to(blocks)), "it is tried again, and what blocked it was told")
	over := *blocked.Upgrade
	over.Ended = &now
	require.Equal(t, Progress, urgency(&status.Status{Upgrade: &over}, &status.Status{Upgrade: &over, NextUpgrade: to(blocks).Upgrade}),
		"beside it as well")
	require.Equal(t, Problem, urgency(blocked, to(blocks, warns)))
	require.Equal(t, Progress, urgency(to(blocks), &status.Status{}), "it was taken back")
	require.NotContains(t, Diff("demo", to(blocks), &status.Status{})[0].Message, "BudgetsAllow")
}

// Checks that found something are in the message, with what to do.
func TestChecksAreTold(t *testing.T) {
	blocked := &status.Upgrade{Phase: "Blocked", To: "r2", Message: "checks found something", Checks: []status.Check{
		{Name: "NodesReady", Blocks: true, Message: "node a is NotReady.", Next: "Look at it."}, {
			Name: "Webhooks", Message: "one.", Next: "None.",
		},
	}}
	told := Diff("demo", &status.Status{}, &status.Status{Upgrade: blocked})
	require.Len(t, told, 1)
	require.Equal(t, "release ? to r2: checks found something\nNodesReady: node a is NotReady. Look at it.\nWebhooks: one. None.",
		told[0].Message)

	// One that stops hours later says when: nobody looked again.
	found, ended := now.Add(-3*time.Hour), now
	stopped := &status.Upgrade{
		Phase: "Stopped", To: "r2", Message: "nodes are still drained", Checks: blocked.Checks[1:], Checked: &found, Ended: &ended,
	}
	told = Diff("demo", &status.Status{}, &status.Status{Upgrade: stopped})
	require.Equal(t, "release ? to r2: nodes are still drained\nThe checks found at "+found.UTC().Format(time.RFC3339)+
		", which may have passed since:\nWebhooks: one. None.",
		told[0].Message)
}

// An upgrade that waits for another is told of like any, beside that one: as it comes, is late, is missed, begins, or is taken back.
func TestUpgradesBehindAnotherAreTold(t *testing.T) {
	at := now.Add(-time.Hour)
	running := &status.Upgrade{Phase: "Running", To: "r2", Origin: "Hand", Execution: "x"}
	done := &status.Upgrade{Phase: "Done", To: "r2", Origin: "Hand", Execution: "x", Ended: &now}
	blocked := &status.Upgrade{Phase: "Blocked", To: "r3", Origin: "At", Execution: "y", Started: &at, Ended: &now}
	next := func(phase string) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r3", Origin: "At", At: &at}
	}
	tests := map[string]struct {
		before, after status.Status
		want          []string
	}{
		"it comes": {
			status.Status{Upgrade: running}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"and is there": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, nil,
		},
		"it is late": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Delayed")},
			[]string{"r3 Delayed"},
		},
		"too late": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: running, NextUpgrade: next("Missed")},
			[]string{"r3 Missed"},
		},
		"which is told once": {
			status.Status{Upgrade: done, NextUpgrade: next("Missed")}, status.Status{Upgrade: next("Missed")}, nil,
		},
		"also when it is not shown": {status.Status{Upgrade: running, NextUpgrade: next("Missed")}, status.Status{Upgrade: running}, nil},
		"the other is over": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: done, NextUpgrade: next("Delayed")},
			[]string{"r2 Done"},
		},
		"its turn has come": {
			status.Status{Upgrade: done, NextUpgrade: next("Delayed")}, status.Status{Upgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"it begins": {
			status.Status{Upgrade: done, NextUpgrade: next("Delayed")}, status.Status{Upgrade: next("Checking")}, []string{"r3 Checking"},
		},
		"it is taken back": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: running}, []string{"r3 Cancelled"},
		},
		"another begins before it": {status.Status{Upgrade: next("Scheduled")}, status.Status{Upgrade: running}, []string{"r2 Running"}},
		"and it is still to come": {
			status.Status{Upgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, []string{"r2 Running"},
		},
		"both change in the same moment": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: done, NextUpgrade: next("Delayed")},
			[]string{"r2 Done", "r3 Delayed"},
		},
		"it is blocked": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")},
			[]string{"r3 Blocked"},
		},
		"and is tried again": {
			status.Status{Upgrade: blocked}, status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"which is told once, too": {
			status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: next("Scheduled")}, nil,
		},
		"or is not": {
			status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled"), Upgrades: []status.Upgrade{*blocked}}, status.Status{Upgrade: blocked},
			[]string{"r3 Cancelled"},
		},
		"it is the same, by another name": {
			status.Status{Upgrade: done, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: next("Scheduled")}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range Diff("demo", &test.before, &test.after) {
				told := n.Detail.(events.UpgradeChange)
				got = append(got, told.To+" "+told.Phase)
			}
			require.Equal(t, test.want, got)
		})
	}
}
