package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

func TestTaskEnds(t *testing.T) {
	for onTimeout, want := range map[events.OnTimeout]bool{Wait: false, Force: true, Continue: true} {
		require.Equal(t, want, Task{Policy: Policy{Timeout: 1, OnTimeout: onTimeout}}.Ends(), onTimeout)
		require.False(t, Task{Policy: Policy{OnTimeout: onTimeout}}.Ends(), "no timeout")
	}
}

func TestTaskTriedLongEnough(t *testing.T) {
	task := Task{Policy: Policy{LoadBalancerWait: 60}}
	require.True(t, task.TriedLongEnough(now, now), "there was no outage")
	task.ReachableAgain = now
	for _, excluded := range []time.Time{{}, now.Add(-60 * time.Second)} {
		require.False(t, task.TriedLongEnough(now.Add(minReachable-1), excluded))
		require.True(t, task.TriedLongEnough(now.Add(minReachable), excluded))
	}
	require.False(t, task.TriedLongEnough(now.Add(minReachable), now.Add(-59*time.Second)), "load balancers still have a second")
	require.True(t, task.TriedLongEnough(now.Add(minReachable+time.Second), now.Add(-59*time.Second)))
}
