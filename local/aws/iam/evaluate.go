package iam

// Policy evaluation: which statements apply to a request, and their combined decision.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Principal is the source of a request, in the terms of Principal elements.
type Principal struct {
	// ARN of the caller: arn:…:sts::…:assumed-role/role/session or arn:…:iam::…:user/name. Empty for services.
	ARN string
	// RoleARN is the role of an assumed role.
	RoleARN string
	// Account is the account ID of the caller.
	Account string
	// Service is a name such as events.amazonaws.com, if a service calls on its own behalf.
	Service string
	// Federated is the provider's ARN in sts:AssumeRoleWithWebIdentity.
	Federated string
}

// Decision is the result of one policy, or of several together.
type Decision int

// Decisions, from the weakest to the strongest. NoMatch is the implicit deny. Delegated is the Allow of a resource
// policy for the caller's whole account: it leaves the decision to the caller's identity policies.
const (
	NoMatch Decision = iota
	Delegated
	Allowed
	Denied
)

// EvaluateResourcePolicy returns the decision of one resource policy. context has condition keys. Values joins the
// values of a key that has several.
func EvaluateResourcePolicy(policy *Policy, principal Principal, action, resource string, context map[string]string) Decision {
	if policy == nil {
		return NoMatch
	}
	return policy.evaluate(newRequest(action, resource, &principal, in(context)))
}

// Values joins the values of a condition key that has several, such as aws:TagKeys.
func Values(values ...string) string { return strings.Join(values, "\n") }

// RequestTags returns the condition keys of a request's tags. Tags that AWS itself sets do not count.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_tags.html#access_tags_control-requests
func RequestTags(tags map[string]string) map[string]string {
	context := map[string]string{}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if !strings.HasPrefix(key, "aws:") {
			context["aws:RequestTag/"+key] = tags[key]
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		context["aws:TagKeys"] = Values(keys...)
	}
	return context
}

// request is what policies decide. principal is nil for identity policies, where it always matches.
type request struct {
	action, resource string // the action in lower case
	principal        *Principal
	context          conditionKeys
}

func newRequest(action, resource string, principal *Principal, context conditionKeys) *request {
	return &request{strings.ToLower(action), resource, principal, context}
}

// as returns the request with another principal.
func (r request) as(principal *Principal) *request {
	r.principal = principal
	return &r
}

// conditionKeys looks up a condition key in lower case. Most statements look up none, because they have neither
// condition nor variable.
type conditionKeys func(key string) (value string, found bool)

// in looks up keys in a map, ignoring their case.
func in(context map[string]string) conditionKeys {
	return func(key string) (string, bool) { return find(context, key) }
}

func find(context map[string]string, key string) (value string, found bool) {
	for name, value := range context {
		if len(name) == len(key) && strings.EqualFold(name, key) {
			return value, true
		}
	}
	return "", false
}

func (k conditionKeys) values(key string) []string {
	if value, found := k(key); found {
		return strings.Split(value, "\n")
	}
	return nil
}

func (p *Policy) evaluate(r *request) Decision {
	decision := NoMatch
	for i := range p.Statements {
		s := &p.Statements[i]
		match := Allowed
		if r.principal != nil {
			match = s.matchPrincipal(r.principal)
		}
		if match == NoMatch || !s.matches(r) {
			continue
		}
		if !s.Allow {
			return Denied
		}
		decision = max(decision, match)
	}
	return decision
}

// reportAllowing calls OnAllow for each statement of a role's policy that allows a request.
func (s *Service) reportAllowing(role string, p *Policy, r *request) {
	if s.OnAllow == nil {
		return
	}
	for i := range p.Statements {
		if statement := &p.Statements[i]; statement.Allow && statement.matches(r) {
			s.OnAllow(role, statement.SID)
		}
	}
}

func (s *Statement) matches(r *request) bool {
	if len(s.actions) > 0 && !anyGlob(s.actions, r.action) || len(s.notActions) > 0 && anyGlob(s.notActions, r.action) {
		return false
	}
	if len(s.Resources) > 0 && !s.anyResource(s.Resources, r) || len(s.NotResources) > 0 && s.anyResource(s.NotResources, r) {
		return false
	}
	for _, c := range s.Conditions {
		if !c.holds(r, s.variables) {
			return false
		}
	}
	return true
}

// anyGlob matches actions, which ignore case: both arguments are in lower case.
func anyGlob(patterns []string, action string) bool {
	for _, p := range patterns {
		if glob(p, action) {
			return true
		}
	}
	return false
}

func (s *Statement) anyResource(patterns []string, r *request) bool {
	for _, p := range patterns {
		if s.variables {
			expanded, ok := expand(p, r.context)
			if !ok {
				continue
			}
			p = expanded
		}
		if glob(p, r.resource) {
			return true
		}
	}
	return false
}

func (s *Statement) matchPrincipal(p *Principal) Decision {
	switch {
	case s.Principals != nil:
		return s.Principals.match(p)
	case s.NotPrincipals != nil && s.NotPrincipals.match(p) == NoMatch:
		return Allowed
	}
	return NoMatch
}

// match returns Allowed for a principal that is named, and Delegated for one whose account is named.
func (set *PrincipalSet) match(p *Principal) Decision {
	matched := set.Everyone || p.Service != "" && contains(set.Services, p.Service) || p.Federated != "" &&
		contains(set.Federated, p.Federated) ||
		p.ARN != "" && contains(set.AWS, p.ARN) || p.RoleARN != "" && contains(set.AWS, p.RoleARN)
	if matched {
		return Allowed
	}
	for _, arn := range set.AWS {
		if p.Account != "" && (arn == p.Account || strings.HasSuffix(arn, ":iam::"+p.Account+":root")) {
			return Delegated
		}
	}
	return NoMatch
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Substituted values may have * and ?, which then match themselves. These runes represent them in the pattern.
const (
	literalStar     = '\uE000'
	literalQuestion = '\uE001'
	literalDollar   = '\uE002'
)

var literals = strings.NewReplacer("*", string(literalStar), "?", string(literalQuestion))
var unliterals = strings.NewReplacer(string(literalStar), "*", string(literalQuestion), "?", string(literalDollar), "$")

// expand replaces policy variables: ${key}, ${key, 'default'}, and ${*}, ${?}, ${$} for the characters themselves. It
// returns false if a variable has no value: the pattern then matches nothing.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
func expand(pattern string, context conditionKeys) (string, bool) {
	if !strings.Contains(pattern, "${") {
		return pattern, true
	}
	var out strings.Builder
	for {
		start := strings.Index(pattern, "${")
		if start < 0 {
			break
		}
		end := strings.Index(pattern[start:], "}")
		if end < 0 {
			break
		}
		name := pattern[start+2 : start+end]
		out.WriteString(pattern[:start])
		pattern = pattern[start+end+1:]
		switch name {
		case "*":
			out.WriteRune(literalStar)
			continue
		case "?":
			out.WriteRune(literalQuestion)
			continue
		case "$":
			out.WriteRune(literalDollar)
			continue
		}
		name, fallback, hasFallback := strings.Cut(name, ",")
		values := context.values(strings.ToLower(strings.TrimSpace(name)))
		switch {
		case len(values) == 1:
			out.WriteString(literals.Replace(values[0]))
		case hasFallback && len(values) == 0:
			out.WriteString(literals.Replace(strings.Trim(strings.TrimSpace(fallback), "'")))
		default:
			return "", false
		}
	}
	out.WriteString(pattern)
	return out.String(), true
}

// glob matches * (any characters) and ? (one character).
func glob(pattern, s string) bool {
	i, j := 0, 0
	for i < len(pattern) && pattern[i] < utf8.RuneSelf && pattern[i] != '*' && pattern[i] != '?' { // characters that match themselves
		if j == len(s) || pattern[i] != s[j] {
			return false
		}
		i++
		j++
	}
	if i == len(pattern) || pattern[i:] == "*" {
		return i < len(pattern) || j == len(s)
	}
	star, mark := -1, 0 // the position of the last *, and how far it reaches
	for j < len(s) {
		p, wide := utf8.DecodeRuneInString(pattern[i:])
		t, width := utf8.DecodeRuneInString(s[j:])
		switch {
		case wide > 0 && p == '*':
			star, mark = i, j
			i++
		case wide > 0 && (p == '?' || same(p, t)):
			i += wide
			j += width
		case star >= 0:
			_, width = utf8.DecodeRuneInString(s[mark:])
			mark += width
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

func same(p, t rune) bool {
	switch p {
	case literalStar:
		return t == '*'
	case literalQuestion:
		return t == '?'
	case literalDollar:
		return t == '$'
	}
	return p == t
}
