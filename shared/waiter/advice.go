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
	if words, ok := causes[code(failure.Reason)]; ok {
		lines = append(lines, words)
	}
	var resources, stuck []string
	for _, s := range failure.Stuck {
		resources, stuck = append(resources, s.Resource), append(stuck, s.Resource+" ("+s.Reason+")")
	}
	at := "AWS's reason"
	if len(stuck) > 0 {
		at = strings.Join(stuck, ", ")
	}
	switch stackStatus {
	case "CREATE_FAILED", "ROLLBACK_COMPLETE":
		lines = append(lines, "next: it is deleted and created anew with the next try")
	case "ROLLBACK_FAILED", "DELETE_FAILED":
		lines = append(lines, "left over: "+at)
		for _, command := range holders(failure.Stuck) {
			lines = append(lines, "what is in the way there: "+command)
		}
		lines = append(lines, "next: remove what holds them; the deletion goes on with the next try")
	case "UPDATE_ROLLBACK_COMPLETE":
		next := "next: it is what it was before; mend the cause"
		if !upgrading {
			cluster, _, _ := names.SplitStack(stackName)
			next += fmt.Sprintf(", then upload a spec or run drover converge %s: drover does not try this again by itself", cluster)
		}
		lines = append(lines, next)
	case "UPDATE_ROLLBACK_FAILED":
		next := "next: mend that; the rollback goes on with the next try"
		if len(resources) > 0 {
			next += fmt.Sprintf("; or leave them as they are: aws cloudformation continue-update-rollback --stack-name %s --resources-to-skip %s",
				stackName, strings.Join(resources, " "))
		}
		lines = append(lines, "stuck at: "+at, next)
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n" + strings.Join(lines, "\n")
}

// causes are CloudFormation's error codes whose reasons do not state what to do.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
var causes = map[string]string{
	"ServiceLimitExceeded": "a quota of the account is used up: raise it in Service Quotas, or free some of it",
	"Throttling":           "AWS asked for less, for longer than CloudFormation tries",
	"AccessDenied":         "the role that CloudFormation acts as may not do this, or a policy of your organisation forbids it",
	"AlreadyExists": "something of this name is there already that is not this stack's: see whose it is; remove or rename it when " +
		"nobody needs it any more",
}

// NoInstances describes why a pool's group launches no instances: AWS's reason, and what to do.
func NoInstances(why string) string {
	return "Auto Scaling got no instance: " + strings.TrimRight(why, ". ") + ": " + cause(why)
}

// cause returns what to do about EC2's reason.
func cause(why string) string {
	for _, refusal := range refusals {
		if refusal.words.MatchString(why) {
			return refusal.advice
		}
	}
	return "what it means: https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html"
}

// refusals are EC2's reasons for a failed launch. Auto Scaling passes on only their text. Texts about quotas mention capacity too, so the
// order matters.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
var refusals = []struct {
	words  *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)\b(limit|quota|max spot instance count exceeded)\b`), causes["ServiceLimitExceeded"]},
	{regexp.MustCompile(`(?i)\bClient\.InternalError\b|\bKMS\b|encrypt`),
		"the key that the volumes or the image are encrypted with must let " +
			"Auto Scaling's service-linked role use it"},
	{regexp.MustCompile(`(?i)\bcapacity\b`), "EC2 has none of them there now: name more instance types or subnets of other zones " +
		"in the pool, or wait"},
}

var handlerError = regexp.MustCompile(`HandlerErrorCode: (\w+)\)`)

// code returns the HandlerErrorCode at the end of a resource's reason, or "".
func code(reason string) string {
	if found := handlerError.FindStringSubmatch(reason); found != nil {
		return found[1]
	}
	return ""
}
