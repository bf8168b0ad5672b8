package cloudformation

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/stack"
)

func TestResourceChange(t *testing.T) {
	name := &types.ResourceTargetDefinition{Name: aws.String("RoleArn"), RequiresRecreation: types.RequiresRecreationConditionally}
	attribute, static := types.EvaluationTypeDynamic, types.EvaluationTypeStatic
	require.Equal(t, stack.ResourceChange{
		LogicalID: "Cluster", Type: "AWS::EKS::Cluster", Action: stack.ActionModify, Replacement: stack.ReplacementConditional,
		Details: []stack.ChangeDetail{
			{Property: "RoleArn", Recreation: stack.RecreationConditionally, FromAttribute: true, Cause: "ClusterRole.Arn"},
			{Property: "RoleArn", Recreation: stack.RecreationConditionally, Cause: "Role"},
			{Property: "RoleArn", Recreation: stack.RecreationConditionally},
		},
	}, resourceChange(&types.ResourceChange{
		LogicalResourceId: aws.String("Cluster"), ResourceType: aws.String("AWS::EKS::Cluster"),
		Action: types.ChangeActionModify, Replacement: types.ReplacementConditional,
		Details: []types.ResourceChangeDetail{
			{Target: name, Evaluation: attribute, ChangeSource: types.ChangeSourceResourceAttribute, CausingEntity: aws.String("ClusterRole.Arn")},
			{Target: name, Evaluation: attribute, ChangeSource: types.ChangeSourceParameterReference, CausingEntity: aws.String("Role")},
			{Target: name, Evaluation: static, ChangeSource: types.ChangeSourceResourceAttribute},
			{Evaluation: static}, // without a target
		},
	}))
}
