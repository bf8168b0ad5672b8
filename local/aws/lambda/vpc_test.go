package lambda

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/resource"
)

// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
const attaching = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:CreateNetworkInterface",` +
	`"ec2:DescribeNetworkInterfaces","ec2:DescribeSubnets","ec2:DeleteNetworkInterface","ec2:AssignPrivateIpAddresses",` +
	`"ec2:UnassignPrivateIpAddresses"],"Resource":"*"}]}`

// network is a VPC with two subnets and a security group.
type network struct {
	vpc     string
	subnets []string
	group   string
	client  *awsec2.Client
}

func (w *world) network(t *testing.T) network {
	t.Helper()
	make := func(kind string, properties map[string]any) string {
		result, err := w.vpcs.Resources()[kind].Create(t.Context(), resource.Request{
			Type: kind, Properties: properties, Caller: w.admin(), Account: account, Region: region,
		})
		require.NoError(t, err)
		return result.PhysicalID
	}
	n := network{vpc: make("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})}
	for _, cidr := range []string{"10.0.0.0/24", "10.0.1.0/24"} {
		subnet := map[string]any{"VpcId": n.vpc, "CidrBlock": cidr, "AvailabilityZone": region + "a"}
		n.subnets = append(n.subnets, make("AWS::EC2::Subnet", subnet))
	}
	n.group = make("AWS::EC2::SecurityGroup", map[string]any{"VpcId": n.vpc, "GroupDescription": "functions"})
	require.NoError(t, w.identities.PutRolePolicy("function", "vpc", attaching))
	_, c := w.identities.Admin()
	n.client = awsec2.New(awsec2.Options{
		Region: region, BaseEndpoint: aws.String(w.config.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	})
	return n
}

func (w *world) admin() iam.Caller {
	admin, _ := w.identities.Admin()
	return admin
}

func (n network) interfaces(t *testing.T) []ec2types.NetworkInterface {
	t.Helper()
	out, err := n.client.DescribeNetworkInterfaces(t.Context(), &awsec2.DescribeNetworkInterfacesInput{
		Filters: []ec2types.Filter{{Name: aws.String("interface-type"), Values: []string{"lambda"}}},
	})
	require.NoError(t, err)
	return out.NetworkInterfaces
}

// slow makes simulated work of a minute take a second.
func (w *world) slow() { w.config.Clock = &clock.Clock{Speed: 60} }

func TestVPC(t *testing.T) {
	w := newWorld(t)
	n := w.network(t)
	w.slow()
	config := &types.VpcConfig{SubnetIds: n.subnets, SecurityGroupIds: []string{n.group}}
	created := w.create(t, func(in *sdk.CreateFunctionInput) { in.VpcConfig = config })
	require.Equal(t, types.StatePending, created.State)
	require.Equal(t, n.vpc, *created.VpcConfig.VpcId)
	_, err := w.client.Invoke(t.Context(), &sdk.InvokeInput{FunctionName: aws.String("fn")})
	var conflict *types.ResourceConflictException
	require.ErrorAs(t, err, &conflict, "a pending function cannot be invoked")
	require.NoError(t, sdk.NewFunctionActiveV2Waiter(w.client, func(o *sdk.FunctionActiveV2WaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
	}).Wait(t.Context(), &sdk.GetFunctionInput{FunctionName: aws.String("fn")}, time.Minute))
	require.Equal(t, `"hello"`, string(w.invoke(t, `{"do":"echo","text":"hello"}`).Payload))

	nics := n.interfaces(t)
	require.Len(t, nics, 2, "one for each subnet")
	require.Contains(t, *nics[0].Description, "AWS Lambda VPC ENI-fn-")
	require.Empty(t, nics[0].TagSet)
	require.True(t, *nics[0].RequesterManaged)
	require.Equal(t, "amazon-aws", *nics[0].Attachment.InstanceOwnerId)
	_, err = n.client.DeleteSecurityGroup(t.Context(), &awsec2.DeleteSecurityGroupInput{GroupId: aws.String(n.group)})
	require.ErrorContains(t, err, "DependencyViolation")

	second := w.create(t, func(in *sdk.CreateFunctionInput) { in.VpcConfig, in.FunctionName = config, aws.String("second") })
	require.Eventually(t, func() bool {
		out, err := w.client.GetFunctionConfiguration(t.Context(), &sdk.GetFunctionConfigurationInput{FunctionName: second.FunctionName})
		return err == nil && out.State == types.StateActive
	}, 500*time.Millisecond, 10*time.Millisecond, "the interfaces exist already")
	require.Len(t, n.interfaces(t), 2)

	w.config.Clock = &clock.Clock{Speed: 1200} // 20 minutes in a second
	for _, name := range []string{"fn", "second"} {
		_, err = w.client.DeleteFunction(t.Context(), &sdk.DeleteFunctionInput{FunctionName: aws.String(name)})
		require.NoError(t, err)
	}
	require.Len(t, n.interfaces(t), 2)
	_, err = n.client.DeleteSubnet(t.Context(), &awsec2.DeleteSubnetInput{SubnetId: aws.String(n.subnets[0])})
	require.ErrorContains(t, err, "DependencyViolation")
	require.Eventually(t, func() bool { return len(n.interfaces(t)) == 0 }, time.Minute, 50*time.Millisecond)
	_, err = n.client.DeleteSubnet(t.Context(), &awsec2.DeleteSubnetInput{SubnetId: aws.String(n.subnets[0])})
	require.NoError(t, err)
}

// Lambda deletes interfaces with the role of their function. Without its permissions they stay, and block their subnets and groups.
func TestInterfacesNeedTheRole(t *testing.T) {
	w := newWorld(t)
	n := w.network(t)
	w.config.Clock = &clock.Clock{Speed: 1e6}
	w.create(t, func(in *sdk.CreateFunctionInput) {
		in.VpcConfig = &types.VpcConfig{SubnetIds: n.subnets, SecurityGroupIds: []string{n.group}}
	})
	require.Eventually(t, func() bool {
		out, err := w.client.GetFunctionConfiguration(t.Context(), &sdk.GetFunctionConfigurationInput{FunctionName: aws.String("fn")})
		return err == nil && out.State == types.StateActive
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, w.identities.DeleteRolePolicy("function", "vpc"))
	_, err := w.client.DeleteFunction(t.Context(), &sdk.DeleteFunctionInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond) // two days
	require.Len(t, n.interfaces(t), 2)
	_, err = n.client.DeleteSecurityGroup(t.Context(), &awsec2.DeleteSecurityGroupInput{GroupId: aws.String(n.group)})
	require.ErrorContains(t, err, "DependencyViolation")
}

func TestVPCUpdate(t *testing.T) {
	w := newWorld(t)
	n := w.network(t)
	w.create(t, nil)
	update := func(v *types.VpcConfig) {
		t.Helper()
		_, err := w.client.UpdateFunctionConfiguration(t.Context(), &sdk.UpdateFunctionConfigurationInput{
			FunctionName: aws.String("fn"), VpcConfig: v,
		})
		require.NoError(t, err)
	}
	w.slow()
	update(&types.VpcConfig{SubnetIds: n.subnets[:1], SecurityGroupIds: []string{n.group}})
	require.Equal(t, `"hello"`, string(w.invoke(t, `{"do":"echo","text":"hello"}`).Payload), "invocations continue during the update")
	_, err := w.client.UpdateFunctionConfiguration(t.Context(), &sdk.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("fn"), MemorySize: aws.Int32(256),
	})
	require.ErrorContains(t, err, "An update is in progress")
	updated := func() bool {
		out, err := w.client.GetFunctionConfiguration(t.Context(), &sdk.GetFunctionConfigurationInput{FunctionName: aws.String("fn")})
		return err == nil && out.LastUpdateStatus == types.LastUpdateStatusSuccessful
	}
	require.Eventually(t, updated, time.Minute, 50*time.Millisecond)
	require.Len(t, n.interfaces(t), 1)
	w.config.Clock = &clock.Clock{Speed: 1e6}
	update(&types.VpcConfig{SubnetIds: []string{}, SecurityGroupIds: []string{}})
	require.Eventually(t, updated, time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool { return len(n.interfaces(t)) == 0 }, time.Minute, 50*time.Millisecond)
}

func TestVPCRefuses(t *testing.T) {
	w := newWorld(t)
	n := w.network(t)
	for name, test := range map[string]struct {
		config types.VpcConfig
		want   string
	}{
		"a subnet that does not exist": {types.VpcConfig{SubnetIds: []string{"subnet-1"}, SecurityGroupIds: []string{n.group}},
			"InvalidSubnetID.NotFound"},
		"a group that does not exist": {types.VpcConfig{SubnetIds: n.subnets, SecurityGroupIds: []string{"sg-1"}}, "InvalidGroup.NotFound"},
		"no group":                    {types.VpcConfig{SubnetIds: n.subnets}, "must coexist"},
		"dual stack": {types.VpcConfig{SubnetIds: n.subnets, SecurityGroupIds: []string{n.group}, Ipv6AllowedForDualStack: aws.Bool(true)},
			"Ipv6AllowedForDualStack"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.client.CreateFunction(t.Context(), w.input(func(in *sdk.CreateFunctionInput) { in.VpcConfig = &test.config }))
			require.ErrorContains(t, err, test.want)
		})
	}
	t.Run("a role without permission", func(t *testing.T) {
		require.NoError(t, w.identities.DeleteRolePolicy("function", "vpc"))
		_, err := w.client.CreateFunction(t.Context(), w.input(func(in *sdk.CreateFunctionInput) {
			in.VpcConfig = &types.VpcConfig{SubnetIds: n.subnets, SecurityGroupIds: []string{n.group}}
		}))
		require.ErrorContains(t, err, "The provided execution role does not have permissions to call CreateNetworkInterface on EC2")
	})
}

func TestFunctionResourceInVPC(t *testing.T) {
	w := newWorld(t)
	n := w.network(t)
	provider := w.Resources()["AWS::Lambda::Function"]
	r := w.functionRequest()
	r.Properties["VpcConfig"] = map[string]any{"SubnetIds": []any{n.subnets[0]}, "SecurityGroupIds": []any{n.group}}
	made, err := provider.Create(t.Context(), r)
	require.NoError(t, err)
	got, err := w.client.GetFunction(t.Context(), &sdk.GetFunctionInput{FunctionName: aws.String("fn")})
	require.NoError(t, err)
	require.Equal(t, types.StateActive, got.Configuration.State, "the stack waits for an active function")
	r.PhysicalID = made.PhysicalID
	w.config.Clock = &clock.Clock{Speed: 1200}
	begin := time.Now()
	require.NoError(t, provider.Delete(t.Context(), r))
	require.Greater(t, time.Since(begin), 900*time.Millisecond, "20 minutes, because the caller may describe network interfaces")
	require.Empty(t, n.interfaces(t))

	r.PhysicalID = ""
	made, err = provider.Create(t.Context(), r)
	require.NoError(t, err)
	r.PhysicalID = made.PhysicalID
	require.NoError(t, w.identities.PutRolePolicy("function", "deletes",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"lambda:DeleteFunction","Resource":"*"},`+
			`{"Effect":"Deny","Action":"ec2:DescribeNetworkInterfaces","Resource":"*"}]}`))
	r.Caller, _, err = w.identities.AssumeRoleAs(w.role, "cloudformation", "lambda.amazonaws.com")
	require.NoError(t, err)
	require.NoError(t, provider.Delete(t.Context(), r))
	require.Len(t, n.interfaces(t), 1, "without the permission nothing waits")
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	arn := w.create(t, func(in *sdk.CreateFunctionInput) { in.Tags = map[string]string{"a": "1", "b": "2"} }).FunctionArn
	_, err := w.client.TagResource(t.Context(), &sdk.TagResourceInput{Resource: arn, Tags: map[string]string{"c": "3"}})
	require.NoError(t, err)
	_, err = w.client.UntagResource(t.Context(), &sdk.UntagResourceInput{Resource: arn, TagKeys: []string{"a", "b"}})
	require.NoError(t, err)
	got, err := w.client.ListTags(t.Context(), &sdk.ListTagsInput{Resource: arn})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c": "3"}, got.Tags)

	require.NoError(t, w.identities.PutRolePolicy("function", "tagged",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"lambda:DeleteFunction","Resource":"*",`+
			`"Condition":{"StringEquals":{"aws:ResourceTag/c":"other"}}}]}`))
	_, c, err := w.identities.AssumeRoleAs(w.role, "other", "lambda.amazonaws.com")
	require.NoError(t, err)
	_, err = clientOf(w.config.Endpoint(), c).DeleteFunction(t.Context(), &sdk.DeleteFunctionInput{FunctionName: arn})
	require.ErrorContains(t, err, "is not authorized to perform: lambda:DeleteFunction")
}
