package lives

import (
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
)

// CreateSecurityGroup creates a security group outside drover, in a stack of the account's owner.
func (l *Life) CreateSecurityGroup(stackName, vpc string) (id string) {
	l.T.Helper()
	_, err := l.CloudFormation.CreateStack(l.T.Context(), l.Admin(), &cloudformation.CreateStackInput{StackName: stackName, TemplateBody: `
Resources:
  Group: {Type: "AWS::EC2::SecurityGroup", Properties: {GroupDescription: the office, VpcId: ` + vpc + `}}
Outputs: {Group: {Value: !GetAtt Group.GroupId}}
`})
	require.NoError(l.T, err)
	stack, err := l.CloudFormation.Wait(l.T.Context(), stackName)
	require.NoError(l.T, err)
	require.Equal(l.T, "CREATE_COMPLETE", stack.StackStatus)
	return stack.Outputs[0].OutputValue
}
