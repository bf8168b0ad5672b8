package iam

// Sessions: temporary credentials of assumed roles, and those of the person at the console.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// temporaryKey starts the access key ids of sessions.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
const temporaryKey = "ASIA"

var (
	accessKeyID     = regexp.MustCompile(`^\w{16,128}$`)
	secretAccessKey = regexp.MustCompile("^[^\\s'\"`[:cntrl:][:^ascii:]]{8,128}$")
)

// Credentials sign requests. SessionToken and Expires are empty for long-lived ones.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Expires                                    time.Time
}

type session struct {
	caller      Caller
	credentials Credentials
}

// Admin is the person at the console: a user with AdministratorAccess. Explicit denies of resource policies hold for it.
func (s *Service) Admin() (Caller, Credentials) {
	return Caller{
		service: s, admin: true, userID: "AIDALOCALADMINISTRATOR",
		principal: Principal{ARN: s.arn("user", "/", "admin"), Account: s.Account},
	}, s.admin
}

// SetAdminKey replaces the generated access key of the person at the console. Call it before the first request.
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

// ServiceCaller is an AWS service acting on its own behalf, such as events.amazonaws.com that invokes a function: only
// resource policies can allow it anything. sourceARN is the resource it acts for.
func (s *Service) ServiceCaller(servicePrincipal, sourceARN string) Caller {
	return Caller{
		service:   s,
		principal: Principal{Service: servicePrincipal},
		context:   map[string]string{"aws:SourceArn": sourceARN, "aws:SourceAccount": s.Account},
	}
}

// AssumeRoleAs gives a service the role's credentials, if the role's trust policy lets it assume it. They last 12
// hours, longer than anything that holds them.
func (s *Service) AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (Caller, Credentials, error) {
	return s.assume(roleARN, sessionName, Principal{Service: servicePrincipal}, map[string]string{
		"aws:SourceAccount": s.Account, "sts:RoleSessionName": sessionName,
	}, 12*time.Hour, nil, nil)
}

// AssumeRole gives a caller the role's credentials for a duration (at most the role's MaxSession): both the trust policy
// and, unless that names the caller itself, the caller's own policies must allow it. policy, when it is not nil, is the session's: the
// credentials may do what it and the role's policies allow. Those of resources are not narrowed by it.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session
func (s *Service) AssumeRole(
	c Caller, roleARN, sessionName string, duration time.Duration, context map[string]string, policy *Policy,
) (Caller, Credentials, error) {
	role, err := s.RoleByARN(roleARN)
	if err != nil {
		// AWS does not tell who may not know whether a role exists.
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
		return fail(errorf(403, "AccessDenied", "%s is not authorized to perform: sts:AssumeRole on resource: %s: the role's trust policy does "+
			"not allow it", by.Service, roleARN))
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
		// Expired ones are kept a while, so that their users hear ExpiredToken and not that the key is unknown.
		if old.credentials.Expires.Add(24 * time.Hour).Before(s.clock.Now()) {
			delete(s.sessions, id)
		}
	}
	s.sessions[credentials.AccessKeyID] = session{caller: caller, credentials: credentials}
	return caller, credentials, nil
}

// Caller whose access key it is, with the secret and session token that belong to it. Codes: InvalidClientTokenId,
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

// randomText of at most 64 different characters.
func randomText(alphabet string, n int) string {
	text, random := make([]byte, 0, n), make([]byte, n)
	for len(text) < n {
		_, _ = rand.Read(random) // never fails
		for _, b := range random {
			// What is no index is drawn again, so that each character is as likely as any other.
			if i := int(b & 63); i < len(alphabet) && len(text) < n {
				text = append(text, alphabet[i])
			}
		}
	}
	return string(text)
}
