package kms_test

import (
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/kms"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
)

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func TestKeys(t *testing.T) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	s := kms.New(identities, &clock.Clock{})
	e := endpoint.New(identities, nil)
	e.Handle(s.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	admin, c := identities.Admin()
	client := awskms.New(awskms.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	})
	ctx := t.Context()
	provider := s.Resources()["AWS::KMS::Key"]
	role, err := identities.CreateRole(iam.Role{
		Name: "r", TrustDocument: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole",` +
			`"Principal":{"Service":"eks.amazonaws.com"}}}`,
	})
	require.NoError(t, err)
	caller, _, err := identities.AssumeRoleAs(identities.RoleARN(role), "x1", "eks.amazonaws.com")
	require.NoError(t, err)

	created, err := provider.Create(ctx, resource.Request{
		Caller: admin, Properties: map[string]any{"Description": "d", "EnableKeyRotation": true, "PendingWindowInDays": 7.0},
	})
	require.NoError(t, err)
	_, err = s.Resources()["AWS::KMS::Alias"].Create(ctx, resource.Request{
		Caller: admin, Properties: map[string]any{"AliasName": "alias/drover", "TargetKeyId": created.Attributes["Arn"]},
	})
	require.NoError(t, err)
	described, err := client.DescribeKey(ctx, &awskms.DescribeKeyInput{KeyId: aws.String("alias/drover")})
	require.NoError(t, err)
	require.Equal(t, created.Attributes["Arn"], *described.KeyMetadata.Arn)
	require.Equal(t, types.KeyStateEnabled, described.KeyMetadata.KeyState)
	rotation, err := client.GetKeyRotationStatus(ctx, &awskms.GetKeyRotationStatusInput{KeyId: &created.PhysicalID})
	require.NoError(t, err)
	require.True(t, rotation.KeyRotationEnabled)
	aliases, err := client.ListAliases(ctx, &awskms.ListAliasesInput{KeyId: &created.PhysicalID})
	require.NoError(t, err)
	require.Equal(t, "alias/drover", *aliases.Aliases[0].AliasName)
	_, err = client.DescribeKey(ctx, &awskms.DescribeKeyInput{KeyId: aws.String("alias/none")})
	require.Equal(t, "NotFoundException", code(err))

	// The default policy delegates to IAM. Another may name the caller, or no identity of the account.
	require.Equal(t, "AccessDenied", code(s.Authorize(caller, "Decrypt", "alias/drover")))
	require.NoError(t, identities.PutRolePolicy("r", "p", `{"Version":"2012-10-17","Statement":{"Effect":"Allow",`+
		`"Action":"kms:Decrypt","Resource":"*"}}`))
	require.NoError(t, s.Authorize(caller, "Decrypt", "alias/drover"))
	statement := func(principal any, action string) map[string]any {
		return map[string]any{"Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*"}
	}
	policy := func(statements ...any) map[string]any {
		return map[string]any{"KeyPolicy": map[string]any{"Version": "2012-10-17", "Statement": statements}}
	}
	named, err := provider.Create(ctx, resource.Request{Caller: admin, Properties: policy(
		statement(map[string]any{"AWS": admin.ARN()}, "kms:*"), statement(map[string]any{"AWS": identities.RoleARN(role)}, "kms:DescribeKey"))})
	require.NoError(t, err)
	require.NoError(t, s.Authorize(caller, "DescribeKey", named.PhysicalID))
	require.Equal(t, "AccessDenied", code(s.Authorize(caller, "Decrypt", named.PhysicalID)), "IAM alone does not suffice")
	_, err = provider.Create(ctx, resource.Request{
		Caller: admin, Properties: policy(statement(map[string]any{"AWS": identities.RoleARN(role)}, "kms:*")),
	})
	require.Equal(t, "MalformedPolicyDocumentException", code(err), "a policy that locks its maker out")
	_, err = provider.Create(ctx, resource.Request{Caller: admin, Properties: map[string]any{"KeyUsage": "SIGN_VERIFY"}})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))

	r := resource.Request{Caller: admin, PhysicalID: created.PhysicalID}
	require.NoError(t, provider.Delete(ctx, r))
	require.NoError(t, provider.Delete(ctx, r), "deleting twice succeeds")
	_, err = s.KeyARN("alias/drover")
	require.Error(t, err, "aliases go with their key")
}

// The tags of a key count for permissions five minutes after they were set, those of CreateKey too on a strict reading.
func TestTagsOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		other bool
		named bool
		code  string
	}{
		"strict: the tags of CreateKey do not count yet":  {code: "MalformedPolicyDocumentException"},
		"strict: a key policy that names the caller does": {named: true},
		"other: the tags of CreateKey count at once":      {other: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
				s := kms.New(identities, &clock.Clock{})
				s.Readings = questions.Readings{questions.KeyTags: c.other}
				role, err := identities.CreateRole(iam.Role{
					Name: "r", TrustDocument: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole",` +
						`"Principal":{"Service":"cloudformation.amazonaws.com"}}}`,
				})
				require.NoError(t, err)
				require.NoError(t, identities.PutRolePolicy("r", "p", `{"Version":"2012-10-17","Statement":[`+
					`{"Effect":"Allow","Action":["kms:CreateKey","kms:TagResource"],"Resource":"*",`+
					`"Condition":{"Null":{"aws:RequestTag/cluster":"false"}}},{"Effect":"Allow","Action":"kms:*","Resource":"*",`+
					`"Condition":{"StringEquals":{"aws:ResourceTag/cluster":"a"}}}]}`))
				caller, _, err := identities.AssumeRoleAs(identities.RoleARN(role), "x1", "cloudformation.amazonaws.com")
				require.NoError(t, err)
				account := map[string]any{"AWS": "111122223333"}
				principals := []any{map[string]any{"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": account}}
				if c.named {
					principals = append(principals, map[string]any{
						"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": map[string]any{"AWS": identities.RoleARN(role)},
					})
				}
				create := func(tag string) resource.Request {
					return resource.Request{Caller: caller, Properties: map[string]any{
						"EnableKeyRotation": true, "Tags": []any{map[string]any{"Key": "cluster", "Value": tag}},
						"KeyPolicy": map[string]any{"Version": "2012-10-17", "Statement": principals},
					}}
				}
				keys := s.Resources()["AWS::KMS::Key"]
				key, err := keys.Create(t.Context(), create("a"))
				require.Equal(t, c.code, code(err))
				if err != nil {
					return
				}
				// A tag that changes counts later, however the tags of CreateKey are read. The one before counts until then.
				changed := create("b")
				changed.PhysicalID, changed.Old = key.PhysicalID, create("a").Properties
				_, err = keys.Update(t.Context(), changed)
				require.NoError(t, err)
				if !c.named {
					require.NoError(t, s.Authorize(caller, "Decrypt", key.PhysicalID))
					time.Sleep(5 * time.Minute)
					require.Equal(t, "AccessDenied", code(s.Authorize(caller, "Decrypt", key.PhysicalID)))
				}
			})
		})
	}
}

func TestKeyPolicyNamesRolesThatExist(t *testing.T) {
	identities := iam.New("111122223333", "eu-west-1", &clock.Clock{})
	admin, _ := identities.Admin()
	_, err := kms.New(identities, &clock.Clock{}).Resources()["AWS::KMS::Key"].Create(t.Context(), resource.Request{
		Caller: admin, Properties: map[string]any{"KeyPolicy": map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
			"Effect": "Allow", "Action": "kms:*", "Resource": "*",
			"Principal": map[string]any{"AWS": []any{"111122223333", "arn:aws:iam::111122223333:role/none"}},
		}}}},
	})
	require.Equal(t, "MalformedPolicyDocumentException", code(err))
}
