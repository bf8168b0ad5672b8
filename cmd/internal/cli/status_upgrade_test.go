package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

// A reason from AWS may have several lines. Status and watch also show the next action after it.
func TestUpgradeMessageLines(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	stopped := status.Upgrade{
		Phase: "Stopped", To: "r2", Started: &at, Ended: &at,
		Message: "stack drover-demo-control-plane is UPDATE_ROLLBACK_COMPLETE: no\nfix the cause\nTo continue, drover upgrade demo",
	}
	s := status.Status{Phase: status.Stopped, Message: stopped.Message, Upgrade: &stopped}
	var out bytes.Buffer
	d := &display{out: &out, now: at}
	d.upgrades(s)
	require.Contains(t, out.String(), "is UPDATE_ROLLBACK_COMPLETE: no\n    fix the cause\n    To continue, drover upgrade demo\n")

	lines := map[string]string{}
	sayUpgrade(func(key, text string) { lines[key] = text }, stopped)
	require.Contains(t, lines["phase"], "To continue, drover upgrade demo")
	require.Contains(t, phaseLine("demo", s), "To continue, drover upgrade demo")

	out.Reset()
	d.upgrades(status.Status{Upgrade: &status.Upgrade{Phase: "Done", To: "r3"}, Upgrades: []status.Upgrade{stopped}})
	require.Contains(t, out.String(), "earlier Stopped: r2")
	require.Contains(t, out.String(), "no … (2 more lines)\n", "an upgrade that needs no action is one line")

	out.Reset()
	found := []status.Check{{Name: "A", Blocks: true, Message: "one"}, {Name: "B", Blocks: true, Message: "two"}}
	d.upgrades(status.Status{
		Upgrade: &status.Upgrade{Phase: "Blocked", To: "r3", Message: "nothing was changed: A: one\nB: two", Checks: found},
	})
	require.Equal(t, "\nupgrade Blocked: r3: nothing was changed: A: one … (1 more line)\n  A blocks: one\n  B blocks: two\n",
		out.String(), "once")
}

func TestStepTimes(t *testing.T) {
	at := func(second int) *time.Time {
		t := time.Date(2026, 11, 20, 12, 0, second, 0, time.UTC)
		return &t
	}
	now := *at(50)
	require.Equal(t, "pending", stepTimes(status.UpgradeStep{}, true, now))
	require.Equal(t, "running for 50s", stepTimes(status.UpgradeStep{Started: at(0)}, false, now))
	require.Equal(t, "running", stepTimes(status.UpgradeStep{Started: at(0)}, false, time.Time{}), "a line of a log, which is printed once")
	require.Equal(t, "not done", stepTimes(status.UpgradeStep{Started: at(0)}, true, now))
	require.Equal(t, "running for 17s, retried", stepTimes(status.UpgradeStep{Started: at(0), Opened: at(33)}, false, now))
	require.Equal(t, "done in 40s", stepTimes(status.UpgradeStep{Started: at(0), Ended: at(40)}, true, now))
	require.Equal(t, "done in 7s, retried", stepTimes(status.UpgradeStep{Started: at(0), Opened: at(33), Ended: at(40)}, true, now))
}
