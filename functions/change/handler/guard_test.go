package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/stack"
)

func change(action stack.Action, resource, id string, replacement stack.Replacement, because ...string) stack.ResourceChange {
	c := stack.ResourceChange{Action: action, Type: resource, LogicalID: id, Replacement: replacement}
	for _, name := range because {
		c.Details = append(c.Details, stack.ChangeDetail{Property: name, Recreation: stack.RecreationAlways})
	}
	return c
}

// attribute returns a change whose cause is an attribute of another resource.
func attribute(c stack.ResourceChange, cause string) stack.ResourceChange {
	for i := range c.Details {
		c.Details[i].FromAttribute, c.Details[i].Cause, c.Details[i].Recreation = true, cause, stack.RecreationConditionally
	}
	return c
}

// never returns a change whose properties do not recreate the resource.
func never(c stack.ResourceChange) stack.ResourceChange {
	for i := range c.Details {
		c.Details[i].Recreation = stack.RecreationNever
	}
	return c
}

func TestGuard(t *testing.T) {
	tests := map[string]struct {
		changes []stack.ResourceChange
		refused string
	}{
		"a new VPC may be added": {changes: []stack.ResourceChange{change(stack.ActionAdd, "AWS::EC2::VPC", "Vpc", "")}},
		"a launch template may be replaced": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::EC2::LaunchTemplate", "LaunchTemplate", stack.ReplacementTrue, "LaunchTemplateName"),
			},
		},
		"a cluster may change in place": {
			changes: []stack.ResourceChange{change(stack.ActionModify, "AWS::EKS::Cluster", "Cluster", stack.ReplacementFalse)},
		},
		"a cluster may not be replaced": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::EKS::Cluster", "Cluster", stack.ReplacementTrue, "RoleArn", "Name"),
			},
			refused: "the change of stack s was refused: Cluster (AWS::EKS::Cluster) would be replaced because of Name, RoleArn",
		},
		"a conditional replacement counts as one": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::EC2::Subnet", "Private0", stack.ReplacementConditional, "CidrBlock"),
			},
			refused: "the change of stack s was refused: Private0 (AWS::EC2::Subnet) would be replaced because of CidrBlock",
		},
		"an unstated replacement counts as one": {
			changes: []stack.ResourceChange{change(stack.ActionModify, "AWS::KMS::Key", "Key", "")},
			refused: "the change of stack s was refused: Key (AWS::KMS::Key) would be replaced because of ",
		},
		"an attribute of a resource that is kept is kept": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::IAM::Role", "ClusterRole", stack.ReplacementFalse),
				attribute(change(stack.ActionModify, "AWS::EKS::Cluster", "Cluster", stack.ReplacementConditional, "RoleArn"), "ClusterRole.Arn"),
			},
		},
		"an attribute of a replaced resource counts as a replacement": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::IAM::Role", "ClusterRole", stack.ReplacementTrue, "Path"),
				attribute(change(stack.ActionModify, "AWS::EKS::Cluster", "Cluster", stack.ReplacementConditional, "RoleArn"), "ClusterRole.Arn"),
			},
			refused: "the change of stack s was refused: Cluster (AWS::EKS::Cluster) would be replaced because of RoleArn",
		},
		"a property that never recreates the resource is no reason": {
			changes: []stack.ResourceChange{never(change(stack.ActionModify, "AWS::EC2::Subnet", "Private0", stack.ReplacementConditional, "Tags"))},
		},
		"each property is named once": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::EC2::Subnet", "Private0", stack.ReplacementTrue, "CidrBlock", "AvailabilityZone", "CidrBlock"),
			},
			refused: "the change of stack s was refused: Private0 (AWS::EC2::Subnet) would be replaced because of AvailabilityZone, CidrBlock",
		},
		"an attribute of a removed resource counts as a replacement": {
			changes: []stack.ResourceChange{
				change(stack.ActionRemove, "AWS::IAM::Role", "ClusterRole", stack.ReplacementFalse),
				attribute(change(stack.ActionModify, "AWS::EKS::Cluster", "Cluster", stack.ReplacementConditional, "RoleArn"), "ClusterRole.Arn"),
			},
			refused: "the change of stack s was refused: Cluster (AWS::EKS::Cluster) would be replaced because of RoleArn",
		},
		"a value of a kept resource that is no attribute counts as a replacement": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::IAM::Role", "ClusterRole", stack.ReplacementFalse),
				{
					Action: stack.ActionModify, Type: "AWS::EKS::Cluster", LogicalID: "Cluster", Replacement: stack.ReplacementConditional,
					Details: []stack.ChangeDetail{{Property: "RoleArn", Recreation: stack.RecreationConditionally, Cause: "ClusterRole"}},
				},
			},
			refused: "the change of stack s was refused: Cluster (AWS::EKS::Cluster) would be replaced because of RoleArn",
		},
		"a capability may be removed": {changes: []stack.ResourceChange{change(stack.ActionRemove, "AWS::EKS::Capability", "Capability1", "")}},
		"a capability may change in place, which CloudFormation may not know": {
			changes: []stack.ResourceChange{
				change(stack.ActionModify, "AWS::EKS::Capability", "Capability1", stack.ReplacementConditional, "Configuration"),
			},
		},
		"a capability may not be replaced": {
			changes: []stack.ResourceChange{change(stack.ActionModify, "AWS::EKS::Capability", "Capability1", stack.ReplacementTrue, "Type")},
			refused: "the change of stack s was refused: Capability1 (AWS::EKS::Capability) would be replaced because of Type",
		},
		"an existing VPC may be imported": {changes: []stack.ResourceChange{change(stack.ActionImport, "AWS::EC2::VPC", "Vpc", "")}},
		"a dynamic change of a cluster is refused": {
			changes: []stack.ResourceChange{change(stack.ActionDynamic, "AWS::EKS::Cluster", "Cluster", "")},
			refused: "the change of stack s was refused: Cluster (AWS::EKS::Cluster) would be changed in a way that CloudFormation cannot " +
				"predict (Dynamic)",
		},
		"an unknown action is refused": {
			changes: []stack.ResourceChange{change("Evaporate", "AWS::KMS::Key", "Key", stack.ReplacementFalse)},
			refused: "the change of stack s was refused: Key (AWS::KMS::Key) would be changed in a way that CloudFormation cannot " +
				"predict (Evaporate)",
		},
		"a dynamic change of a launch template is allowed": {
			changes: []stack.ResourceChange{change(stack.ActionDynamic, "AWS::EC2::LaunchTemplate", "LaunchTemplate", "")},
		},
		"a subnet may not be removed, and the error names each refusal": {
			changes: []stack.ResourceChange{
				change(stack.ActionRemove, "AWS::EC2::Subnet", "Private0", ""),
				change(stack.ActionRemove, "AWS::EC2::VPC", "Vpc", ""),
			},
			refused: "the change of stack s was refused: Private0 (AWS::EC2::Subnet) would be removed; Vpc (AWS::EC2::VPC) would be removed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Guard("s", test.changes)
			if test.refused == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.refused)
			require.Equal(t, "ChangeRefused", fault.NameOf(err))
		})
	}
}
