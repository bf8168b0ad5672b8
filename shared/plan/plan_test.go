package plan

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// spec is a small resolved cluster.
func spec() *api.Cluster {
	yes := true
	return &api.Cluster{
		Metadata: api.Metadata{Name: "demo"},
		Spec: api.ClusterSpec{
			Release: api.ReleaseRef{Name: "1.36-1"}, KubernetesVersion: "1.36", TemplateVersion: "v1", DeletionProtection: &yes,
			Network:      api.Network{CIDR: "10.0.0.0/16", Zones: []string{"us-east-1a", "us-east-1b"}},
			ControlPlane: api.ControlPlane{ServiceCIDR: "172.20.0.0/16"},
			Pools:        []api.Pool{{Name: "workers", MinSize: 1, MaxSize: 3}, {Name: "spot", MinSize: 1, MaxSize: 3}},
			Addons:       []api.Addon{{Name: "vpc-cni", Version: "v1"}, {Name: "coredns", Version: "v1"}},
		},
	}
}

// stacks replaces rendering: one stack each, whose template is the part of the spec that it is rendered from.
func stacks(c *api.Cluster) []render.Stack {
	list := []string{names.Network, names.ControlPlane, names.Addons}
	for _, pool := range c.Spec.Pools {
		list = append(list, names.PoolStack(pool.Name))
	}
	list = append(list, names.NodeAddons)
	var all []render.Stack
	for _, name := range list {
		body := ""
		flat := part(name, c)
		for _, key := range slices.Sorted(maps.Keys(flat)) {
			body += key + "=" + flat[key] + "\n"
		}
		stack := render.Stack{
			Name: name, StackName: names.Stack("demo", name), TemplateKey: names.Template([]byte(body)),
			Tags:      map[string]string{names.TagCluster: "demo", names.TagStack: name},
			Protected: name == names.Network || name == names.ControlPlane,
		}
		if name != names.Network {
			if i := slices.IndexFunc(c.Spec.Pools, func(p api.Pool) bool { return names.PoolStack(p.Name) == name }); i >= 0 {
				pool := c.Spec.Pools[i]
				stack.Pace = &render.Pace{MinSize: pool.MinSize, MaxSize: pool.MaxSize, MaxUnavailable: "0", MaxSurge: "1"}
			}
			stack.Parameters = []render.Parameter{{Name: "SubnetIds", From: &render.OutputRef{Stack: names.Network, Output: "PrivateSubnetIds"}}}
		}
		all = append(all, stack)
	}
	return all
}

// deploy replaces CloudFormation: it returns the stacks after a plan was carried out.
func deploy(deployed map[string]stack.Deployed, p Plan) map[string]stack.Deployed {
	out := maps.Clone(deployed)
	if out == nil {
		out = map[string]stack.Deployed{}
	}
	for _, change := range p.Changes {
		if change.Operation == Delete {
			delete(out, change.Stack)
			continue
		}
		d := stack.Deployed{
			Name: change.Stack, Status: "CREATE_COMPLETE", Tags: change.Tags, TerminationProtection: change.Protected,
			Parameters: map[string]string{}, Outputs: map[string]string{},
		}
		if change.Stack == names.Network {
			d.Outputs["PrivateSubnetIds"] = "subnet-1,subnet-2"
		} else {
			d.Parameters["SubnetIds"] = out[names.Network].Outputs["PrivateSubnetIds"]
		}
		if change.Pace != nil {
			maps.Copy(d.Parameters, change.Pace.WithoutReplacement(nil))
		}
		out[change.Stack] = d
	}
	return out
}

func input(c, old *api.Cluster, deployed map[string]stack.Deployed) Input {
	in := Input{
		Cluster: "demo", SpecVersion: "v2", Release: "1.36-1@abc", New: c, Old: map[string]*api.Cluster{},
		Desired: stacks(c), Deployed: deployed,
	}
	for name := range deployed {
		in.Old[name] = old
	}
	return in
}

func order(p Plan) (list []string) {
	for _, change := range p.Changes {
		list = append(list, string(change.Operation)+" "+change.Stack)
	}
	return list
}

func TestCompute(t *testing.T) {
	created := func() map[string]stack.Deployed { return deploy(nil, Compute(input(spec(), nil, nil))) }
	tests := map[string]struct {
		change   func(c *api.Cluster)
		deployed func(d map[string]stack.Deployed)
		want     []string
		reasons  map[string][]status.Reason
		refused  []string
	}{
		"an unchanged cluster has no changes": {},
		"a pool's size changes that pool only": {
			change:  func(c *api.Cluster) { c.Spec.Pools[0].MaxSize = 9 },
			want:    []string{"Update pool-workers"},
			reasons: map[string][]status.Reason{"pool-workers": {{Field: "spec.pools[workers].maxSize", Old: "3", New: "9"}}},
		},
		"a tag changes every stack, network first and node add-ons last": {
			change: func(c *api.Cluster) { c.Spec.Tags = map[string]string{"team": "a"} },
			want: []string{
				"Update network", "Update control-plane", "Update addons", "Update pool-workers", "Update pool-spot", "Update addons-on-nodes",
			},
		},
		"an add-on that nodes need comes before the pools": {
			change: func(c *api.Cluster) { c.Spec.Addons[0].Version = "v2"; c.Spec.Pools[1].MinSize = 2 },
			want:   []string{"Update addons", "Update pool-spot"},
		},
		"a new pool is created and the others stay": {
			change: func(c *api.Cluster) {
				c.Spec.Pools = append([]api.Pool{{Name: "gpu", MaxSize: 1}}, c.Spec.Pools...)
			},
			want: []string{"Create pool-gpu"},
		},
		"a removed pool is deleted": {
			change: func(c *api.Cluster) { c.Spec.Pools = c.Spec.Pools[:1] },
			want:   []string{"Delete pool-spot"},
		},
		"a network is never removed by omission": {
			deployed: func(d map[string]stack.Deployed) { d["network-of-old"] = d[names.Network] },
			want:     []string{"Delete network-of-old"},
		},
		"a deleted stack is created again": {
			deployed: func(d map[string]stack.Deployed) { delete(d, names.Addons) },
			want:     []string{"Create addons"},
		},
		"a stack in review was never created": {
			deployed: func(d map[string]stack.Deployed) { set(d, names.Addons, "REVIEW_IN_PROGRESS") },
			want:     []string{"Create addons"},
		},
		"a failed creation starts over": {
			deployed: func(d map[string]stack.Deployed) { set(d, "pool-spot", "ROLLBACK_COMPLETE") },
			want:     []string{"Create pool-spot"},
		},
		"a rolled back update is no success": {
			deployed: func(d map[string]stack.Deployed) { set(d, "pool-spot", "UPDATE_ROLLBACK_COMPLETE") },
			want:     []string{"Update pool-spot"},
		},
		"an operation in flight is waited for": {
			deployed: func(d map[string]stack.Deployed) { set(d, "pool-spot", "UPDATE_IN_PROGRESS") },
			want:     []string{"Update pool-spot"},
		},
		"changed outputs change the stacks that use them": {
			deployed: func(d map[string]stack.Deployed) {
				d[names.Network].Outputs["PrivateSubnetIds"] = "subnet-1,subnet-2,subnet-3"
			},
			want: []string{
				"Update control-plane", "Update addons", "Update pool-workers", "Update pool-spot", "Update addons-on-nodes",
			},
			reasons: map[string][]status.Reason{"pool-workers": {{
				Field: "network.outputs.PrivateSubnetIds", Old: "subnet-1,subnet-2", New: "subnet-1,subnet-2,subnet-3",
			}}},
		},
		"termination protection is restored": {
			deployed: func(d map[string]stack.Deployed) {
				s := d[names.Network]
				s.TerminationProtection = false
				d[names.Network] = s
			},
			want: []string{"Update network"},
		},
		"changed tags are restored": {
			deployed: func(d map[string]stack.Deployed) { d["pool-spot"].Tags[names.TagChecksum] = "x" },
			want:     []string{"Update pool-spot"},
		},
		"a tag that was changed alone is restored": {
			deployed: func(d map[string]stack.Deployed) { d["pool-spot"].Tags[names.TagStack] = "other" },
			want:     []string{"Update pool-spot"},
			reasons: map[string][]status.Reason{"pool-spot": {{
				Field: "tags.pool-spot." + names.TagStack, Old: "other", New: "pool-spot",
			}}},
		},
		"the version of the spec that changed a stack last is no change": {
			deployed: func(d map[string]stack.Deployed) { d["pool-spot"].Tags[names.TagSpecVersion] = "v1" },
		},
		"a removed pool that was never created is deleted": {
			change:   func(c *api.Cluster) { c.Spec.Pools = c.Spec.Pools[:1] },
			deployed: func(d map[string]stack.Deployed) { set(d, "pool-spot", stack.InReview) },
			want:     []string{"Delete pool-spot"},
		},
		"a VPC's CIDR does not change": {
			change:  func(c *api.Cluster) { c.Spec.Network.CIDR = "10.1.0.0/16" },
			want:    []string{"Update network"},
			refused: []string{"spec.network.cidr"},
		},
		"a zone is not removed": {
			change:  func(c *api.Cluster) { c.Spec.Network.Zones = []string{"us-east-1b", "us-east-1c"} },
			want:    []string{"Update network"},
			refused: []string{"spec.network.zones"},
		},
		"a zone may be added": {
			change: func(c *api.Cluster) { c.Spec.Network.Zones = append(c.Spec.Network.Zones, "us-east-1c") },
			want:   []string{"Update network"},
		},
		"the service CIDR does not change": {
			change:  func(c *api.Cluster) { c.Spec.ControlPlane.ServiceCIDR = "172.21.0.0/16" },
			want:    []string{"Update control-plane", "Update pool-workers", "Update pool-spot"},
			refused: []string{"spec.controlPlane.serviceCIDR"},
		},
		"a maximum size that a roll raised is reset": {
			deployed: func(d map[string]stack.Deployed) { d["pool-spot"].Parameters[render.MaxSize] = "4" },
			want:     []string{"Update pool-spot"},
			reasons:  map[string][]status.Reason{"pool-spot": {{Field: "spec.pools[spot].maxSize", Old: "4", New: "3"}}},
		},
		"other parameters of a roll stay": {
			deployed: func(d map[string]stack.Deployed) {
				d["pool-spot"].Parameters[render.MinInstancesInService] = "2"
				d["pool-spot"].Parameters[render.MaxBatchSize] = "3"
			},
		},
		"the content of files is not shown": {
			change: func(c *api.Cluster) { c.Spec.Pools[0].Commands = []string{"echo secret"} },
			want:   []string{"Update pool-workers"},
			reasons: map[string][]status.Reason{"pool-workers": {{
				Field: "spec.pools[workers].commands", New: "(15 bytes)",
			}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			deployed, want := created(), spec()
			if test.change != nil {
				test.change(want)
			}
			if test.deployed != nil {
				test.deployed(deployed)
			}
			p := Compute(input(want, spec(), deployed))
			require.Equal(t, test.want, order(p))
			var refused []string
			for _, r := range p.Refused {
				refused = append(refused, r.Field)
			}
			require.Equal(t, test.refused, refused)
			for _, change := range p.Changes {
				require.NotEmpty(t, change.Reasons, "every change has a reason")
				require.Equal(t, stack.InProgress(deployed[change.Stack].Status), change.InFlight)
				if reasons, ok := test.reasons[change.Stack]; ok {
					require.Empty(t, cmp.Diff(reasons, change.Reasons))
				}
			}
			if test.refused == nil {
				again := Compute(input(want, want, deploy(deployed, p)))
				require.Empty(t, again.Changes, "one plan is enough")
			}
		})
	}
}

func TestComputeIgnoresDeletedStacks(t *testing.T) {
	deployed, now := deploy(nil, Compute(input(spec(), nil, nil))), spec()
	now.Spec.Pools = now.Spec.Pools[:1]
	set(deployed, "pool-spot", "DELETE_COMPLETE")
	require.Empty(t, Compute(input(now, spec(), deployed)).Changes)
}

func TestComputeParameterAtFirst(t *testing.T) {
	parameter := render.Parameter{Name: "DeletionProtection", Value: "true", AtFirst: "false"}
	in := input(spec(), nil, nil)
	in.Desired[1].Parameters = append(in.Desired[1].Parameters, parameter)
	deployed := deploy(nil, Compute(in))
	in = input(spec(), spec(), deployed)
	in.Desired[1].Parameters = append(in.Desired[1].Parameters, parameter)
	deployed[names.ControlPlane].Parameters[parameter.Name] = "false"
	p := Compute(in)
	require.Equal(t, []string{"Update control-plane"}, order(p))
	require.Equal(t, []status.Reason{{Field: "control-plane.parameters.DeletionProtection", Old: "false", New: "true"}}, p.Changes[0].Reasons)
	deployed[names.ControlPlane].Parameters[parameter.Name] = "true"
	require.Empty(t, Compute(in).Changes)
}

func TestComputeTagsPoolsWithTemplates(t *testing.T) {
	for _, change := range Compute(input(spec(), nil, nil)).Changes {
		want := ""
		if change.Pace != nil {
			want = change.TemplateKey
		}
		require.Equal(t, want, change.Tags[names.TagTemplate], change.Stack)
	}
}

func set(d map[string]stack.Deployed, stack, status string) {
	s := d[stack]
	s.Status = status
	d[stack] = s
}

func TestComputeCreatesInOrder(t *testing.T) {
	p := Compute(input(spec(), nil, nil))
	require.Equal(t, []string{
		"Create network", "Create control-plane", "Create addons", "Create pool-workers", "Create pool-spot", "Create addons-on-nodes",
	}, order(p))
	stages := p.Stages()
	require.Equal(t, []string{"network"}, stages.Network)
	require.Equal(t, [][]string{{"pool-workers", "pool-spot"}}, stages.Pools)
	require.Equal(t, "1.36-1@abc", p.Changes[1].Tags[names.TagRelease])
}

func TestChecksumIgnoresTheLastChange(t *testing.T) {
	one, two := input(spec(), nil, nil), input(spec(), nil, nil)
	two.SpecVersion = "another"
	require.Equal(t, Compute(one).Changes[0].Checksum, Compute(two).Changes[0].Checksum)
}

func TestTokenDiffersByLeaseHolder(t *testing.T) {
	change := Compute(input(spec(), nil, nil)).Changes[0]
	require.Equal(t, change.Token("v1", 1), change.Token("v1", 1))
	require.NotEqual(t, change.Token("v1", 1), change.Token("v1", 2))
	require.NotEqual(t, change.Token("v1", 1), change.Token("v2", 1))
	require.Regexp(t, `^[a-zA-Z0-9][-a-zA-Z0-9]{0,127}$`, change.Token("v1", 1))
}

func TestIsToken(t *testing.T) {
	for _, operation := range []Operation{Create, Update, Delete} {
		token := Change{StackName: "s", Operation: operation}.Token("v", 3)
		for _, ours := range []string{
			token, token + "-0123456789ab", "then-" + token + "-0123456789ab", "settle-then-" + token + "-0123456789ab", "rollback-" + token,
			"repair-" + token + "-0123456789ab", token + "-repeated-0123456789ab", "then-" + token + "-repeated-12-0123456789ab",
			"rollback-" + token + "-repeated",
		} {
			require.True(t, IsToken(ours), ours)
		}
	}
	sum := names.SHA256(nil)[:40]
	require.True(t, IsToken("delete-"+sum))
	require.True(t, IsToken("pace-"+sum))
	for _, other := range []string{"", "Console-DeleteStack-0a0b0c0d-1111-2222-3333-444455556666", "delete-" + sum[1:], "update-1"} {
		require.False(t, IsToken(other), other)
	}
}
