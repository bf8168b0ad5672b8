package upgrade_test

// Windows on the days when clocks change: upgrades begin once, at the right time.

import (
	"fmt"
	"testing"
	"time"

	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestUpgradesWhenClocksChange(t *testing.T) {
	const (
		daily = `start: "02:30"`
		cron  = `cron: "30 2 * * ? *"`
	)
	for name, test := range map[string]struct {
		window string
		// noon is that of the day before. begins is when the upgrade must begin.
		noon, begins string
		// blocked: an alarm blocks the upgrade. again is when the retry begins.
		blocked bool
		again   string
	}{
		"put forward over the start: as that is done":       {window: daily, noon: "2000-03-25T12:00:00Z", begins: "2000-03-26T01:00:00Z"},
		"put forward over a cron: on the day after, as AWS": {window: cron, noon: "2000-03-25T12:00:00Z", begins: "2000-03-27T00:30:00Z"},
		"put back: the first of two":                        {window: daily, noon: "2000-10-28T12:00:00Z", begins: "2000-10-29T00:30:00Z"},
		"put back, by a cron":                               {window: cron, noon: "2000-10-28T12:00:00Z", begins: "2000-10-29T00:30:00Z"},
		"put back: the second opens for none that was blocked": {
			window: daily, noon: "2000-10-28T12:00:00Z", begins: "2000-10-29T00:30:00Z", blocked: true, again: "2000-10-30T01:30:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				when := func(text string) time.Time {
					parsed, err := time.Parse(time.RFC3339, text)
					require.NoError(t, err)
					return parsed
				}
				time.Sleep(time.Until(when(test.noon)))
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
				l.CreateOldCluster(fmt.Sprintf("  upgrade: {channel: Stable, alarms: [shop-is-down], window: {%s, duration: 30m, timeZone: "+
					"Europe/Berlin}}\n",
					test.window))
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r2"))
				l.SweepForAnHour()
				// sweepsUntil sweeps every five minutes, which is enough here, and audits every quarter of an hour, until a time.
				sweepsUntil := func(end time.Time) {
					for time.Now().Before(end) {
						time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(5 * time.Minute)))
						l.Sweep()
						if time.Now().Truncate(15 * time.Minute).Equal(time.Now().Truncate(5 * time.Minute)) {
							_ = l.AuditNow() // the logs of functions have the reason of a failure
						}
						time.Sleep(time.Second)
					}
				}
				toCome := func(at string) {
					u := l.Status("demo").Upgrade
					require.Equal(t, status.UpgradeScheduled, u.Phase, u.Message)
					require.Equal(t, at, u.At.UTC().Format(time.RFC3339))
				}
				toCome(test.begins)
				begins, number := when(test.begins), int64(1)
				sweepsUntil(begins.Add(-5 * time.Minute))
				require.Empty(t, l.UpgradeRecord().State, "not before")
				if test.blocked {
					l.alarm(cloudwatchtypes.StateValueAlarm)
					sweepsUntil(begins.Add(3 * time.Hour))
					require.Equal(t, upgrade.Blocked, l.UpgradeRecord().State)
					require.EqualValues(t, 1, l.UpgradeRecord().Number, "the repeated hour is the same window")
					require.Equal(t, begins, l.UpgradeRecord().Started.Truncate(time.Minute))
					toCome(test.again)
					l.alarm(cloudwatchtypes.StateValueOk)
					begins, number = when(test.again), 2
				}
				sweepsUntil(begins.Add(5 * time.Minute))
				require.Equal(t, upgrade.Running, l.UpgradeRecord().State)
				require.Equal(t, begins, l.UpgradeRecord().Started.Truncate(time.Minute))
				end := lives.AddFault(t, bad, "launch-fails")
				sweepsUntil(begins.Add(45 * time.Minute))
				require.Equal(t, upgrade.Running, l.UpgradeRecord().State, "the window shut in the middle")
				end()
				sweepsUntil(begins.Add(26 * time.Hour))
				l.SettleAll()
				l.RequireUpgraded()
				require.Equal(t, number, l.UpgradeRecord().Number, "once")
				require.Equal(t, upgrade.OriginChannel, l.UpgradeRecord().Origin)
			})
		})
	}
}
