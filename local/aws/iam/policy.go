package iam

// The grammar of policy documents. Parsing is strict, because a condition that is dropped grants too much.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Policy is a parsed policy document.
type Policy struct {
	Version    string
	ID         string
	Statements []Statement
}

// Statement of a policy. Exactly one of each pair (Action, NotAction) is set.
type Statement struct {
	SID                       string
	Allow                     bool
	Actions, NotActions       []string
	Resources, NotResources   []string
	Principals, NotPrincipals *PrincipalSet
	Conditions                []Condition
	variables                 bool     // version 2012-10-17: ${…} are variables, not text
	actions, notActions       []string // in lower case: matching ignores case
}

// PrincipalSet is a Principal element.
type PrincipalSet struct {
	// Everyone is Principal: "*" or {"AWS": "*"}. Services match only by name.
	Everyone bool
	// AWS has ARNs and account IDs, Services names such as events.amazonaws.com, Federated identity providers.
	AWS, Services, Federated []string
}

// Condition is one operator with one key.
type Condition struct {
	// Operator without modifiers, such as StringLike.
	Operator string
	// IfExists, ForAllValues and ForAnyValue are the operator's modifiers.
	IfExists, ForAllValues, ForAnyValue bool
	Key                                 string
	Values                              []string
	key                                 string // in lower case
}

// ParsePolicy reads a policy document. resourceBased requires a Principal in each statement (resource and trust
// policies); otherwise a Principal is an error. Errors have the code MalformedPolicyDocument. Policies are immutable, so
// a process caches them by document for all its accounts.
func ParsePolicy(document string, resourceBased bool) (*Policy, error) {
	if p := parsedPolicies.get(text{document, resourceBased}); p != nil {
		return p, nil
	}
	p, err := parsePolicy([]byte(document), resourceBased)
	if err != nil {
		return nil, &Error{Code: "MalformedPolicyDocument", Message: err.Error(), Status: 400}
	}
	parsedPolicies.put(text{document, resourceBased}, p)
	return p, nil
}

type text struct {
	document      string
	resourceBased bool
}

// parsedPolicies caches the policies that were parsed last. Most documents occur in one account only.
var parsedPolicies policies

type policies struct {
	mu   sync.Mutex
	read map[text]*Policy
}

// maxPolicies limits the cache.
const maxPolicies = 500

func (p *policies) get(of text) *Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read[of]
}

func (p *policies) put(of text, policy *Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil || len(p.read) == maxPolicies {
		p.read = map[text]*Policy{}
	}
	p.read[of] = policy
}

// ParsePolicyValue reads a policy from a decoded JSON value, as in template properties. A string is JSON text.
func ParsePolicyValue(document any, resourceBased bool) (*Policy, string, error) {
	text, ok := document.(string)
	if !ok {
		b, err := json.Marshal(document)
		if err != nil {
			return nil, "", &Error{Code: "MalformedPolicyDocument", Message: err.Error(), Status: 400}
		}
		text = string(b)
	}
	p, err := ParsePolicy(text, resourceBased)
	return p, text, err
}

func parsePolicy(document []byte, resourceBased bool) (*Policy, error) {
	var raw struct {
		Version   string
		ID        string `json:"Id"`
		Statement oneOrMore[rawStatement]
	}
	if err := decodeStrict(document, &raw); err != nil {
		return nil, fmt.Errorf("syntax errors in policy: %w", err)
	}
	switch raw.Version {
	case "", "2008-10-17", "2012-10-17":
	default:
		return nil, fmt.Errorf("the policy must contain a valid version string, not %q", raw.Version)
	}
	if len(raw.Statement) == 0 {
		return nil, fmt.Errorf("the policy has no statement")
	}
	p := &Policy{Version: raw.Version, ID: raw.ID}
	for i, rs := range raw.Statement {
		s, err := rs.statement(resourceBased)
		if err != nil {
			return nil, fmt.Errorf("statement %d: %w", i+1, err)
		}
		s.variables = raw.Version == "2012-10-17"
		p.Statements = append(p.Statements, s)
	}
	return p, nil
}

type rawStatement struct {
	SID          string `json:"Sid"`
	Effect       string
	Action       oneOrMore[string]
	NotAction    oneOrMore[string]
	Resource     oneOrMore[string]
	NotResource  oneOrMore[string]
	Principal    *rawPrincipal
	NotPrincipal *rawPrincipal
	Condition    map[string]map[string]oneOrMore[scalar]
}

func (rs rawStatement) statement(resourceBased bool) (Statement, error) {
	s := Statement{
		SID: rs.SID, Actions: rs.Action, NotActions: rs.NotAction, Resources: rs.Resource, NotResources: rs.NotResource,
		Principals: (*PrincipalSet)(rs.Principal), NotPrincipals: (*PrincipalSet)(rs.NotPrincipal), actions: lower(rs.Action),
		notActions: lower(rs.NotAction),
	}
	switch rs.Effect {
	case "Allow":
		s.Allow = true
	case "Deny":
	default:
		return s, fmt.Errorf("effect must be Allow or Deny, not %q", rs.Effect)
	}
	if (len(rs.Action) == 0) == (len(rs.NotAction) == 0) {
		return s, fmt.Errorf("exactly one of Action and NotAction is required")
	}
	if len(rs.Resource) > 0 && len(rs.NotResource) > 0 {
		return s, fmt.Errorf("Resource and NotResource exclude each other")
	}
	if resourceBased {
		if (rs.Principal == nil) == (rs.NotPrincipal == nil) {
			return s, fmt.Errorf("exactly one of Principal and NotPrincipal is required")
		}
	} else {
		if rs.Principal != nil || rs.NotPrincipal != nil {
			return s, fmt.Errorf("policy document should not specify a principal")
		}
		if len(rs.Resource) == 0 && len(rs.NotResource) == 0 {
			return s, fmt.Errorf("policy statement must contain resources")
		}
	}
	for operator, keys := range rs.Condition {
		for key, values := range keys {
			c := Condition{Operator: operator, Key: key, key: strings.ToLower(key)}
			c.Operator, c.IfExists = strings.CutSuffix(c.Operator, "IfExists")
			if rest, ok := strings.CutPrefix(c.Operator, "ForAllValues:"); ok {
				c.Operator, c.ForAllValues = rest, true
			} else if rest, ok := strings.CutPrefix(c.Operator, "ForAnyValue:"); ok {
				c.Operator, c.ForAnyValue = rest, true
			}
			if _, ok := operators[c.Operator]; !ok && c.Operator != "Null" {
				return s, fmt.Errorf("condition operator %q is unknown", operator)
			}
			for _, v := range values {
				c.Values = append(c.Values, string(v))
			}
			s.Conditions = append(s.Conditions, c)
		}
	}
	return s, nil
}

func lower(list []string) []string {
	folded := make([]string, len(list))
	for i, s := range list {
		folded[i] = strings.ToLower(s)
	}
	return folded
}

// oneOrMore is a JSON value or a list of values.
type oneOrMore[T any] []T

func (l *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var many []T
		if err := decodeStrict(b, &many); err != nil {
			return err
		}
		*l = many
		return nil
	}
	var one T
	if err := decodeStrict(b, &one); err != nil {
		return err
	}
	*l = []T{one}
	return nil
}

// scalar is a condition value. JSON booleans and numbers stand for their text.
type scalar string

func (s *scalar) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(s))
	case '{', '[', 'n':
		return fmt.Errorf("a condition value is a string, a number or a boolean, not %s", b)
	}
	*s = scalar(b)
	return nil
}

type rawPrincipal PrincipalSet

func (p *rawPrincipal) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		if s != "*" {
			return fmt.Errorf("principal %q must be \"*\" or an object", s)
		}
		p.Everyone = true
		return nil
	}
	var sets struct{ AWS, Service, Federated, CanonicalUser oneOrMore[string] }
	if err := decodeStrict(b, &sets); err != nil {
		return err
	}
	if len(sets.CanonicalUser) > 0 {
		return fmt.Errorf("principals by CanonicalUser are not supported by the local account")
	}
	for _, a := range sets.AWS {
		if a == "*" {
			p.Everyone = true
		}
	}
	p.AWS, p.Services, p.Federated = sets.AWS, sets.Service, sets.Federated
	return nil
}

func decodeStrict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("text after the end of the document")
	}
	return nil
}
