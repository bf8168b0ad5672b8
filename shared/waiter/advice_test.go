package waiter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

func TestAdvice(t *testing.T) {
	const (
		interfaces = "aws ec2 describe-network-interfaces --filters "
		columns    = " --query 'NetworkInterfaces[].[NetworkInterfaceId,InterfaceType,Description,RequesterId]' --output text"
	)
	stuck := []stack.Stuck{{Resource: "Subnet0", Reason: "it has a dependency"}, {Resource: "Vpc", Reason: "so has this"}}
	tests := map[string]struct {
		status  string
		failure stack.Failure
		want    string
	}{
		"an existing stack without a known cause": {"UPDATE_FAILED", stack.Failure{Reason: "no"}, ""},
		"a quota": {"UPDATE_FAILED", stack.Failure{
			Reason: `Resource handler returned message: "no more" (RequestToken: 1, HandlerErrorCode: ServiceLimitExceeded)`,
		},
			"\na quota of the account is exhausted: request an increase in Service Quotas, or free part of it"},
		"a key that CloudWatch Logs may not use": {"UPDATE_FAILED", stack.Failure{
			Reason: "The specified KMS key does not exist or is not allowed to be used with Arn " +
				"'arn:aws:logs:eu-central-1:111122223333:log-group:x'",
		},
			"\nadd to the policy of the key in spec.controlPlane.logKeyARN: {\"Effect\": \"Allow\", \"Principal\": {\"Service\": " +
				"\"logs.eu-central-1.amazonaws.com\"}, \"Action\": [\"kms:Encrypt\", \"kms:Decrypt\", \"kms:ReEncrypt*\", " +
				"\"kms:GenerateDataKey*\", \"kms:Describe*\"], \"Resource\": \"*\", \"Condition\": {\"ArnEquals\": " +
				"{\"kms:EncryptionContext:aws:logs:arn\": \"arn:aws:logs:eu-central-1:111122223333:log-group:x\"}}}"},
		"a text that only resembles a code": {
			"UPDATE_FAILED", stack.Failure{Reason: "HandlerErrorCode: ServiceLimitExceeded is what I fear"}, "",
		},
		"leftovers of a deletion": {"DELETE_FAILED", stack.Failure{Reason: "x", Stuck: stuck},
			"\nnot deleted: Subnet0 (it has a dependency), Vpc (so has this)\nnext: remove what blocks them; drover continues the deletion " +
				"on the next retry"},
		"leftovers of a network in use": {"DELETE_FAILED", stack.Failure{Reason: "x", Stuck: []stack.Stuck{
			{Resource: "Public0", Reason: "in use", Type: "AWS::EC2::Subnet", ID: "subnet-1"}, {
				Resource: "Private0", Reason: "in use", Type: "AWS::EC2::Subnet", ID: "subnet-2",
			},
			{Resource: "Endpoints", Reason: "in use", Type: "AWS::EC2::SecurityGroup", ID: "sg-1"}, {
				Resource: "Attachment", Reason: "mapped", Type: "AWS::EC2::VPCGatewayAttachment", ID: "IGW|vpc-1",
			},
			{Resource: "Vpc", Reason: "in use", Type: "AWS::EC2::VPC", ID: "vpc-1"}, {
				Resource: "Role", Reason: "in use", Type: "AWS::IAM::Role", ID: "vpc-role",
			},
			{Resource: "Other", Reason: "no (HandlerErrorCode: AccessDenied)", Type: "AWS::EC2::VPC", ID: "vpc-2"},
		}},
			"\nnot deleted: Public0 (in use), Private0 (in use), Endpoints (in use), Attachment (mapped), Vpc (in use), Role (in use), Other (no " +
				"(HandlerErrorCode: AccessDenied))" +
				"\nto find what blocks it: " + interfaces + "Name=subnet-id,Values=subnet-1,subnet-2" + columns +
				"\nto find what blocks it: " + interfaces + "Name=group-id,Values=sg-1" + columns +
				"\nto find what blocks it: aws ec2 describe-security-groups --filters Name=ip-permission.group-id,Values=sg-1 --query " +
				"'SecurityGroups[].[GroupId,GroupName,Description]' --output text" +
				"\nto find what blocks it: " + interfaces + "Name=vpc-id,Values=vpc-1" + columns +
				"\nto find what blocks it: aws ec2 describe-security-groups --filters Name=vpc-id,Values=vpc-1 --query " +
				"'SecurityGroups[].[GroupId,GroupName,Description]' --output text" +
				"\nnext: remove what blocks them; drover continues the deletion on the next retry"},
		"a stuck rollback": {"UPDATE_ROLLBACK_FAILED", stack.Failure{Reason: "x", Stuck: stuck},
			"\nstuck at: Subnet0 (it has a dependency), Vpc (so has this)\nnext: fix that; drover continues the rollback on the next retry; or " +
				"skip them: aws cloudformation continue-update-rollback --stack-name drover-demo-network --resources-to-skip Subnet0 Vpc"},
		"a rollback without a stuck resource": {"UPDATE_ROLLBACK_FAILED", stack.Failure{Reason: "x"},
			"\nstuck at: AWS's reason\nnext: fix that; drover continues the rollback on the next retry"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, advice("drover-demo-network", test.status, test.failure, false))
		})
	}
}

// The advice for an upgrade's step does not suggest to converge: that does not continue an upgrade.
func TestAdviceOfUpgradeStep(t *testing.T) {
	const ends = "UPDATE_ROLLBACK_COMPLETE"
	require.Equal(t, "\nnext: CloudFormation rolled the stack back; fix the cause", advice("drover-demo-control-plane", ends, stack.Failure{
		Reason: "no",
	}, true))
	require.Contains(t, advice("drover-demo-control-plane", ends, stack.Failure{Reason: "no"}, false), "run drover converge demo:")
	arn := "arn:aws:states:eu-central-1:1:execution:drover-converge:"
	require.True(t, names.IsUpgradeStep("demo", arn+names.UpgradeStepExecution("demo", "x", 1, 0)))
	require.False(t, names.IsUpgradeStep("demo", arn+names.ConvergeExecution("demo", "v", "")))
	require.False(t, names.IsUpgradeStep("demo-upgrade", arn+names.ConvergeExecution("demo-upgrade", "v", "")))
}

// The reasons are from AWS's pages about failed launches.
func TestNoInstances(t *testing.T) {
	tests := map[string]struct{ why, advice string }{
		"vCPUs": {"You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket " +
			"that the specified instance type belongs to. " +
			"Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed.",
			"request an increase in Service Quotas"},
		"a quota of the group": {
			"Your quota allows for 0 more running instance(s). You requested at least 1. Launching EC2 instance failed.",
			"request an increase in Service Quotas",
		},
		"spot instances": {"Max spot instance count exceeded. Launching EC2 instance failed.", "request an increase in Service Quotas"},
		"a full zone": {"We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-central-1a). " +
			"Launching EC2 instance failed.",
			"name more instance types, or subnets of other zones"},
		"no spot capacity": {
			"There is no Spot capacity available that matches your request. Launching EC2 instance failed.", "name more instance types",
		},
		"a key": {
			"Instance became unhealthy while waiting for instance to be in InService state. " +
				"Termination Reason: Client.InternalError: Client error on launch", "service-linked role",
		},
		"anything else": {
			"The requested configuration is currently not supported.", "for its meaning see https://docs.aws.amazon.com/autoscaling/",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := NoInstances(test.why)
			require.Contains(t, got, "Auto Scaling could not launch an instance: "+strings.TrimRight(test.why, "."))
			require.Contains(t, got, test.advice)
		})
	}
}

func TestKeyAdvice(t *testing.T) {
	const arn = "arn:aws-cn:cloudformation:cn-north-1:111122223333:stack/drover-demo-pool-a/1"
	for why, isKey := range map[string]bool{
		"Client.InternalError: Client error on launch":                                     true,
		"Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state": true,
		"We currently do not have sufficient m7i.large capacity in the Availability Zone":  false,
		"You have requested more vCPU capacity than your current vCPU limit of 32 allows":  false,
		"Your quota allows for 0 more running instance(s). You requested at least 1.":      false,
	} {
		got := keyAdvice(why, arn)
		if !isKey {
			require.Empty(t, got, why)
			continue
		}
		list, found := strings.CutPrefix(got, "statements for its key policy: ")
		require.True(t, found, why)
		var statements []struct{ Principal struct{ AWS string } }
		require.NoError(t, json.Unmarshal([]byte("["+list+"]"), &statements))
		require.Len(t, statements, 2)
		for _, statement := range statements {
			require.Equal(t, "arn:aws-cn:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
				statement.Principal.AWS)
		}
		require.Empty(t, keyAdvice(why, ""), "without the account")
	}
}
