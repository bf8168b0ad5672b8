package notice

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
		return &status.Upgrade{Phase: status.UpgradeScheduled, From: "r1", To: "r2", ToVersion: "1.37", Origin: "Channel", At: &at, Message: "it waits for the window"}
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
	tests := map[string]struct {
		before, after *status.Upgrade
		want          string
	}{
		"nothing":                      {nil, nil, ""},
		"one that is to come":          {nil, scheduled(at), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), at 2026-11-20T13:00:00Z: it waits for the window"},
		"and still is":                 {scheduled(at), scheduled(at), ""},
		"at another time":              {scheduled(at), scheduled(later), "progress: drover: the upgrade of demo is Scheduled: release r1 to r2 (Kubernetes 1.37), at 2026-11-20T14:00:00Z: it waits for the window"},
		"taken back":                   {scheduled(at), nil, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was taken back: it does not begin"},
		"and the last one shows again": {scheduled(at), over, "progress: drover: the upgrade of demo is Cancelled: release r1 to r2 (Kubernetes 1.37): it was taken back: it does not begin"},
		"one that is late":             {scheduled(at), phase(status.UpgradeDelayed, "the cluster is busy"), "problem: drover: the upgrade of demo is Delayed: release r1 to r2: the cluster is busy"},
		"one that was given up":        {phase(status.UpgradeDelayed, "busy"), phase(status.UpgradeMissed, "for two hours"), "problem: drover: the upgrade of demo is Missed: release r1 to r2: for two hours"},
		"that was told":                {phase(status.UpgradeMissed, "for two hours"), nil, ""},
		"one that begins":              {scheduled(at), phase("Checking", "the checks run"), "progress: drover: the upgrade of demo is Checking: release r1 to r2: the checks run"},
		"a step":                       {running(0), running(1), "progress: drover: the upgrade of demo is Running: release r1 to r2: nodes"},
		"within a step":                {running(1), running(1), ""},
		"one that is blocked":          {phase("Checking", ""), phase("Blocked", "2 checks"), "problem: drover: the upgrade of demo is Blocked: release r1 to r2: 2 checks"},
		"the end":                      {running(1), phase("Done", ""), "result: drover: the upgrade of demo is Done: release r1 to r2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, n := range Between("demo", &status.Status{Upgrade: test.before}, &status.Status{Upgrade: test.after}) {
				require.Empty(t, got)
				require.Equal(t, events.ClusterUpgradeChange, n.DetailType)
				require.Equal(t, n.Detail.(events.UpgradeChange).Phase, n.Attributes["state"])
				got = n.Attributes["urgency"] + ": " + n.Subject + ": " + n.Message
			}
			require.Equal(t, test.want, got)
		})
	}
}

// Checks that found something are in the message, with what to do.
func TestChecksAreTold(t *testing.T) {
	blocked := &status.Upgrade{Phase: "Blocked", To: "r2", Message: "checks found something", Checks: []status.Check{
		{Name: "NodesReady", Blocks: true, Message: "node a is NotReady.", Next: "Look at it."}, {Name: "Webhooks", Message: "one.", Next: "None."},
	}}
	told := Between("demo", &status.Status{}, &status.Status{Upgrade: blocked})
	require.Len(t, told, 1)
	require.Equal(t, "release ? to r2: checks found something\nNodesReady: node a is NotReady. Look at it.\nWebhooks: one. None.", told[0].Message)
}
