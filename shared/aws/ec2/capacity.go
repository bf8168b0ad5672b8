// Package ec2 reads from EC2 what an account has and has room for: free addresses, images, instance types, running instances and volumes.
// It changes nothing.
package ec2

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
)

// operation is one operation of EC2's client.
type operation[In, Out any] = call.Operation[In, Out, ec2.Options]

// Capacity reads what nodes are made of, in an account and region: images, instance types, instances, subnets and security groups. It
// pages by hand.
type Capacity struct {
	describeImages         operation[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	describeInstances      operation[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	describeInstanceTypes  operation[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	describeSecurityGroups operation[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput]
	describeSubnets        operation[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	describeVolumes        operation[ec2.DescribeVolumesInput, ec2.DescribeVolumesOutput]
}

// New returns the capacity of a configuration's account.
func New(config aws.Config) *Capacity {
	client := ec2.NewFromConfig(call.Once(config))
	return &Capacity{
		describeImages: client.DescribeImages, describeInstances: client.DescribeInstances, describeSubnets: client.DescribeSubnets,
		describeInstanceTypes: client.DescribeInstanceTypes, describeVolumes: client.DescribeVolumes,
		describeSecurityGroups: client.DescribeSecurityGroups,
	}
}

// maxFilterValues is how many values a filter of EC2 takes.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html
const maxFilterValues = 200

// filter of EC2. A filter leaves out ids that do not exist, where a request by id would fail.
func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// Subnets returns subnets by id, with their free addresses. Those that do not exist are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html
func (c *Capacity) Subnets(ctx context.Context, ids []string) (map[string]preflight.Subnet, error) {
	found := map[string]preflight.Subnet{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		out, err := c.describeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("subnet-id", some...)}})
		if err != nil {
			return nil, fmt.Errorf("describing subnets: %w", call.Error(err))
		}
		for _, s := range out.Subnets {
			id := aws.ToString(s.SubnetId)
			found[id] = preflight.Subnet{
				ID: id, Zone: aws.ToString(s.AvailabilityZone), VPC: aws.ToString(s.VpcId), Free: int(aws.ToInt32(s.AvailableIpAddressCount)),
			}
		}
	}
	return found, nil
}

// eksClusterTag is a tag that EKS sets on the security group that it creates for a cluster.
// https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html
const eksClusterTag = "aws:eks:cluster-name"

// SecurityGroups returns security groups by id. Those that do not exist are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html
func (c *Capacity) SecurityGroups(ctx context.Context, ids []string) (map[string]preflight.SecurityGroup, error) {
	found := map[string]preflight.SecurityGroup{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		out, err := c.describeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-id", some...)}})
		if err != nil {
			return nil, fmt.Errorf("describing security groups: %w", call.Error(err))
		}
		for _, g := range out.SecurityGroups {
			group := preflight.SecurityGroup{VPC: aws.ToString(g.VpcId)}
			for _, tag := range g.Tags {
				if aws.ToString(tag.Key) == eksClusterTag {
					group.EKSCluster = aws.ToString(tag.Value)
				}
			}
			found[aws.ToString(g.GroupId)] = group
		}
	}
	return found, nil
}

// Images returns images by id. Those that do not exist, or are not shared with the account, are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
func (c *Capacity) Images(ctx context.Context, ids []string) (map[string]preflight.Image, error) {
	found := map[string]preflight.Image{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		out, err := c.describeImages(ctx, &ec2.DescribeImagesInput{
			Filters:           []types.Filter{filter("image-id", some...)},
			IncludeDeprecated: aws.Bool(true), // instances can still be launched from them
		})
		if err != nil {
			return nil, fmt.Errorf("describing images: %w", call.Error(err))
		}
		for _, i := range out.Images {
			image := preflight.Image{
				ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Architecture: string(i.Architecture), State: string(i.State),
				Platform: aws.ToString(i.PlatformDetails), RootDevice: aws.ToString(i.RootDeviceName), SourceID: aws.ToString(i.SourceImageId),
			}
			for _, b := range i.BlockDeviceMappings {
				image.Devices = append(image.Devices, aws.ToString(b.DeviceName))
			}
			if at, err := time.Parse(time.RFC3339, aws.ToString(i.DeprecationTime)); err == nil {
				image.Deprecated = at
			}
			found[image.ID] = image
		}
	}
	return found, nil
}

// InstanceTypes returns instance types by name. Those that the region does not offer are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
func (c *Capacity) InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error) {
	found := map[string]preflight.InstanceType{}
	for some := range slices.Chunk(names, maxFilterValues) {
		in := &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", some...)}}
		for more := true; more; more = aws.ToString(in.NextToken) != "" {
			out, err := c.describeInstanceTypes(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("describing instance types: %w", call.Error(err))
			}
			for _, t := range out.InstanceTypes {
				described := preflight.InstanceType{Name: string(t.InstanceType)}
				if t.VCpuInfo != nil {
					described.VCPUs = int(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
				}
				if t.NetworkInfo != nil {
					described.Addresses = int(aws.ToInt32(t.NetworkInfo.Ipv4AddressesPerInterface))
				}
				if store := t.InstanceStorageInfo; store != nil && store.NvmeSupport != types.EphemeralNvmeSupportUnsupported {
					for _, disk := range store.Disks {
						described.Disks += int(aws.ToInt32(disk.Count))
					}
				}
				found[described.Name] = described
			}
			in.NextToken = out.NextToken
		}
	}
	return found, nil
}

// pageSize is the number of instances or volumes in one response: the maximum of EC2.
const pageSize = 1000

// kind of instance, as quotas distinguish them.
type kind struct {
	name string
	spot bool
}

// Running returns the vCPUs of the account's pending and running instances in the region, by the code of their quota. It does not use
// CloudWatch (AWS/Usage), whose numbers are five minutes old.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Running(ctx context.Context) (map[string]int, error) {
	instances, err := c.instances(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for k := range instances {
		names = append(names, k.name)
	}
	slices.Sort(names)
	described, err := c.InstanceTypes(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	running := map[string]int{}
	for k, n := range instances {
		if code := preflight.QuotaCode(k.name, k.spot); code != "" {
			running[code] += n * described[k.name].VCPUs
		}
	}
	return running, nil
}

// Volumes returns the GiB of the account's volumes of some types in the region, by the code of their quota. CloudWatch does not report
// their usage.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVolumes.html
func (c *Capacity) Volumes(ctx context.Context, volumeTypes []string) (map[string]int, error) {
	used := map[string]int{}
	for some := range slices.Chunk(volumeTypes, maxFilterValues) {
		in := &ec2.DescribeVolumesInput{Filters: []types.Filter{filter("volume-type", some...)}, MaxResults: aws.Int32(pageSize)}
		for more := true; more; more = aws.ToString(in.NextToken) != "" {
			out, err := c.describeVolumes(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("describing volumes: %w", call.Error(err))
			}
			for _, v := range out.Volumes {
				used[preflight.VolumeQuotaCode(string(v.VolumeType))] += int(aws.ToInt32(v.Size))
			}
			in.NextToken = out.NextToken
		}
	}
	return used, nil
}

// instances counts the pending and running instances by kind.
func (c *Capacity) instances(ctx context.Context) (map[kind]int, error) {
	count := map[kind]int{}
	in := &ec2.DescribeInstancesInput{
		Filters: []types.Filter{filter("instance-state-name", "pending", "running")}, MaxResults: aws.Int32(pageSize),
	}
	for more := true; more; more = aws.ToString(in.NextToken) != "" {
		out, err := c.describeInstances(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describing instances: %w", call.Error(err))
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				count[kind{string(i.InstanceType), i.InstanceLifecycle == types.InstanceLifecycleTypeSpot}]++
			}
		}
		in.NextToken = out.NextToken
	}
	return count, nil
}

// describe returns the instances that match all filters. They must match at most one page.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) describe(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	out, err := c.describeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("describing instances: %w", call.Error(err))
	}
	var all []types.Instance
	for _, r := range out.Reservations {
		all = append(all, r.Instances...)
	}
	return all, nil
}

// existing matches instances that are not terminated or terminating.
func existing() types.Filter {
	return filter("instance-state-name", "pending", "running", "stopping", "stopped")
}

// RunningInstances returns those of the instances that are not terminated or terminating.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) RunningInstances(ctx context.Context, ids []string) ([]string, error) {
	var running []string
	for some := range slices.Chunk(ids, maxFilterValues) {
		instances, err := c.describe(ctx, filter("instance-id", some...), existing())
		if err != nil {
			return nil, err
		}
		for _, i := range instances {
			running = append(running, aws.ToString(i.InstanceId))
		}
	}
	return running, nil
}

// Ended returns those of the instances that ended or are ending. EC2 lists an ended instance for about an hour. An instance that EC2 does
// not list is not returned: it may be so new that the listing does not have it yet.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Ended(ctx context.Context, ids []string) (ended []string, err error) {
	for some := range slices.Chunk(ids, maxFilterValues) {
		instances, err := c.describe(ctx, filter("instance-id", some...),
			filter("instance-state-name", "shutting-down", "terminated", "stopping", "stopped"))
		if err != nil {
			return nil, err
		}
		for _, i := range instances {
			ended = append(ended, aws.ToString(i.InstanceId))
		}
	}
	return ended, nil
}

// NodeNames returns the names of the nodes that a node name or instance id may mean, by instance. Nodes of two clusters can have the same
// name. Terminated instances are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) NodeNames(ctx context.Context, name string) (map[string]string, error) {
	by := "private-dns-name"
	if names.IsInstance(name) {
		by = "instance-id"
	}
	instances, err := c.describe(ctx, filter(by, name), existing())
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for _, i := range instances {
		// EC2 reads * and ? as wildcards.
		if id, node := aws.ToString(i.InstanceId), aws.ToString(i.PrivateDnsName); id == name || node == name {
			named[id] = node
		}
	}
	return named, nil
}

// Started returns the image from which each of the instances was launched. Those that do not exist are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Started(ctx context.Context, ids []string) (map[string]string, error) {
	images := map[string]string{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		instances, err := c.describe(ctx, filter("instance-id", some...))
		if err != nil {
			return nil, err
		}
		for _, i := range instances {
			images[aws.ToString(i.InstanceId)] = aws.ToString(i.ImageId)
		}
	}
	return images, nil
}
