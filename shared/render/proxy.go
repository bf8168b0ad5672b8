package render

// The proxy of a pool's nodes.

import (
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// proxyEnvironment returns the variables for a proxy, or nil. Some programs read the names in upper case, others those in lower case.
// nodeadm sets them for all services, with the key "default" of instance.environment.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/#environmentoptions
func proxyEnvironment(cell Cell, cluster *api.Cluster, p *api.Proxy) (list []variable) {
	if p == nil {
		return nil
	}
	direct := strings.Join(append(directHosts(cell, cluster), p.NoProxy...), ",")
	for _, v := range []variable{{"HTTP_PROXY", p.URL}, {"HTTPS_PROXY", p.URL}, {"NO_PROXY", direct}} {
		list = append(list, v, variable{strings.ToLower(v.Name), v.Value})
	}
	return list
}

// directHosts are what every node reaches without a proxy: itself, the instance metadata, the cluster, and the VPC with the endpoints of
// AWS services that drover creates there.
func directHosts(cell Cell, cluster *api.Cluster) []string {
	spec, suffix := &cluster.Spec, "amazonaws.com"
	if cell.Partition == "aws-cn" {
		suffix = "amazonaws.com.cn"
	}
	direct := []string{
		"localhost", "127.0.0.1", "169.254.169.254", ".svc", ".cluster.local", spec.ControlPlane.ServiceCIDR,
		"." + cell.Region + ".eks." + suffix, // the endpoints of clusters
	}
	if spec.Network.Existing != nil {
		return direct // noProxy has the ranges of the VPC
	}
	direct = append(append(direct, spec.Network.CIDR), spec.Network.SecondaryCIDRs...)
	regional := "." + cell.Region + "." + suffix
	direct = append(direct, "s3"+regional, ".s3"+regional) // every network has a gateway endpoint of S3
	for _, e := range endpointsOf(&spec.Network) {
		switch e.Service {
		case "ecr.api":
			direct = append(direct, "api.ecr"+regional)
		case "ecr.dkr":
			direct = append(direct, ".dkr.ecr"+regional)
		case "eks-auth":
			direct = append(direct, "eks-auth."+cell.Region+".api.aws")
		default:
			direct = append(direct, e.Service+regional)
		}
	}
	return direct
}
