// Package names defines the names of drover's resources in AWS and of the objects in its buckets. IAM policies, event patterns and the
// stackevent function match these names by prefix. The package is pure.
package names

import (
	"fmt"
	"strings"
)

// Prefix starts the name of each resource that drover creates in an account, so that IAM policies can match it.
const Prefix = "drover-"

// Bus is the event bus to which drover sends its own events.
const Bus = "drover"

// IsInstance reports whether s is an instance id. The name of an EC2 node is a DNS name, which has dots.
func IsInstance(s string) bool { return strings.HasPrefix(s, "i-") && !strings.Contains(s, ".") }

// Function returns the name of a Lambda function of drover.
func Function(function string) string { return Prefix + function }

// Relay returns the name of the function through which drover reaches the API server of a cluster whose endpoint is not open to everyone.
func Relay(cluster string) string { return Prefix + cluster + "-relay" }

// FunctionLogs returns the log group of a Lambda function of drover.
func FunctionLogs(function string) string { return "/aws/lambda/" + Function(function) }

// Machines returns the names of drover's state machines.
func Machines() []string {
	return []string{Prefix + "converge", Prefix + "join-node", Prefix + "drain-node", Prefix + "upgrade"}
}

// Role returns the name of a function's role in a region. IAM is global, so the name has the region.
func Role(region, suffix string) string { return Prefix + region + "-" + suffix }

// RoleARN returns the ARN of a function's role.
func RoleARN(partition, account, region, suffix string) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", partition, account, Role(region, suffix))
}

// ClusterRoles is the path of the roles and instance profiles that clusters' stacks create. drover's own roles have no path. So no policy
// on one kind matches the other, whatever clusters are called.
const ClusterRoles = "/drover/"

// Boundary returns the name of the permissions boundary of a region. It limits the roles of that region's clusters.
func Boundary(region string) string { return Prefix + region + "-boundary" }

// BoundaryARN returns the ARN of the permissions boundary.
func BoundaryARN(partition, account, region string) string {
	return fmt.Sprintf("arn:%s:iam::%s:policy/%s", partition, account, Boundary(region))
}

// DNSSuffix returns the DNS suffix of a partition's services.
// https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html
func DNSSuffix(partition string) string {
	if partition == "aws-cn" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}
