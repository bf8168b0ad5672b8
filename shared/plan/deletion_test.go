package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

func TestProtected(t *testing.T) {
	on, off := map[string]string{"DeletionProtection": "true"}, map[string]string{"DeletionProtection": "false"}
	of := func(version string) map[string]string { return map[string]string{names.TagSpecVersion: version} }
	protects := map[string]bool{"on": true, "off": false}
	for name, c := range map[string]struct {
		deployed map[string]stack.Deployed
		accepted []string
		want     []string
	}{
		"names a stack with both protections": {
			map[string]stack.Deployed{names.ControlPlane: {TerminationProtection: true, Parameters: on}}, []string{"off"},
			[]string{names.ControlPlane},
		},
		"names a stack by its parameter when termination protection was turned off": {
			map[string]stack.Deployed{names.ControlPlane: {Parameters: on}}, []string{"off"}, []string{names.ControlPlane},
		},
		"names a stack by termination protection when its parameter is off": {
			map[string]stack.Deployed{names.Network: {TerminationProtection: true, Parameters: off}}, []string{"off"}, []string{names.Network},
		},
		"names a stack by termination protection when it has no parameter": {
			map[string]stack.Deployed{names.PoolStack("a"): {TerminationProtection: true}}, []string{"off"}, []string{names.PoolStack("a")},
		},
		"names each protected stack, in order": {
			map[string]stack.Deployed{
				names.Network: {Parameters: on}, names.ControlPlane: {TerminationProtection: true, Parameters: off},
				names.PoolStack("a"): {}, names.Addons: {Parameters: map[string]string{"Other": "true"}},
			},
			[]string{"off"}, []string{names.ControlPlane, names.Network},
		},
		"names a control plane by its spec when its first update was rolled back": {
			map[string]stack.Deployed{names.Network: {Tags: of("off")}, names.ControlPlane: {Parameters: off, Tags: of("on")}}, []string{"off"},
			[]string{names.ControlPlane},
		},
		"names a network by its spec before there is a control plane": {
			map[string]stack.Deployed{names.Network: {Tags: of("on")}}, []string{"off"}, []string{names.Network},
		},
		"names network and control plane when the accepted spec was not converged to": {
			map[string]stack.Deployed{
				names.Network: {Tags: of("off")}, names.ControlPlane: {Parameters: off, Tags: of("off")}, names.PoolStack("a"): {Tags: of("on")},
			},
			[]string{"on"}, []string{names.ControlPlane, names.Network},
		},
		"names both when the newer of two accepted specs is protected": {
			map[string]stack.Deployed{names.Network: {Tags: of("off")}, names.ControlPlane: {Tags: of("off")}}, []string{"off", "on"},
			[]string{names.ControlPlane, names.Network},
		},
		"names nothing by the spec of a pool": {map[string]stack.Deployed{names.PoolStack("a"): {Tags: of("on")}}, []string{"off"}, nil},
		"names nothing by unknown versions": {
			map[string]stack.Deployed{names.Network: {Tags: of("deleted")}, names.ControlPlane: {}}, nil, nil,
		},
		"names nothing when all protections are off": {
			map[string]stack.Deployed{
				names.Network: {Parameters: off, Tags: of("off")}, names.ControlPlane: {Parameters: off, Tags: of("off")}, names.PoolStack("a"): {},
			},
			[]string{"off"}, nil,
		},
		"names nothing without stacks": {nil, []string{"on"}, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Protected(c.deployed, c.accepted, protects)) })
	}
}

func TestNextDeletion(t *testing.T) {
	deployed := map[string]stack.Deployed{}
	for _, name := range []string{
		names.Network, names.ControlPlane, names.Addons, names.NodeAddons, names.PoolStack("a"), names.PoolStack("b"),
	} {
		deployed[name] = stack.Deployed{Name: name}
	}
	want := []events.Deletion{
		{Stacks: []string{names.PoolStack("a"), names.PoolStack("b")}},
		{Stacks: []string{names.NodeAddons}},
		{Stacks: []string{names.Addons}},
		{Stacks: []string{names.ControlPlane}, ListRetained: true},
		{Stacks: []string{names.Network}, Leftovers: true},
		{Stacks: []string{}, Leftovers: true},
	}
	for _, want := range want {
		p, next := NextDeletion("demo", deployed)
		require.Equal(t, want, next)
		require.Len(t, p.Changes, len(next.Stacks))
		for i, change := range p.Changes {
			require.Equal(t, next.Stacks[i], change.Stack)
			require.Equal(t, names.Stack("demo", change.Stack), change.StackName)
			require.Equal(t, Delete, change.Operation)
			require.NotEmpty(t, change.Reasons)
			delete(deployed, change.Stack)
		}
	}
	t.Run("removes leftovers before the network", func(t *testing.T) {
		_, next := NextDeletion("demo", map[string]stack.Deployed{names.Network: {}})
		require.Equal(t, events.Deletion{Stacks: []string{names.Network}, Leftovers: true}, next)
	})
	t.Run("lists no volumes while pools exist", func(t *testing.T) {
		_, next := NextDeletion("demo", map[string]stack.Deployed{names.ControlPlane: {}, names.PoolStack("a"): {}})
		require.Equal(t, events.Deletion{Stacks: []string{names.PoolStack("a")}}, next)
	})
}
