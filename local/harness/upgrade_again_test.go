package harness

// A channel's upgrade that its checks block, day after day.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// What blocked it is told with each try, and not again with what the next one waits for.
func TestAChannelsUpgradeThatIsBlockedForDays(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("channels"), channelsOf("r1"))
		l.old("  upgrade: {channel: Stable, alarms: [shop-is-down, nowhere]}\n")
		l.swept()
		l.settle()
		l.Upload(names.ReleaseSpec("channels"), channelsOf("r2"))
		l.swept()
		l.settle()
		for day := 1; day <= 2; day++ {
			require.Equal(t, upgrade.Blocked, l.record().State)
			require.EqualValues(t, day, l.record().Number)
			blocked := l.record().Ended.UTC().Truncate(time.Second)
			for time.Since(blocked) < 16*time.Hour {
				pause := 15 * time.Minute
				if time.Since(blocked) > time.Hour {
					pause = 5 * time.Hour
				}
				time.Sleep(pause)
				l.swept()
				_ = l.AuditNow()
				l.settle()
				u := l.Status("demo").Upgrade
				if u.Phase == "Blocked" {
					continue
				}
				require.Equal(t, status.UpgradeScheduled, u.Phase)
				require.Equal(t, preflight.AlarmsQuiet, u.Checks[0].Name, "it is known what blocks")
				require.Equal(t, blocked, u.Checked.UTC())
			}
			require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
			require.Len(t, l.executions("upgrade"), day, "nobody looks again before that")
			require.Equal(t, day, l.toldOf("Blocked"))
			require.LessOrEqual(t, l.toldOf(status.UpgradeScheduled), 2*day, "that it begins, and that it is tried again")
			time.Sleep(time.Until(blocked.Add(24*time.Hour)) + time.Minute)
			l.swept()
			l.settle()
		}
	})
}

// One that cannot be made at all is remembered like any that is over, with where it was to begin.
func TestAnUpgradeThatCannotBeMadeIsRemembered(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("channels"), channelsOf("r1"))
		l.old("  upgrade: {channel: Stable, alarms: [shop-is-down]}\n")
		l.Upload(names.ReleaseSpec("far"), ReleaseOf("1.40", "far"))
		l.swept()
		l.settle()
		l.Upload(names.ReleaseSpec("channels"), channelsOf("far"))
		l.swept()
		l.settle()
		s := l.Status("demo")
		require.Equal(t, "Blocked r1 1.35 far", s.Upgrade.Phase+" "+s.Upgrade.From+" "+s.Upgrade.FromVersion+" "+s.Upgrade.To, s.Upgrade.Message)
		require.Equal(t, []status.Upgrade{*s.Upgrade}, s.Upgrades)
	})
}
