package doctor

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/api"
)

// BootstrapParameter is the SSM parameter with the version of the CDK's bootstrap stack, and leastBootstrap the version that drover's app
// needs: bootstrapStackVersionSsmParameter and requiresBootstrapStackVersion of its manifest.
// https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html
const (
	BootstrapParameter = "/cdk-bootstrap/hnb659fds/version"
	leastBootstrap     = 6
)

// bootstrap checks that the CDK can deploy drover. Clusters do not need it.
func (r *report) bootstrap() {
	d := r.facts.Deployment
	if d == nil {
		return
	}
	complain := r.block
	if d.Deployed {
		complain = r.warn
	}
	switch {
	case d.Bootstrap == 0:
		complain("make bootstrap", "the CDK is not bootstrapped in this region, and make deploy needs it")
	case d.Bootstrap < leastBootstrap:
		complain("make bootstrap", "the CDK is bootstrapped with version %d, and make deploy needs %d", d.Bootstrap, leastBootstrap)
	default:
		r.ok("the CDK is bootstrapped with version %d", d.Bootstrap)
	}
}

// LinkedRole is a role that AWS creates for a service when the account first uses it.
type LinkedRole struct{ Name, Service string }

// LinkedRoles returns the service-linked roles that clusters use.
// https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-service-linked-role.html
// https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-service-linked-roles.html
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
func LinkedRoles(clusters []Cluster) []LinkedRole {
	roles := []LinkedRole{
		{"AWSServiceRoleForAmazonEKS", "eks.amazonaws.com"},
		{"AWSServiceRoleForAutoScaling", "autoscaling.amazonaws.com"},
		{"AWSServiceRoleForElasticLoadBalancing", "elasticloadbalancing.amazonaws.com"},
	}
	if usesSpot(clusters) {
		roles = append(roles, LinkedRole{"AWSServiceRoleForEC2Spot", "spot.amazonaws.com"})
	}
	return roles
}

// usesSpot reports whether a pool may have spot instances.
func usesSpot(clusters []Cluster) bool {
	return slices.ContainsFunc(clusters, func(c Cluster) bool {
		return slices.ContainsFunc(c.Resolved.Spec.Pools, func(p api.Pool) bool { return nodes(p, p.MaxSize, true) > 0 })
	})
}

// serviceLinkedRoles finds roles that the first cluster creates. That fails where a policy of the organization denies it, so it warns.
func (r *report) serviceLinkedRoles(clusters []Cluster) {
	if r.facts.Deployment == nil {
		return
	}
	for _, role := range LinkedRoles(clusters) {
		if !r.facts.Deployment.LinkedRoles[role.Name] {
			r.warn(fmt.Sprintf("aws iam create-service-linked-role --aws-service-name %s", role.Service),
				"%s does not exist: AWS creates it with the first use, unless a policy of the organization denies it", role.Name)
		}
	}
	if len(r.found) == 0 {
		r.ok("the service-linked roles exist")
	}
}
