package iam

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/engine/clock"
)

// Service has the identities of one account.
type Service struct {
	Account, Region, Partition string
	// OnAllow, if set before the first call, receives the Sid of each statement that allows an action to a role. If several
	// statements allow the action, it is called for each.
	OnAllow func(role, sid string)
	// OnDeny, if set before the first call, is called for each request that is denied to a role. would reports whether a
	// policy of the role would allow the request.
	OnDeny func(role string, would func(*Policy) bool)
	// MaxRoles, if set before the first call, is the quota of roles. nil is AWS's default.
	MaxRoles func() int
	// MaxOIDCProviders, if set before the first call, is the quota of OIDC providers. nil is AWS's default.
	MaxOIDCProviders func() int

	clock *clock.Clock
	admin Credentials

	mu        sync.Mutex
	roles     map[string]*Role
	policies  map[string]*ManagedPolicy // by ARN
	profiles  map[string]*InstanceProfile
	providers map[string]*OIDCProvider // by ARN
	sessions  map[string]session       // by access key id

	signingKeys map[signingScope][]byte
}

// New returns the identities of an account. At first there is only an administrator.
func New(account, region string, c *clock.Clock) *Service {
	s := &Service{
		Account: account, Region: region, Partition: partition(region), clock: c,
		roles: map[string]*Role{}, policies: map[string]*ManagedPolicy{}, profiles: map[string]*InstanceProfile{},
		providers: map[string]*OIDCProvider{}, sessions: map[string]session{},
	}
	s.admin = Credentials{AccessKeyID: "AKIA" + randomText(upper, 16), SecretAccessKey: randomText(alnum, 40)}
	return s
}

func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// defaultRoles is the quota of roles of a new account.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
const defaultRoles = 1000

// RolesQuota returns how many roles the account may have.
func (s *Service) RolesQuota() int {
	if s.MaxRoles == nil {
		return defaultRoles
	}
	return s.MaxRoles()
}

// defaultOIDCProviders is the quota of OIDC providers of a new account.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
const defaultOIDCProviders = 100

// OIDCProvidersQuota returns how many OIDC providers the account may have.
func (s *Service) OIDCProvidersQuota() int {
	if s.MaxOIDCProviders == nil {
		return defaultOIDCProviders
	}
	return s.MaxOIDCProviders()
}

// Role is an IAM role.
type Role struct {
	Name, Path, ID, Description string
	TrustDocument               string
	Created                     time.Time
	MaxSession                  time.Duration
	Tags                        map[string]string
	// Inline has policy documents by name. Attached has ARNs of managed policies, in the order of attachment.
	Inline   map[string]string
	Attached []string
	// Boundary is the ARN of the permissions boundary, a managed policy that limits the role's policies.
	Boundary string
	// ServiceLinked roles can be deleted only by their service.
	ServiceLinked bool

	trust  *Policy
	inline map[string]*Policy
}

// ManagedPolicy is a managed policy of the account or of AWS.
type ManagedPolicy struct {
	ARN, Name, Path, ID, Description, Document string
	Created                                    time.Time
	Tags                                       map[string]string

	parsed *Policy
}

// InstanceProfile passes a role to instances.
type InstanceProfile struct {
	Name, Path, ID, Role string
	Created              time.Time
	Tags                 map[string]string
}

// OIDCProvider is an OpenID Connect provider.
type OIDCProvider struct {
	ARN, URL               string
	ClientIDs, Thumbprints []string
	Created                time.Time
	Tags                   map[string]string
}

func (s *Service) arn(kind, path, name string) string {
	return fmt.Sprintf("arn:%s:iam::%s:%s%s%s", s.Partition, s.Account, kind, path, name)
}

// RoleARN returns the ARN of a role from its Path and Name.
func (s *Service) RoleARN(r Role) string { return s.arn("role", r.Path, r.Name) }

// ProfileARN returns the ARN of an instance profile.
func (s *Service) ProfileARN(p InstanceProfile) string {
	return s.arn("instance-profile", p.Path, p.Name)
}

// PolicyARN returns the ARN of a managed policy of the account from its Path and Name.
func (s *Service) PolicyARN(p ManagedPolicy) string {
	if p.Path == "" {
		p.Path = "/"
	}
	return s.arn("policy", p.Path, p.Name)
}

// OIDCProviderARN returns the ARN of the provider with an https URL.
func (s *Service) OIDCProviderARN(url string) string {
	return s.arn("oidc-provider", "/", strings.TrimPrefix(url, "https://"))
}

// CreateRole creates a role. Name and TrustDocument are required. Errors are those of the API operation.
func (s *Service) CreateRole(r Role) (Role, error) {
	trust, err := ParsePolicy(r.TrustDocument, true)
	if err != nil {
		return Role{}, err
	}
	if err := checkName("roleName", r.Name, 64); err != nil {
		return Role{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.roles[r.Name]; ok {
		return Role{}, errorf(409, "EntityAlreadyExists", "Role with name %s already exists.", r.Name)
	}
	// Service-linked roles count, but can be created above the quota.
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_create-service-linked-role.html
	if quota := s.RolesQuota(); !r.ServiceLinked && len(s.roles) >= quota {
		return Role{}, errorf(409, "LimitExceeded", "Cannot exceed quota for RolesPerAccount: %d", quota)
	}
	if r.Boundary != "" {
		if _, err := s.policy(r.Boundary); err != nil {
			return Role{}, err
		}
	}
	if r.Path == "" {
		r.Path = "/"
	}
	if r.MaxSession == 0 {
		r.MaxSession = time.Hour
	}
	r.ID, r.Created, r.trust = "AROA"+randomText(upper, 17), s.clock.Now(), trust
	r.Tags, r.Inline, r.Attached, r.inline = maps.Clone(r.Tags), map[string]string{}, nil, map[string]*Policy{}
	s.roles[r.Name] = &r
	return r.clone(), nil
}

func (r *Role) clone() Role {
	c := *r
	c.Tags, c.Inline, c.Attached = maps.Clone(r.Tags), maps.Clone(r.Inline), slices.Clone(r.Attached)
	return c
}

// Role returns a role by name, or the error NoSuchEntity.
func (s *Service) Role(name string) (Role, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(name)
	if err != nil {
		return Role{}, err
	}
	return r.clone(), nil
}

// RoleByARN returns a role by ARN.
func (s *Service) RoleByARN(arn string) (Role, error) {
	r, err := s.Role(arn[strings.LastIndex(arn, "/")+1:])
	if err != nil || s.RoleARN(r) != arn {
		return Role{}, errorf(404, "NoSuchEntity", "The role with ARN %s cannot be found.", arn)
	}
	return r, nil
}

func (s *Service) role(name string) (*Role, error) {
	r, ok := s.roles[name]
	if !ok {
		return nil, errorf(404, "NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	return r, nil
}

// UserByARN reports whether a user with this ARN exists. The only user is the administrator.
func (s *Service) UserByARN(arn string) (found bool) {
	admin, _ := s.Admin()
	return arn == admin.ARN()
}

// Roles returns the roles of the account by name.
func (s *Service) Roles() []Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Role
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		list = append(list, s.roles[name].clone())
	}
	return list
}

// ChangeRole calls change, which may modify a role's description, MaxSession, tags or trust document.
func (s *Service) ChangeRole(name string, change func(*Role)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(name)
	if err != nil {
		return err
	}
	c := r.clone()
	change(&c)
	trust, err := ParsePolicy(c.TrustDocument, true)
	if err != nil {
		return err
	}
	r.Description, r.MaxSession, r.Tags, r.TrustDocument, r.trust = c.Description, c.MaxSession, c.Tags, c.TrustDocument, trust
	return nil
}

// SetBoundary sets a role's permissions boundary. An empty ARN removes it.
func (s *Service) SetBoundary(role, policyARN string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(role)
	if err != nil {
		return err
	}
	if policyARN != "" {
		if _, err := s.policy(policyARN); err != nil {
			return err
		}
	}
	r.Boundary = policyARN
	return nil
}

// DeleteRole deletes a role. It fails with DeleteConflict if the role has policies or is in an instance profile.
func (s *Service) DeleteRole(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(name)
	if err != nil {
		return err
	}
	switch {
	case r.ServiceLinked:
		return errorf(400, "UnmodifiableEntity", "Cannot perform the operation on the protected role %s.", name)
	case len(r.Inline) > 0:
		return errorf(409, "DeleteConflict", "Cannot delete entity, must delete policies first.")
	case len(r.Attached) > 0:
		return errorf(409, "DeleteConflict", "Cannot delete entity, must detach all policies first.")
	}
	for _, p := range s.profiles {
		if p.Role == name {
			return errorf(409, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
		}
	}
	delete(s.roles, name)
	return nil
}

// PutRolePolicy sets an inline policy.
func (s *Service) PutRolePolicy(role, name, document string) error {
	p, err := ParsePolicy(document, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(role)
	if err != nil {
		return err
	}
	r.Inline[name], r.inline[name] = document, p
	return nil
}

// DeleteRolePolicy deletes an inline policy.
func (s *Service) DeleteRolePolicy(role, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(role)
	if err != nil {
		return err
	}
	if _, ok := r.Inline[name]; !ok {
		return errorf(404, "NoSuchEntity", "The role policy with name %s cannot be found.", name)
	}
	delete(r.Inline, name)
	delete(r.inline, name)
	return nil
}

// AttachRolePolicy attaches a managed policy. Attaching it twice succeeds.
func (s *Service) AttachRolePolicy(role, policyARN string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(role)
	if err != nil {
		return err
	}
	if _, err := s.policy(policyARN); err != nil {
		return err
	}
	if !slices.Contains(r.Attached, policyARN) {
		r.Attached = append(r.Attached, policyARN)
	}
	return nil
}

// DetachRolePolicy detaches a managed policy.
func (s *Service) DetachRolePolicy(role, policyARN string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.role(role)
	if err != nil {
		return err
	}
	i := slices.Index(r.Attached, policyARN)
	if i < 0 {
		return errorf(404, "NoSuchEntity", "Policy %s was not found.", policyARN)
	}
	r.Attached = slices.Delete(r.Attached, i, i+1)
	return nil
}

func (s *Service) policiesOf(role, id string) []*Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roles[role]
	if !ok || r.ID != id {
		return nil
	}
	list := slices.Collect(maps.Values(r.inline))
	for _, arn := range r.Attached {
		if p, err := s.policy(arn); err == nil {
			list = append(list, p.parsed)
		}
	}
	return list
}

// boundaryOf returns the permissions boundary of a role, or nil. A boundary whose policy was deleted allows nothing.
func (s *Service) boundaryOf(role string) *Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roles[role]
	if !ok || r.Boundary == "" {
		return nil
	}
	p, err := s.policy(r.Boundary)
	if err != nil {
		return &Policy{}
	}
	return p.parsed
}

func (s *Service) roleTags(role string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.roles[role]; ok {
		return maps.Clone(r.Tags)
	}
	return nil
}

// checkName allows names that match [\w+=,.@-]+ and have at most limit characters.
func checkName(member, name string, limit int) error {
	ok := name != "" && len(name) <= limit
	for _, r := range name {
		ok = ok && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_+=,.@-", r))
	}
	if !ok {
		return errorf(400, "ValidationError", "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
			"Member must have length between 1 and %d and match [\\w+=,.@-]+", name, member, limit)
	}
	return nil
}
