package waiter

// What an operator can do about a failed stack. The status shows these texts.

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// advice returns the next steps, one line each. It is empty where AWS's reason is enough. For a step of an upgrade it does not suggest to
// converge: the upgrade states how it continues.
func advice(stackName, stackStatus string, failure stack.Failure, upgrading bool) string {
	var lines []string
	if text, ok := causeAdvice[errorCode(failure.Reason)]; ok {
		lines = append(lines, text)
	}
	if group := logKeyRefused.FindStringSubmatch(failure.Reason); group != nil {
		lines = append(lines, logKeyAdvice(group[1]))
	}
	var resources, stuck []string
	for _, s := range failure.Stuck {
		resources, stuck = append(resources, s.Resource), append(stuck, s.Resource+" ("+s.Reason+")")
	}
	where := "AWS's reason"
	if len(stuck) > 0 {
		where = strings.Join(stuck, ", ")
	}
	switch stackStatus {
	case stack.CreateFailed, stack.RollbackComplete:
		lines = append(lines, "next: drover deletes and recreates the stack on the next retry")
	case stack.RollbackFailed, stack.DeleteFailed:
		lines = append(lines, "not deleted: "+where)
		for _, command := range blockerCommands(failure.Stuck) {
			lines = append(lines, "to find what blocks it: "+command)
		}
		lines = append(lines, "next: remove what blocks them; drover continues the deletion on the next retry")
	case stack.UpdateRollbackComplete:
		next := "next: CloudFormation rolled the stack back; fix the cause"
		if !upgrading {
			cluster, _, _ := names.SplitStack(stackName)
			next += fmt.Sprintf(", then upload a spec or run drover converge %s: drover does not retry by itself", cluster)
		}
		lines = append(lines, next)
	case stack.UpdateRollbackFailed:
		next := "next: fix that; drover continues the rollback on the next retry"
		if len(resources) > 0 {
			next += fmt.Sprintf("; or skip them: aws cloudformation continue-update-rollback --stack-name %s --resources-to-skip %s",
				stackName, strings.Join(resources, " "))
		}
		lines = append(lines, "stuck at: "+where, next)
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n" + strings.Join(lines, "\n")
}

// causeAdvice says what to do about CloudFormation's error codes whose reasons do not state it.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
var causeAdvice = map[string]string{
	"ServiceLimitExceeded": "a quota of the account is exhausted: request an increase in Service Quotas, or free part of it",
	"Throttling":           "AWS throttled the requests for longer than CloudFormation retries",
	"AccessDenied":         "the role of CloudFormation may not do this, or a policy of your organization forbids it",
	"AlreadyExists":        "a resource with this name exists outside this stack: find its owner; rename it, or delete it if it is not needed",
}

// logKeyRefused is CloudWatch Logs' reason for a key that it may not use, with the ARN of the log group.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
var logKeyRefused = regexp.MustCompile(`KMS key does not exist or is not allowed to be used with (?:Arn|LogGroup) '(arn:[^']+)'`)

// logKeyAdvice returns the statement that the policy of a key lacks.
func logKeyAdvice(group string) string {
	region := ""
	if parts := strings.Split(group, ":"); len(parts) > 3 {
		region = parts[3]
	}
	return fmt.Sprintf(`add to the policy of the key in spec.controlPlane.logKeyARN: {"Effect": "Allow", "Principal": {"Service": `+
		`"logs.%s.amazonaws.com"}, "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"], `+
		`"Resource": "*", "Condition": {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": "%s"}}}`, region, group)
}

// permanentCodes are error codes of CloudFormation whose causes do not pass by themselves.
var permanentCodes = []string{"InvalidRequest", "NotUpdatable", "AlreadyExists", "NotFound", "ServiceLimitExceeded", "InvalidCredentials"}

// NoInstances describes why a pool's group launches no instances: AWS's reason, and what to do.
func NoInstances(why string) string {
	return "Auto Scaling could not launch an instance: " + strings.TrimRight(why, ". ") + ": " + launchAdvice(why)
}

// keyReason matches EC2's reasons that may be about a KMS key.
var keyReason = regexp.MustCompile(`(?i)\bClient\.InternalError\b|\bInvalidKMSKey\b|\bKMS\b|encrypt`)

// keyAdvice returns the statements that let Auto Scaling use a KMS key, if EC2's reason may be about one. The ARN of the stack has the
// account.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html
func keyAdvice(why, stackARN string) string {
	arn := strings.Split(stackARN, ":")
	if !keyReason.MatchString(why) || len(arn) < 5 {
		return ""
	}
	role := "arn:" + arn[1] + ":iam::" + arn[4] + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
	return "statements for its key policy: " +
		`{"Effect": "Allow", "Principal": {"AWS": "` + role + `"}, "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", ` +
		`"kms:GenerateDataKey*", "kms:DescribeKey"], "Resource": "*"}, ` +
		`{"Effect": "Allow", "Principal": {"AWS": "` + role + `"}, "Action": "kms:CreateGrant", "Resource": "*", ` +
		`"Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}}}`
}

// launchAdvice returns what to do about EC2's reason.
func launchAdvice(why string) string {
	for _, refusal := range refusals {
		if refusal.words.MatchString(why) {
			return refusal.advice
		}
	}
	return "for its meaning see https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html"
}

// refusals are EC2's reasons for a failed launch. Auto Scaling passes on only their text. Texts about quotas mention capacity too, so the
// order matters.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
var refusals = []struct {
	words  *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)\b(limit|quota|max spot instance count exceeded)\b`), causeAdvice["ServiceLimitExceeded"]},
	{keyReason,
		"the KMS key of the volumes or the image must allow Auto Scaling's service-linked role to use it"},
	{regexp.MustCompile(`(?i)\bcapacity\b`), "EC2 has no capacity for them there now: name more instance types, or subnets of other zones, " +
		"in the pool, or wait"},
}

var handlerError = regexp.MustCompile(`HandlerErrorCode: (\w+)\)`)

// errorCode returns the HandlerErrorCode at the end of a resource's reason, or "".
func errorCode(reason string) string {
	if found := handlerError.FindStringSubmatch(reason); found != nil {
		return found[1]
	}
	return ""
}
