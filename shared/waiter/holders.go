package waiter

// What keeps a network from being deleted. AWS says of a subnet, a group or a VPC that something depends on it, and
// not what: that is somebody else's, which drover's roles cannot see.

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

// found in parts of a network. A gateway's attachment is kept by public addresses anywhere in the VPC.
var found = map[string]string{
	"AWS::EC2::Subnet": inSubnet, "AWS::EC2::SecurityGroup": ofGroup, "AWS::EC2::VPC": inVPC, "AWS::EC2::VPCGatewayAttachment": inVPC,
}

// ids of them: an attachment's is of both that it ties.
var ids = map[string]*regexp.Regexp{
	inSubnet: regexp.MustCompile(`subnet-\w+`), ofGroup: regexp.MustCompile(`sg-\w+`), inVPC: regexp.MustCompile(`vpc-\w+`),
}

// holders are the commands that list what is in the way of resources of a network that could not be deleted. They only read.
// https://docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html
func holders(stuck []stack.Stuck) (commands []string) {
	in := map[string][]string{}
	for _, s := range stuck {
		filter := found[s.Type]
		if _, known := causes[code(s.Reason)]; known || filter == "" { // what keeps it is no other resource
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
		commands = append(commands, list("network-interfaces", "Name="+filter+values, "NetworkInterfaces",
			"NetworkInterfaceId,InterfaceType,Description,RequesterId"))
		const groups, columns = "SecurityGroups", "GroupId,GroupName,Description"
		switch filter {
		case ofGroup: // one whose rules name it
			commands = append(commands, list("security-groups", "Name=ip-permission.group-id"+values, groups, columns))
		case inVPC:
			commands = append(commands, list("security-groups", "Name="+filter+values, groups, columns))
		}
	}
	return commands
}

func list(what, filters, from, columns string) string {
	return fmt.Sprintf("aws ec2 describe-%s --filters %s --query '%s[].[%s]' --output text", what, filters, from, columns)
}
