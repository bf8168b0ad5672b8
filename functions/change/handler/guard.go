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

// Guard refuses a change set that would replace or remove something stateful, or may without saying so, by name.
//
// CloudFormation says Conditional when a replacement depends on a value that is known only while the change is executed. That
// counts as a replacement, unless the value is an attribute of a resource that the change set does not replace: such a
// resource keeps its attributes, it is only that any change to it, of its tags even, makes CloudFormation say so.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChangeDetail.html
func Guard(stackName string, changes []types.ResourceChange) error {
	kept := map[string]bool{}
	for _, change := range changes {
		kept[aws.ToString(change.LogicalResourceId)] = change.Action == types.ChangeActionModify && change.Replacement == types.ReplacementFalse
	}
	var refused []string
	for _, change := range changes {
		if !slices.Contains(stateful, aws.ToString(change.ResourceType)) {
			continue
		}
		what := fmt.Sprintf("%s (%s)", aws.ToString(change.LogicalResourceId), aws.ToString(change.ResourceType))
		switch change.Action {
		case types.ChangeActionAdd, types.ChangeActionImport:
		case types.ChangeActionRemove:
			refused = append(refused, what+" would be removed")
		case types.ChangeActionModify:
			if change.Replacement == types.ReplacementFalse {
				continue
			}
			properties := why(change, kept)
			if change.Replacement == types.ReplacementConditional && len(properties) == 0 {
				continue
			}
			refused = append(refused, fmt.Sprintf("%s would be replaced because of %s", what, strings.Join(properties, ", ")))
		default: // Dynamic, or what CloudFormation does not say yet: it may be a replacement as well
			refused = append(refused, fmt.Sprintf("%s would be changed in a way that is not known before (%s)", what, change.Action))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &fault.ChangeRefused{Cause: fmt.Errorf("the change of stack %s was not made: %s", stackName, strings.Join(refused, "; "))}
}

// why lists the properties that may need a replacement, less those that take the attribute of a resource that stays.
func why(change types.ResourceChange, kept map[string]bool) []string {
	var properties []string
	for _, detail := range change.Details {
		if detail.Target == nil || detail.Target.RequiresRecreation == types.RequiresRecreationNever {
			continue
		}
		cause, _, _ := strings.Cut(aws.ToString(detail.CausingEntity), ".")
		if detail.Evaluation == types.EvaluationTypeDynamic && detail.ChangeSource == types.ChangeSourceResourceAttribute && kept[cause] {
			continue
		}
		properties = append(properties, aws.ToString(detail.Target.Name))
	}
	slices.Sort(properties)
	return slices.Compact(properties)
}
