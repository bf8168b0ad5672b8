package iam

// Sessions: temporary credentials of assumed roles, and the administrator's credentials.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// temporaryKey is the prefix of the access key IDs of sessions.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
const temporaryKey = "ASIA"

var (
	accessKeyID     = regexp.MustCompile(`^\w{16,128}$`)
	secretAccessKey = regexp.MustCompile("^[^\\s'\"`[:cntrl:][:^ascii:]]{8,128}$")
)

// Credentials sign requests. SessionToken and Expires are empty for long-lived credentials.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Expires                                    time.Time
}

type session struct {
	caller      Caller
	credentials Credentials
}

// Admin returns the administrator: a user with AdministratorAccess. Explicit denies of resource policies apply to it.
func (s *Service) Admin() (Caller, Credentials) {
	return Caller{
		service: s, admin: true, userID: "AIDALOCALADMINISTRATOR",
		principal: Principal{ARN: s.arn("user", "/", "admin"), Account: s.Account},
	}, s.admin
}

// SetAdminKey replaces the administrator's generated access key. Call it before the first request.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_AccessKey.html
func (s *Service) SetAdminKey(id, secret string) error {
	if !accessKeyID.MatchString(id) || strings.HasPrefix(id, temporaryKey) {
		return fmt.Errorf("access key id %q is invalid: it has 16 to 128 letters, digits and underscores, and does not start with %s",
			id, temporaryKey)
	}
	if !secretAccessKey.MatchString(secret) {
		return errors.New("the secret access key is invalid: it has 8 to 128 printable ASCII characters without spaces and quotes")
	}
	s.admin = Credentials{AccessKeyID: id, SecretAccessKey: secret}
	return nil
}

// ServiceCaller returns an AWS service that acts on its own behalf, such as events.amazonaws.com when it invokes a
// function. Only resource policies can grant it permissions. sourceARN is the resource on whose behalf it acts.
func (s *Service) ServiceCaller(servicePrincipal, sourceARN string) Caller {
	return Caller{
		service:   s,
		principal: Principal{Service: servicePrincipal},
		context:   map[string]string{"aws:SourceArn": sourceARN, "aws:SourceAccount": s.Account},
	}
}

// AssumeRoleAs returns credentials of a role for a service that the trust policy allows. They last 12 hours, longer than
// any of their users.
func (s *Service) AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (Caller, Credentials, error) {
	return s.assume(roleARN, sessionName, Principal{Service: servicePrincipal}, map[string]string{
		"aws:SourceAccount": s.Account, "sts:RoleSessionName": sessionName,
	}, 12*time.Hour, nil, nil)
}

// AssumeRoleForPod returns credentials of a role for a pod, for six hours. The trust policy must let EKS Pod Identity assume the role and
// tag the session. Policies see the tags as aws:PrincipalTag/KEY.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html, pod-id-abac.html
func (s *Service) AssumeRoleForPod(roleARN, sessionName string, tags map[string]string) (Caller, Credentials, error) {
	const principal = "pods.eks.amazonaws.com"
	context := map[string]string{"aws:SourceAccount": s.Account, "sts:RoleSessionName": sessionName}
	principalTags := map[string]string{}
	for key, value := range tags {
		context["aws:RequestTag/"+key], principalTags["aws:PrincipalTag/"+key] = value, value
	}
	if role, err := s.RoleByARN(roleARN); err == nil &&
		EvaluateResourcePolicy(role.trust, Principal{Service: principal}, "sts:TagSession", roleARN, context) != Allowed {
		return Caller{}, Credentials{}, errorf(403, "AccessDenied", "%s is not authorized to perform: sts:TagSession on resource: %s", principal,
			roleARN)
	}
	caller, credentials, err := s.assume(roleARN, sessionName, Principal{Service: principal}, context, 6*time.Hour, nil, nil)
	if err != nil {
		return caller, credentials, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	caller.context = principalTags
	s.sessions[credentials.AccessKeyID] = session{caller: caller, credentials: credentials}
	return caller, credentials, nil
}

// LinkRole creates the service-linked role of a service, unless it exists. authorize returns an error unless the caller may create it. It
// is nil if the service creates the role with permissions of its own.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_create-service-linked-role.html
func (s *Service) LinkRole(
	name, principal, description string, authorize func(action, resource string, context map[string]string) error,
) error {
	if _, err := s.Role(name); err == nil {
		return nil
	}
	path := "/aws-service-role/" + principal + "/"
	if authorize != nil {
		arn := s.arn("role", path, name)
		if err := authorize("iam:CreateServiceLinkedRole", arn, map[string]string{"iam:AWSServiceName": principal}); err != nil {
			return err
		}
	}
	_, err := s.CreateRole(Role{
		Name: name, Path: path, ServiceLinked: true, Description: description,
		TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + principal +
			`"},"Action":"sts:AssumeRole"}]}`,
	})
	var known *Error
	if errors.As(err, &known) && known.Code == "EntityAlreadyExists" {
		return nil // another call created it at the same time
	}
	return err
}

// AssumeRole returns credentials of a role for a caller. They last for duration, at most the role's MaxSession. The
// trust policy must allow it. The caller's own policies must too, unless the trust policy names the caller itself.
//
// policy, if not nil, is the session policy: the credentials need its permission and that of the role's policies. It
// does not limit resource policies.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session
func (s *Service) AssumeRole(
	c Caller, roleARN, sessionName string, duration time.Duration, context map[string]string, policy *Policy,
) (Caller, Credentials, error) {
	role, err := s.RoleByARN(roleARN)
	if err != nil {
		// AWS does not disclose whether the role exists.
		return Caller{}, Credentials{}, s.mayNotAssume(c, roleARN)
	}
	if duration > role.MaxSession {
		return Caller{}, Credentials{}, errorf(400, "ValidationError",
			"The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	}
	return s.assume(roleARN, sessionName, c.principal, context, duration, &c, policy)
}

func (s *Service) mayNotAssume(c Caller, roleARN string) error {
	return errorf(403, "AccessDenied", "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", c.ARN(), roleARN)
}

func (s *Service) assume(
	roleARN, sessionName string, by Principal, context map[string]string, duration time.Duration, c *Caller, policy *Policy,
) (Caller, Credentials, error) {
	fail := func(err error) (Caller, Credentials, error) { return Caller{}, Credentials{}, err }
	if len(sessionName) < 2 || checkName("roleSessionName", sessionName, 64) != nil {
		return fail(errorf(400, "ValidationError", "1 validation error detected: Value '%s' at 'roleSessionName' failed to satisfy constraint: "+
			"Member must have length between 2 and 64 and match [\\w+=,.@-]*", sessionName))
	}
	role, err := s.RoleByARN(roleARN)
	if err != nil {
		return fail(errorf(403, "AccessDenied", "%s is not authorized to perform: sts:AssumeRole on resource: %s: %v", by.Service, roleARN, err))
	}
	allowed, trust := false, NoMatch
	if c != nil {
		trust = c.Evaluate(role.trust, "sts:AssumeRole", roleARN, context)
	} else {
		trust = EvaluateResourcePolicy(role.trust, by, "sts:AssumeRole", roleARN, context)
	}
	switch trust {
	case Delegated:
		allowed = c != nil && c.Authorize("sts:AssumeRole", roleARN, context) == nil
	case Allowed:
		allowed = true
		if c != nil {
			identity, _ := c.decide("sts:AssumeRole", roleARN, context, nil)
			allowed = identity != Denied
		}
	}
	if !allowed {
		if c != nil {
			return fail(s.mayNotAssume(*c, roleARN))
		}
		return fail(errorf(403, "AccessDenied", "%s is not authorized to perform: sts:AssumeRole on resource: %s: "+
			"the role's trust policy does not allow it", by.Service, roleARN))
	}
	caller := Caller{
		service: s, role: role.Name, roleID: role.ID, session: policy, userID: role.ID + ":" + sessionName,
		principal: Principal{
			ARN:     fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/%s", s.Partition, s.Account, role.Name, sessionName),
			RoleARN: roleARN, Account: s.Account,
		},
	}
	credentials := Credentials{
		AccessKeyID: temporaryKey + randomText(upper, 16), SecretAccessKey: randomText(alnum, 40),
		SessionToken: "local" + randomText(alnum, 120), Expires: s.clock.Now().Add(duration).Truncate(time.Second),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.sessions {
		// Expired sessions remain for a day, so that their users get ExpiredToken and not InvalidClientTokenId.
		if old.credentials.Expires.Add(24 * time.Hour).Before(s.clock.Now()) {
			delete(s.sessions, id)
		}
	}
	s.sessions[credentials.AccessKeyID] = session{caller: caller, credentials: credentials}
	return caller, credentials, nil
}

// Caller returns the caller with an access key, its secret and its session token. Error codes: InvalidClientTokenId,
// ExpiredToken.
func (s *Service) Caller(accessKeyID string) (c Caller, secret, sessionToken string, err error) {
	if accessKeyID == s.admin.AccessKeyID {
		c, _ := s.Admin()
		return c, s.admin.SecretAccessKey, "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.sessions[accessKeyID]
	if !ok {
		return Caller{}, "", "", errorf(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
	}
	if s.clock.Now().After(found.credentials.Expires) {
		return Caller{}, "", "", errorf(403, "ExpiredToken", "The security token included in the request is expired")
	}
	return found.caller, found.credentials.SecretAccessKey, found.credentials.SessionToken, nil
}

const (
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// randomText returns random characters of an alphabet of at most 64.
func randomText(alphabet string, n int) string {
	text, random := make([]byte, 0, n), make([]byte, n)
	for len(text) < n {
		_, _ = rand.Read(random) // never fails
		for _, b := range random {
			// Values beyond the alphabet are skipped, so that all characters are equally likely.
			if i := int(b & 63); i < len(alphabet) && len(text) < n {
				text = append(text, alphabet[i])
			}
		}
	}
	return string(text)
}
