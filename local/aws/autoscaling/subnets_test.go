package autoscaling

// Changes of a group's subnets: with an update policy, without one, and the rebalancing of zones afterwards.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/questions"
)

// change updates the group, with a policy or without.
func (w *world) change(before, after map[string]any, policy map[string]any) {
	w.Helper()
	r := w.request(w.properties(after))
	r.PhysicalID, r.Old, r.UpdatePolicy = "pool", w.properties(before), policy
	_, err := w.provider().Update(w.Context(), r)
	require.NoError(w, err)
}

func TestChangedSubnets(t *testing.T) {
	for name, test := range map[string]struct {
		policy map[string]any
		same   bool
	}{
		"replace all instances with a rolling update":  {rolling(map[string]any{"MinInstancesInService": 2.0}), false},
		"replace no instance without an update policy": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				one := map[string]any{"VPCZoneIdentifier": []any{w.subnets[0]}, "MinSize": 1.0}
				w.create(one)
				before := w.ids()
				w.change(one, map[string]any{"VPCZoneIdentifier": []any{w.subnets[0], w.subnets[1]}, "MinSize": 1.0}, test.policy)
				settle(time.Hour)
				require.Equal(t, test.same, w.ids()[0] == before[0])
				require.Len(t, w.ids(), 1)
			})
		})
	}
}

// Auto Scaling launches in the new zone before it terminates elsewhere, one instance at a time, until the zones are balanced.
func TestAddedSubnetIsFilled(t *testing.T) {
	run(t, func(w *world) {
		one := map[string]any{"VPCZoneIdentifier": []any{w.subnets[0]}, "MinSize": 4.0, "MaxSize": 4.0}
		w.create(one)
		require.Len(t, w.zones(), 1)
		seen := w.extremes()
		defer seen.stop()
		w.change(one, map[string]any{"VPCZoneIdentifier": []any{w.subnets[0], w.subnets[1]}, "MinSize": 4.0, "MaxSize": 4.0}, nil)
		settle(time.Hour)
		zones := w.zones()
		require.Len(t, zones, 2)
		for zone, n := range zones {
			require.Equal(t, 2, n, zone)
		}
		require.Equal(t, 4, seen.least)
		require.Equal(t, 5, seen.most)
	})
}

// By the other reading of questions.OtherInstances, an update of anything replaces instances of another launch template version.
func TestUpdateWithOtherInstances(t *testing.T) {
	for name, readings := range map[string]questions.Readings{"strict": nil, "other": {questions.OtherInstances: true}} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.config.Readings = readings
				w.create(nil)
				before := w.ids()
				w.newVersion(ec2.ImageID("1.37", "x86_64"))
				second := map[string]any{"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"}}
				w.change(nil, second, nil)
				require.Equal(t, before, w.ids())
				r := w.request(w.properties(with(second, map[string]any{"MaxSize": 5.0})))
				r.PhysicalID, r.Old, r.UpdatePolicy = "pool", w.properties(second), rolling(map[string]any{"MinInstancesInService": 2.0})
				_, err := w.provider().Update(w.Context(), r)
				require.NoError(t, err)
				settle(time.Hour)
				if readings == nil {
					require.Equal(t, before, w.ids())
					return
				}
				for _, id := range w.ids() {
					require.NotContains(t, before, id)
				}
			})
		})
	}
}
