package endpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

type account struct {
	identities *iam.Service
	api        *iamapi.API
	endpoint   *endpoint.Endpoint
	recorder   *endpoint.Recorder
	url        string
}

func newAccount(t *testing.T, services ...*wire.Service) *account {
	t.Helper()
	a := &account{identities: iam.New("111122223333", "eu-west-1", &clock.Clock{}), recorder: &endpoint.Recorder{}}
	a.api = iamapi.New(a.identities)
	a.endpoint = endpoint.New(a.identities, a.recorder)
	a.endpoint.Handle(a.api.STS(), a.api.IAM())
	a.endpoint.Handle(services...)
	server := httptest.NewServer(a.endpoint)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func (a *account) config(c iam.Credentials) aws.Config {
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &a.url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	}
}

func (a *account) admin() aws.Config {
	_, c := a.identities.Admin()
	return a.config(c)
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

const rolesTrust = `{"Version":"2012-10-17","Statement":[
	{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"lambda.amazonaws.com"}},
	{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"arn:aws:iam::111122223333:root"}}]}`

func TestCalls(t *testing.T) {
	a := newAccount(t)
	admin := sts.NewFromConfig(a.admin())
	identity, err := admin.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::111122223333:user/admin", *identity.Arn)

	_, err = a.identities.CreateRole(iam.Role{Name: "reader", TrustDocument: rolesTrust})
	require.NoError(t, err)
	assumed, err := admin.AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String("arn:aws:iam::111122223333:role/reader"), RoleSessionName: aws.String("me"),
	})
	require.NoError(t, err)
	role := a.config(iam.Credentials{
		AccessKeyID: *assumed.Credentials.AccessKeyId, SecretAccessKey: *assumed.Credentials.SecretAccessKey,
		SessionToken: *assumed.Credentials.SessionToken,
	})
	identity, err = sts.NewFromConfig(role).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:sts::111122223333:assumed-role/reader/me", *identity.Arn)

	_, err = awsiam.NewFromConfig(role).ListRoles(t.Context(), &awsiam.ListRolesInput{})
	require.Equal(t, "AccessDenied", code(err))
	require.ErrorContains(t, err, "User: arn:aws:sts::111122223333:assumed-role/reader/me is not authorized to perform: iam:ListRoles on "+
		"resource: * because no identity-based policy allows the iam:ListRoles action")
	require.NoError(t, a.identities.PutRolePolicy("reader", "p",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:List*","Resource":"*"}}`))
	roles, err := awsiam.NewFromConfig(role).ListRoles(t.Context(), &awsiam.ListRolesInput{})
	require.NoError(t, err)
	document, err := url.QueryUnescape(*roles.Roles[0].AssumeRolePolicyDocument)
	require.NoError(t, err)
	require.JSONEq(t, rolesTrust, document)

	calls := a.recorder.Since(0)
	require.Len(t, calls, 5)
	require.Equal(t, "ListRoles", calls[3].Action)
	require.Equal(t, "AccessDenied", calls[3].ErrorCode)
	require.Equal(t, "arn:aws:sts::111122223333:assumed-role/reader/me", calls[3].Caller)
	for _, c := range calls {
		require.False(t, c.Mutating, c.Action)
	}
	require.Len(t, a.recorder.Since(4), 1)
	require.Equal(t, 5, a.recorder.Mark())
}

func TestSignatureErrors(t *testing.T) {
	ops := map[string]wire.Operation{"Op": func(context.Context, *wire.Call) (any, error) { return nil, nil }}
	a := newAccount(t,
		&wire.Service{Name: "ec2", Protocol: wire.EC2Query, Version: "1", Operations: ops},
		&wire.Service{Name: "ssm", Protocol: wire.JSON11, TargetPrefix: "AmazonSSM", Operations: ops},
		&wire.Service{Name: "eks", Protocol: wire.RESTJSON, Operations: ops, Routes: map[string]string{"POST /clusters": "Op"}},
		&wire.Service{Name: "autoscaling", Protocol: wire.Query, Version: "1", Operations: ops},
	)
	_, right := a.identities.Admin()
	_, err := a.identities.CreateRole(iam.Role{Name: "r", TrustDocument: rolesTrust})
	require.NoError(t, err)
	_, session, err := a.identities.AssumeRoleAs("arn:aws:iam::111122223333:role/r", "session", "lambda.amazonaws.com")
	require.NoError(t, err)

	type signing struct {
		credentials iam.Credentials
		at          time.Time
		region      string
		tamper      func(r *http.Request)
	}
	change := func(do func(*signing)) signing {
		s := signing{credentials: right, at: time.Now(), region: "eu-west-1", tamper: func(*http.Request) {}}
		do(&s)
		return s
	}
	for name, test := range map[string]struct {
		signing
		codes map[string]string // by service; "" is success
	}{
		"a right one is taken":             {change(func(*signing) {}), map[string]string{"ec2": "", "ssm": "", "eks": "", "autoscaling": ""}},
		"so is that of a session":          {change(func(s *signing) { s.credentials = session }), map[string]string{"ec2": "", "ssm": ""}},
		"the clock may be ten minutes off": {change(func(s *signing) { s.at = s.at.Add(-10 * time.Minute) }), map[string]string{"ssm": ""}},
		"a wrong secret": {change(func(s *signing) { s.credentials.SecretAccessKey += "x" }), map[string]string{
			"ec2": "AuthFailure", "ssm": "InvalidSignatureException", "eks": "InvalidSignatureException", "autoscaling": "SignatureDoesNotMatch"}},
		"an unknown key": {change(func(s *signing) { s.credentials.AccessKeyID = "AKIANOBODY" }), map[string]string{
			"ec2": "AuthFailure", "ssm": "UnrecognizedClientException", "eks": "UnrecognizedClientException",
			"autoscaling": "InvalidClientTokenId"}},
		"a session without its token": {change(func(s *signing) {
			s.credentials = session
			s.credentials.SessionToken = ""
		}), map[string]string{"autoscaling": "InvalidClientTokenId"}},
		"another session's token": {change(func(s *signing) {
			s.credentials = session
			s.credentials.SessionToken = "other"
		}), map[string]string{"autoscaling": "InvalidClientTokenId"}},
		"yesterday's": {change(func(s *signing) {
			s.at = s.at.Add(-24 * time.Hour)
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch", "ssm": "InvalidSignatureException"}},
		"one of the future": {change(func(s *signing) {
			s.at = s.at.Add(20 * time.Minute)
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"another region's": {change(func(s *signing) { s.region = "us-east-1" }), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"a changed body": {change(func(s *signing) {
			s.tamper = func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("Action=No&Version=1")) }
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"a changed path": {change(func(s *signing) {
			s.tamper = func(r *http.Request) { r.URL.Path = "/other" }
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"a changed query": {change(func(s *signing) {
			s.tamper = func(r *http.Request) { r.URL.RawQuery = "a=b" }
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"a changed header": {change(func(s *signing) {
			s.tamper = func(r *http.Request) { r.Header.Set("X-Amz-Extra", "2") }
		}), map[string]string{"autoscaling": "SignatureDoesNotMatch"}},
		"none at all": {change(func(s *signing) {
			s.tamper = func(r *http.Request) { r.Header.Del("Authorization") }
		}), map[string]string{"ssm": "MissingAuthenticationTokenException", "autoscaling": "MissingAuthenticationToken"}},
		"half of one": {change(func(s *signing) {
			s.tamper = func(r *http.Request) {
				r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request")
			}
		}), map[string]string{"autoscaling": "IncompleteSignature"}},
	} {
		for service, want := range test.codes {
			t.Run(name+" at "+service, func(t *testing.T) {
				body, path := "Action=Op&Version=1", "/"
				if service == "eks" || service == "ssm" {
					body = "{}"
				}
				if service == "eks" {
					path = "/clusters"
				}
				r, err := http.NewRequest(http.MethodPost, a.url+path, strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("Content-Type", map[string]string{"eks": "application/json", "ssm": "application/x-amz-json-1.1"}[service])
				if service == "ssm" {
					r.Header.Set("X-Amz-Target", "AmazonSSM.Op")
				}
				if body != "{}" {
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				}
				r.Header.Set("X-Amz-Extra", "1")
				sum := sha256.Sum256([]byte(body))
				c := test.credentials
				require.NoError(t, v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{
					AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken,
				},
					r, hex.EncodeToString(sum[:]), service, test.region, test.at))
				test.tamper(r)
				sent, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(sent))), int64(len(sent))
				response, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				if want == "" {
					require.Equal(t, 200, response.StatusCode, string(text))
					return
				}
				require.GreaterOrEqual(t, response.StatusCode, 400)
				require.Contains(t, string(text)+response.Header.Get("X-Amzn-Errortype"), want)
			})
		}
	}
	for _, c := range a.recorder.Since(0) {
		require.Equal(t, c.Error == "", c.Mutating, "what was refused changed nothing: %+v", c)
	}
}

// A call from the process has a key instead of a signature. An invalid key fails as it does in a signature.
func TestCallsFromTheProcess(t *testing.T) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	verify := func(key string) (iam.Caller, error) {
		r := httptest.NewRequestWithContext(iam.WithAccessKey(t.Context(), key, "eu-west-1", "sts"), http.MethodPost, "/", nil)
		signature, err := iam.ParseSignature(r)
		require.NoError(t, err)
		require.Equal(t, "sts", signature.Service)
		return identities.Verify(r, signature, "")
	}
	_, admin := identities.Admin()
	caller, err := verify(admin.AccessKeyID)
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::111122223333:user/admin", caller.ARN())
	_, err = verify("AKIANOBODY")
	require.ErrorContains(t, err, "The security token included in the request is invalid.")
}

func TestUnknownService(t *testing.T) {
	a := newAccount(t)
	_, err := resourcegroupstaggingapi.NewFromConfig(a.admin()).GetResources(t.Context(), &resourcegroupstaggingapi.GetResourcesInput{})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
	require.ErrorContains(t, err, "the service tagging")
}

func TestIntercept(t *testing.T) {
	a := newAccount(t)
	a.endpoint.Intercept = func(_ *http.Request, c endpoint.Call) error {
		if c.Service == "iam" && c.Action == "ListRoles" {
			return &wire.Error{Code: "Throttling", Message: "Rate exceeded", Status: 400}
		}
		return nil
	}
	_, err := awsiam.NewFromConfig(a.admin()).ListRoles(t.Context(), &awsiam.ListRolesInput{})
	require.Equal(t, "Throttling", code(err))
	_, err = awsiam.NewFromConfig(a.admin()).ListPolicies(t.Context(), &awsiam.ListPoliciesInput{Scope: "Local"})
	require.NoError(t, err)
}

func TestLostAnswers(t *testing.T) {
	done, refuse := 0, false
	service := tagging.New().Wire()
	operation := service.Operations["GetResources"]
	service.Operations["GetResources"] = func(ctx context.Context, c *wire.Call) (any, error) {
		if done++; refuse {
			return nil, wire.Errorf("Refused", "the call itself")
		}
		return operation(ctx, c)
	}
	a := newAccount(t, service)
	var codes []string
	a.endpoint.Intercept = func(*http.Request, endpoint.Call) error {
		return &endpoint.Dropped{After: func(err error) error {
			codes = append(codes, code(err))
			return &wire.Error{Code: "Unknown", Message: "the outcome is unknown", Status: 400}
		}}
	}
	client := resourcegroupstaggingapi.NewFromConfig(a.admin())
	for _, refuse = range []bool{false, true} {
		_, err := client.GetResources(t.Context(), &resourcegroupstaggingapi.GetResourcesInput{})
		require.Equal(t, "Unknown", code(err))
	}
	require.Equal(t, 2, done, "the call was performed")
	require.Len(t, codes, 2)
	require.Empty(t, codes[0])
	require.Equal(t, "Unknown", a.recorder.Since(0)[0].ErrorCode)
}

func TestTaggedResources(t *testing.T) {
	source := func(context.Context) []tagging.Tagged {
		return []tagging.Tagged{
			{ARN: "arn:aws:ec2:eu-west-1:111122223333:instance/i-1", Tags: map[string]string{"drover:cluster": "demo", "b": "2"}},
			{ARN: "arn:aws:ec2:eu-west-1:111122223333:volume/vol-1", Tags: map[string]string{"drover:cluster": "demo"}},
			{ARN: "arn:aws:ec2:eu-west-1:111122223333:instance/i-2", Tags: map[string]string{"drover:cluster": "other"}},
			{ARN: "arn:aws:s3:::specs", Tags: map[string]string{"drover:cluster": "demo"}},
			{ARN: "arn:aws:s3:::untagged"},
		}
	}
	a := newAccount(t, tagging.New(source).Wire())
	client := resourcegroupstaggingapi.NewFromConfig(a.admin())
	get := func(in *resourcegroupstaggingapi.GetResourcesInput) (arns []string) {
		pages := resourcegroupstaggingapi.NewGetResourcesPaginator(client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			for _, m := range page.ResourceTagMappingList {
				arns = append(arns, (*m.ResourceARN)[strings.LastIndexAny(*m.ResourceARN, ":/")+1:])
			}
		}
		return arns
	}
	demo := []tagtypes.TagFilter{{Key: aws.String("drover:cluster"), Values: []string{"demo"}}}
	require.Equal(t, []string{
		"i-1", "i-2", "vol-1", "specs",
	}, get(&resourcegroupstaggingapi.GetResourcesInput{ResourcesPerPage: aws.Int32(2)}))
	require.Equal(t, []string{"i-1", "vol-1", "specs"}, get(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: demo}))
	require.Equal(t, []string{
		"i-1",
	}, get(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: demo, ResourceTypeFilters: []string{"ec2:instance"}}))
	require.Equal(t, []string{
		"i-1",
	}, get(&resourcegroupstaggingapi.GetResourcesInput{TagFilters: append(demo, tagtypes.TagFilter{Key: aws.String("b")})}))
	_, err := client.GetResources(t.Context(), &resourcegroupstaggingapi.GetResourcesInput{TagsPerPage: aws.Int32(100)})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
}

// eksToken returns the URL in an EKS token, as aws-iam-authenticator and drover create it.
func eksToken(t *testing.T, a *account, c iam.Credentials, cluster string) string {
	t.Helper()
	presigner := sts.NewPresignClient(sts.NewFromConfig(a.config(c)))
	signed, err := presigner.PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster), smithyhttp.SetHeaderValue("X-Amz-Expires", "60"))
		})
	})
	require.NoError(t, err)
	return signed.URL
}

func TestEKSTokens(t *testing.T) {
	a := newAccount(t)
	_, err := a.identities.CreateRole(iam.Role{Name: "prepare", TrustDocument: rolesTrust})
	require.NoError(t, err)
	_, c, err := a.identities.AssumeRoleAs("arn:aws:iam::111122223333:role/prepare", "x1", "lambda.amazonaws.com")
	require.NoError(t, err)
	token := eksToken(t, a, c, "drover-demo")
	caller, err := a.identities.VerifyPresigned(t.Context(), token, "drover-demo")
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::111122223333:role/prepare", caller.RoleARN())

	changed := func(do func(q url.Values)) string {
		u, err := url.Parse(token)
		require.NoError(t, err)
		q := u.Query()
		do(q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for name, test := range map[string]struct{ token, cluster string }{
		"for another cluster":        {token, "drover-other"},
		"with another call":          {changed(func(q url.Values) { q.Set("Action", "AssumeRole") }), "drover-demo"},
		"with something smuggled in": {changed(func(q url.Values) { q.Set("RoleArn", "x") }), "drover-demo"},
		"with a later time": {changed(func(q url.Values) {
			q.Set("X-Amz-Date", time.Now().Add(time.Minute).UTC().Format("20060102T150405Z"))
		}), "drover-demo"},
		"without the cluster's header": {eksTokenWithoutHeader(t, a, c), "drover-demo"},
		"that is no URL":               {"k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(token)), "drover-demo"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.identities.VerifyPresigned(t.Context(), test.token, test.cluster)
			require.Error(t, err)
		})
	}
}

func eksTokenWithoutHeader(t *testing.T, a *account, c iam.Credentials) string {
	signed, err := sts.NewPresignClient(sts.NewFromConfig(a.config(c))).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	require.NoError(t, err)
	return signed.URL
}

func TestIdentityResources(t *testing.T) {
	a := newAccount(t)
	caller, _ := a.identities.Admin()
	resources := a.api.Resources()
	client := awsiam.NewFromConfig(a.admin())
	document := func(action string) map[string]any {
		return map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{"Effect": "Allow", "Action": action, "Resource": "*"}}}
	}
	r := resource.Request{StackName: "drover", LogicalID: "AdmitRole", Caller: caller, Properties: map[string]any{
		"AssumeRolePolicyDocument": map[string]any{
			"Version": "2012-10-17", "Statement": []any{
				map[string]any{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": map[string]any{"Service": "lambda.amazonaws.com"}},
			},
		},
		"ManagedPolicyArns": []any{"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"},
		"Policies":          []any{map[string]any{"PolicyName": "inline", "PolicyDocument": document("s3:GetObject")}},
	}}
	role, err := resources["AWS::IAM::Role"].Create(t.Context(), r)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(role.PhysicalID, "drover-AdmitRole-"))
	arn := role.Attributes["Arn"].(string)
	session, _, err := a.identities.AssumeRoleAs(arn, "x1", "lambda.amazonaws.com")
	require.NoError(t, err)
	require.NoError(t, session.Authorize("logs:PutLogEvents", "x", nil), "by the managed policy")
	require.NoError(t, session.Authorize("s3:GetObject", "x", nil))
	attached, err := client.ListAttachedRolePolicies(t.Context(), &awsiam.ListAttachedRolePoliciesInput{RoleName: &role.PhysicalID})
	require.NoError(t, err)
	require.Equal(t, "AWSLambdaBasicExecutionRole", *attached.AttachedPolicies[0].PolicyName)

	policy := resource.Request{StackName: "drover", LogicalID: "DefaultPolicy", Caller: caller, Properties: map[string]any{
		"PolicyName": "default", "PolicyDocument": document("sqs:SendMessage"), "Roles": []any{role.PhysicalID},
	}}
	_, err = resources["AWS::IAM::Policy"].Create(t.Context(), policy)
	require.NoError(t, err)
	require.NoError(t, session.Authorize("sqs:SendMessage", "x", nil))

	profile := resource.Request{
		StackName: "drover", LogicalID: "Profile", Caller: caller, Properties: map[string]any{"Roles": []any{role.PhysicalID}},
	}
	created, err := resources["AWS::IAM::InstanceProfile"].Create(t.Context(), profile)
	require.NoError(t, err)
	profile.PhysicalID = created.PhysicalID
	got, err := client.GetInstanceProfile(t.Context(), &awsiam.GetInstanceProfileInput{InstanceProfileName: &created.PhysicalID})
	require.NoError(t, err)
	require.Equal(t, arn, *got.InstanceProfile.Roles[0].Arn)

	update := r
	update.PhysicalID, update.Old = role.PhysicalID, r.Properties
	update.Properties = map[string]any{"AssumeRolePolicyDocument": r.Properties["AssumeRolePolicyDocument"], "Description": "d"}
	_, err = resources["AWS::IAM::Role"].Update(t.Context(), update)
	require.NoError(t, err)
	require.Error(t, session.Authorize("s3:GetObject", "x", nil), "the inline policy went")
	require.Error(t, session.Authorize("logs:PutLogEvents", "x", nil), "the managed policy went")
	require.NoError(t, session.Authorize("sqs:SendMessage", "x", nil), "another resource's policy stayed")

	require.ErrorContains(t, resources["AWS::IAM::Role"].Delete(t.Context(), update), "DeleteConflict", "a policy and a profile still hold it")
	require.NoError(t, resources["AWS::IAM::Policy"].Delete(t.Context(), policy))
	require.NoError(t, resources["AWS::IAM::InstanceProfile"].Delete(t.Context(), profile))
	require.NoError(t, resources["AWS::IAM::Role"].Delete(t.Context(), update))
	require.NoError(t, resources["AWS::IAM::Role"].Delete(t.Context(), update), "deleting twice succeeds")

	provider, err := resources["AWS::IAM::OIDCProvider"].Create(t.Context(), resource.Request{
		Caller: caller, Properties: map[string]any{
			"Url": "https://oidc.eks.eu-west-1.amazonaws.com/id/A", "ClientIdList": []any{"sts.amazonaws.com"},
		},
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A", provider.Attributes["Arn"])
	managed, err := resources["AWS::IAM::ManagedPolicy"].Create(t.Context(), resource.Request{
		StackName: "s", LogicalID: "M", Caller: caller, Properties: map[string]any{"PolicyDocument": document("x:Y")},
	})
	require.NoError(t, err)
	version, err := client.GetPolicyVersion(t.Context(), &awsiam.GetPolicyVersionInput{
		PolicyArn: &managed.PhysicalID, VersionId: aws.String("v1"),
	})
	require.NoError(t, err)
	require.Contains(t, *version.PolicyVersion.Document, "x%3AY")

	bad := r
	bad.Properties = map[string]any{
		"AssumeRolePolicyDocument": r.Properties["AssumeRolePolicyDocument"], "ManagedPolicyArns": []any{"arn:aws:iam::aws:policy/NoSuch"},
		"RoleName": "half",
	}
	_, err = resources["AWS::IAM::Role"].Create(t.Context(), bad)
	require.ErrorContains(t, err, "NoSuchEntity")
	_, err = a.identities.Role("half")
	require.Error(t, err, "what failed half-way is cleaned up")
	_, err = a.identities.CreateRole(iam.Role{Name: "limited", TrustDocument: rolesTrust})
	require.NoError(t, err)
	bad.Caller, _, err = a.identities.AssumeRoleAs("arn:aws:iam::111122223333:role/limited", "x1", "lambda.amazonaws.com")
	require.NoError(t, err)
	_, err = resources["AWS::IAM::Role"].Create(t.Context(), bad)
	require.ErrorContains(t, err, "not authorized to perform: iam:CreateRole")
}

func TestQuotaOfRoles(t *testing.T) {
	a := newAccount(t)
	client := awsiam.NewFromConfig(a.admin())
	summary := func() map[string]int32 {
		out, err := client.GetAccountSummary(t.Context(), &awsiam.GetAccountSummaryInput{})
		require.NoError(t, err)
		return out.SummaryMap
	}
	require.Equal(t, map[string]int32{"Roles": 0, "RolesQuota": 1000}, summary(), "the default of AWS")
	a.identities.MaxRoles = func() int { return 1 }
	_, err := a.identities.CreateRole(iam.Role{Name: "first", TrustDocument: rolesTrust})
	require.NoError(t, err)
	_, err = a.identities.CreateRole(iam.Role{Name: "second", TrustDocument: rolesTrust})
	require.ErrorContains(t, err, "Cannot exceed quota for RolesPerAccount: 1")
	_, err = a.identities.CreateRole(iam.Role{
		Name: "AWSServiceRoleForX", Path: "/aws-service-role/x/", TrustDocument: rolesTrust, ServiceLinked: true,
	})
	require.NoError(t, err, "service-linked roles can be created above the quota")
	require.Equal(t, map[string]int32{"Roles": 2, "RolesQuota": 1}, summary())
}

func TestQuotaOfOIDCProviders(t *testing.T) {
	identities := newAccount(t).identities
	require.Equal(t, 100, identities.OIDCProvidersQuota(), "the default of AWS")
	identities.MaxOIDCProviders = func() int { return 1 }
	_, err := identities.CreateOIDCProvider(iam.OIDCProvider{URL: "https://a.example"})
	require.NoError(t, err)
	_, err = identities.CreateOIDCProvider(iam.OIDCProvider{URL: "https://b.example"})
	require.ErrorContains(t, err, "Cannot exceed quota for OpenIdConnectProvidersPerAccount: 1")
}

func TestUsers(t *testing.T) {
	client := awsiam.NewFromConfig(newAccount(t).admin())
	admin, err := client.GetUser(t.Context(), &awsiam.GetUserInput{UserName: aws.String("admin")})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:iam::111122223333:user/admin", *admin.User.Arn)
	_, err = client.GetUser(t.Context(), &awsiam.GetUserInput{UserName: aws.String("ann")})
	require.Equal(t, "NoSuchEntity", code(err))
}
