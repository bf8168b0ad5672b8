package plan

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// poolOf returns a pool's stack with a fingerprint, and the same stack as deployed.
func poolOf() (render.Stack, stack.Deployed) {
	desired := render.Stack{
		Name: "pool-a", Pace: &render.Pace{}, Nodes: &render.Fingerprint{Data: "d", Parameters: []string{"ClusterEndpoint"}},
		Parameters: []render.Parameter{
			{Name: "ClusterEndpoint", From: &render.OutputRef{Stack: "control-plane", Output: "ClusterEndpoint"}},
			{Name: "SubnetIds", Value: "subnet-1,subnet-2"},
		},
	}
	values := map[string]string{"ClusterEndpoint": "https://a", "SubnetIds": "subnet-1,subnet-2"}
	return desired, stack.Deployed{
		Status: "UPDATE_COMPLETE", Parameters: values,
		Outputs: map[string]string{render.Nodes: desired.Nodes.Sum(values), render.NodesSince: "3"},
	}
}

func TestEffect(t *testing.T) {
	for name, test := range map[string]struct {
		change func(desired *render.Stack, deployed *stack.Deployed, controlPlane map[string]string)
		fields []string
		want   status.Effect
	}{
		"of the same fingerprint is in place": {nil, nil, status.InPlace},
		"of another fingerprint replaces nodes": {func(d *render.Stack, _ *stack.Deployed, _ map[string]string) {
			d.Nodes.Data = "e"
		}, nil, status.ReplacesNodes},
		"of another endpoint replaces nodes": {func(_ *render.Stack, _ *stack.Deployed, out map[string]string) {
			out["ClusterEndpoint"] = "https://b"
		}, nil, status.ReplacesNodes},
		"of the same endpoint is in place": {func(_ *render.Stack, _ *stack.Deployed, out map[string]string) {
			out["ClusterEndpoint"] = "https://a"
		}, nil, status.InPlace},
		"of an added subnet is in place": {func(d *render.Stack, _ *stack.Deployed, _ map[string]string) {
			d.Parameters[1].Value = "subnet-0,subnet-2,subnet-1"
		}, nil, status.InPlace},
		"of a removed subnet replaces nodes": {func(d *render.Stack, _ *stack.Deployed, _ map[string]string) {
			d.Parameters[1].Value = "subnet-2,subnet-3"
		}, nil, status.ReplacesNodes},
		"on the stack of an older drover is unknown": {func(_ *render.Stack, d *stack.Deployed, _ map[string]string) {
			d.Outputs = nil
		}, nil, ""},
		"of protection is in place": {func(_ *render.Stack, d *stack.Deployed, _ map[string]string) {
			d.Outputs = nil
		}, []string{"terminationProtection.pool-a"}, status.InPlace},
		"after a rollback is unknown": {func(_ *render.Stack, d *stack.Deployed, _ map[string]string) {
			d.Status = "UPDATE_ROLLBACK_COMPLETE"
		}, nil, ""},
		"on another stack is in place": {func(d *render.Stack, _ *stack.Deployed, _ map[string]string) {
			d.Pace, d.Nodes = nil, nil
		}, nil, status.InPlace},
	} {
		t.Run(name, func(t *testing.T) {
			desired, deployed := poolOf()
			outputs := map[string]string{}
			if test.change != nil {
				test.change(&desired, &deployed, outputs)
			}
			reasons := []status.Reason{{Field: "spec.tags.a"}}
			for _, field := range test.fields {
				reasons = []status.Reason{{Field: field}}
			}
			in := Input{Deployed: map[string]stack.Deployed{"control-plane": {Outputs: outputs}}}
			require.Equal(t, test.want, in.effectOf(desired, deployed, reasons))
		})
	}
}

// The value of a pool's subnets is known before the network changes, whatever happens to the zones in the same spec.
func TestValueOfZones(t *testing.T) {
	spec := func(zones ...string) *api.Cluster {
		return &api.Cluster{Spec: api.ClusterSpec{Network: api.Network{Zones: zones}}}
	}
	deployed := map[string]stack.Deployed{names.Network: {Outputs: map[string]string{"PrivateSubnetIds": "subnet-a,subnet-b"}}}
	for name, test := range map[string]struct {
		old, now *api.Cluster
		items    []int
		want     string
	}{
		"all zones":                  {spec("a", "b"), spec("a", "b"), nil, "subnet-a,subnet-b"},
		"one zone":                   {spec("a", "b"), spec("a", "b"), []int{1}, "subnet-b"},
		"zones in another order":     {spec("a", "b"), spec("b", "a"), []int{1}, "subnet-a"},
		"a zone that is added":       {spec("a", "b"), spec("a", "b", "c"), []int{1, 2}, "subnet-b"},
		"a zone that is added first": {spec("a", "b"), spec("c", "a", "b"), []int{1}, "subnet-a"},
		"only a zone that is added":  {spec("a", "b"), spec("a", "b", "c"), []int{2}, ""},
		"an unknown deployed spec":   {nil, spec("a", "b"), []int{0}, "subnet-a"},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{New: test.now, Old: map[string]*api.Cluster{names.Network: test.old}, Deployed: deployed}
			ref := &render.OutputRef{Stack: names.Network, Output: "PrivateSubnetIds", Items: test.items}
			require.Equal(t, test.want, in.valueOf(ref))
			require.Equal(t, test.items, ref.Items)
		})
	}
}

func TestNodesParameters(t *testing.T) {
	desired, deployed := poolOf()
	values := maps.Clone(deployed.Parameters)
	same := NodesParameters(desired.Nodes, deployed, values)
	require.Equal(t, deployed.Outputs, same, "the same nodes are since the same version")
	values["ClusterEndpoint"] = "https://b"
	other := NodesParameters(desired.Nodes, deployed, values)
	require.Equal(t, map[string]string{render.Nodes: desired.Nodes.Sum(values), render.NodesSince: ""}, other)
	require.Empty(t, NodesParameters(desired.Nodes, stack.Deployed{}, values)[render.NodesSince], "an older drover deployed the stack")
}
