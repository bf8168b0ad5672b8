// Package leftovers finds and removes what Kubernetes created in the account for a cluster, such as load balancers and volumes. It finds
// these resources by tag. Its credentials can remove nothing without that tag. The clean function uses it.
package leftovers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/names"
)

// removal is how a kind of resource is removed.
type removal struct {
	kind string
	// service and prefix begin the resource part of an ARN. The rest is the id. If arn is set, the whole ARN is the id.
	service, prefix string
	arn             bool
	// call removes the resource with an id in a cluster's session.
	call func(l *Leftovers, ctx context.Context, session aws.CredentialsProvider, id string) error
}

// The services of the resources, as ARNs name them.
const (
	balancing = "elasticloadbalancing"
	compute   = "ec2"
)

// removals in the order in which they can succeed: load balancers use target groups and network interfaces, which use security groups.
var removals = []removal{
	{kind: "load balancer", service: balancing, prefix: "loadbalancer/app/", arn: true, call: (*Leftovers).deleteLoadBalancer},
	{kind: "load balancer", service: balancing, prefix: "loadbalancer/net/", arn: true, call: (*Leftovers).deleteLoadBalancer},
	{kind: "load balancer", service: balancing, prefix: "loadbalancer/gwy/", arn: true, call: (*Leftovers).deleteLoadBalancer},
	{kind: "classic load balancer", service: balancing, prefix: "loadbalancer/", call: (*Leftovers).deleteClassicLoadBalancer},
	{kind: "target group", service: balancing, prefix: "targetgroup/", arn: true, call: (*Leftovers).deleteTargetGroup},
	{kind: "network interface", service: compute, prefix: "network-interface/", call: (*Leftovers).deleteNetworkInterface},
	{kind: "security group", service: compute, prefix: "security-group/", call: (*Leftovers).deleteSecurityGroup},
	{kind: leftover.Volume, service: compute, prefix: "volume/", call: (*Leftovers).deleteVolume},
}

// removalOf returns how a kind is removed. Rows of the same kind differ only in their ARNs.
func removalOf(kind string) (how removal, found bool) {
	i := slices.IndexFunc(removals, func(r removal) bool { return r.kind == kind })
	if i < 0 {
		return removal{}, false
	}
	return removals[i], true
}

// resourceTypes are the types of resources to find, with the names of the tagging API.
var resourceTypes = []string{
	"elasticloadbalancing:loadbalancer", "elasticloadbalancing:targetgroup", "ec2:network-interface", "ec2:security-group", "ec2:volume",
}

// ownershipTags returns the tags with which Kubernetes' integrations mark a cluster's resources: the cloud controller and the EBS driver,
// https://kubernetes-sigs.github.io/aws-load-balancer-controller (deploy/configurations, "cluster-name"), and the CNI,
// https://github.com/aws/amazon-vpc-cni-k8s#cluster_name.
func ownershipTags(cluster string) [][2]string {
	return [][2]string{
		{names.OwnershipTag(cluster), "owned"},
		{"elbv2.k8s.aws/cluster", names.EKSCluster(cluster)},
		{"cluster.k8s.amazonaws.com/name", names.EKSCluster(cluster)},
	}
}

// Leftovers of the clusters of an account.
type Leftovers struct {
	region string
	tags   *resourcegroupstaggingapi.Client
	clients
	// roleARN is the role that may remove leftovers. It is assumed for one cluster at a time.
	roleARN string

	mu       sync.Mutex
	sessions map[string]aws.Credentials
}

// New returns the leftovers of an account. A session policy limits the role to resources with a cluster's tag.
func New(config aws.Config, roleARN string) *Leftovers {
	return &Leftovers{
		region: config.Region, tags: resourcegroupstaggingapi.NewFromConfig(config), clients: newClients(config), roleARN: roleARN,
		sessions: map[string]aws.Credentials{},
	}
}

// Find returns what Kubernetes created for a cluster, in the order in which it can be removed. Resources of the cluster's stacks are not
// included: CloudFormation removes them. The tag index lags by minutes, so some resources may no longer exist.
// https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
func (l *Leftovers) Find(ctx context.Context, cluster string) ([]leftover.Resource, error) {
	found := map[string]taggedResource{}
	for _, tag := range ownershipTags(cluster) {
		pages := resourcegroupstaggingapi.NewGetResourcesPaginator(l.tags, &resourcegroupstaggingapi.GetResourcesInput{
			ResourceTypeFilters: resourceTypes, TagFilters: []tagging.TagFilter{{Key: &tag[0], Values: []string{tag[1]}}},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("finding what Kubernetes created for %s by tag %s: %w", cluster, tag[0], err)
			}
			for _, mapping := range page.ResourceTagMappingList {
				if r, ok := parse(aws.ToString(mapping.ResourceARN)); ok && !slices.ContainsFunc(mapping.Tags, ofStack) {
					found[r.ID] = r
				}
			}
		}
	}
	inOrder := slices.SortedFunc(maps.Values(found), func(a, b taggedResource) int {
		return cmp.Or(a.order-b.order, strings.Compare(a.ID, b.ID))
	})
	var list []leftover.Resource
	for _, r := range inOrder {
		list = append(list, r.Resource)
	}
	return list, nil
}

// ofStack reports whether a tag belongs to a resource of a stack, or to what a stack's launch template created.
func ofStack(tag tagging.Tag) bool {
	key := aws.ToString(tag.Key)
	return strings.HasPrefix(key, "aws:cloudformation:") || key == names.TagCluster
}

// taggedResource is a resource that a listing named, with the index of its removal.
type taggedResource struct {
	leftover.Resource
	order int
}

// parse reads an ARN. ok is false for kinds that drover does not remove.
func parse(arn string) (resource taggedResource, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return taggedResource{}, false
	}
	for order, r := range removals {
		if id, ok := strings.CutPrefix(parts[5], r.prefix); ok && r.service == parts[2] {
			if r.arn {
				id = arn
			}
			return taggedResource{leftover.Resource{Kind: r.kind, ID: id}, order}, true
		}
	}
	return taggedResource{}, false
}

// codes maps error codes of the APIs to outcomes. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DeleteLoadBalancer.html
var codes = map[string]leftover.Outcome{
	"InvalidVolume.NotFound": leftover.Absent, "InvalidGroup.NotFound": leftover.Absent, "InvalidNetworkInterfaceID.NotFound": leftover.Absent,
	"LoadBalancerNotFound": leftover.Absent, "TargetGroupNotFound": leftover.Absent,
	"DependencyViolation": leftover.Remains, "ResourceInUse": leftover.Remains, "VolumeInUse": leftover.Remains,
	"InvalidNetworkInterface.InUse": leftover.Remains,
	"IncorrectState":                leftover.Remains, "OperationNotPermitted": leftover.Remains, "CannotDelete": leftover.Remains,
	// An attached network interface.
	"InvalidParameterValue": leftover.Remains,
	// The tag index may list a deleted resource, which has no tag that would allow the call.
	"UnauthorizedOperation": leftover.Remains, "AccessDenied": leftover.Remains,
}

// Remove removes one resource. why is AWS's reason when it remains.
func (l *Leftovers) Remove(ctx context.Context, cluster string, r leftover.Resource) (outcome leftover.Outcome, why string, err error) {
	session, err := l.session(ctx, cluster)
	if err != nil {
		return leftover.Remains, "", err
	}
	how, found := removalOf(r.Kind)
	if !found {
		return leftover.Remains, "", fmt.Errorf("removing %s: no call removes a %s", r, r.Kind)
	}
	err = call.Error(how.call(l, ctx, credentials.StaticCredentialsProvider{Value: session}, r.ID))
	if err == nil {
		return leftover.Removed, "", nil
	}
	outcome, ok := codes[fault.Code(err)]
	if !ok {
		return leftover.Remains, "", fmt.Errorf("removing %s: %w", r, err)
	}
	return outcome, err.Error(), nil
}

// renewBefore is how long before their expiration credentials are replaced.
const renewBefore = 5 * time.Minute

// session returns the role's credentials for one cluster. A tag's key contains the cluster's name, so the role's own policy cannot list
// it. The session policy does.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session
func (l *Leftovers) session(ctx context.Context, cluster string) (aws.Credentials, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if session := l.sessions[cluster]; session.HasKeys() && time.Until(session.Expires) > renewBefore {
		return session, nil
	}
	var statements []any
	for _, tag := range ownershipTags(cluster) {
		statements = append(statements, map[string]any{
			"Effect": "Allow", "Action": []string{"ec2:Delete*", "elasticloadbalancing:Delete*"}, "Resource": "*",
			"Condition": map[string]any{"StringEquals": map[string]string{"aws:ResourceTag/" + tag[0]: tag[1]}},
		})
	}
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		return aws.Credentials{}, err
	}
	out, err := l.sts.AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &l.roleARN, RoleSessionName: aws.String(fmt.Sprintf("%.64s", names.EKSCluster(cluster))), Policy: aws.String(string(policy)),
	})
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("signing in to remove what Kubernetes created for %s: %w", cluster, err)
	}
	session := aws.Credentials{
		AccessKeyID: aws.ToString(out.Credentials.AccessKeyId), SecretAccessKey: aws.ToString(out.Credentials.SecretAccessKey),
		SessionToken: aws.ToString(out.Credentials.SessionToken), CanExpire: true, Expires: aws.ToTime(out.Credentials.Expiration),
	}
	l.sessions[cluster] = session
	return session, nil
}
