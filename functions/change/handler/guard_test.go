package handler

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
)

func change(action types.ChangeAction, resource, id string, replacement types.Replacement, because ...string) types.ResourceChange {
	c := types.ResourceChange{Action: action, ResourceType: &resource, LogicalResourceId: &id, Replacement: replacement}
	for _, name := range because {
		c.Details = append(c.Details, types.ResourceChangeDetail{Target: &types.ResourceTargetDefinition{
			Name: aws.String(name), RequiresRecreation: types.RequiresRecreationAlways,
		}})
	}
	return c
}

// attribute says that the change comes from an attribute of another resource.
func attribute(c types.ResourceChange, cause string) types.ResourceChange {
	for i := range c.Details {
		c.Details[i].Evaluation, c.Details[i].ChangeSource = types.EvaluationTypeDynamic, types.ChangeSourceResourceAttribute
		c.Details[i].CausingEntity = &cause
		c.Details[i].Target.RequiresRecreation = types.RequiresRecreationConditionally
	}
	return c
}

func TestGuard(t *testing.T) {
	tests := map[string]struct {
		changes []types.ResourceChange
		refused string
	}{
		"a new VPC may be added": {changes: []types.ResourceChange{change(types.ChangeActionAdd, "AWS::EC2::VPC", "Vpc", "")}},
		"a launch template may be replaced": {
			changes: []types.ResourceChange{
				change(types.ChangeActionModify, "AWS::EC2::LaunchTemplate", "LaunchTemplate", types.ReplacementTrue, "LaunchTemplateName"),
			},
		},
		"a cluster may change in place": {
			changes: []types.ResourceChange{change(types.ChangeActionModify, "AWS::EKS::Cluster", "Cluster", types.ReplacementFalse)},
		},
		"a cluster is not replaced": {
			changes: []types.ResourceChange{
				change(types.ChangeActionModify, "AWS::EKS::Cluster", "Cluster", types.ReplacementTrue, "RoleArn", "Name"),
			},
			refused: "the change of stack s was not made: Cluster (AWS::EKS::Cluster) would be replaced because of Name, RoleArn",
		},
		"what may or may not be a replacement counts as one": {
			changes: []types.ResourceChange{
				change(types.ChangeActionModify, "AWS::EC2::Subnet", "Private0", types.ReplacementConditional, "CidrBlock"),
			},
			refused: "the change of stack s was not made: Private0 (AWS::EC2::Subnet) would be replaced because of CidrBlock",
		},
		"a replacement that CloudFormation does not speak of counts as one": {
			changes: []types.ResourceChange{change(types.ChangeActionModify, "AWS::KMS::Key", "Key", "")},
			refused: "the change of stack s was not made: Key (AWS::KMS::Key) would be replaced because of ",
		},
		"an attribute of a resource that only changes its tags stays": {
			changes: []types.ResourceChange{
				change(types.ChangeActionModify, "AWS::IAM::Role", "ClusterRole", types.ReplacementFalse),
				attribute(change(types.ChangeActionModify, "AWS::EKS::Cluster", "Cluster", types.ReplacementConditional, "RoleArn"), "ClusterRole.Arn"),
			},
		},
		"an attribute of a resource that is replaced does not": {
			changes: []types.ResourceChange{
				change(types.ChangeActionModify, "AWS::IAM::Role", "ClusterRole", types.ReplacementTrue, "Path"),
				attribute(change(types.ChangeActionModify, "AWS::EKS::Cluster", "Cluster", types.ReplacementConditional, "RoleArn"), "ClusterRole.Arn"),
			},
			refused: "the change of stack s was not made: Cluster (AWS::EKS::Cluster) would be replaced because of RoleArn",
		},
		"a VPC that is there may be imported": {changes: []types.ResourceChange{change(types.ChangeActionImport, "AWS::EC2::VPC", "Vpc", "")}},
		"what CloudFormation knows only while it changes a cluster is refused": {
			changes: []types.ResourceChange{change(types.ChangeActionDynamic, "AWS::EKS::Cluster", "Cluster", "")},
			refused: "the change of stack s was not made: Cluster (AWS::EKS::Cluster) would be changed in a way that is not known before (Dynamic)",
		},
		"so is what nobody has heard of yet": {
			changes: []types.ResourceChange{change("Evaporate", "AWS::KMS::Key", "Key", types.ReplacementFalse)},
			refused: "the change of stack s was not made: Key (AWS::KMS::Key) would be changed in a way that is not known before (Evaporate)",
		},
		"what is known only while a launch template is changed may be": {
			changes: []types.ResourceChange{change(types.ChangeActionDynamic, "AWS::EC2::LaunchTemplate", "LaunchTemplate", "")},
		},
		"a subnet is not removed, and every refusal is named": {
			changes: []types.ResourceChange{
				change(types.ChangeActionRemove, "AWS::EC2::Subnet", "Private0", ""),
				change(types.ChangeActionRemove, "AWS::EC2::VPC", "Vpc", ""),
			},
			refused: "the change of stack s was not made: Private0 (AWS::EC2::Subnet) would be removed; Vpc (AWS::EC2::VPC) would be removed",
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
