package notification

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

func TestUpgradeNotices(t *testing.T) {
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
		"a scheduled upgrade": {
			nil, scheduled(at), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), within five minutes of " +
				"2026-11-20T13:00:00Z: it waits for the window",
		},
		"the same scheduled upgrade": {scheduled(at), scheduled(at), ""},
		"another time": {
			scheduled(at), scheduled(later), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), within five " +
				"minutes of 2026-11-20T14:00:00Z: it waits for the window",
		},
		"a removed upgrade": {
			scheduled(at), nil, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was cancelled, " +
				"and does not begin",
		},
		"a removed upgrade, and the last one shows again": {
			scheduled(at), over, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was cancelled, " +
				"and does not begin",
		},
		"a delayed upgrade": {
			scheduled(at), phase(status.UpgradeDelayed, "the cluster is busy"), "problem: drover: the upgrade of demo is Delayed: release r1 to " +
				"r2: the cluster is busy",
		},
		"a delayed upgrade waits for another execution": {
			phase(status.UpgradeDelayed, "the cluster is being converged by a"), phase(status.UpgradeDelayed,
				"the cluster is being converged by b"), "",
		},
		"a missed upgrade": {
			phase(status.UpgradeDelayed, "busy"), phase(status.UpgradeMissed, "for two hours"),
			"problem: drover: the upgrade of demo is Missed: release r1 to r2: for two hours",
		},
		"a missed upgrade that is removed": {phase(status.UpgradeMissed, "for two hours"), nil, ""},
		"an upgrade that is refused": {
			nil, phase("Blocked", "an older release"), "problem: drover: the upgrade of demo is Blocked: release r1 to r2: an older release",
		},
		"the same refusal": {phase("Blocked", "an older release"), phase("Blocked", "an older release"), ""},
		"a removed upgrade, and a missed one shows again": {
			scheduled(at), missed, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was cancelled, " +
				"and does not begin",
		},
		"a refused upgrade is removed":                               {phase("Blocked", "an older release"), nil, ""},
		"a refused upgrade is removed, and the last one shows again": {phase("Blocked", "an older release"), over, ""},
		"a missed upgrade is removed, and the last one shows again":  {phase(status.UpgradeMissed, "for two hours"), over, ""},
		"an upgrade begins": {
			scheduled(at), phase("Checking", "the checks are running"), "progress: drover: the upgrade of demo is Checking: release r1 " +
				"to r2: the checks are running",
		},
		"a step":        {running(0), running(1), "progress: drover: the upgrade of demo is Running: release r1 to r2: nodes"},
		"within a step": {running(1), running(1), ""},
		"a blocked upgrade": {
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

// The notice of a scheduled upgrade includes the findings of early checks. Different findings are sent again.
func TestNoticesOfEarlyFindings(t *testing.T) {
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
		notices := Diff("demo", before, after)
		if len(notices) == 0 {
			return ""
		}
		require.Len(t, notices, 1)
		return notices[0].Attributes["urgency"]
	}
	require.Equal(t, Problem, urgency(to(), to(blocks)))
	require.Equal(t, "release r1 to r2, within five minutes of 2026-11-20T13:00:00Z\nBudgetsAllow: shop/web allows none. Raise it.",
		Diff("demo", to(), to(blocks))[0].Message)
	other := blocks
	other.Message = "shop/web allows none of 3."
	require.Empty(t, urgency(to(blocks), to(other)), "the same check with another message")
	require.Equal(t, Problem, urgency(to(blocks), to(blocks, warns)))
	require.Equal(t, Progress, urgency(to(blocks), to(warns)), "the blocker was fixed")
	blocked := to(blocks)
	blocked.Upgrade.Phase, blocked.Upgrade.At, blocked.Upgrade.Execution = "Blocked", nil, "x"
	require.Equal(t, Progress, urgency(blocked, to(blocks)), "it is retried, and the blocker was sent before")
	over := *blocked.Upgrade
	over.Ended = &now
	require.Equal(t, Progress, urgency(&status.Status{Upgrade: &over}, &status.Status{Upgrade: &over, NextUpgrade: to(blocks).Upgrade}),
		"next to it as well")
	require.Equal(t, Problem, urgency(blocked, to(blocks, warns)))
	require.Equal(t, Progress, urgency(to(blocks), &status.Status{}), "it was removed")
	require.NotContains(t, Diff("demo", to(blocks), &status.Status{})[0].Message, "BudgetsAllow")
}

// The message includes findings of checks and their remedies.
func TestNoticeIncludesFindings(t *testing.T) {
	blocked := &status.Upgrade{Phase: "Blocked", To: "r2", Message: "checks found something", Checks: []status.Check{
		{Name: "NodesReady", Blocks: true, Message: "node a is NotReady.", Next: "Check it."}, {
			Name: "Webhooks", Message: "one.", Next: "None.",
		},
	}}
	notices := Diff("demo", &status.Status{}, &status.Status{Upgrade: blocked})
	require.Len(t, notices, 1)
	require.Equal(t, "release ? to r2: checks found something\nNodesReady: node a is NotReady. Check it.\nWebhooks: one. None.",
		notices[0].Message)

	// If the upgrade stops hours later, the message includes the time of the checks.
	found, ended := now.Add(-3*time.Hour), now
	stopped := &status.Upgrade{
		Phase: "Stopped", To: "r2", Message: "nodes are still being drained", Checks: blocked.Checks[1:], Checked: &found, Ended: &ended,
	}
	notices = Diff("demo", &status.Status{}, &status.Status{Upgrade: stopped})
	require.Equal(t, "release ? to r2: nodes are still being drained\nThe checks at "+found.UTC().Format(time.RFC3339)+
		" found this, which may be fixed since:\nWebhooks: one. None.",
		notices[0].Message)
}

// A queued upgrade is sent like any other: when it is scheduled, delayed, missed, removed, or begins.
func TestNoticesOfAQueuedUpgrade(t *testing.T) {
	at := now.Add(-time.Hour)
	running := &status.Upgrade{Phase: "Running", To: "r2", Origin: "Command", Execution: "x"}
	done := &status.Upgrade{Phase: "Done", To: "r2", Origin: "Command", Execution: "x", Ended: &now}
	blocked := &status.Upgrade{Phase: "Blocked", To: "r3", Origin: "At", Execution: "y", Started: &at, Ended: &now}
	next := func(phase string) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r3", Origin: "At", At: &at}
	}
	tests := map[string]struct {
		before, after status.Status
		want          []string
	}{
		"it is scheduled": {
			status.Status{Upgrade: running}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"it is the same": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, nil,
		},
		"it is delayed": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Delayed")},
			[]string{"r3 Delayed"},
		},
		"it is missed": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: running, NextUpgrade: next("Missed")},
			[]string{"r3 Missed"},
		},
		"it is missed, and that was sent": {
			status.Status{Upgrade: done, NextUpgrade: next("Missed")}, status.Status{Upgrade: next("Missed")}, nil,
		},
		"it was missed, and is removed": {status.Status{Upgrade: running, NextUpgrade: next("Missed")}, status.Status{Upgrade: running}, nil},
		"the other one ended": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: done, NextUpgrade: next("Delayed")},
			[]string{"r2 Done"},
		},
		"it becomes the current one": {
			status.Status{Upgrade: done, NextUpgrade: next("Delayed")}, status.Status{Upgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"it begins": {
			status.Status{Upgrade: done, NextUpgrade: next("Delayed")}, status.Status{Upgrade: next("Checking")}, []string{"r3 Checking"},
		},
		"it is removed": {
			status.Status{Upgrade: running, NextUpgrade: next("Delayed")}, status.Status{Upgrade: running}, []string{"r3 Cancelled"},
		},
		"another begins before it": {status.Status{Upgrade: next("Scheduled")}, status.Status{Upgrade: running}, []string{"r2 Running"}},
		"another begins, and it stays scheduled": {
			status.Status{Upgrade: next("Scheduled")}, status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, []string{"r2 Running"},
		},
		"both change at once": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: done, NextUpgrade: next("Delayed")},
			[]string{"r2 Done", "r3 Delayed"},
		},
		"it is blocked": {
			status.Status{Upgrade: running, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")},
			[]string{"r3 Blocked"},
		},
		"it is retried": {
			status.Status{Upgrade: blocked}, status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")}, []string{"r3 Scheduled"},
		},
		"it is retried and blocked, and that was sent": {
			status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: next("Scheduled")}, nil,
		},
		"it is not retried": {
			status.Status{Upgrade: blocked, NextUpgrade: next("Scheduled"), Upgrades: []status.Upgrade{*blocked}}, status.Status{Upgrade: blocked},
			[]string{"r3 Cancelled"},
		},
		"it is the same under another name": {
			status.Status{Upgrade: done, NextUpgrade: next("Scheduled")}, status.Status{Upgrade: next("Scheduled")}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range Diff("demo", &test.before, &test.after) {
				change := n.Detail.(events.UpgradeChange)
				got = append(got, change.To+" "+change.Phase)
			}
			require.Equal(t, test.want, got)
		})
	}
}
