package ec2

// What a network uses: services with endpoints, and addresses.

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/preflight"
)

// EndpointServices returns the services of these names that have interface endpoints. Others are absent.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html
func (n *Networks) EndpointServices(ctx context.Context, services []string) (map[string]preflight.EndpointService, error) {
	found := map[string]preflight.EndpointService{}
	in := &ec2.DescribeVpcEndpointServicesInput{Filters: []types.Filter{
		filter("service-name", services...), filter("service-type", string(types.ServiceTypeInterface)),
	}}
	for more := true; more; more = aws.ToString(in.NextToken) != "" {
		out, err := n.describeServices(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describing the services of endpoints: %w", call.Error(err))
		}
		for _, s := range out.ServiceDetails {
			found[aws.ToString(s.ServiceName)] = preflight.EndpointService{Zones: s.AvailabilityZones, PrivateName: aws.ToString(s.PrivateDnsName)}
		}
		in.NextToken = out.NextToken
	}
	return found, nil
}

// ElasticAddresses returns those of these allocations that exist. The value reports whether the address is free.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAddresses.html
func (n *Networks) ElasticAddresses(ctx context.Context, allocations []string) (map[string]bool, error) {
	out, err := n.describeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: []types.Filter{filter("allocation-id", allocations...)}})
	if err != nil {
		return nil, fmt.Errorf("describing the Elastic IP addresses: %w", call.Error(err))
	}
	free := map[string]bool{}
	for _, a := range out.Addresses {
		free[aws.ToString(a.AllocationId)] = aws.ToString(a.AssociationId) == "" && aws.ToString(a.NetworkInterfaceId) == ""
	}
	return free, nil
}
