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
		"drain is called again after a twentieth":           {DrainCalls, time.Hour, 3 * time.Minute},
		"drain is called again within five minutes":         {DrainCalls, 10 * time.Hour, 5 * time.Minute},
		"a step is verified again after five seconds":       {StepCalls, time.Minute, 5 * time.Second},
		"a step is verified again after an eighteenth":      {StepCalls, 9 * time.Minute, 30 * time.Second},
		"a step is verified again within five minutes":      {StepCalls, 10 * time.Hour, 5 * time.Minute},
		"EKS is read again after five seconds":              {EKSCalls, 0, 5 * time.Second},
		"EKS is read again after as long as it has taken":   {EKSCalls, time.Minute, time.Minute},
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

func TestJoinPause(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, 9 * time.Second: 3 * time.Second, 12 * time.Second: 6 * time.Second, 24 * time.Second: 6 * time.Second,
		30 * time.Second: 2 * time.Second,
		time.Minute:      2 * time.Second, 90 * time.Second: 3 * time.Second, 10 * time.Minute: 20 * time.Second, 10 * time.Hour: time.Minute,
	} {
		require.Equal(t, want, JoinPause(passed, false), passed)
	}
	require.Equal(t, time.Second, JoinPause(45*time.Second, true), "the node is Ready in some seconds")
	require.Equal(t, 2*time.Second, JoinPause(time.Minute, true))
	t.Run("calls join as often in a boot of 45 seconds as with pauses of three seconds", func(t *testing.T) {
		calls, passed := 0, time.Duration(0)
		for ; passed < 45*time.Second; calls++ {
			passed += JoinPause(passed, false)
		}
		require.LessOrEqual(t, calls, 45/3+2)
		require.LessOrEqual(t, passed, 47*time.Second)
	})
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
