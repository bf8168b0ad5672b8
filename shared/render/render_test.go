package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

func TestOutputRefValue(t *testing.T) {
	outputs := map[string]string{"Ids": "a,b,c"}
	for name, test := range map[string]struct {
		ref   OutputRef
		want  string
		found bool
	}{
		"the whole output":          {OutputRef{Output: "Ids"}, "a,b,c", true},
		"items":                     {OutputRef{Output: "Ids", Items: []int{0, 2}}, "a,c", true},
		"an item that is missing":   {OutputRef{Output: "Ids", Items: []int{0, 3}}, "", false},
		"an output that is missing": {OutputRef{Output: "Other", Items: []int{0}}, "", false},
	} {
		value, found := test.ref.Value(outputs)
		require.Equal(t, test.want, value, name)
		require.Equal(t, test.found, found, name)
	}
}

func TestPoolsHaveTheirZones(t *testing.T) {
	subnets := func(zones ...string) Parameter {
		c := smallCluster()
		c.Spec.Network.Zones, c.Spec.Pools[0].Zones = zonesOf("eu-central-1", "cab"), zones
		parameters := stackOf(t, render(t, resolve(t, c)), "pool-workers").Parameters
		return parameters[slices.IndexFunc(parameters, func(p Parameter) bool { return p.Name == SubnetIDs })]
	}
	require.Nil(t, subnets().From.Items)
	require.Equal(t, []int{0, 2}, subnets("eu-central-1b", "eu-central-1c").From.Items, "the network lists c, a, b")
	require.Equal(t, subnets("eu-central-1b", "eu-central-1c"), subnets("eu-central-1c", "eu-central-1b"))
	require.Equal(t, "PrivateSubnetIds", subnets("eu-central-1a").From.Output)
}

func TestPoolsHaveTheirTags(t *testing.T) {
	out := render(t, resolve(t, fullCluster()))
	for stack, want := range map[string]map[string]string{
		"pool-workers":   {"team": "platform", "cost-center": "4712", "example.com/tier": "web"},
		"pool-batch":     {"team": "platform", "cost-center": "4711"},
		names.Network:    {"team": "platform", "cost-center": "4711"},
		names.Identities: {"team": "platform", "cost-center": "4711"}, names.Capabilities: {"team": "platform", "cost-center": "4711"},
		names.NodeAddons: {"team": "platform", "cost-center": "4711"},
	} {
		tags := stackOf(t, out, stack).Tags
		for key := range map[string]bool{"team": true, "cost-center": true, "example.com/tier": true} {
			require.Equal(t, want[key], tags[key], "%s of %s", key, stack)
		}
	}
	workers := stackOf(t, out, "pool-workers")
	data := at(t, resources(t, workers)["LaunchTemplate"], "Properties", "LaunchTemplateData").(map[string]any)
	specifications := data["TagSpecifications"].([]any)
	require.Len(t, specifications, 3)
	for _, specification := range specifications {
		require.Contains(t, at(t, specification, "Tags"), map[string]any{"Key": "cost-center", "Value": "4712"})
		require.NotContains(t, at(t, specification, "Tags"), map[string]any{"Key": "cost-center", "Value": "4711"})
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	want := render(t, resolve(t, fullCluster()))
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			got, err := Render(resolve(t, fullCluster()))
			if err != nil || !reflect.DeepEqual(want, got) {
				t.Error("another rendering differs", err)
			}
		})
	}
	group.Wait()
}

func TestRenderKeepsItsInput(t *testing.T) {
	in := resolve(t, fullCluster())
	render(t, in)
	require.Equal(t, resolve(t, fullCluster()), in)
}

func TestRenderIgnoresOrderOfSets(t *testing.T) {
	before, after := resolve(t, fullCluster()), resolve(t, fullCluster())
	slices.Reverse(after.Resolved.Spec.Addons)
	slices.Reverse(after.Resolved.Spec.ControlPlane.Access)
	slices.Reverse(after.Resolved.Spec.ControlPlane.Logs)
	require.Equal(t, render(t, before), render(t, after))
}

func TestStacksAreInOrderOfChange(t *testing.T) {
	var order []string
	out := render(t, resolve(t, fullCluster()))
	for _, stack := range out.Stacks {
		order = append(order, stack.Name)
		require.Equal(t, names.Stack("full", stack.Name), stack.StackName)
		require.Equal(t, names.Template(stack.Template), stack.TemplateKey)
		require.True(t, slices.IsSortedFunc(stack.Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) }))
	}
	require.Equal(t, []string{
		names.Network, names.ControlPlane, names.Addons, names.Identities, names.Capabilities, "pool-workers", "pool-batch", names.NodeAddons,
	}, order)
}

func TestParametersUseEarlierStacks(t *testing.T) {
	outputs := map[string]map[string]any{}
	for _, stack := range render(t, resolve(t, fullCluster())).Stacks {
		declared := section(t, stack, "Parameters")
		paced := map[string]string{}
		if stack.Pace != nil {
			paced = stack.Pace.ForReplacement(1)
			paced[Nodes], paced[NodesSince] = "", ""
		}
		require.Len(t, declared, len(stack.Parameters)+len(paced))
		for name := range paced {
			require.Contains(t, declared, name)
		}
		for _, p := range stack.Parameters {
			require.Contains(t, declared, p.Name)
			if p.Value != "" {
				continue
			}
			require.NotNil(t, p.From)
			require.Contains(t, outputs[p.From.Stack], p.From.Output)
		}
		outputs[stack.Name] = section(t, stack, "Outputs")
	}
}

func TestDroversTagsTakePrecedence(t *testing.T) {
	c := smallCluster()
	c.Spec.Tags = map[string]string{"team": "shop", names.TagCluster: "other", names.OwnershipTag("demo"): "shared"}
	require.Equal(t, map[string]string{
		"team": "shop", names.TagCluster: "demo", names.TagStack: names.Network, names.OwnershipTag("demo"): "owned",
	}, stackOf(t, render(t, resolve(t, c)), names.Network).Tags)
	require.Equal(t, "other", c.Spec.Tags[names.TagCluster], "the spec is unchanged")
}

func TestProtection(t *testing.T) {
	for _, protect := range []bool{true, false} {
		t.Run(fmt.Sprint(protect), func(t *testing.T) {
			c := smallCluster()
			c.Spec.DeletionProtection = &protect
			out := render(t, resolve(t, c))
			for _, stack := range out.Stacks {
				stateful := stack.Name == names.Network || stack.Name == names.ControlPlane
				require.Equal(t, protect && stateful, stack.Protected, stack.Name)
			}
			kept := map[string][]string{
				names.Network:      {"Vpc", "PrivateSubnetA", "PrivateSubnetB", "PublicSubnetA", "PublicSubnetB"},
				names.ControlPlane: {"Cluster", "ClusterRole", "SecretsKey", "LogGroup"},
			}
			for name, ids := range kept {
				all := resources(t, stackOf(t, out, name))
				for id, resource := range all {
					if protect && slices.Contains(ids, id) {
						require.Equal(t, "RetainExceptOnCreate", at(t, resource, "DeletionPolicy"), id)
						require.Equal(t, "Retain", at(t, resource, "UpdateReplacePolicy"), id)
						continue
					}
					require.NotContains(t, resource, "DeletionPolicy", id)
				}
			}
			// EKS does not delete a protected cluster, so a failed creation could not be rolled back. The protection follows the creation.
			want := Parameter{Name: "DeletionProtection", Value: fmt.Sprint(protect)}
			if protect {
				want.AtFirst = "false"
			}
			require.Contains(t, stackOf(t, out, names.ControlPlane).Parameters, want)
		})
	}
}

func TestCNIRole(t *testing.T) {
	const policy = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"
	for _, agent := range []bool{true, false} {
		t.Run(fmt.Sprint("pod identity agent ", agent), func(t *testing.T) {
			in := resolve(t, smallCluster())
			if !agent {
				in.Resolved.Spec.Addons = slices.DeleteFunc(in.Resolved.Spec.Addons, func(a api.Addon) bool {
					return a.Name == api.PodIdentityAgent || a.Name == "aws-ebs-csi-driver"
				})
			}
			out := render(t, in)
			node := at(t, resources(t, stackOf(t, out, names.ControlPlane)), "NodeRole", "Properties", "ManagedPolicyArns")
			addons := resources(t, stackOf(t, out, names.Addons))
			if !agent {
				require.Contains(t, node, policy)
				require.NotContains(t, addons, "VpcCniRole")
				require.Empty(t, stackOf(t, out, names.Addons).Capabilities)
				return
			}
			require.NotContains(t, node, policy)
			require.Equal(t, []any{policy}, at(t, addons, "VpcCniRole", "Properties", "ManagedPolicyArns"))
			require.Equal(t, "EksPodIdentityAgent", at(t, addons, "VpcCni", "DependsOn"))
			require.Equal(t, []string{"CAPABILITY_IAM"}, stackOf(t, out, names.Addons).Capabilities)
		})
	}
}

func TestStatedCNIRoleNeedsTheAgent(t *testing.T) {
	in := resolve(t, smallCluster())
	in.Resolved.Spec.Addons = slices.DeleteFunc(in.Resolved.Spec.Addons, func(a api.Addon) bool {
		return a.Name == api.PodIdentityAgent || a.Name == "aws-ebs-csi-driver"
	})
	for i := range in.Resolved.Spec.Addons {
		if addon := &in.Resolved.Spec.Addons[i]; addon.Name == "vpc-cni" {
			addon.PodIdentities = []api.AddonIdentity{{ServiceAccount: "aws-node", RoleARN: "arn:aws:iam::111122223333:role/cni"}}
		}
	}
	_, err := Render(in)
	require.EqualError(t, err, "spec.addons: vpc-cni has its permission by pod identity: add eks-pod-identity-agent")
}

func TestGroupTagLimit(t *testing.T) {
	c := smallCluster()
	c.Spec.Pools[0].Labels = map[string]string{strings.Repeat("x", 60) + ".example.com/" + strings.Repeat("y", 63): "too-long-a-key"}
	for i := range 60 {
		c.Spec.Pools[0].Labels[fmt.Sprintf("l%02d", i)] = "v"
	}
	out := render(t, resolve(t, c))
	tags := at(t, resources(t, stackOf(t, out, "pool-workers")), "Group", "Properties", "Tags").([]any)
	require.LessOrEqual(t, len(tags)+len(stackOf(t, out, "pool-workers").Tags), maxTags)
	for _, tag := range tags {
		require.LessOrEqual(t, len(at(t, tag, "Key").(string)), maxTagKey)
	}
	labels, _, _ := kubeletOf(t, readUserData(t, userDataOf(t, stackOf(t, out, "pool-workers"))).Config)
	require.Len(t, labels, 62, "the nodes have all labels")
}

func TestInvalidClusters(t *testing.T) {
	tests := map[string]struct {
		change func(*api.ClusterSpec)
		says   string
	}{
		"of a template version not known": {func(s *api.ClusterSpec) { s.TemplateVersion = "v0" }, `spec.templateVersion: "v0" is not one of v1`},
		"with a support type not known":   {func(s *api.ClusterSpec) { s.ControlPlane.SupportType = "Eternal" }, "spec.controlPlane.supportType"},
		"with a principal twice": {func(s *api.ClusterSpec) {
			s.ControlPlane.Access = []api.AccessEntry{{PrincipalARN: "arn:a"}, {PrincipalARN: "arn:a"}}
		}, "access[1].principalARN"},
		"with an entry for drover's own role": {func(s *api.ClusterSpec) {
			s.ControlPlane.Access = []api.AccessEntry{{PrincipalARN: "arn:aws:iam::111122223333:role/drover-eu-central-1-join"}}
		}, "access[0].principalARN"},
		"with an add-on twice": {func(s *api.ClusterSpec) { s.Addons = append(s.Addons, s.Addons[0]) }, "vpc-cni is there twice"},
		"with a pool twice":    {func(s *api.ClusterSpec) { s.Pools = append(s.Pools, s.Pools[0]) }, "stack pool-workers"},
		"with a CSI driver that has no permission": {func(s *api.ClusterSpec) {
			s.Addons = []api.Addon{{Name: "aws-ebs-csi-driver", Version: "v1"}}
		}, "add eks-pod-identity-agent"},
		"with a template of more than a megabyte": {func(s *api.ClusterSpec) {
			s.Addons[0].Configuration = map[string]any{"x": strings.Repeat("x", MaxTemplate)}
		}, "stack addons: its template has 100"},
		"with a reference that CloudFormation would resolve": {func(s *api.ClusterSpec) {
			s.Tags = map[string]string{"a": "{{resolve:secretsmanager:x}}"}
		}, "{{resolve:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := resolve(t, smallCluster())
			tt.change(&in.Resolved.Spec)
			_, err := Render(in)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// section returns a part of a stack's template.
func section(t testing.TB, stack Stack, name string) map[string]any {
	t.Helper()
	var body map[string]any
	require.NoError(t, yaml.Unmarshal(stack.Template, &body))
	part, _ := body[name].(map[string]any)
	return part
}
