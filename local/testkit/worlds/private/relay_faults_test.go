package private_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/status"
)

// A relay that does not forward is like an API server that does not answer: drover waits, and says why.
func TestRelayFaults(t *testing.T) {
	for rule, reason := range map[string]string{
		"throttle service=lambda cluster=demo":                          "RelayThrottled",
		"error=ServiceException status=502 service=lambda cluster=demo": "RelayFailed",
		"latency=40s service=lambda cluster=demo":                       "deadline",
	} {
		t.Run(rule, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.private("")
				node := l.Instance()
				parsed, err := faults.Parse(rule)
				require.NoError(t, err)
				_, err = bad.Add(time.Now(), parsed)
				require.NoError(t, err)
				l.TerminateInstance()
				time.Sleep(time.Hour)
				require.Equal(t, []string{node}, l.Group("demo", "a").Draining(), "%+v %+v", l.Group("demo", "a"), l.Status("demo").Nodes)
				require.Contains(t, fmt.Sprintf("%+v", l.Status("demo").Nodes), reason)
				bad.Clear()
				l.RunSchedules(1)
				l.RequirePhase(status.Ready)
				require.NotEqual(t, node, l.Instance())
			})
		})
	}
}
