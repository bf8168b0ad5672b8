package lives

import (
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
)

// CreateNetwork creates a VPC with two private subnets outside drover, in a stack of the account's owner.
func (l *Life) CreateNetwork(stackName, region string) (vpc, subnets string) {
	l.T.Helper()
	_, err := l.CloudFormation.CreateStack(l.T.Context(), l.Admin(), &cloudformation.CreateStackInput{StackName: stackName, TemplateBody: `
Resources:
  Vpc: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.9.0.0/16, EnableDnsSupport: true, EnableDnsHostnames: true}}
  A: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.0.0/20, AvailabilityZone: ` + region + `a}}
  B: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.16.0/20, AvailabilityZone: ` + region + `b}}
Outputs:
  Subnets: {Value: !Join [", ", [!Ref A, !Ref B]]}
  Vpc: {Value: !Ref Vpc}
`})
	require.NoError(l.T, err)
	stack, err := l.CloudFormation.Wait(l.T.Context(), stackName)
	require.NoError(l.T, err)
	require.Equal(l.T, "CREATE_COMPLETE", stack.StackStatus)
	for _, output := range stack.Outputs {
		if output.OutputKey == "Vpc" {
			vpc = output.OutputValue
		} else {
			subnets = output.OutputValue
		}
	}
	return vpc, subnets
}

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
