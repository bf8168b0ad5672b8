package permissions_test

// Existing networks and keys, and their owners.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// within returns the spec of a cluster in an existing network.
func within(name, vpc string, subnets []string, more string) string {
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  release: {name: r1}
  deletionProtection: false
  network:
    existing: {vpcID: %s, subnets: [%s]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
%s`, name, vpc, strings.Join(subnets, ", "), more)
}

// networkOf returns the VPC and the private subnets of a cluster.
func (l *life) networkOf(cluster string) (vpc string, subnets []string) {
	outputs := l.Stack(cluster, names.Network).Outputs
	return outputs["VpcId"], strings.Split(outputs["PrivateSubnetIds"], ",")
}

// externalNetwork creates a network outside drover.
func (l *life) externalNetwork() (vpc string, subnets []string) {
	const stackName = "office"
	_, err := l.CloudFormation.CreateStack(l.T.Context(), l.Admin(), &cloudformation.CreateStackInput{StackName: stackName, TemplateBody: `
Resources:
  Vpc: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.9.0.0/16, EnableDnsSupport: true, EnableDnsHostnames: true}}
  A: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.0.0/20, AvailabilityZone: ` + harness.Region + `a}}
  B: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.16.0/20, AvailabilityZone: ` + harness.Region + `b}}
Outputs: {Vpc: {Value: !Ref Vpc}, A: {Value: !Ref A}, B: {Value: !Ref B}}
`})
	require.NoError(l.T, err)
	stack, err := l.CloudFormation.Wait(l.T.Context(), stackName)
	require.NoError(l.T, err)
	require.Equal(l.T, "CREATE_COMPLETE", stack.StackStatus)
	outputs := map[string]string{}
	for _, output := range stack.Outputs {
		outputs[output.OutputKey] = output.OutputValue
	}
	return outputs["Vpc"], []string{outputs["A"], outputs["B"]}
}

// keyOf returns the key of a cluster's secrets.
func (l *life) keyOf(cluster string) string {
	out, err := l.EKS.DescribeCluster(l.T.Context(), l.Admin(), eks.NamedInput{Name: names.EKSCluster(cluster)})
	require.NoError(l.T, err)
	require.Len(l.T, out.Cluster.EncryptionConfig, 1)
	return out.Cluster.EncryptionConfig[0].Provider.KeyArn
}

// A resource of another cluster's stacks would be deleted with that cluster, or would block its deletion.
func TestResourcesOfAnotherClusterAreRefused(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("shop", "")
		vpc, subnets := a.networkOf("shop")
		office, rooms := a.externalNetwork()
		group := a.CreateSecurityGroup("group", office)
		_, err := ec2api.NewFromConfig(a.Config()).CreateTags(a.T.Context(), &ec2api.CreateTagsInput{
			Resources: []string{group}, Tags: []types.Tag{{Key: aws.String(names.TagCluster), Value: aws.String("shop")}},
		})
		require.NoError(t, err)
		for name, c := range map[string]struct{ spec, says string }{
			"its VPC": {
				within("demo", vpc, rooms, ""), `clusters/demo.yaml:8: spec.network.existing.vpcID: Invalid value: "` + vpc +
					`": it is part of cluster shop`,
			},
			"its subnets": {
				within("demo", office, subnets, ""), `spec.network.existing.subnets[0]: Invalid value: "` + subnets[0] +
					`": it is part of cluster shop`,
			},
			"one subnet among existing ones": {
				within("demo", office, []string{rooms[0], rooms[1], subnets[1]}, ""), `spec.network.existing.subnets[2]: Invalid value: "` +
					subnets[1] + `": it is part of cluster shop`,
			},
			"its subnets, for a pool": {
				strings.Replace(within("demo", office, rooms, ""), "maxSize: 3", "maxSize: 3, subnets: ["+subnets[1]+"]", 1),
				`clusters/demo.yaml:10: spec.pools[0].subnets[0]: Invalid value: "` + subnets[1] + `": it is part of cluster shop`,
			},
			"its security group, for a pool": {
				strings.Replace(within("demo", office, rooms, ""), "maxSize: 3", "maxSize: 3, securityGroups: ["+group+"]", 1),
				`clusters/demo.yaml:10: spec.pools[0].securityGroups[0]: Invalid value: "` + group + `": it is part of cluster shop`,
			},
			"its key": {
				within("demo", office, rooms, "  controlPlane: {encryptionKeyARN: \""+a.keyOf("shop")+"\"}\n"),
				`spec.controlPlane.encryptionKeyARN: Invalid value: "` + a.keyOf("shop"),
			},
		} {
			a.Upload(names.ClusterSpec("demo"), c.spec)
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Stopped, s.Phase, "%s: %s", name, s.Message)
			require.Equal(t, "SpecInvalid", s.Condition(status.SpecAccepted).Reason, name)
			require.Contains(t, s.Message, c.says, name)
			require.Empty(t, a.Stacks("demo"), name)
		}
		require.Equal(t, status.Ready, a.Status("shop").Phase)
	})
}

// Several clusters share an existing network. Creating and deleting them leaves it unchanged.
func TestClustersShareAnExternalNetwork(t *testing.T) {
	run(t, func(a *life) {
		vpc, subnets := a.externalNetwork()
		a.Upload(names.ReleaseSpec("r1"), harness.Release())
		before := a.AllResources()
		a.Upload(names.ClusterSpec("shop"), within("shop", vpc, subnets, ""))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("shop").Phase, a.Status("shop").Message)
		with := a.AllResources()
		private := "  controlPlane: {logs: [], endpoint: {public: false, private: true}}\n"
		a.Upload(names.ClusterSpec("demo"), within("demo", vpc, subnets, private))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.NotContains(t, a.Stacks("demo"), names.Network)

		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		a.RequireDeleted("demo", with)
		require.Equal(t, status.Ready, a.Status("shop").Phase)
		a.Remove(names.ClusterSpec("shop"), "")
		a.Settle()
		a.RequireDeleted("shop", before)
	})
}

// drover refuses to move a cluster to subnets of another cluster. The last good spec applies.
func TestMoveToSubnetsOfAnotherIsRefused(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("shop", "")
		_, theirs := a.networkOf("shop")
		vpc, subnets := a.externalNetwork()
		a.Upload(names.ClusterSpec("demo"), within("demo", vpc, subnets, ""))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		a.Upload(names.ClusterSpec("demo"), within("demo", vpc, append(subnets, theirs[0]), ""))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Ready, s.Phase, s.Message)
		require.Equal(t, "False", s.Condition(status.SpecAccepted).Status)
		require.Contains(t, s.Condition(status.SpecAccepted).Message, "it is part of cluster shop")
		require.Equal(t, strings.Join(subnets, ","), a.Stack("demo", names.ControlPlane).Parameters["SubnetIds"])
	})
}
