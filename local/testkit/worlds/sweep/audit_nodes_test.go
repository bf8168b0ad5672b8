package sweep_test

// Nodes that the audit replaces.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestNodesThatDoNotComeBackAreReplaced(t *testing.T) {
	three := strings.Replace(harness.Spec("demo", ""), "minSize: 1", "minSize: 3", 1)
	instances := func(a *harness.Account) (ids []string) {
		group, _, err := a.Groups().Describe(t.Context(), "drover-demo-pool-a")
		require.NoError(t, err)
		for _, i := range group.Instances {
			ids = append(ids, i.ID)
		}
		return ids
	}
	tests := map[string]struct {
		harm     func(n []pool.NodeHealth) []pool.NodeHealth
		replaced int
		finding  string
	}{
		"one that is not Ready for long": {func(n []pool.NodeHealth) []pool.NodeHealth {
			n[1].Ready, n[1].Since = false, time.Now().Add(-21*time.Minute)
			return n
		}, 1, "is not Ready since"},
		"one that is not Ready for a moment": {func(n []pool.NodeHealth) []pool.NodeHealth {
			n[1].Ready, n[1].Since = false, time.Now().Add(-19*time.Minute)
			return n
		}, 0, ""},
		"one that an operator cordoned": {func(n []pool.NodeHealth) []pool.NodeHealth {
			n[1].Ready, n[1].Cordoned, n[1].Since = false, true, time.Now().Add(-time.Hour)
			return n
		}, 0, ""},
		"one whose node was deleted": {func(n []pool.NodeHealth) []pool.NodeHealth { return n[1:] }, 1, "is in service without a node"},
		"two of three: the cluster is unwell": {func(n []pool.NodeHealth) []pool.NodeHealth {
			n[1].Ready, n[2].Ready = false, false
			return n
		}, 0, "2 of 3 nodes are not Ready: drover replaces none"},
		"all nodes are deleted": {func([]pool.NodeHealth) []pool.NodeHealth { return nil }, 0, "3 of 3 nodes are not Ready"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			a.Upload("clusters/demo.yaml", three)
			a.Settle()
			before := instances(a)
			require.Len(t, before, 3)
			a.Nodes.Decide(func(_ string, n []pool.NodeHealth) ([]pool.NodeHealth, error) { return test.harm(n), nil })
			mark := a.Calls.Mark()
			require.NoError(t, a.AuditNow())
			marked := 0
			for _, call := range a.Calls.Since(mark) {
				if call.Action == "SetInstanceHealth" {
					marked++
				}
			}
			require.Equal(t, test.replaced, marked)
			if test.finding != "" {
				require.Contains(t, a.Status("demo").Condition(status.InSync).Message, test.finding)
			}
			if test.replaced > 0 {
				a.Nodes.Decide(nil)
				a.Until("a replacement is in service", func() bool {
					after := instances(a)
					replaced := 0
					for _, id := range before {
						if !strings.Contains(strings.Join(after, " "), id) {
							replaced++
						}
					}
					return replaced == 1 && len(after) == 3 && a.Idle()
				})
				a.Settle()
			}
		})
	}
}

func TestNodesThatCannotBeLookedAtAreTold(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Nodes.Decide(func(string, []pool.NodeHealth) ([]pool.NodeHealth, error) {
		return nil, errors.New("connection refused")
	})
	audit(t, a)
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "drover could not check the nodes: connection refused")
}
