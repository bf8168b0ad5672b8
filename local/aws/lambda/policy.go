package lambda

// Resource policies: which other principals may invoke a function.
// https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
)

// statement is one permission of a resource policy.
type statement struct {
	Sid       string
	Effect    string
	Principal any
	Action    string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

type permission struct {
	FunctionName, StatementID, Action, Principal, SourceArn, SourceAccount string
}

var accountForm = regexp.MustCompile(`^\d{12}$`)

func (f *function) newStatement(p permission) (statement, error) {
	if p.StatementID == "" || p.Principal == "" || !strings.HasPrefix(p.Action, "lambda:") && p.Action != "*" {
		return statement{}, invalid("A permission needs a StatementId, a Principal and an Action that begins with lambda:")
	}
	s := statement{Sid: p.StatementID, Effect: "Allow", Action: p.Action, Resource: f.arn, Condition: map[string]map[string]string{}}
	switch {
	case p.Principal == "*":
		s.Principal = "*"
	case accountForm.MatchString(p.Principal):
		s.Principal = map[string]string{"AWS": "arn:aws:iam::" + p.Principal + ":root"}
	case strings.HasPrefix(p.Principal, "arn:"):
		s.Principal = map[string]string{"AWS": p.Principal}
	default:
		s.Principal = map[string]string{"Service": p.Principal}
	}
	if p.SourceArn != "" {
		s.Condition["ArnLike"] = map[string]string{"AWS:SourceArn": p.SourceArn}
	}
	if p.SourceAccount != "" {
		s.Condition["StringEquals"] = map[string]string{"AWS:SourceAccount": p.SourceAccount}
	}
	return s, nil
}

func (f *function) addPermission(p permission) (statement, error) {
	s, err := f.newStatement(p)
	if err != nil {
		return s, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.policy, func(o statement) bool { return o.Sid == s.Sid }) {
		return s, conflict("The statement id (%s) provided already exists. "+
			"Please provide a new statement id, or remove the existing statement.", s.Sid)
	}
	f.policy = append(f.policy, s)
	return s, nil
}

// removePermission reports whether the statement existed.
func (f *function) removePermission(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.policy)
	f.policy = slices.DeleteFunc(f.policy, func(s statement) bool { return s.Sid == id })
	return len(f.policy) < n
}

// policyText returns the policy as JSON, or "" if there are no statements.
func (f *function) policyText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.policy) == 0 {
		return ""
	}
	raw, _ := json.Marshal(struct { // plain data
		Version   string
		ID        string `json:"Id"`
		Statement []statement
	}{"2012-10-17", "default", f.policy})
	return string(raw)
}

func (f *function) resourcePolicy() (*iam.Policy, error) {
	text := f.policyText()
	if text == "" {
		return nil, nil
	}
	return iam.ParsePolicy(text, true)
}

func asText(s statement) string {
	raw, _ := json.Marshal(s) // plain data
	return string(raw)
}

func noPolicy() error {
	return &iam.Error{Code: "ResourceNotFoundException", Message: "The resource you requested does not exist.", Status: http.StatusNotFound}
}
