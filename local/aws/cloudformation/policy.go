package cloudformation

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Stack policies: the resources that updates may change.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/protect-stack-resources.html

type stackPolicy struct {
	body       string
	statements []policyStatement
}

type policyStatement struct {
	Effect                string
	Action, NotAction     texts
	Resource, NotResource texts
	Principal             any
	Condition             map[string]map[string]texts
}

// texts is a string or a list of strings.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	var many []string
	err := json.Unmarshal(data, &many)
	*t = many
	return err
}

const maxPolicy = 16_384

// parsePolicy reads a stack policy.
func parsePolicy(body string) (*stackPolicy, error) {
	malformed := func(why string) error { return invalid("Error validating stack policy: %s", why) }
	if len(body) > maxPolicy {
		return nil, malformed("the policy is too large")
	}
	var document struct{ Statement []policyStatement }
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		return nil, malformed(err.Error())
	}
	if len(document.Statement) == 0 {
		return nil, malformed("Statement is missing")
	}
	for _, statement := range document.Statement {
		switch {
		case statement.Effect != "Allow" && statement.Effect != "Deny":
			return nil, malformed("Effect must be Allow or Deny")
		case (len(statement.Action) == 0) == (len(statement.NotAction) == 0):
			return nil, malformed("one of Action and NotAction is needed")
		case (len(statement.Resource) == 0) == (len(statement.NotResource) == 0):
			return nil, malformed("one of Resource and NotResource is needed")
		case statement.Principal != "*":
			return nil, malformed("Principal must be *")
		}
		for _, action := range append(slices.Clone(statement.Action), statement.NotAction...) {
			if !slices.Contains([]string{updateModify, updateReplace, updateDelete, "Update:*"}, action) {
				return nil, malformed("unknown action " + action)
			}
		}
		for operator, keys := range statement.Condition {
			if operator != "StringEquals" && operator != "StringLike" {
				return nil, malformed("unknown condition " + operator)
			}
			for key := range keys {
				if key != "ResourceType" {
					return nil, malformed("unknown condition key " + key)
				}
			}
		}
	}
	return &stackPolicy{body: body, statements: document.Statement}, nil
}

// Actions of stack policies.
const (
	updateModify  = "Update:Modify"
	updateReplace = "Update:Replace"
	updateDelete  = "Update:Delete"
)

// allows reports whether the policy allows an action of an update on a resource. Without a policy everything is allowed. With one, only
// what it allows.
func (p *stackPolicy) allows(action, logicalID, resourceType string) bool {
	if p == nil {
		return true
	}
	allowed := false
	for _, statement := range p.statements {
		if !statement.applies(action, logicalID, resourceType) {
			continue
		}
		if statement.Effect == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

func (s policyStatement) applies(action, logicalID, resourceType string) bool {
	resource := "LogicalResourceId/" + logicalID
	if len(s.NotAction) > 0 && matches(s.NotAction, action) || len(s.Action) > 0 && !matches(s.Action, action) {
		return false
	}
	if len(s.NotResource) > 0 && matches(s.NotResource, resource) || len(s.Resource) > 0 && !matches(s.Resource, resource) {
		return false
	}
	for _, keys := range s.Condition {
		for _, wanted := range keys {
			if !matches(wanted, resourceType) {
				return false
			}
		}
	}
	return true
}

// matches reports whether a pattern with * and ? matches.
func matches(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		expression := regexp.QuoteMeta(pattern)
		expression = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(expression)
		return regexp.MustCompile(`^` + expression + `$`).MatchString(value)
	})
}

// deniedReason returns the status reason of a resource that a stack policy protects.
func deniedReason(action, logicalID string) string {
	return "Action denied by stack policy: no statement allows [" + action + "] for resource [LogicalResourceId/" + logicalID + "]"
}
