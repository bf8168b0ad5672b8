package aws_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	localec2 "github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
)

// The capacity of an account with a running cluster.
func TestCapacity(t *testing.T) {
	a := harness.Start(t)
	c, ctx := ec2.New(a.Config()), t.Context()
	running, err := c.Running(ctx)
	require.NoError(t, err)
	require.Empty(t, running)

	a.Cluster("demo", "")
	group, _, err := autoscaling.New(autoscalingapi.NewFromConfig(a.Config())).Describe(ctx, "drover-demo-pool-a")
	require.NoError(t, err)

	subnets, err := c.Subnets(ctx, append(group.Subnets, "subnet-00000000000000000"))
	require.NoError(t, err)
	require.Len(t, subnets, len(group.Subnets), "one does not exist")
	free := 0
	for id, s := range subnets {
		require.Equal(t, id, s.ID)
		require.NotEmpty(t, s.Zone)
		free += s.Free
	}
	require.Positive(t, free)

	image := localec2.EKSImages()[0]
	images, err := c.Images(ctx, []string{image.ID, "ami-00000000000000000"})
	require.NoError(t, err)
	require.Equal(t, map[string]preflight.Image{
		image.ID: {
			ID: image.ID, Name: image.Name, Architecture: image.Architecture, State: "available", Platform: "Linux/UNIX",
			RootDevice: "/dev/xvda", Devices: []string{"/dev/xvda"},
		},
	}, images)

	types, err := c.InstanceTypes(ctx, []string{"m7i.large", "no.such"})
	require.NoError(t, err)
	require.Equal(t, map[string]preflight.InstanceType{"m7i.large": {Name: "m7i.large", VCPUs: 2, Addresses: 10}}, types)

	running, err = c.Running(ctx)
	require.NoError(t, err)
	vCPUs := 0
	for _, n := range running {
		vCPUs += n
	}
	require.Equal(t, 2*len(group.Instances), vCPUs, "%v", running)

	volumes, err := c.Volumes(ctx, []string{"gp3", "io2"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{preflight.VolumeQuotaCode("gp3"): 50 * len(group.Instances)}, volumes)

	id := group.Instances[0].ID
	ids, err := c.RunningInstances(ctx, []string{id, "i-00000000000000000"})
	require.NoError(t, err)
	require.Equal(t, []string{id}, ids)
	started, err := c.Started(ctx, []string{id, "i-00000000000000000"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{id: localec2.ImageID("1.36", "amd64")}, started)
	named, err := c.NodeNames(ctx, id)
	require.NoError(t, err)
	require.Len(t, named, 1)
	require.Regexp(t, `^ip-.*\.internal$`, named[id])
	for name, found := range map[string]map[string]string{named[id]: named, "ip-*": {}, "absent": {}, "i-*": {}} {
		again, err := c.NodeNames(ctx, name)
		require.NoError(t, err)
		require.Equal(t, found, again, name)
	}
	ids, err = c.Ended(ctx, []string{id, "i-00000000000000000"})
	require.NoError(t, err)
	require.Empty(t, ids, "an instance that EC2 does not list may be new")
	require.NoError(t, a.EC2.Terminate(id, "Client.UserInitiatedShutdown"))
	ids, err = c.Ended(ctx, []string{id})
	require.NoError(t, err)
	require.Equal(t, []string{id}, ids)
	ended, err := c.NodeNames(ctx, id)
	require.NoError(t, err)
	require.Empty(t, ended)
	ids, err = c.RunningInstances(ctx, []string{id})
	require.NoError(t, err)
	require.Empty(t, ids, "it is terminating")

	for _, ask := range []func() error{
		func() error { _, err := c.RunningInstances(ctx, nil); return err },
		func() error { _, err := c.Ended(ctx, nil); return err },
		func() error { _, err := c.Started(ctx, nil); return err },
		func() error { _, err := c.Subnets(ctx, nil); return err },
		func() error { _, err := c.Images(ctx, nil); return err },
		func() error { _, err := c.InstanceTypes(ctx, nil); return err },
		func() error { _, err := c.Volumes(ctx, nil); return err },
	} {
		require.NoError(t, ask(), "no call without ids")
	}
}

func TestCapacityRefusals(t *testing.T) {
	a := harness.Start(t)
	config := a.Config()
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("there are no credentials")
	})
	_, err := ec2.New(config).Running(t.Context())
	require.ErrorContains(t, err, "credentials")
	config.Credentials = credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "wrong", "")
	_, err = ec2.New(config).Running(t.Context())
	require.NotEmpty(t, fault.Code(err), "%v", err)
	require.ErrorContains(t, err, "describing instances: DescribeInstances: ")
}
