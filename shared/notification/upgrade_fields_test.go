package notification

// The fields of an upgrade's notice, and the fields whose change is worth one.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

func TestUpgradeNoticeFields(t *testing.T) {
	at, began, ended := now.Add(-time.Hour), now.Add(-time.Minute), now
	running := status.Upgrade{
		Phase: "Running", From: "r1", FromVersion: "1.35", To: "r2", ToVersion: "1.36", Origin: "At", At: &at, Execution: "x",
		Message: "it waits for a drain",
		Steps: []status.UpgradeStep{
			{Name: "control plane", Started: &began, Ended: &ended}, {Name: "nodes", Started: &began}, {Name: "add-ons"},
		},
	}
	notify := func(t *testing.T, before, after *status.Upgrade) Notice {
		t.Helper()
		notices := Diff("demo", &status.Status{Upgrade: before}, &status.Status{Upgrade: after})
		require.Len(t, notices, 1)
		return notices[0]
	}
	t.Run("are complete", func(t *testing.T) {
		require.Equal(t, Notice{
			DetailType: events.ClusterUpgradeChange,
			Detail: events.UpgradeChange{
				Cluster: "demo", Phase: "Running", From: "r1", FromVersion: "1.35", To: "r2", ToVersion: "1.36", Origin: "At", At: &at, Step: "nodes",
				Message: "it waits for a drain", Execution: "x",
			},
			Subject: "drover: the upgrade of demo is Running", Message: "release r1 to r2 (Kubernetes 1.36): it waits for a drain",
			Attributes: map[string]string{"cluster": "demo", "state": "Running", "urgency": Progress},
		}, notify(t, nil, &running))
	})
	t.Run("name no step before the first one begins", func(t *testing.T) {
		u := running
		u.Steps = []status.UpgradeStep{{Name: "control plane"}}
		require.Empty(t, notify(t, nil, &u).Detail.(events.UpgradeChange).Step)
	})
	t.Run("name no step after the end", func(t *testing.T) {
		u := running
		u.Phase, u.Ended = "Stopped", &ended
		require.Empty(t, notify(t, nil, &u).Detail.(events.UpgradeChange).Step)
	})
	t.Run("have no time once it is cancelled", func(t *testing.T) {
		u := running
		u.Phase = status.UpgradeScheduled
		detail := notify(t, &u, nil).Detail.(events.UpgradeChange)
		require.Equal(t, cancelledPhase, detail.Phase)
		require.Nil(t, detail.At)
	})
	t.Run("mention earlier checks only when there are findings from before the end", func(t *testing.T) {
		u := status.Upgrade{Phase: "Stopped", To: "r2", Checked: &began, Ended: &ended}
		require.NotContains(t, notify(t, nil, &u).Message, "The checks found")
		u.Checks = []status.Check{{Name: "NodesReady", Message: "one is not.", Next: "Look."}}
		require.Contains(t, notify(t, nil, &u).Message, "The checks at 2026-11-20T11:59:00Z")
		u.Checked = &ended
		require.NotContains(t, notify(t, nil, &u).Message, "The checks found")
	})
}

func TestUpgradeNoticeIsSent(t *testing.T) {
	at, other := now.Add(time.Hour), now.Add(2*time.Hour)
	blocks, warns := status.Check{Name: "BudgetsAllow", Blocks: true}, status.Check{Name: "BudgetsAllow"}
	u := func(phase, to, origin string, more ...func(*status.Upgrade)) *status.Upgrade {
		u := &status.Upgrade{Phase: phase, From: "r1", To: to, ToVersion: "1.36", Origin: origin, At: &at, Execution: "x"}
		for _, change := range more {
			change(u)
		}
		return u
	}
	over := func(u *status.Upgrade) { u.Started, u.Ended, u.At = &now, &now, nil }
	checked := func(checks ...status.Check) func(*status.Upgrade) {
		return func(u *status.Upgrade) { u.Checks = checks }
	}
	for name, test := range map[string]struct {
		before, after status.Status
		want          []string
	}{
		"when its release changes": {
			status.Status{
				Upgrade: u("Scheduled", "r2", "Spec"),
			}, status.Status{Upgrade: u("Scheduled", "r3", "Spec")}, []string{"r3 Scheduled progress"},
		},
		"when its Kubernetes version changes": {
			status.Status{Upgrade: u("Scheduled", "r2", "Spec")},
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", func(u *status.Upgrade) {
				u.ToVersion = "1.37"
			})}, []string{"r2 Scheduled progress"},
		},
		"when its time changes": {
			status.Status{Upgrade: u("Scheduled", "r2", "Spec")},
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", func(u *status.Upgrade) { u.At = &other })}, []string{"r2 Scheduled progress"},
		},
		"when another execution takes over": {
			status.Status{Upgrade: u("Checking", "r2", "Spec")},
			status.Status{Upgrade: u("Checking", "r2", "Spec", func(u *status.Upgrade) { u.Execution = "y" })}, []string{"r2 Checking progress"},
		},
		"when something else blocks it": {
			status.Status{Upgrade: u("Blocked", "r2", "Spec", func(u *status.Upgrade) { u.Message = "a node is not Ready" })},
			status.Status{Upgrade: u("Blocked", "r2", "Spec", func(u *status.Upgrade) {
				u.Message = "a budget allows none"
			})}, []string{"r2 Blocked problem"},
		},
		"not for the time of an upgrade that began": {
			status.Status{Upgrade: u("Running", "r2", "Spec")},
			status.Status{Upgrade: u("Running", "r2", "Spec", func(u *status.Upgrade) { u.At = nil })}, nil,
		},
		"when a warning becomes a problem": {
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", checked(warns))},
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", checked(blocks))}, []string{"r2 Scheduled problem"},
		},
		"as a problem when the next release is blocked by the same check": {
			status.Status{Upgrade: u("Blocked", "r2", "Spec", checked(blocks))},
			status.Status{Upgrade: u("Scheduled", "r3", "Spec", checked(blocks))}, []string{"r3 Scheduled problem"},
		},
		"as a problem when it is postponed and would still be blocked": {
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", checked(blocks))},
			status.Status{Upgrade: u("Scheduled", "r2", "Spec", checked(blocks), func(u *status.Upgrade) {
				u.At = &other
			})}, []string{"r2 Scheduled problem"},
		},
		"as Blocked when the checks end it at once": {
			status.Status{
				Upgrade: u("Scheduled", "r2", "Spec"),
			}, status.Status{Upgrade: u("Blocked", "r2", "Spec", over)}, []string{"r2 Blocked problem"},
		},
		"as Cancelled when an upgrade to another release ended instead": {
			status.Status{
				Upgrade: u("Scheduled", "r2", "Spec"),
			}, status.Status{Upgrade: u("Done", "r3", "Command", over)}, []string{"r2 Cancelled progress"},
		},
		"of an end that hides a refused upgrade": {
			status.Status{Upgrade: u("Blocked", "r2", "Spec", func(u *status.Upgrade) {
				u.Execution = ""
			}), Upgrades: []status.Upgrade{*u("Done", "r1", "Command")}},
			status.Status{Upgrade: u("Done", "r3", "Command", over)}, []string{"r3 Done result"},
		},
		"of both when an upgrade to another release replaces the queued one": {
			status.Status{Upgrade: u("Done", "r2", "Command", over), NextUpgrade: u("Scheduled", "r3", "At")},
			status.Status{Upgrade: u("Scheduled", "r4", "At")}, []string{"r4 Scheduled progress", "r3 Cancelled progress"},
		},
		"of both when an upgrade of another origin replaces the queued one": {
			status.Status{Upgrade: u("Done", "r2", "Command", over), NextUpgrade: u("Scheduled", "r3", "At")},
			status.Status{Upgrade: u("Scheduled", "r3", "Channel")}, []string{"r3 Scheduled progress", "r3 Cancelled progress"},
		},
		"when the queued one is cancelled while the same upgrade runs": {
			status.Status{Upgrade: u("Running", "r3", "At"), NextUpgrade: u("Scheduled", "r3", "At")},
			status.Status{Upgrade: u("Running", "r3", "At")}, []string{"r3 Cancelled progress"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range Diff("demo", &test.before, &test.after) {
				got = append(got, n.Detail.(events.UpgradeChange).To+" "+n.Attributes["state"]+" "+n.Attributes["urgency"])
			}
			require.Equal(t, test.want, got)
		})
	}
}
