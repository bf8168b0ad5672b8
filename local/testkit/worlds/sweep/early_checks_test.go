package sweep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// blocking returns the names of the checks that block.
func blocking(u *status.Upgrade) (names []string) {
	for _, c := range u.Checks {
		if c.Blocks {
			names = append(names, c.Name)
		}
	}
	return names
}

// The checks of a scheduled upgrade run days before its time, when it is scheduled, and a second time on the last day.
func TestScheduledUpgradeIsChecked(t *testing.T) {
	a := following(t, "")
	now := time.Now()
	clock := func() time.Time { return now }
	a.Functions.Plan.Now, a.Functions.Sweep.Now, a.Functions.Upgrade.Now = clock, clock, clock
	at := now.Add(72 * time.Hour).UTC().Truncate(time.Second)
	spec := func(alarms, release string) string {
		return harness.Spec("demo", "  upgrade: {"+alarms+"at: {time: "+at.Format(time.RFC3339)+", release: "+release+"}}\n")
	}
	upload := func(spec string) {
		a.Upload("clusters/demo.yaml", spec)
		a.Settle()
		require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
	}
	looks := func() int {
		require.NoError(t, a.AuditNow())
		a.Settle()
		require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
		return len(machine(a, "upgrade"))
	}

	upload(spec("alarms: [nowhere], ", "r2"))
	require.Nil(t, a.Status("demo").Upgrade.Checked)
	require.Equal(t, 1, looks())
	require.Equal(t, 1, looks(), "once")
	u := a.Status("demo").Upgrade
	require.NotNil(t, u.Checked)
	require.Equal(t, []string{preflight.AlarmsQuiet}, blocking(u))
	require.Equal(t, "SUCCEEDED", machine(a, "upgrade")[0].Status)
	record, _, err := a.State().Upgrade(t.Context(), "demo")
	require.NoError(t, err)
	require.Nil(t, record, "nothing began")
	require.Equal(t, status.Ready, a.Status("demo").Phase)

	// Another plan keeps the results. The checks run again within a day of the time, and then pass, as the cause is fixed.
	upload(spec("", "r2"))
	require.Equal(t, u.Checks, a.Status("demo").Upgrade.Checks)
	now = at.Add(-25 * time.Hour)
	require.Equal(t, 1, looks())
	for _, before := range []time.Duration{23 * time.Hour, time.Hour, time.Minute} {
		now = at.Add(-before)
		require.Equal(t, 2, looks())
	}
	require.Empty(t, blocking(a.Status("demo").Upgrade))

	// An upgrade that is not possible.
	a.Upload("releases/far.yaml", harness.ReleaseOf("1.40", "far"))
	now = at.Add(-72 * time.Hour)
	upload(spec("", "far"))
	require.Equal(t, 3, looks())
	u = a.Status("demo").Upgrade
	require.Equal(t, []string{preflight.UpgradePossible}, blocking(u))
	require.Contains(t, u.Checks[0].Message, "are more than 3 minor versions")
}
