package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

func TestSlowNodes(t *testing.T) {
	at, left := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), int64(90)
	var out bytes.Buffer
	d := &display{out: &out, now: at.Add(2 * time.Hour)}
	d.slowNodes([]status.Node{
		{Name: "n1", Instance: "i-1", Pool: "workers", State: status.NodeBlocked, Since: at,
			Message: "2 pods are left, 0 of them terminating; blocked: shop/db-0: …", Blocked: []events.BlockedPod{
				{Pod: "shop/db-0", Why: "its disruption budget allows no disruption now", Budgets: []string{"shop/db"}}, {
					Pod: "shop/alone", Why: "nothing would start it again",
				},
			}},
		{Name: "n2", Instance: "i-2", Pool: "workers", State: status.NodeDraining, Since: at, Message: "3 pods are left", EstimateSeconds: &left},
		{Instance: "i-3", Pool: "gpu", State: status.NodeNotJoined, Since: at, Message: "it has not registered", More: 20},
	})
	require.Equal(t, `
NODE       POOL     STATE      AGE  LEFT     MESSAGE
n1         workers  Blocked    2h   blocked  2 pods are left, 0 of them terminating
n2         workers  Draining   2h   1m       3 pods are left
(20 more)  gpu      NotJoined                before this one
i-3        gpu      NotJoined  2h   -        it has not registered
  n1: pod shop/db-0 waits: its disruption budget allows no disruption now (shop/db)
  n1: pod shop/alone waits: nothing would start it again
`, out.String())
	out.Reset()
	d.slowNodes(nil)
	require.Empty(t, out.String())
}
