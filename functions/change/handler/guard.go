package handler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/drover-run/drover/shared/fault"
)

// stateful are the resource types that are never replaced or removed by a change: with them would go what runs there.
var stateful = []string{
	"AWS::EKS::Cluster", "AWS::KMS::Key", "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::VPCCidrBlock",
}

// Guard refuses a change set that would replace or remove something stateful, by name. A replacement that depends on
// values known only while it is executed counts as one.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html
func Guard(stackName string, changes []types.ResourceChange) error {
	var refused []string
	for _, change := range changes {
		if !slices.Contains(stateful, aws.ToString(change.ResourceType)) {
			continue
		}
		what := fmt.Sprintf("%s (%s)", aws.ToString(change.LogicalResourceId), aws.ToString(change.ResourceType))
		switch {
		case change.Action == types.ChangeActionRemove:
			refused = append(refused, what+" would be removed")
		case change.Action == types.ChangeActionModify && change.Replacement != types.ReplacementFalse:
			refused = append(refused, fmt.Sprintf("%s would be replaced because of %s", what, strings.Join(why(change), ", ")))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &fault.ChangeRefused{Cause: fmt.Errorf("the change of stack %s was not made: %s", stackName, strings.Join(refused, "; "))}
}

// why lists the properties that need a replacement.
func why(change types.ResourceChange) []string {
	var properties []string
	for _, detail := range change.Details {
		if detail.Target != nil && detail.Target.RequiresRecreation != types.RequiresRecreationNever {
			properties = append(properties, aws.ToString(detail.Target.Name))
		}
	}
	slices.Sort(properties)
	return slices.Compact(properties)
}
