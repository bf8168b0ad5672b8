package waiter

// What blocks the deletion of a network. AWS reports that something depends on a subnet, a security group or a VPC, but not what. It
// belongs to another owner, and drover's roles cannot read it.

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/stack"
)

// Filters of EC2's listings, in the order in which a network is deleted.
const (
	inSubnet = "subnet-id"
	ofGroup  = "group-id"
	inVPC    = "vpc-id"
)

// filters by the type of the blocked resource. Public addresses anywhere in the VPC block a gateway's attachment.
var filters = map[string]string{
	"AWS::EC2::Subnet": inSubnet, "AWS::EC2::SecurityGroup": ofGroup, "AWS::EC2::VPC": inVPC, "AWS::EC2::VPCGatewayAttachment": inVPC,
}

// ids match the id in a physical id. The physical id of an attachment has two.
var ids = map[string]*regexp.Regexp{
	inSubnet: regexp.MustCompile(`subnet-\w+`), ofGroup: regexp.MustCompile(`sg-\w+`), inVPC: regexp.MustCompile(`vpc-\w+`),
}

// blockerCommands returns commands that list what blocks the deletion of resources of a network. The commands only read.
// https://docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html
func blockerCommands(stuck []stack.Stuck) (commands []string) {
	in := map[string][]string{}
	for _, s := range stuck {
		filter := filters[s.Type]
		if _, ok := causeAdvice[errorCode(s.Reason)]; ok || filter == "" { // no other resource blocks it
			continue
		}
		if id := ids[filter].FindString(s.ID); id != "" && !slices.Contains(in[filter], id) {
			in[filter] = append(in[filter], id)
		}
	}
	for _, filter := range []string{inSubnet, ofGroup, inVPC} {
		if len(in[filter]) == 0 {
			continue
		}
		values := ",Values=" + strings.Join(in[filter], ",")
		commands = append(commands, describeCommand("network-interfaces", "Name="+filter+values, "NetworkInterfaces",
			"NetworkInterfaceId,InterfaceType,Description,RequesterId"))
		const groups, columns = "SecurityGroups", "GroupId,GroupName,Description"
		switch filter {
		case ofGroup: // groups whose rules name it
			commands = append(commands, describeCommand("security-groups", "Name=ip-permission.group-id"+values, groups, columns))
		case inVPC:
			commands = append(commands, describeCommand("security-groups", "Name="+filter+values, groups, columns))
		}
	}
	return commands
}

// describeCommand returns a command of the AWS CLI that prints columns of what it finds.
func describeCommand(what, filters, from, columns string) string {
	return fmt.Sprintf("aws ec2 describe-%s --filters %s --query '%s[].[%s]' --output text", what, filters, from, columns)
}
