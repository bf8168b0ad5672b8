package iam

// Callers: who a request comes from, and what they may do.

import (
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
	if policy == nil {
		return NoMatch
	}
	return policy.evaluate(newRequest(action, resource, &c.principal, c.keys(context)))
}

// PassRole authorizes handing a role to a service such as lambda.amazonaws.com.
func (c Caller) PassRole(roleARN, servicePrincipal string) error {
	return c.Authorize("iam:PassRole", roleARN, map[string]string{"iam:PassedToService": servicePrincipal})
}

// decide asks the caller's own policies and the resource's. A permissions boundary limits both: what it does not allow, neither
// the role's policies give nor a resource's policy that names the role. One that names the session, or everyone, is not limited.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html#access_policies_boundaries-eval-logic
func (c Caller) decide(action, resource string, context map[string]string, policy *Policy) (identity, onResource Decision) {
	r := newRequest(action, resource, nil, c.keys(context))
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
			return p.evaluate(newRequest(action, resource, nil, c.keys(context))) == Allowed
		})
	}
	return errorf(403, "AccessDenied", "User: %s is not authorized to perform: %s on resource: %s %s", c.ARN(), action, resource, why)
}

// keys are those of the request, of what comes with the caller, and the global ones. The endpoint listens on the
// loopback interface only, so that calls count as secure transport.
func (c Caller) keys(context map[string]string) conditionKeys {
	return func(key string) (string, bool) {
		if value, there := find(context, key); there {
			return value, true
		}
		if value, there := find(c.context, key); there {
			return value, true
		}
		return c.global(key)
	}
}

// global condition keys, in lower case.
func (c Caller) global(key string) (value string, there bool) {
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
