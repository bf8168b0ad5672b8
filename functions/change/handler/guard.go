package handler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/stack"
)

// stateful lists the resource types that a change never replaces or removes: their workloads or data would be lost.
var stateful = []string{
	"AWS::EKS::Cluster", "AWS::KMS::Key", "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::VPCCidrBlock",
}

// removable lists the resource types that a change may remove, but not replace: they would leave objects in the cluster, which their
// replacement does not manage. A property with parts that replace is Conditional for every part, so only planning distinguishes them.
var removable = []string{"AWS::EKS::Capability"}

// Guard refuses a change set that replaces or removes a stateful resource, or that may. The error names each one.
//
// CloudFormation states Conditional if a replacement depends on a value that is known only during the update. Guard counts
// that as a replacement, with one exception: the value is an attribute of a resource that the change set does not replace.
// Such a resource keeps its attributes. CloudFormation states Conditional for any change of it, even of its tags.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChangeDetail.html
func Guard(stackName string, changes []stack.ResourceChange) error {
	kept := map[string]bool{} // by logical ID: changed in place
	for _, change := range changes {
		kept[change.LogicalID] = change.Action == stack.ActionModify && change.Replacement == stack.ReplacementFalse
	}
	var refused []string
	for _, change := range changes {
		isRemovable := slices.Contains(removable, change.Type)
		if isRemovable && (change.Action != stack.ActionModify || change.Replacement != stack.ReplacementTrue) ||
			!isRemovable && !slices.Contains(stateful, change.Type) {
			continue
		}
		what := fmt.Sprintf("%s (%s)", change.LogicalID, change.Type)
		switch change.Action {
		case stack.ActionAdd, stack.ActionImport:
		case stack.ActionRemove:
			refused = append(refused, what+" would be removed")
		case stack.ActionModify:
			if change.Replacement == stack.ReplacementFalse {
				continue
			}
			properties := replacedProperties(change, kept)
			if change.Replacement == stack.ReplacementConditional && len(properties) == 0 {
				continue
			}
			refused = append(refused, fmt.Sprintf("%s would be replaced because of %s", what, strings.Join(properties, ", ")))
		default: // ActionDynamic, or an action that drover does not know: it may be a replacement
			refused = append(refused, fmt.Sprintf("%s would be changed in a way that CloudFormation cannot predict (%s)", what, change.Action))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &fault.ChangeRefused{Cause: fmt.Errorf("the change of stack %s was refused: %s", stackName, strings.Join(refused, "; "))}
}

// replacedProperties lists the properties that may need a replacement, except those that take an attribute of a kept resource.
func replacedProperties(change stack.ResourceChange, kept map[string]bool) []string {
	var properties []string
	for _, detail := range change.Details {
		if detail.Recreation == stack.RecreationNever {
			continue
		}
		cause, _, _ := strings.Cut(detail.Cause, ".")
		if detail.FromAttribute && kept[cause] {
			continue
		}
		properties = append(properties, detail.Property)
	}
	slices.Sort(properties)
	return slices.Compact(properties)
}
