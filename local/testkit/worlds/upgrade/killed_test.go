package upgrade_test

// Upgrades whose execution is stopped, or whose function is killed, at any point.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
)

// The execution is stopped at each of its states in turn. The audit finds it and enables the alarms. A retry completes the remaining work,
// once.
func TestUpgradeIsStoppedAtEachState(t *testing.T) {
	for _, state := range []string{
		"Check the cluster", "May the upgrade begin?", "Wait for the cluster", "Silence the alarms", "What is the next step?",
		"Upgrade the control plane", "Verify the step",
		"Upgrade the add-ons", "Replace the nodes", "Check the result", "Did the checks pass?",
	} {
		t.Run(state, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				end := lives.AddFault(t, bad, fmt.Sprintf("kill machine=upgrade state=%q count=1", state))
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				require.Equal(t, "ABORTED Killed: by a fault rule", l.verdict(arn))
				end()
				for range 3 {
					time.Sleep(15 * time.Minute)
					l.Audit()
				}
				require.True(t, l.AlarmEnabled())
				require.True(t, l.UpgradeRecord().State == "" || l.UpgradeRecord().State.Final(), l.UpgradeRecord().State)
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// The function is killed before or after each of its calls, once for each payload.
func TestKilledUpgradeFunction(t *testing.T) {
	for name, death := range map[string]harness.Death{"before": harness.Before, "after": harness.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for number := 1; number <= 60; number++ {
				deaths := 0
				t.Run(fmt.Sprintf("call %d", number), func(t *testing.T) {
					runWithFaults(t, func(l *life, _ *faults.Engine) {
						l.CreateOldCluster(lives.Alarmed)
						var asked []string // each payload is killed once, so that the execution makes progress
						l.Functions.Kill(func(c harness.Call) harness.Death {
							if c.Function != "upgrade" || c.Number != number || slices.Contains(asked, string(c.Payload)) {
								return harness.Lives
							}
							asked = append(asked, string(c.Payload))
							deaths++
							return death
						})
						arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
						l.SettleAll()
						require.Equal(t, "SUCCEEDED :", l.verdict(arn))
						l.Functions.Kill(nil)
						l.RequireUpgraded()
					})
				})
				if t.Failed() || deaths == 0 {
					require.Greater(t, number, 20, "as many calls at least")
					break
				}
			}
		})
	}
}
