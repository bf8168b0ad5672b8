package resume

// What people can do about a stack that failed, in the words of its status.

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/drover-run/drover/shared/stacks"
)

// advice is the next step, as one more line each; empty where AWS's reason says all.
func advice(stackName, stackStatus string, failure stacks.Failure) string {
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
		lines = append(lines, "left over: "+at, "next: remove what holds them; the deletion goes on with the next try")
	case "UPDATE_ROLLBACK_COMPLETE":
		lines = append(lines, "next: it is what it was before; mend the cause, then upload a spec or start drover-converge: drover does not try this again by itself")
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

// causes are CloudFormation's own codes of why a resource failed that are not plain from its words, with what to do.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
var causes = map[string]string{
	"ServiceLimitExceeded": "a quota of the account is used up: raise it in Service Quotas, or free some of it",
	"Throttling":           "AWS asked for less, for longer than CloudFormation tries",
	"AccessDenied":         "the role that CloudFormation acts as may not do this, or a policy of your organisation forbids it",
	"AlreadyExists":        "something of this name is there already that is not this stack's: remove or rename it",
}

var handlerError = regexp.MustCompile(`HandlerErrorCode: (\w+)\)`)

// code is the HandlerErrorCode that CloudFormation puts at the end of a resource's reason, or "".
func code(reason string) string {
	if found := handlerError.FindStringSubmatch(reason); found != nil {
		return found[1]
	}
	return ""
}
