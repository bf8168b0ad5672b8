package iam

// Callers: the identity behind a request, and its permissions.

import (
	"strconv"
	"strings"
)

// Caller is an authenticated identity. The zero Caller has no permissions.
type Caller struct {
	service *Service
	// principal is the caller in resource policies.
	principal Principal
	userID    string
	// roleID distinguishes a role from a later one with the same name. Credentials become invalid with their role.
	role, roleID string
	admin        bool
	// session is the session policy. An action needs its permission and the role's.
	session *Policy
	// context has condition keys of the caller, such as aws:SourceArn of a service.
	context map[string]string
	via     string
}

// ARN returns the caller's ARN as GetCallerIdentity does, or the name of a service, such as events.amazonaws.com.
func (c Caller) ARN() string {
	if c.principal.Service != "" {
		return c.principal.Service
	}
	return c.principal.ARN
}

// RoleARN returns the ARN of the assumed role, or "".
func (c Caller) RoleARN() string { return c.principal.RoleARN }

// Account is the account ID of the caller.
func (c Caller) Account() string { return c.principal.Account }

// UserID returns the user ID as GetCallerIdentity does: AROA…:session for an assumed role.
func (c Caller) UserID() string { return c.userID }

// SessionName returns the session name of an assumed role, or "".
func (c Caller) SessionName() string {
	if c.role == "" {
		return ""
	}
	return c.principal.ARN[strings.LastIndex(c.principal.ARN, "/")+1:]
}

// Principal returns the caller as resource policies see it.
func (c Caller) Principal() Principal { return c.principal }

// Anonymous reports whether this is the zero Caller.
func (c Caller) Anonymous() bool { return c.service == nil }

// InvokedBy returns the caller for a service that acts with the caller's permissions. It sets aws:CalledVia and
// aws:ViaAWSService.
func (c Caller) InvokedBy(servicePrincipal string) Caller {
	c.via = servicePrincipal
	return c
}

// Authorize returns nil if the caller's identity policies allow the action on the resource. The resource is an ARN, or
// "*" for actions without resources. Otherwise it returns an *Error AccessDenied in AWS's words. context has condition
// keys of the request; Authorize adds the global ones.
func (c Caller) Authorize(action, resource string, context map[string]string) error {
	return c.authorize(action, resource, context, nil, false)
}

// AuthorizeWith is Authorize for a resource with a resource policy, which may be nil. Either policy can allow, and each
// can deny. A service that calls on its own behalf has resource policies only.
func (c Caller) AuthorizeWith(action, resource string, context map[string]string, policy *Policy) error {
	return c.authorize(action, resource, context, policy, true)
}

// Evaluate returns the decision of one resource policy. Delegated leaves the decision to the caller's identity policies.
func (c Caller) Evaluate(policy *Policy, action, resource string, context map[string]string) Decision {
	if c.Anonymous() {
		return NoMatch
	}
	if policy == nil {
		return NoMatch
	}
	return policy.evaluate(newRequest(action, resource, &c.principal, c.keys(context, resource)))
}

// PassRole authorizes passing a role to a service such as lambda.amazonaws.com.
func (c Caller) PassRole(roleARN, servicePrincipal string) error {
	return c.Authorize("iam:PassRole", roleARN, map[string]string{"iam:PassedToService": servicePrincipal})
}

// decide returns the decisions of the caller's identity policies and of the resource policy. A permissions boundary
// limits the role's policies and a resource policy that names the role. It does not limit a resource policy that names
// the session or everyone.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html#access_policies_boundaries-eval-logic
func (c Caller) decide(action, resource string, context map[string]string, policy *Policy) (identity, onResource Decision) {
	r := newRequest(action, resource, nil, c.keys(context, resource))
	if policy != nil {
		onResource = policy.evaluate(r.as(&c.principal))
	}
	switch {
	case c.admin:
		return Allowed, onResource
	case c.role != "":
		for _, p := range c.service.policiesOf(c.role, c.roleID) {
			switch p.evaluate(r) {
			case Denied:
				return Denied, onResource
			case Allowed:
				identity = Allowed
				c.service.reportAllowing(c.role, p, r)
			}
		}
		if boundary := c.service.boundaryOf(c.role); boundary != nil {
			switch boundary.evaluate(r) {
			case Denied:
				return Denied, onResource
			case NoMatch:
				identity = NoMatch
				if onResource == Allowed {
					onResource = policy.evaluate(r.as(&Principal{ARN: c.principal.ARN, Account: c.principal.Account}))
				}
			}
		}
		if c.session != nil && identity == Allowed {
			identity = c.session.evaluate(r)
		}
	}
	return identity, onResource
}

func (c Caller) authorize(action, resource string, context map[string]string, policy *Policy, hasResourcePolicy bool) error {
	if c.Anonymous() {
		return errorf(403, "AccessDenied", "Access Denied: an anonymous caller may not perform %s", action)
	}
	identity, onResource := c.decide(action, resource, context, policy)
	why := ""
	switch {
	case identity == Denied:
		why = "with an explicit deny in an identity-based policy"
	case onResource == Denied:
		why = "with an explicit deny in a resource-based policy"
	case identity == Allowed || onResource == Allowed:
		return nil
	case c.principal.Service != "":
		why = "because no resource-based policy allows the " + action + " action"
	default:
		why = "because no identity-based policy allows the " + action + " action"
	}
	if c.role != "" && c.service.OnDeny != nil {
		c.service.OnDeny(c.role, func(p *Policy) bool {
			return p.evaluate(newRequest(action, resource, nil, c.keys(context, resource))) == Allowed
		})
	}
	return errorf(403, "AccessDenied", "User: %s is not authorized to perform: %s on resource: %s %s", c.ARN(), action, resource, why)
}

// keys returns the condition keys of the request, of the caller, and the global ones, in this order of precedence. The
// endpoint listens on the loopback interface only, so calls count as secure transport.
func (c Caller) keys(context map[string]string, resource string) conditionKeys {
	return func(key string) (string, bool) {
		if value, found := find(context, key); found {
			return value, true
		}
		if value, found := find(c.context, key); found {
			return value, true
		}
		if key == "aws:resourceaccount" {
			return accountOf(resource)
		}
		return c.global(key)
	}
}

// accountOf returns the account of a resource, which ARNs of some services do not have.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-resourceaccount
func accountOf(arn string) (account string, found bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return "", false
	}
	return parts[4], parts[4] != ""
}

// global returns the value of a global condition key. The key is in lower case.
func (c Caller) global(key string) (value string, found bool) {
	service, via := c.principal.Service != "", c.via != ""
	switch key {
	case "aws:currenttime":
		return c.service.clock.Now().Format("2006-01-02T15:04:05Z"), true
	case "aws:epochtime":
		return strconv.FormatInt(c.service.clock.Now().Unix(), 10), true
	case "aws:securetransport":
		return "true", true
	case "aws:requestedregion":
		return c.service.Region, true
	case "aws:principalisawsservice":
		return strconv.FormatBool(service), true
	case "aws:principalservicename":
		return c.principal.Service, service
	case "aws:viaawsservice":
		return strconv.FormatBool(via), true
	case "aws:calledvia", "aws:calledviafirst", "aws:calledvialast":
		return c.via, via
	}
	if service {
		return "", false
	}
	assumed := c.role != ""
	switch key {
	case "aws:principalaccount":
		return c.principal.Account, true
	case "aws:userid":
		return c.userID, true
	case "aws:sourceip":
		return "127.0.0.1", !via
	case "aws:principalarn":
		if assumed {
			return c.principal.RoleARN, true
		}
		return c.principal.ARN, true
	case "aws:principaltype":
		if assumed {
			return "AssumedRole", true
		}
		return "User", true
	case "aws:username":
		return c.principal.ARN[strings.LastIndex(c.principal.ARN, "/")+1:], !assumed
	}
	if tag, ok := strings.CutPrefix(key, "aws:principaltag/"); ok && assumed {
		return find(c.service.roleTags(c.role), tag)
	}
	return "", false
}
