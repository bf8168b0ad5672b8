package ec2

// Services of AWS with VPC endpoints.

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

// interfaceServices are some of the services with interface endpoints and private DNS names, by the end of their names.
// https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html
var interfaceServices = []string{
	"autoscaling", "ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks", "eks-auth", "elasticfilesystem", "elasticloadbalancing", "events", "kms",
	"lambda", "logs", "monitoring", "s3", "secretsmanager", "sns", "sqs", "ssm", "ssmmessages", "states", "sts", "xray",
}

func (s *Service) serviceName(service string) string {
	return "com.amazonaws." + s.config.Region + "." + service
}

// describeEndpointServices lists the services. Each is in every zone.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html
func (s *Service) describeEndpointServices(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ServiceName []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	type typeItem struct{ ServiceType string }
	type item struct {
		ServiceName, Owner, PrivateDnsName string
		ServiceType                        []typeItem
		AvailabilityZoneSet                []string
	}
	for _, name := range in.ServiceName {
		if short, ok := strings.CutPrefix(name, s.serviceName("")); !ok || !slices.Contains(interfaceServices, short) {
			return nil, fail("InvalidServiceName", "The Vpc Endpoint Service '%s' does not exist", name)
		}
	}
	var found []item
	for _, service := range interfaceServices {
		name := s.serviceName(service)
		if len(in.ServiceName) > 0 && !slices.Contains(in.ServiceName, name) {
			continue
		}
		ok, err := passes(in.Filter, fixed(map[string][]string{"service-name": {name}, "service-type": {"Interface"}, "owner": {"amazon"}}))
		if err != nil {
			return nil, err
		}
		if ok {
			private := service + "." + s.config.Region + ".amazonaws.com"
			found = append(found, item{name, "amazon", private, []typeItem{{"Interface"}}, s.config.Zones})
		}
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	out := struct {
		ServiceDetailSet []item
		ServiceNameSet   []string
		NextToken        string `xml:",omitempty"`
	}{list, nil, next}
	for _, i := range list {
		out.ServiceNameSet = append(out.ServiceNameSet, i.ServiceName)
	}
	return out, nil
}
