package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

// showVersions tries the table on a cluster that is Ready at 1.36-1: before and after a channel that it follows moves.
func showVersions(t *testing.T, ok func(*testing.T, ...string) string) {
	mark := cloud.Calls.Mark()
	out := ok(t, "versions")
	for _, row := range []string{
		`(?m)^CLUSTER +PART +CURRENT +TARGET +DUE +SUPPORTED UNTIL$`,
		`(?m)^demo +release +1\.36-1 +- +- +-$`,
		`(?m)^demo +control plane +1\.36 +- +- +2027-08-03, extended 2028-08-03$`,
		`(?m)^demo +pool spot +1\.36 \(ami-d390dc44800d0e650\) +- +- +-$`,
		`(?m)^demo +add-on kube-proxy +v1\.36\.1-eksbuild\.2 +- +- +-$`,
	} {
		require.Regexp(t, row, out)
	}
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+1+1+2+5, "a row for the release, the control plane, each pool and each add-on")
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating, "versions called %s %s", call.Service, call.Action)
	}

	// It follows a channel whose window is shut for years, and the channel moves.
	require.Contains(t, ok(t, "apply", "examples/releases/1.37-1.yaml"), "uploaded release 1.37-1")
	require.Contains(t, ok(t, "apply", "examples/releases/channels.yaml"), "uploaded the channels")
	followed := example(t, "clusters/demo.yaml", "  tags:\n", "  upgrade: {channel: Rapid, window: {cron: \"0 1 1 1 ? 2090\", duration: 4h}}\n  tags:\n")
	ok(t, "apply", write(t, "demo.yaml", followed), "--watch")
	var fleet []clusterVersions
	require.NoError(t, json.Unmarshal([]byte(ok(t, "versions", "-o", "json")), &fleet))
	require.Len(t, fleet, 1)
	v := fleet[0]
	require.Equal(t, "Rapid", v.Channel)
	require.Equal(t, moves{"1.36-1", "1.37-1"}, v.Release)
	require.Equal(t, moves{"1.36", "1.37"}, v.ControlPlane)
	require.Contains(t, v.Due, "2090-01-01T01:00:00Z")
	require.Equal(t, []poolMove{
		{named{"spot", moves{"ami-d390dc44800d0e650", "ami-cad6f48a6f7586fe6"}}, "1.36"},
		{named{"workers", moves{"ami-d390dc44800d0e650", "ami-cad6f48a6f7586fe6"}}, "1.36"},
	}, v.Pools)
	require.Contains(t, v.Addons, named{"coredns", moves{"v1.13.2-eksbuild.1", "v1.14.0-eksbuild.1"}})
	require.Contains(t, v.Addons, named{"vpc-cni", moves{"v1.21.1-eksbuild.1", ""}})
	ok(t, "apply", "examples/clusters/demo.yaml", "--watch")
}

func TestUpgradesInAStatus(t *testing.T) {
	at := func(minute int) *time.Time {
		t := time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC)
		return &t
	}
	done := status.Upgrade{Phase: "Done", From: "1.35-1", FromVersion: "1.35", To: "1.36-1", ToVersion: "1.36", Origin: "Channel", Started: at(0), Ended: at(30)}
	var b strings.Builder
	printUpgrades(&b, status.Status{})
	require.Empty(t, b.String())

	running := status.Upgrade{
		Phase: "Running", From: "1.36-1", FromVersion: "1.36", To: "1.37-1", ToVersion: "1.37", Origin: "Hand", Started: at(40), Message: "the nodes are replaced",
		Steps: []status.UpgradeStep{
			{Name: "control plane to 1.37", Started: at(41), Ended: at(50)}, {Name: "nodes", Started: at(50)}, {Name: "more"},
		},
		Checks: []status.Check{{Name: "BudgetsAllow", Message: "shop/web allows nothing", Next: "Raise it."}},
	}
	printUpgrades(&b, status.Status{Upgrade: &running, Upgrades: []status.Upgrade{done}})
	require.Equal(t, `
upgrade Running: 1.36-1 (Kubernetes 1.36) → 1.37-1 (Kubernetes 1.37), asked by Hand, since 2026-11-20T12:40:00Z: the nodes are replaced
  control plane to 1.37  done in 9m0s
  nodes                  since 2026-11-20T12:50:00Z
  more                   to come
  BudgetsAllow warning: shop/web allows nothing
    → Raise it.
earlier Done: 1.35-1 (Kubernetes 1.35) → 1.36-1 (Kubernetes 1.36), asked by Channel, 2026-11-20T12:00:00Z, took 30m0s
`, b.String())

	b.Reset()
	printUpgrades(&b, status.Status{Upgrade: &done, Upgrades: []status.Upgrade{done}})
	require.Equal(t, 1, strings.Count(b.String(), "1.36-1"), "the last one is told once")

	require.Equal(t, "Scheduled: 1.36-1, asked by At, at 2026-11-20T12:05:00Z", upgradeLine(status.Upgrade{Phase: "Scheduled", To: "1.36-1", Origin: "At", At: at(5)}))
	require.Equal(t, []string{"Images blocks: gone"}, checkLines([]status.Check{{Name: "Images", Blocks: true, Message: "gone"}}))
}
