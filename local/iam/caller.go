package iam

// Callers: who a request comes from, and what they may do.

import (
	"maps"
	"strconv"
	"strings"
)

// Caller is an authenticated identity. The zero Caller may do nothing.
type Caller struct {
	service *Service
	// principal as resource policies see it.
	principal Principal
	userID    string
	// roleID tells a role from a later one of the same name; credentials die with their role.
	role, roleID string
	admin        bool
	// session is the policy that the role was assumed with: what it does not allow too, the role's own do not.
	session *Policy
	// context holds condition keys that come with the caller, such as aws:SourceArn of a service.
	context map[string]string
	via     string
}

// ARN of the caller, as GetCallerIdentity tells it; of a service its name, such as events.amazonaws.com.
func (c Caller) ARN() string {
	if c.principal.Service != "" {
		return c.principal.Service
	}
	return c.principal.ARN
}

// RoleARN of the role that the caller has assumed, or empty.
func (c Caller) RoleARN() string { return c.principal.RoleARN }

// Account id of the caller.
func (c Caller) Account() string { return c.principal.Account }

// UserID as GetCallerIdentity tells it: AROA…:session for an assumed role.
func (c Caller) UserID() string { return c.userID }

// SessionName of an assumed role, or empty.
func (c Caller) SessionName() string {
	if c.role == "" {
		return ""
	}
	return c.principal.ARN[strings.LastIndex(c.principal.ARN, "/")+1:]
}

// Principal as resource policies see the caller.
func (c Caller) Principal() Principal { return c.principal }

// Anonymous reports whether this is the zero Caller.
func (c Caller) Anonymous() bool { return c.service == nil }

// InvokedBy is the caller while a service acts with the caller's own permissions: aws:CalledVia, aws:ViaAWSService.
func (c Caller) InvokedBy(servicePrincipal string) Caller {
	c.via = servicePrincipal
	return c
}

// Authorize returns nil when the caller's identity policies allow the action on the resource (an ARN, or "*" for
// actions without resources), else an *Error AccessDenied in AWS's words. context holds condition keys of the request;
// the global ones are added.
func (c Caller) Authorize(action, resource string, context map[string]string) error {
	return c.authorize(action, resource, context, nil, false)
}

// AuthorizeWith is Authorize where the resource has a policy of its own (nil: none): either may allow, each may deny. The
// policies of services that call on their own behalf are resource policies only.
func (c Caller) AuthorizeWith(action, resource string, context map[string]string, policy *Policy) error {
	return c.authorize(action, resource, context, policy, true)
}

// Evaluate decides by one resource policy as the caller: Delegated where it leaves the decision to the caller's own.
func (c Caller) Evaluate(policy *Policy, action, resource string, context map[string]string) Decision {
	if c.Anonymous() {
		return NoMatch
	}
	return EvaluateResourcePolicy(policy, c.principal, action, resource, c.fullContext(context))
}

// PassRole authorizes handing a role to a service such as lambda.amazonaws.com.
func (c Caller) PassRole(roleARN, servicePrincipal string) error {
	return c.Authorize("iam:PassRole", roleARN, map[string]string{"iam:PassedToService": servicePrincipal})
}

// decide asks the caller's own policies and the resource's. A permissions boundary limits both: what it does not allow, neither
// the role's policies give nor a resource's policy that names the role. One that names the session, or everyone, is not limited.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html#access_policies_boundaries-eval-logic
func (c Caller) decide(action, resource string, context map[string]string, policy *Policy) (identity, onResource Decision) {
	r := newRequest(action, resource, nil, func() map[string]string { return c.fullContext(context) })
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
				c.service.tell(c.role, p, r)
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
			return p.evaluate(newRequest(action, resource, nil, func() map[string]string { return c.fullContext(context) })) == Allowed
		})
	}
	return errorf(403, "AccessDenied", "User: %s is not authorized to perform: %s on resource: %s %s", c.ARN(), action, resource, why)
}

// fullContext adds the global condition keys. The endpoint listens on the loopback interface only, so that calls count as
// secure transport.
func (c Caller) fullContext(context map[string]string) map[string]string {
	full := map[string]string{}
	now := c.service.clock.Now()
	full["aws:CurrentTime"] = now.Format("2006-01-02T15:04:05Z")
	full["aws:EpochTime"] = strconv.FormatInt(now.Unix(), 10)
	full["aws:SecureTransport"] = "true"
	full["aws:RequestedRegion"] = c.service.Region
	if c.principal.Service != "" {
		full["aws:PrincipalIsAWSService"] = "true"
		full["aws:PrincipalServiceName"] = c.principal.Service
	} else {
		full["aws:PrincipalIsAWSService"] = "false"
		full["aws:PrincipalAccount"] = c.principal.Account
		full["aws:PrincipalArn"] = c.principal.ARN
		full["aws:PrincipalType"] = "User"
		full["aws:userid"] = c.userID
		full["aws:SourceIp"] = "127.0.0.1"
		if c.role != "" {
			full["aws:PrincipalArn"] = c.principal.RoleARN
			full["aws:PrincipalType"] = "AssumedRole"
			for k, v := range c.service.roleTags(c.role) {
				full["aws:PrincipalTag/"+k] = v
			}
		} else {
			full["aws:username"] = c.principal.ARN[strings.LastIndex(c.principal.ARN, "/")+1:]
		}
	}
	full["aws:ViaAWSService"] = strconv.FormatBool(c.via != "")
	if c.via != "" {
		full["aws:CalledVia"], full["aws:CalledViaFirst"], full["aws:CalledViaLast"] = c.via, c.via, c.via
		delete(full, "aws:SourceIp")
	}
	maps.Copy(full, c.context)
	maps.Copy(full, context)
	return full
}
