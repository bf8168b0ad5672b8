package eks

// Access entries: the Kubernetes identities of IAM principals in a cluster, and their access policies.
// https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/questions"
)

// Types of access entries.
const (
	standardEntry = "STANDARD"
	linuxEntry    = "EC2_LINUX"
)

// otherTypes are entry types of EKS that the local account does not support.
var otherTypes = []string{"EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}

// AccessEntry as the API describes it.
type AccessEntry struct {
	ClusterName      string            `json:"clusterName"`
	PrincipalArn     string            `json:"principalArn"`
	KubernetesGroups []string          `json:"kubernetesGroups"`
	AccessEntryARN   string            `json:"accessEntryArn"`
	CreatedAt        time.Time         `json:"createdAt"`
	ModifiedAt       time.Time         `json:"modifiedAt"`
	Tags             map[string]string `json:"tags"`
	Username         string            `json:"username"`
	Type             string            `json:"type"`
}

// AccessScope of an associated policy: cluster, or namespaces by name or prefix*.
type AccessScope struct {
	Type       string   `json:"type"`
	Namespaces []string `json:"namespaces"`
}

// AssociatedPolicy of an access entry.
type AssociatedPolicy struct {
	PolicyArn    string      `json:"policyArn"`
	AccessScope  AccessScope `json:"accessScope"`
	AssociatedAt time.Time   `json:"associatedAt"`
	ModifiedAt   time.Time   `json:"modifiedAt"`
}

type accessEntry struct {
	AccessEntry
	// roleID is the unique ID of the role when the entry was created. A later role of the same name has no access: "If you … recreate the
	// IAM principal, even if it has the same ARN, the access entry won't work". Empty for users and for roles of other accounts.
	// https://docs.aws.amazon.com/eks/latest/APIReference/API_AccessEntry.html
	roleID   string
	policies map[string]*AssociatedPolicy // by ARN
}

// policyRoles maps the access policies to the ClusterRoles with their permissions. AWS documents three of them as matching the user-facing
// roles of Kubernetes.
// https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
var policyRoles = map[string]string{
	"AmazonEKSClusterAdminPolicy": "cluster-admin",
	"AmazonEKSAdminPolicy":        "admin",
	"AmazonEKSEditPolicy":         "edit",
	"AmazonEKSViewPolicy":         "view",
	"AmazonEKSAdminViewPolicy":    "eks:admin-view",
}

func (s *Service) policyARN(name string) string {
	return fmt.Sprintf("arn:%s:eks::aws:cluster-access-policy/%s", s.config.Partition, name)
}

// policyGroup is the group of a principal with a policy.
func policyGroup(policy, namespace string) string {
	group := "eks:access-policy:" + policy
	if namespace != "" {
		group += ":" + namespace
	}
	return group
}

// bindPolicies binds the groups of cluster-wide access policies to their roles.
func bindPolicies(ctx context.Context, client dynamic.Interface) error {
	err := ensure(ctx, client, clusterRoleResource, map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "eks:admin-view"},
		"rules": []any{
			map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"get", "list", "watch"}},
			map[string]any{"nonResourceURLs": []any{"*"}, "verbs": []any{"get"}},
		},
	})
	for policy, role := range policyRoles {
		if err == nil {
			group := policyGroup(policy, "")
			err = ensure(ctx, client, clusterBindingResource, binding("ClusterRoleBinding", "", group, role, group))
		}
	}
	return err
}

func (s *Service) entryARN(cluster, principal, id string) string {
	// arn:aws:iam::111122223333:role/name is …/role/111122223333/name in the entry's ARN.
	parts := strings.SplitN(principal, ":", 6)
	if len(parts) < 6 {
		return s.arn(fmt.Sprintf("access-entry/%s/%s/%s", cluster, principal, id))
	}
	kind, name, _ := strings.Cut(parts[5], "/")
	return s.arn(fmt.Sprintf("access-entry/%s/%s/%s/%s/%s", cluster, kind, parts[4], name[strings.LastIndex(name, "/")+1:], id))
}

// admitCreator makes the creator of a cluster its administrator.
func (s *Service) admitCreator(c *cluster, caller iam.Caller) {
	principal := caller.RoleARN()
	if principal == "" {
		principal = caller.ARN()
	}
	e := s.newEntry(c.Name, principal, standardEntry, nil, "", nil)
	s.associate(e, s.policyARN("AmazonEKSClusterAdminPolicy"), AccessScope{Type: "cluster", Namespaces: []string{}})
	c.entries[principal] = e
}

func (s *Service) newEntry(cluster, principal, kind string, groups []string, username string, tags map[string]string) *accessEntry {
	if username == "" {
		username = s.defaultUsername(principal, kind)
	}
	if kind == linuxEntry {
		groups = []string{"system:nodes"}
	}
	now := s.config.Clock.Now()
	e := &accessEntry{AccessEntry: AccessEntry{
		ClusterName: cluster, PrincipalArn: principal, KubernetesGroups: append([]string{}, groups...), Username: username, Type: kind,
		AccessEntryARN: s.entryARN(cluster, principal, uuid()), CreatedAt: now, ModifiedAt: now, Tags: cloneTags(tags),
	}, policies: map[string]*AssociatedPolicy{}}
	if role, err := s.config.Identities.RoleByARN(principal); err == nil {
		e.roleID = role.ID
	}
	return e
}

// defaultUsername is the user name that EKS gives to a principal.
// https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
func (s *Service) defaultUsername(principal, kind string) string {
	if kind == linuxEntry {
		return "system:node:{{EC2PrivateDNSName}}"
	}
	account, role, isRole := strings.Cut(principal, ":role/")
	if !isRole {
		return principal
	}
	account = account[strings.LastIndex(account, ":")+1:]
	return fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/{{SessionName}}", s.config.Partition, account, role[strings.LastIndex(role, "/")+1:])
}

func (s *Service) associate(e *accessEntry, policy string, scope AccessScope) *AssociatedPolicy {
	now := s.config.Clock.Now()
	p := &AssociatedPolicy{PolicyArn: policy, AccessScope: scope, AssociatedAt: now, ModifiedAt: now}
	if was, ok := e.policies[policy]; ok {
		p.AssociatedAt = was.AssociatedAt
	}
	e.policies[policy] = p
	return p
}

// EntryInput names an access entry.
type EntryInput struct{ ClusterName, PrincipalArn string }

// AccessEntryOutput of the operations that return an access entry.
type AccessEntryOutput struct {
	AccessEntry *AccessEntry `json:"accessEntry"`
}

func (e *accessEntry) output() *AccessEntryOutput {
	d := e.AccessEntry
	d.KubernetesGroups, d.Tags = append([]string{}, e.KubernetesGroups...), cloneTags(e.Tags)
	return &AccessEntryOutput{&d}
}

// entry authorizes an action on an access entry and finds the entry. The caller holds s.mu.
func (s *Service) entry(caller iam.Caller, action, name, principal string) (*cluster, *accessEntry, error) {
	c, err := s.find(name)
	var e *accessEntry
	resource := s.entryARN(name, principal, "")
	if err == nil {
		if e = c.entries[principal]; e != nil {
			resource = e.AccessEntryARN
		}
	}
	if err := caller.Authorize("eks:"+action, resource, nil); err != nil {
		return nil, nil, err
	}
	if err == nil && e == nil {
		err = notFound("The specified principalArn could not be found. " +
			"You can view your available access entries with 'aws eks list-access-entries'.")
	}
	return c, e, err
}

// CreateAccessEntryInput of the API.
type CreateAccessEntryInput struct {
	ClusterName, PrincipalArn, Type, Username, ClientRequestToken string
	KubernetesGroups                                              []string
	Tags                                                          map[string]string
}

// CreateAccessEntry of the API.
func (s *Service) CreateAccessEntry(_ context.Context, caller iam.Caller, in CreateAccessEntryInput) (*AccessEntryOutput, error) {
	if err := caller.Authorize("eks:CreateAccessEntry", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	if len(in.Tags) > 0 {
		if err := caller.Authorize("eks:TagResource", s.entryARN(in.ClusterName, in.PrincipalArn, ""), nil); err != nil {
			return nil, err
		}
	}
	if in.Type == "" {
		in.Type = standardEntry
	}
	if err := s.authorizeEntry(caller, in.PrincipalArn, in.Type); err != nil {
		return nil, err
	}
	if err := s.checkEntry(in.PrincipalArn, in.Type, in.Username, in.KubernetesGroups); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findActive(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if _, ok := c.entries[in.PrincipalArn]; ok {
		return nil, inUse("The specified access entry resource is already in use on this cluster.")
	}
	e := s.newEntry(c.Name, in.PrincipalArn, in.Type, in.KubernetesGroups, in.Username, in.Tags)
	c.entries[in.PrincipalArn] = e
	return e.output(), nil
}

// authorizeEntry checks that the caller may pass the role of an entry. The service authorization reference lists iam:PassRole for
// CreateAccessEntry, and leaves open for which types: questions.EntryRoles. Users and roles of other accounts cannot be passed.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func (s *Service) authorizeEntry(caller iam.Caller, principal, kind string) error {
	if !strings.Contains(principal, "::"+s.config.Account+":role/") || kind != linuxEntry && s.config.Readings.Other(questions.EntryRoles) {
		return nil
	}
	return caller.PassRole(principal, "ec2.amazonaws.com")
}

var principalARN = regexp.MustCompile(`^arn:aws[\w-]*:iam::\d{12}:(role|user)/.+$`)

// reservedPrefixes are the prefixes that user names and groups may not have.
var reservedPrefixes = []string{"system:", "eks:", "aws:", "amazon:", "iam:"}

func (s *Service) checkEntry(principal, kind, username string, groups []string) error {
	switch {
	case slices.Contains(otherTypes, kind):
		return unsupportedError("access entries of type %s", kind)
	case kind != standardEntry && kind != linuxEntry:
		return invalid("The specified type %q is invalid", kind)
	case kind == linuxEntry && (username != "" || len(groups) > 0):
		return invalid("The username and the kubernetesGroups of an access entry of type EC2_LINUX cannot be set")
	case !principalARN.MatchString(principal):
		return invalid("The specified principalArn is invalid: invalid principal")
	}
	// A principal of another account is not looked up.
	exists := true
	switch own := "::" + s.config.Account + ":"; {
	case strings.Contains(principal, own+"role/"):
		_, err := s.config.Identities.RoleByARN(principal)
		exists = err == nil
	case strings.Contains(principal, own+"user/"):
		exists = s.config.Identities.UserByARN(principal)
	}
	if !exists {
		return invalid("The specified principalArn is invalid: invalid principal")
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(username, prefix) {
			return invalid("The username %q is invalid, it cannot start with %s", username, prefix)
		}
		for _, g := range groups {
			// Only prefixes of AWS and Kubernetes are reserved. All others are allowed.
			if strings.HasPrefix(g, prefix) {
				return invalid("The kubernetes group name %s is invalid, it cannot start with %s", g, prefix)
			}
		}
	}
	return nil
}

// ListAccessEntriesInput of the API.
type ListAccessEntriesInput struct {
	ClusterName, AssociatedPolicyArn string
	Page
}

// ListAccessEntriesOutput of the API.
type ListAccessEntriesOutput struct {
	AccessEntries []string `json:"accessEntries"`
	NextToken     *string  `json:"nextToken"`
}

// ListAccessEntries of the API.
func (s *Service) ListAccessEntries(_ context.Context, caller iam.Caller, in ListAccessEntriesInput) (*ListAccessEntriesOutput, error) {
	if err := caller.Authorize("eks:ListAccessEntries", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var principals []string
	for principal, e := range c.entries {
		if in.AssociatedPolicyArn == "" || e.policies[in.AssociatedPolicyArn] != nil {
			principals = append(principals, principal)
		}
	}
	names, next := in.paginate(principals)
	return &ListAccessEntriesOutput{names, next}, nil
}

// DescribeAccessEntry of the API.
func (s *Service) DescribeAccessEntry(_ context.Context, caller iam.Caller, in EntryInput) (*AccessEntryOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.entry(caller, "DescribeAccessEntry", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	return e.output(), nil
}

// UpdateAccessEntryInput of the API.
type UpdateAccessEntryInput struct {
	ClusterName, PrincipalArn, ClientRequestToken string
	Username                                      *string
	KubernetesGroups                              *[]string
}

// UpdateAccessEntry of the API.
func (s *Service) UpdateAccessEntry(_ context.Context, caller iam.Caller, in UpdateAccessEntryInput) (*AccessEntryOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.entry(caller, "UpdateAccessEntry", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	var username string
	var groups []string
	if in.Username != nil {
		username = *in.Username
	}
	if in.KubernetesGroups != nil {
		groups = *in.KubernetesGroups
	}
	if err := s.checkEntry(in.PrincipalArn, e.Type, username, groups); err != nil {
		return nil, err
	}
	if in.KubernetesGroups != nil {
		e.KubernetesGroups = append([]string{}, groups...)
	}
	if in.Username != nil {
		if e.Username = username; username == "" {
			e.Username = s.defaultUsername(in.PrincipalArn, e.Type)
		}
	}
	e.ModifiedAt = s.config.Clock.Now()
	return e.output(), nil
}

// DeleteAccessEntry of the API.
func (s *Service) DeleteAccessEntry(_ context.Context, caller iam.Caller, in EntryInput) (*struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _, err := s.entry(caller, "DeleteAccessEntry", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	delete(c.entries, in.PrincipalArn)
	return &struct{}{}, nil
}

// AssociateAccessPolicyInput of the API.
type AssociateAccessPolicyInput struct {
	ClusterName, PrincipalArn, PolicyArn string
	AccessScope                          AccessScope
}

// AssociateAccessPolicyOutput of the API.
type AssociateAccessPolicyOutput struct {
	ClusterName            string            `json:"clusterName"`
	PrincipalArn           string            `json:"principalArn"`
	AssociatedAccessPolicy *AssociatedPolicy `json:"associatedAccessPolicy"`
}

// AssociateAccessPolicy adds a policy to an entry, or changes the scope of one that it has.
func (s *Service) AssociateAccessPolicy(_ context.Context, caller iam.Caller,
	in AssociateAccessPolicyInput) (*AssociateAccessPolicyOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.entry(caller, "AssociateAccessPolicy", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	if e.Type != standardEntry {
		return nil, invalid("Access policies cannot be associated with access entries of type %s", e.Type)
	}
	if err := s.checkPolicy(in.PolicyArn, in.AccessScope); err != nil {
		return nil, err
	}
	p := *s.associate(e, in.PolicyArn, AccessScope{in.AccessScope.Type, append([]string{}, in.AccessScope.Namespaces...)})
	return &AssociateAccessPolicyOutput{in.ClusterName, in.PrincipalArn, &p}, nil
}

func (s *Service) checkPolicy(arn string, scope AccessScope) error {
	name, ok := strings.CutPrefix(arn, s.policyARN(""))
	if !ok {
		return invalid("The policyArn parameter format is not valid: %s", arn)
	}
	if _, ok := policyRoles[name]; !ok {
		return unsupportedError("the access policy %s", name)
	}
	switch {
	case scope.Type == "cluster" && len(scope.Namespaces) == 0:
		return nil
	case scope.Type == "namespace" && len(scope.Namespaces) > 0:
		return nil
	}
	return invalid("The accessScope is invalid: the type must be cluster without namespaces, or namespace with at least one, not %q with %d",
		scope.Type, len(scope.Namespaces))
}

// DisassociateAccessPolicyInput of the API.
type DisassociateAccessPolicyInput struct{ ClusterName, PrincipalArn, PolicyArn string }

// DisassociateAccessPolicy removes a policy from an entry.
func (s *Service) DisassociateAccessPolicy(_ context.Context, caller iam.Caller, in DisassociateAccessPolicyInput) (*struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.entry(caller, "DisassociateAccessPolicy", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	if e.policies[in.PolicyArn] == nil {
		return nil, notFound("The specified policyArn is not associated with this access entry: %s", in.PolicyArn)
	}
	delete(e.policies, in.PolicyArn)
	return &struct{}{}, nil
}

// ListAssociatedAccessPoliciesInput of the API.
type ListAssociatedAccessPoliciesInput struct {
	EntryInput
	Page
}

// ListAssociatedAccessPoliciesOutput of the API.
type ListAssociatedAccessPoliciesOutput struct {
	ClusterName              string             `json:"clusterName"`
	PrincipalArn             string             `json:"principalArn"`
	AssociatedAccessPolicies []AssociatedPolicy `json:"associatedAccessPolicies"`
	NextToken                *string            `json:"nextToken"`
}

// ListAssociatedAccessPolicies of the API.
func (s *Service) ListAssociatedAccessPolicies(_ context.Context, caller iam.Caller,
	in ListAssociatedAccessPoliciesInput) (*ListAssociatedAccessPoliciesOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.entry(caller, "ListAssociatedAccessPolicies", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	out := &ListAssociatedAccessPoliciesOutput{in.ClusterName, in.PrincipalArn, []AssociatedPolicy{}, nil}
	names, next := in.paginate(keys(e.policies))
	for _, arn := range names {
		out.AssociatedAccessPolicies = append(out.AssociatedAccessPolicies, *e.policies[arn])
	}
	out.NextToken = next
	return out, nil
}

// AccessPolicy of ListAccessPolicies.
type AccessPolicy struct {
	Name string `json:"name"`
	ARN  string `json:"arn"`
}

// ListAccessPoliciesOutput of the API.
type ListAccessPoliciesOutput struct {
	AccessPolicies []AccessPolicy `json:"accessPolicies"`
	NextToken      *string        `json:"nextToken"`
}

// ListAccessPolicies of the API, with the supported policies.
func (s *Service) ListAccessPolicies(_ context.Context, caller iam.Caller, in Page) (*ListAccessPoliciesOutput, error) {
	if err := caller.Authorize("eks:ListAccessPolicies", "*", nil); err != nil {
		return nil, err
	}
	out := &ListAccessPoliciesOutput{AccessPolicies: []AccessPolicy{}}
	names, next := in.paginate(keys(policyRoles))
	for _, name := range names {
		out.AccessPolicies = append(out.AccessPolicies, AccessPolicy{name, s.policyARN(name)})
	}
	out.NextToken = next
	return out, nil
}
