package iam

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/clock"
)

func document(statements ...string) string {
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

func TestEvaluation(t *testing.T) {
	const bucket = "arn:aws:s3:::specs"
	ctx := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	allow := func(condition string) string {
		return document(`{"Effect":"Allow","Action":"s3:*","Resource":"*","Condition":` + condition + `}`)
	}
	for name, test := range map[string]struct {
		policy           string
		action, resource string
		context          map[string]string
		want             Decision
	}{
		"an action that is allowed": {
			policy: document(`{"Effect":"Allow","Action":"s3:GetObject","Resource":"` + bucket + `/*"}`), action: "s3:GetObject",
			resource: bucket + "/a", want: Allowed,
		},
		"another action is not": {
			policy: document(`{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}`), action: "s3:GetObjectVersion", resource: bucket + "/a",
			want: NoMatch,
		},
		"actions ignore case, resources do not": {
			policy: document(`{"Effect":"Allow","Action":"S3:getobject","Resource":"arn:aws:s3:::Specs/*"}`), action: "s3:GetObject",
			resource: bucket + "/a", want: NoMatch,
		},
		"a wildcard inside an action": {
			policy: document(`{"Effect":"Allow","Action":["s3:Get*Version","s3:Li?t*"],"Resource":"*"}`), action: "s3:ListBucket",
			resource: bucket, want: Allowed,
		},
		"a star in a resource spans slashes and colons": {
			policy:   document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:states:*:*:execution:drover-*"}`),
			action:   "states:DescribeExecution",
			resource: "arn:aws:states:us-east-1:1:execution:drover-converge:x:y", want: Allowed,
		},
		"the bucket is not its objects": {
			policy: document(`{"Effect":"Allow","Action":"s3:*","Resource":"` + bucket + `/*"}`), action: "s3:ListBucket", resource: bucket,
			want: NoMatch,
		},
		"an explicit deny beats an allow in either order": {
			policy: document(`{"Effect":"Deny","Action":"s3:DeleteObject","Resource":"*"}`, `{"Effect":"Allow","Action":"s3:*","Resource":"*"}`),
			action: "s3:DeleteObject", resource: bucket + "/a", want: Denied,
		},
		"NotAction allows all others": {
			policy: document(`{"Effect":"Allow","NotAction":"iam:*","Resource":"*"}`), action: "s3:GetObject", resource: "x", want: Allowed,
		},
		"NotAction does not allow its own": {
			policy: document(`{"Effect":"Allow","NotAction":"iam:*","Resource":"*"}`), action: "iam:PassRole", resource: "x", want: NoMatch,
		},
		"NotResource with deny leaves its own alone": {
			policy: document(`{"Effect":"Deny","Action":"*","NotResource":"` + bucket + `/*"}`), action: "s3:GetObject", resource: bucket + "/a",
			want: NoMatch,
		},
		"all conditions must hold": {
			policy: allow(`{"StringEquals":{"a:x":"1","a:y":"2"}}`), action: "s3:X", context: ctx("a:x", "1", "a:y", "3"), want: NoMatch,
		},
		"one value of several suffices": {
			policy: allow(`{"StringEquals":{"a:x":["0","1"]}}`), action: "s3:X", context: ctx("A:X", "1"), want: Allowed,
		},
		"a missing key fails StringEquals":             {policy: allow(`{"StringEquals":{"a:x":"1"}}`), action: "s3:X", want: NoMatch},
		"a missing key satisfies StringNotEquals":      {policy: allow(`{"StringNotEquals":{"a:x":"1"}}`), action: "s3:X", want: Allowed},
		"a missing key satisfies StringEqualsIfExists": {policy: allow(`{"StringEqualsIfExists":{"a:x":"1"}}`), action: "s3:X", want: Allowed},
		"a wrong key fails StringEqualsIfExists": {
			policy: allow(`{"StringEqualsIfExists":{"a:x":"1"}}`), action: "s3:X", context: ctx("a:x", "2"), want: NoMatch,
		},
		"StringEquals takes a star literally": {
			policy: allow(`{"StringEquals":{"a:x":"a*"}}`), action: "s3:X", context: ctx("a:x", "ab"), want: NoMatch,
		},
		"StringLike does not": {
			policy: allow(`{"StringLike":{"a:x":"a*"}}`), action: "s3:X", context: ctx("a:x", "ab"), want: Allowed,
		},
		"StringNotLike fails if any pattern fits": {
			policy: allow(`{"StringNotLike":{"a:x":["z*","a*"]}}`), action: "s3:X", context: ctx("a:x", "ab"), want: NoMatch,
		},
		"Bool as a JSON boolean": {
			policy: allow(`{"Bool":{"aws:SecureTransport":true}}`), action: "s3:X", context: ctx("aws:SecureTransport", "true"), want: Allowed,
		},
		"a missing Bool is not false": {
			policy: allow(`{"Bool":{"aws:SecureTransport":"false"}}`), action: "s3:X", want: NoMatch,
		},
		"Null true wants the key away": {
			policy: allow(`{"Null":{"a:x":"true"}}`), action: "s3:X", context: ctx("a:x", "1"), want: NoMatch,
		},
		"Null false wants the key there": {
			policy: allow(`{"Null":{"a:x":"false"}}`), action: "s3:X", context: ctx("a:x", "1"), want: Allowed,
		},
		"ForAllValues wants each value allowed": {
			policy: allow(`{"ForAllValues:StringEquals":{"aws:TagKeys":["a","b"]}}`), action: "s3:X",
			context: ctx("aws:TagKeys", Values("a", "c")), want: NoMatch,
		},
		"ForAllValues holds without any value": {
			policy: allow(`{"ForAllValues:StringEquals":{"aws:TagKeys":["a"]}}`), action: "s3:X", want: Allowed,
		},
		"ForAnyValue wants one value allowed": {
			policy: allow(`{"ForAnyValue:StringEquals":{"aws:TagKeys":["a"]}}`), action: "s3:X", context: ctx("aws:TagKeys", Values("c", "a")),
			want: Allowed,
		},
		"ForAnyValue fails without any value": {
			policy: allow(`{"ForAnyValue:StringNotEquals":{"aws:TagKeys":["a"]}}`), action: "s3:X", want: NoMatch,
		},
		"ForAnyValue of a negation wants one other value": {
			policy: allow(`{"ForAnyValue:StringNotEquals":{"aws:TagKeys":["a"]}}`), action: "s3:X", context: ctx("aws:TagKeys", Values("a", "b")),
			want: Allowed,
		},
		"ArnLike compares part by part": {
			policy: allow(`{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:1:rule/drover-*"}}`), action: "s3:X",
			context: ctx("aws:SourceArn", "arn:aws:events:eu-west-1:1:rule/drover-admit"), want: Allowed,
		},
		"a star of ArnLike does not eat a colon": {
			policy: allow(`{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:rule/x"}}`), action: "s3:X",
			context: ctx("aws:SourceArn", "arn:aws:events:eu-west-1:1:rule/x"), want: NoMatch,
		},
		"a number compares as a number": {
			policy: allow(`{"NumericLessThanEquals":{"a:n":"10"}}`), action: "s3:X", context: ctx("a:n", "9"), want: Allowed,
		},
		"a date compares as a date": {
			policy: allow(`{"DateGreaterThan":{"a:t":"2026-01-01T00:00:00Z"}}`), action: "s3:X", context: ctx("a:t", "2026-01-01T00:00:01Z"),
			want: Allowed,
		},
		"an address in a network": {
			policy: allow(`{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","127.0.0.1"]}}`), action: "s3:X", context: ctx("aws:SourceIp", "127.0.0.1"),
			want: Allowed,
		},
		"a variable in a resource": {
			policy: document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::home/${aws:username}/*"}`), action: "s3:GetObject",
			resource: "arn:aws:s3:::home/ann/x", context: ctx("aws:username", "ann"), want: Allowed,
		},
		"a variable's star is no wildcard": {
			policy: document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::home/${aws:username}/*"}`), action: "s3:GetObject",
			resource: "arn:aws:s3:::home/ann/x", context: ctx("aws:username", "*"), want: NoMatch,
		},
		"a variable without a value matches nothing": {
			policy: document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::home/${aws:PrincipalTag/team}"}`), action: "s3:GetObject",
			resource: "arn:aws:s3:::home/", want: NoMatch,
		},
		"a variable's default": {
			policy:   document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::home/${aws:PrincipalTag/team, 'all'}"}`),
			action:   "s3:GetObject",
			resource: "arn:aws:s3:::home/all", want: Allowed,
		},
		"an escaped star": {
			policy: document(`{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::home/${*}"}`), action: "s3:GetObject",
			resource: "arn:aws:s3:::home/x", want: NoMatch,
		},
		"the old version has no variables": {
			policy: `{"Version":"2008-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"x${aws:username}"}}`, action: "s3:GetObject",
			resource: "xann", context: ctx("aws:username", "ann"), want: NoMatch,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePolicy(test.policy, false)
			require.NoError(t, err)
			require.Equal(t, test.want, p.evaluate(newRequest(test.action, test.resource, nil, in(test.context))))
		})
	}
}

func TestParsePolicyRejects(t *testing.T) {
	for name, policy := range map[string]string{
		"is not JSON":              `{`,
		"has no statement":         `{"Version":"2012-10-17"}`,
		"has an unknown version":   `{"Version":"2020-01-01","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`,
		"has an unknown element":   document(`{"Effect":"Allow","Action":"*","Resource":"*","Resources":"*"}`),
		"has an unknown effect":    document(`{"Effect":"allow","Action":"*","Resource":"*"}`),
		"has no action":            document(`{"Effect":"Allow","Resource":"*"}`),
		"has Action and NotAction": document(`{"Effect":"Allow","Action":"*","NotAction":"x:*","Resource":"*"}`),
		"has no resource":          document(`{"Effect":"Allow","Action":"*"}`),
		"names a principal":        document(`{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}`),
		"has an unknown operator":  document(`{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEqual":{"a:b":"c"}}}`),
		"has a list inside a value": document(`{"Effect":"Allow","Action":"*","Resource":"*",` +
			`"Condition":{"StringEquals":{"a:b":[["c"]]}}}`),
		"is followed by another document": document(`{"Effect":"Allow","Action":"*","Resource":"*"}`) + `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePolicy(policy, false)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "MalformedPolicyDocument", e.Code)
		})
	}
	_, err := ParsePolicy(document(`{"Effect":"Allow","Action":"*","Resource":"*"}`), true)
	require.ErrorContains(t, err, "Principal")
}

func TestPrincipals(t *testing.T) {
	role := Principal{ARN: "arn:aws:sts::1:assumed-role/r/s", RoleARN: "arn:aws:iam::1:role/r", Account: "1"}
	events := Principal{Service: "events.amazonaws.com"}
	for name, test := range map[string]struct {
		principal string
		by        Principal
		want      Decision
	}{
		"a role names its sessions":                       {`{"AWS":"arn:aws:iam::1:role/r"}`, role, Allowed},
		"a session names itself":                          {`{"AWS":"arn:aws:sts::1:assumed-role/r/s"}`, role, Allowed},
		"another session is not meant":                    {`{"AWS":"arn:aws:sts::1:assumed-role/r/t"}`, role, NoMatch},
		"root means the account":                          {`{"AWS":"arn:aws:iam::1:root"}`, role, Delegated},
		"so does the account's id":                        {`{"AWS":["2","1"]}`, role, Delegated},
		"a role that is named in addition to its account": {`{"AWS":["1","arn:aws:iam::1:role/r"]}`, role, Allowed},
		"another account is not meant":                    {`{"AWS":"arn:aws:iam::2:root"}`, role, NoMatch},
		"a service by name":                               {`{"Service":["lambda.amazonaws.com","events.amazonaws.com"]}`, events, Allowed},
		"a service is none of the account's":              {`{"AWS":"1"}`, events, NoMatch},
		"a role is no service":                            {`{"Service":"events.amazonaws.com"}`, role, NoMatch},
		"everyone":                                        {`"*"`, role, Allowed},
		"everyone by AWS":                                 {`{"AWS":"*"}`, role, Allowed},
		"a wildcard in a principal is no glob":            {`{"AWS":"arn:aws:iam::1:role/*"}`, role, NoMatch},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePolicy(document(`{"Effect":"Allow","Action":"*","Resource":"*","Principal":`+test.principal+`}`), true)
			require.NoError(t, err)
			require.Equal(t, test.want, EvaluateResourcePolicy(p, test.by, "s3:GetObject", "x", nil))
			p.Statements[0].Allow = false
			require.Equal(t, test.want != NoMatch, EvaluateResourcePolicy(p, test.by, "s3:GetObject", "x", nil) == Denied,
				"a deny of an account applies to all its identities")
		})
	}
}

const lambdaTrust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole",` +
	`"Principal":{"Service":"lambda.amazonaws.com"}}}`

func newRole(t *testing.T, s *Service, name, trust, policy string) string {
	t.Helper()
	r, err := s.CreateRole(Role{Name: name, TrustDocument: trust})
	require.NoError(t, err)
	if policy != "" {
		require.NoError(t, s.PutRolePolicy(name, "p", policy))
	}
	return s.RoleARN(r)
}

func TestCallerOfARole(t *testing.T) {
	s := New("111122223333", "eu-west-1", &clock.Clock{})
	arn := newRole(t, s, "reader", lambdaTrust, document(`{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::specs/*"}`))
	_, _, err := s.AssumeRoleAs(arn, "plan", "events.amazonaws.com")
	require.ErrorContains(t, err, "AccessDenied", "the trust policy names another service")
	c, credentials, err := s.AssumeRoleAs(arn, "plan", "lambda.amazonaws.com")
	require.NoError(t, err)
	require.Equal(t, "arn:aws:sts::111122223333:assumed-role/reader/plan", c.ARN())

	require.NoError(t, c.Authorize("s3:GetObject", "arn:aws:s3:::specs/a", nil))
	err = c.Authorize("s3:PutObject", "arn:aws:s3:::specs/a", nil)
	require.EqualError(t, err, "AccessDenied: User: arn:aws:sts::111122223333:assumed-role/reader/plan is not authorized to "+
		"perform: s3:PutObject on resource: arn:aws:s3:::specs/a because no identity-based policy allows the s3:PutObject action")

	bucketPolicy, err := ParsePolicy(document(
		`{"Effect":"Allow","Action":"s3:PutObject","Resource":"*","Principal":{"AWS":"`+arn+`"}}`,
		`{"Effect":"Deny","Action":"s3:*","Resource":"*","Principal":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}`), true)
	require.NoError(t, err)
	require.NoError(t, c.AuthorizeWith("s3:PutObject", "arn:aws:s3:::specs/a", nil, bucketPolicy), "the resource's policy may allow")
	require.ErrorContains(t, c.AuthorizeWith("s3:GetObject", "arn:aws:s3:::specs/a", map[string]string{
		"aws:SecureTransport": "false",
	}, bucketPolicy), "explicit deny in a resource-based policy")
	admin, _ := s.Admin()
	require.Error(t, admin.AuthorizeWith("s3:GetObject", "x", map[string]string{
		"aws:SecureTransport": "false",
	}, bucketPolicy), "a deny holds for administrators")

	require.NoError(t, s.DeleteRolePolicy("reader", "p"))
	require.Error(t, c.Authorize("s3:GetObject", "arn:aws:s3:::specs/a", nil), "policies count as they are now")
	require.NoError(t, s.DeleteRole("reader"))
	newRole(t, s, "reader", lambdaTrust, document(`{"Effect":"Allow","Action":"*","Resource":"*"}`))
	require.Error(t, c.Authorize("s3:GetObject", "arn:aws:s3:::specs/a", nil), "a new role of the name is another role")
	_, secret, token, err := s.Caller(credentials.AccessKeyID)
	require.NoError(t, err)
	require.Equal(t, credentials.SecretAccessKey+credentials.SessionToken, secret+token)
}

func TestServiceCaller(t *testing.T) {
	s := New("111122223333", "eu-west-1", &clock.Clock{})
	c := s.ServiceCaller("events.amazonaws.com", "arn:aws:events:eu-west-1:111122223333:rule/r")
	require.ErrorContains(t, c.Authorize("sqs:SendMessage", "arn:q", nil), "no resource-based policy allows")
	p, err := ParsePolicy(document(`{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:q",`+
		`"Principal":{"Service":"events.amazonaws.com"},`+
		`"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:eu-west-1:111122223333:rule/r"}}}`), true)
	require.NoError(t, err)
	require.NoError(t, c.AuthorizeWith("sqs:SendMessage", "arn:q", nil, p))
	other := s.ServiceCaller("events.amazonaws.com", "arn:aws:events:eu-west-1:111122223333:rule/other")
	require.Error(t, other.AuthorizeWith("sqs:SendMessage", "arn:q", nil, p))
}

func TestAssumeRole(t *testing.T) {
	s := New("111122223333", "eu-west-1", &clock.Clock{})
	from := newRole(t, s, "from", lambdaTrust, document(`{"Effect":"Allow","Action":"sts:AssumeRole",`+
		`"Resource":"arn:aws:iam::111122223333:role/by-account"}`))
	c, _, err := s.AssumeRoleAs(from, "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	trust := func(principal string) string {
		return document(`{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"` + principal + `"}}`)
	}
	for name, test := range map[string]struct {
		trusts  string
		allowed bool
	}{
		"by-account": {"arn:aws:iam::111122223333:root", true},  // the account delegates, the caller's policy allows
		"unlisted":   {"arn:aws:iam::111122223333:root", false}, // the account delegates, the caller's policy does not allow
		"by-name":    {from, true},                              // naming the caller suffices
		"stranger":   {"arn:aws:iam::999999999999:root", false},
	} {
		t.Run(name, func(t *testing.T) {
			arn := newRole(t, s, name, trust(test.trusts), "")
			_, _, err := s.AssumeRole(c, arn, "chained", time.Hour, nil, nil)
			require.Equal(t, test.allowed, err == nil, "%v", err)
		})
	}
	_, _, err = s.AssumeRole(c, "arn:aws:iam::111122223333:role/missing", "chained", time.Hour, nil, nil)
	require.ErrorContains(t, err, "AccessDenied", "does not disclose whether a role exists")
}

func TestCredentialsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("111122223333", "eu-west-1", &clock.Clock{})
		arn := newRole(t, s, "r", lambdaTrust, "")
		_, credentials, err := s.AssumeRoleAs(arn, "session", "lambda.amazonaws.com")
		require.NoError(t, err)
		time.Sleep(12*time.Hour - time.Minute)
		_, _, _, err = s.Caller(credentials.AccessKeyID)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, _, _, err = s.Caller(credentials.AccessKeyID)
		require.ErrorContains(t, err, "ExpiredToken")
	})
}

// A boundary grants nothing. It limits the role's policies, and resource policies that name the role.
func TestBoundaries(t *testing.T) {
	const object, other = "arn:aws:s3:::specs/a", "arn:aws:s3:::other/a"
	s := New("111122223333", "eu-west-1", &clock.Clock{})
	boundary, err := s.CreatePolicy(ManagedPolicy{Name: "boundary", Document: document(
		`{"Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::specs/*"}`,
		`{"Effect":"Deny","Action":"s3:PutObject","Resource":"*","Condition":{"Bool":{"a:frozen":"true"}}}`)})
	require.NoError(t, err)
	_, err = s.CreateRole(Role{Name: "missing", TrustDocument: lambdaTrust, Boundary: "arn:aws:iam::111122223333:policy/none"})
	require.ErrorContains(t, err, "NoSuchEntity")
	role, err := s.CreateRole(Role{Name: "bounded", TrustDocument: lambdaTrust, Boundary: boundary.ARN})
	require.NoError(t, err)
	c, _, err := s.AssumeRoleAs(s.RoleARN(role), "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	require.Error(t, c.Authorize("s3:GetObject", object, nil), "a boundary by itself allows nothing")

	require.NoError(t, s.PutRolePolicy("bounded", "all", document(`{"Effect":"Allow","Action":"*","Resource":"*"}`)))
	require.NoError(t, c.Authorize("s3:GetObject", object, nil))
	require.ErrorContains(t, c.Authorize("s3:GetObject", other, nil), "not authorized")
	require.ErrorContains(t, c.Authorize("iam:CreateRole", "*", nil), "not authorized")
	require.ErrorContains(t, c.Authorize("s3:PutObject", object, map[string]string{"a:frozen": "true"}), "explicit deny")

	onResource := func(principal string) *Policy {
		p, err := ParsePolicy(document(`{"Effect":"Allow","Action":"s3:*","Resource":"*","Principal":`+principal+`}`), true)
		require.NoError(t, err)
		return p
	}
	for name, c2 := range map[string]struct {
		principal string
		allowed   bool
	}{
		"the role":    {`{"AWS":"` + s.RoleARN(role) + `"}`, false},
		"the account": {`{"AWS":"111122223333"}`, false},
		"the session": {`{"AWS":"arn:aws:sts::111122223333:assumed-role/bounded/session"}`, true},
		"everyone":    {`"*"`, true},
	} {
		t.Run("a resource's policy that names "+name, func(t *testing.T) {
			require.Equal(t, c2.allowed, c.AuthorizeWith("s3:GetObject", other, nil, onResource(c2.principal)) == nil)
			require.NoError(t, c.AuthorizeWith("s3:GetObject", object, nil, onResource(c2.principal)))
		})
	}
	require.ErrorContains(t, s.DeletePolicy(boundary.ARN), "DeleteConflict")
	require.NoError(t, s.SetBoundary("bounded", ""))
	require.NoError(t, c.Authorize("s3:GetObject", other, nil))
	require.NoError(t, s.DeletePolicy(boundary.ARN))
}

// A condition key of the request overrides one of the caller, which overrides a global one.
func TestConditionKeys(t *testing.T) {
	s := New("111122223333", "eu-central-1", &clock.Clock{})
	_, err := s.CreateRole(Role{Name: "r", TrustDocument: document(
		`{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}`), Tags: map[string]string{"Team": "a"}})
	require.NoError(t, err)
	role, _, err := s.AssumeRoleAs("arn:aws:iam::111122223333:role/r", "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	admin, _ := s.Admin()
	service := s.ServiceCaller("events.amazonaws.com", "arn:aws:events:::rule/x")
	const none = "none"
	for name, test := range map[string]struct {
		Caller
		want map[string]string
	}{
		"a user": {admin, map[string]string{
			"aws:securetransport": "true", "aws:requestedregion": "eu-central-1", "aws:principalisawsservice": "false",
			"aws:principalaccount": "111122223333",
			"aws:principalarn":     "arn:aws:iam::111122223333:user/admin", "aws:principaltype": "User", "aws:username": "admin",
			"aws:sourceip":      "127.0.0.1",
			"aws:viaawsservice": "false", "aws:calledvia": none, "aws:principalservicename": none, "aws:principaltag/team": none,
			"of:request": "its own",
		}},
		"a role": {role, map[string]string{
			"aws:principalarn": "arn:aws:iam::111122223333:role/r", "aws:principaltype": "AssumedRole", "aws:principaltag/team": "a",
			"aws:username": none,
			"aws:userid":   role.UserID(), "aws:principaltag/other": none,
		}},
		"a service that acts for a role": {role.InvokedBy("cloudformation.amazonaws.com"), map[string]string{
			"aws:viaawsservice": "true", "aws:calledvia": "cloudformation.amazonaws.com", "aws:calledviafirst": "cloudformation.amazonaws.com",
			"aws:calledvialast": "cloudformation.amazonaws.com", "aws:sourceip": none,
		}},
		"a service": {service, map[string]string{
			"aws:principalisawsservice": "true", "aws:principalservicename": "events.amazonaws.com", "aws:sourcearn": "arn:aws:events:::rule/x",
			"aws:sourceaccount": "of the request", "aws:principalaccount": none, "aws:sourceip": none, "aws:securetransport": "true",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			keys := test.keys(map[string]string{"of:Request": "its own", "aws:SourceAccount": "of the request"}, "*")
			for key, want := range test.want {
				got, found := keys(key)
				require.Equal(t, want != none, found, key)
				if found {
					require.Equal(t, want, got, key)
				}
			}
		})
	}
}
