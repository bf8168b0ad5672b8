package backoff

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		policy       Policy
		passed, want time.Duration
	}{
		"the first batch is polled after ten seconds":       {FirstBatch, 0, 10 * time.Second},
		"the first batch is polled after a quarter":         {FirstBatch, 4 * time.Minute, time.Minute},
		"the first batch is polled at least each 5 minutes": {FirstBatch, 10 * time.Hour, 5 * time.Minute},
		"join is called again after three seconds":          {JoinCalls, 0, 3 * time.Second},
		"join is called again after a thirtieth":            {JoinCalls, 10 * time.Minute, 20 * time.Second},
		"join is called again within a minute":              {JoinCalls, 10 * time.Hour, time.Minute},
		"drain is called again after a twentieth":           {DrainCalls, time.Hour, 3 * time.Minute},
		"drain is called again within five minutes":         {DrainCalls, 10 * time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.policy.Pause(test.passed)) })
	}
}

func TestRetries(t *testing.T) {
	for name, pauses := range map[string][]time.Duration{"of an execution": QuickRetries, "of the audit": Retries} {
		t.Run(name+" pause longer each time", func(t *testing.T) {
			for i := range pauses[1:] {
				require.Less(t, pauses[i], pauses[i+1])
			}
		})
	}
	t.Run("of the audit take over from those of an execution", func(t *testing.T) {
		require.Greater(t, Retries[0], QuickRetries[len(QuickRetries)-1])
		require.GreaterOrEqual(t, Retries[0], AuditPeriod, "the audit cannot retry sooner")
	})
}

func TestUpgradeCalls(t *testing.T) {
	for name, test := range map[string]struct{ passed, took, want time.Duration }{
		"at once":                 {0, 0, 5 * time.Second},
		"an eighth of the step":   {0, 16 * time.Minute, 2 * time.Minute},
		"three times what passed": {time.Minute, 8 * time.Minute, 3 * time.Minute},
		"at most five minutes":    {time.Hour, time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, UpgradeCalls(test.passed, test.took)) })
	}
}

func TestRepeats(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{
		-time.Minute: 0, 0: 0, 7 * time.Minute: 0, 8 * time.Minute: AuditPeriod, 29 * time.Minute: 2 * AuditPeriod,
		7*time.Minute + 30*time.Second: AuditPeriod, 7*time.Minute + 29*time.Second: 0, 45 * time.Minute: 2 * AuditPeriod,
		time.Hour: 4 * AuditPeriod, 100 * time.Minute: 4 * AuditPeriod, 2 * time.Hour: 8 * AuditPeriod,
	} {
		require.Equal(t, want, Repeats(passed), passed)
	}
}
