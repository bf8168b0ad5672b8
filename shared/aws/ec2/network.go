package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/doctor"
)

// Networks reads the networks of an account and region: counts for quotas, zones, subnets, routes, endpoint services and addresses.
// Like Capacity, it holds operations.
type Networks struct {
	describeAddresses   operation[ec2.DescribeAddressesInput, ec2.DescribeAddressesOutput]
	describeGateways    operation[ec2.DescribeInternetGatewaysInput, ec2.DescribeInternetGatewaysOutput]
	describeNATGateways operation[ec2.DescribeNatGatewaysInput, ec2.DescribeNatGatewaysOutput]
	describeRouteTables operation[ec2.DescribeRouteTablesInput, ec2.DescribeRouteTablesOutput]
	describeSubnets     operation[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	describeVPCs        operation[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput]
	describeZones       operation[ec2.DescribeAvailabilityZonesInput, ec2.DescribeAvailabilityZonesOutput]
	describeServices    operation[ec2.DescribeVpcEndpointServicesInput, ec2.DescribeVpcEndpointServicesOutput]
	account             string
}

// NewNetworks returns the networks of a configuration's account. Those that other accounts share with it are not counted.
func NewNetworks(config aws.Config, account string) *Networks {
	client := ec2.NewFromConfig(call.Once(config))
	return &Networks{
		client.DescribeAddresses, client.DescribeInternetGateways, client.DescribeNatGateways, client.DescribeRouteTables,
		client.DescribeSubnets, client.DescribeVpcs, client.DescribeAvailabilityZones,
		client.DescribeVpcEndpointServices, account,
	}
}

// VPCs counts the account's VPCs.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html
func (n *Networks) VPCs(ctx context.Context) (int, error) {
	count := 0
	in := &ec2.DescribeVpcsInput{Filters: []types.Filter{filter("owner-id", n.account)}, MaxResults: aws.Int32(pageSize)}
	for more := true; more; more = aws.ToString(in.NextToken) != "" {
		out, err := n.describeVPCs(ctx, in)
		if err != nil {
			return 0, fmt.Errorf("counting the VPCs: %w", call.Error(err))
		}
		count, in.NextToken = count+len(out.Vpcs), out.NextToken
	}
	return count, nil
}

// InternetGateways counts the account's internet gateways.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInternetGateways.html
func (n *Networks) InternetGateways(ctx context.Context) (int, error) {
	count := 0
	in := &ec2.DescribeInternetGatewaysInput{Filters: []types.Filter{filter("owner-id", n.account)}, MaxResults: aws.Int32(pageSize)}
	for more := true; more; more = aws.ToString(in.NextToken) != "" {
		out, err := n.describeGateways(ctx, in)
		if err != nil {
			return 0, fmt.Errorf("counting the internet gateways: %w", call.Error(err))
		}
		count, in.NextToken = count+len(out.InternetGateways), out.NextToken
	}
	return count, nil
}

// Addresses counts the account's Elastic IP addresses. DescribeAddresses has no pages.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAddresses.html
func (n *Networks) Addresses(ctx context.Context) (int, error) {
	out, err := n.describeAddresses(ctx, &ec2.DescribeAddressesInput{})
	if err != nil {
		return 0, fmt.Errorf("counting the Elastic IP addresses: %w", call.Error(err))
	}
	return len(out.Addresses), nil
}

// NATGateways counts the NAT gateways that count toward the quota, by zone.
// https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html#vpc-limits-gateways
func (n *Networks) NATGateways(ctx context.Context) (map[string]int, error) {
	subnets := map[string]int{}
	in := &ec2.DescribeNatGatewaysInput{
		Filter: []types.Filter{filter("state", "pending", "available", "deleting")}, MaxResults: aws.Int32(pageSize),
	}
	for more := true; more; more = aws.ToString(in.NextToken) != "" {
		out, err := n.describeNATGateways(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("counting the NAT gateways: %w", call.Error(err))
		}
		for _, gateway := range out.NatGateways {
			subnets[aws.ToString(gateway.SubnetId)]++
		}
		in.NextToken = out.NextToken
	}
	zones := map[string]int{}
	if len(subnets) == 0 {
		return zones, nil
	}
	all := &ec2.DescribeSubnetsInput{MaxResults: aws.Int32(pageSize)}
	for more := true; more; more = aws.ToString(all.NextToken) != "" {
		out, err := n.describeSubnets(ctx, all)
		if err != nil {
			return nil, fmt.Errorf("finding the zones of the NAT gateways: %w", call.Error(err))
		}
		for _, subnet := range out.Subnets {
			zones[aws.ToString(subnet.AvailabilityZone)] += subnets[aws.ToString(subnet.SubnetId)]
		}
		all.NextToken = out.NextToken
	}
	return zones, nil
}

// Zones returns the ids of the region's availability zones that are available, by name.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
func (n *Networks) Zones(ctx context.Context) (map[string]string, error) {
	out, err := n.describeZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{filter("state", "available"), filter("zone-type", "availability-zone")},
	})
	if err != nil {
		return nil, fmt.Errorf("listing the zones: %w", call.Error(err))
	}
	zones := map[string]string{}
	for _, zone := range out.AvailabilityZones {
		zones[aws.ToString(zone.ZoneName)] = aws.ToString(zone.ZoneId)
	}
	return zones, nil
}

// Subnets returns the subnets of VPCs by id. VPCs that do not exist have none.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html
func (n *Networks) Subnets(ctx context.Context, vpcs []string) (map[string]doctor.Subnet, error) {
	found := map[string]doctor.Subnet{}
	for some := range slices.Chunk(vpcs, maxFilterValues) {
		in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", some...)}, MaxResults: aws.Int32(pageSize)}
		for more := true; more; more = aws.ToString(in.NextToken) != "" {
			out, err := n.describeSubnets(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("describing the subnets of existing networks: %w", call.Error(err))
			}
			for _, s := range out.Subnets {
				subnet := doctor.Subnet{
					VPC: aws.ToString(s.VpcId), Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
					Tags: map[string]string{},
				}
				for _, tag := range s.Tags {
					subnet.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
				}
				found[aws.ToString(s.SubnetId)] = subnet
			}
			in.NextToken = out.NextToken
		}
	}
	return found, nil
}

// PublicSubnets returns which of these subnets have a route to an internet gateway. A subnet without a route table of its own has the main
// one of its VPC.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeRouteTables.html
func (n *Networks) PublicSubnets(ctx context.Context, subnets map[string]doctor.Subnet) (map[string]bool, error) {
	var vpcs []string
	for _, subnet := range subnets {
		vpcs = append(vpcs, subnet.VPC)
	}
	slices.Sort(vpcs)
	explicit, main := map[string]bool{}, map[string]bool{} // by subnet and by VPC
	for some := range slices.Chunk(slices.Compact(vpcs), maxFilterValues) {
		in := &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("vpc-id", some...)}, MaxResults: aws.Int32(100)}
		for more := true; more; more = aws.ToString(in.NextToken) != "" {
			out, err := n.describeRouteTables(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("describing the route tables of existing networks: %w", call.Error(err))
			}
			for _, table := range out.RouteTables {
				public := slices.ContainsFunc(table.Routes, func(r types.Route) bool { return strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") })
				for _, a := range table.Associations {
					if aws.ToBool(a.Main) {
						main[aws.ToString(table.VpcId)] = public
					} else if id := aws.ToString(a.SubnetId); id != "" {
						explicit[id] = public
					}
				}
			}
			in.NextToken = out.NextToken
		}
	}
	found := map[string]bool{}
	for id, subnet := range subnets {
		public, own := explicit[id]
		found[id] = public || !own && main[subnet.VPC]
	}
	return found, nil
}
