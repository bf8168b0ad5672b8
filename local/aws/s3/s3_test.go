package s3_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/s3"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// running is an S3 with its identities.
type running struct {
	identities *iam.Service
	s3         *s3.Service
	url        string
	mu         sync.Mutex
	events     []event
}

// account is the S3 under test. All tests share one gateway, because versitygw can run only once in a process.
var account, gateway, inMemory *running

type event struct {
	kind   string
	detail map[string]any
}

// everyStore runs a test with versitygw and with objects in memory.
func everyStore(t *testing.T, test func(*testing.T)) {
	for name, a := range map[string]*running{"versitygw": gateway, "memory": inMemory} {
		t.Run(name, func(t *testing.T) {
			account = a
			defer func() { account = gateway }()
			test(t)
		})
	}
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "s3-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var stop [2]func()
	gateway, stop[0] = start(func(i *iam.Service, c *clock.Clock, emit s3.Emit) (*s3.Service, error) {
		return s3.New(i, c, dir, emit)
	})
	inMemory, stop[1] = start(func(i *iam.Service, c *clock.Clock, emit s3.Emit) (*s3.Service, error) {
		return s3.NewInMemory(i, c, emit), nil
	})
	defer stop[0]()
	defer stop[1]()
	account = gateway
	return m.Run()
}

func start(make func(*iam.Service, *clock.Clock, s3.Emit) (*s3.Service, error)) (*running, func()) {
	c := &clock.Clock{}
	a := &running{identities: iam.New("111122223333", "eu-west-1", c)}
	var err error
	a.s3, err = make(a.identities, c, func(_ context.Context, kind string, detail any, _ []string) {
		text, err := json.Marshal(detail)
		if err != nil {
			panic(err)
		}
		e := event{kind: kind}
		if err := json.Unmarshal(text, &e.detail); err != nil {
			panic(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.events = append(a.events, e)
	})
	if err != nil {
		panic(err)
	}
	e := endpoint.New(a.identities, nil)
	e.HandleS3(a.s3)
	server := httptest.NewServer(e)
	a.url = server.URL
	return a, func() {
		server.Close()
		if err := a.s3.Close(); err != nil {
			panic(err)
		}
	}
}

func client(c iam.Credentials, options ...func(*awss3.Options)) *awss3.Client {
	return awss3.New(awss3.Options{
		Region: "eu-west-1", BaseEndpoint: &account.url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
	}, options...)
}

func admin() *awss3.Client {
	_, c := account.identities.Admin()
	return client(c)
}

// newBucket creates a bucket through CloudFormation's provider, with versions and events enabled.
func newBucket(t *testing.T, name string) string {
	t.Helper()
	caller, _ := account.identities.Admin()
	result, err := account.s3.Resources()["AWS::S3::Bucket"].Create(t.Context(), resource.Request{
		StackName: "drover", LogicalID: "Bucket", Caller: caller, Tags: map[string]string{"aws:cloudformation:stack-name": "drover"},
		Properties: map[string]any{
			"BucketName": name, "VersioningConfiguration": map[string]any{"Status": "Enabled"},
			"NotificationConfiguration": map[string]any{"EventBridgeConfiguration": map[string]any{"EventBridgeEnabled": true}},
		},
	})
	require.NoError(t, err)
	require.Equal(t, "arn:aws:s3:::"+name, result.Attributes["Arn"])
	return name
}

// role creates a role with a policy and returns a client with its credentials.
func role(t *testing.T, name string, statements ...string) (*awss3.Client, iam.Caller) {
	t.Helper()
	r, err := account.identities.CreateRole(iam.Role{
		Name: name, TrustDocument: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole",` +
			`"Principal":{"Service":"lambda.amazonaws.com"}}}`,
	})
	require.NoError(t, err)
	require.NoError(t, account.identities.PutRolePolicy(name, "p", `{"Version":"2012-10-17","Statement":[`+strings.Join(statements, ",")+`]}`))
	caller, c, err := account.identities.AssumeRoleAs(account.identities.RoleARN(r), "test", "lambda.amazonaws.com")
	require.NoError(t, err)
	return client(c), caller
}

func putObject(t *testing.T, c *awss3.Client, bucket, key, body string) *awss3.PutObjectOutput {
	t.Helper()
	out, err := c.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	require.NoError(t, err)
	return out
}

func eventsOf(bucket string) (list []event) {
	account.mu.Lock()
	defer account.mu.Unlock()
	for _, e := range account.events {
		if e.detail["bucket"].(map[string]any)["name"] == bucket {
			list = append(list, e)
		}
	}
	return list
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func TestObjectsAndTheirEvents(t *testing.T) { everyStore(t, testObjectsAndTheirEvents) }

func testObjectsAndTheirEvents(t *testing.T) {
	b, c := newBucket(t, "events"), admin()
	first := putObject(t, c, b, "clusters/a b+ü.yaml", "one")
	second := putObject(t, c, b, "clusters/a b+ü.yaml", "three")
	got, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &b, Key: aws.String("clusters/a b+ü.yaml"),
		VersionId: first.VersionId})
	require.NoError(t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, "one", string(body))

	deleted, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: aws.String("clusters/a b+ü.yaml")})
	require.NoError(t, err)
	_, err = c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{
		Bucket: &b, Key: aws.String("clusters/a b+ü.yaml"),
		VersionId: first.VersionId,
	})
	require.NoError(t, err)
	if account == inMemory { // the store in memory does not support copies
		require.Len(t, eventsOf(b), 4)
		return
	}
	_, err = c.CopyObject(t.Context(), &awss3.CopyObjectInput{
		Bucket: &b, Key: aws.String("copy"), CopySource: aws.String(b + "/clusters/a%20b%2B%C3%BC.yaml?versionId=" + *second.VersionId),
	})
	require.NoError(t, err)

	events := eventsOf(b)
	require.Len(t, events, 5)
	sequence := ""
	for i, want := range []struct{ kind, reason, deletion, key, version string }{
		{kind: "Object Created", reason: "PutObject", key: "clusters/a b+ü.yaml", version: *first.VersionId},
		{kind: "Object Created", reason: "PutObject", key: "clusters/a b+ü.yaml", version: *second.VersionId},
		{
			kind: "Object Deleted", reason: "DeleteObject", deletion: "Delete Marker Created", key: "clusters/a b+ü.yaml",
			version: *deleted.VersionId,
		},
		{
			kind: "Object Deleted", reason: "DeleteObject", deletion: "Permanently Deleted", key: "clusters/a b+ü.yaml",
			version: *first.VersionId,
		},
		{kind: "Object Created", reason: "CopyObject", key: "copy"},
	} {
		e := events[i]
		object := e.detail["object"].(map[string]any)
		require.Equal(t, want.kind, e.kind)
		require.Equal(t, want.reason, e.detail["reason"])
		require.Equal(t, want.key, object["key"])
		if want.deletion != "" {
			require.Equal(t, want.deletion, e.detail["deletion-type"])
		} else {
			require.NotContains(t, e.detail, "deletion-type")
		}
		if want.version != "" {
			require.Equal(t, want.version, object["version-id"])
		}
		require.Greater(t, object["sequencer"], sequence, "sequencers order the events of a key")
		sequence = object["sequencer"].(string)
	}
	object := events[1].detail["object"].(map[string]any)
	require.EqualValues(t, 5, object["size"])
	require.Equal(t, strings.Trim(*second.ETag, `"`), object["etag"])
	require.Equal(t, "111122223333", events[1].detail["requester"])
}

func TestConditions(t *testing.T) { everyStore(t, testConditions) }

func testConditions(t *testing.T) {
	b, c := newBucket(t, "conditions"), admin()
	key := aws.String("leases/demo.json")
	create := func() error {
		_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{
			Bucket: &b, Key: key, Body: strings.NewReader("x"), IfNoneMatch: aws.String("*"),
		})
		return err
	}
	replace := func(etag *string) error {
		_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &b, Key: key, Body: strings.NewReader("y"), IfMatch: etag})
		return err
	}
	remove := func(etag *string) error {
		_, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: key, IfMatch: etag})
		return err
	}
	require.Equal(t, "NoSuchKey", code(replace(aws.String(`"x"`))), "nothing there to match")
	require.Equal(t, "NoSuchKey", code(remove(aws.String("*"))))
	require.NoError(t, create())
	require.Equal(t, "PreconditionFailed", code(create()))
	head, err := c.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: &b, Key: key})
	require.NoError(t, err)
	unless := func(etag *string) int {
		_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &b, Key: key, IfNoneMatch: etag})
		var answer *awshttp.ResponseError
		if !errors.As(err, &answer) {
			require.NoError(t, err)
			return http.StatusOK
		}
		return answer.HTTPStatusCode()
	}
	require.Equal(t, http.StatusNotModified, unless(head.ETag))
	require.Equal(t, http.StatusOK, unless(aws.String(`"other"`)))
	require.Equal(t, "PreconditionFailed", code(remove(aws.String(`"other"`))))
	require.NoError(t, remove(head.ETag))
	require.Equal(t, "NoSuchKey", code(replace(head.ETag)), "a delete marker is no object")
	require.Equal(t, "PreconditionFailed", code(remove(head.ETag)))
	require.NoError(t, create(), "a delete marker counts as absent")
	require.NoError(t, replace(head.ETag))
	require.NoError(t, remove(aws.String("*")))

	// Of many concurrent creations one succeeds, also on top of a delete marker.
	var won sync.Map
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if create() == nil {
				won.Store(i, true)
			}
		})
	}
	all.Wait()
	winners := 0
	won.Range(func(any, any) bool { winners++; return true })
	require.Equal(t, 1, winners)
}

func TestRolePermissions(t *testing.T) { everyStore(t, testRolePermissions) }

func testRolePermissions(t *testing.T) {
	b := newBucket(t, "access")
	first := putObject(t, admin(), b, "clusters/demo.yaml", "x")
	putObject(t, admin(), b, "secret", "x")
	reader, caller := role(t, "s3-reader", `{"Effect":"Allow","Action":["s3:GetObject","s3:DeleteObject"],`+
		`"Resource":"arn:aws:s3:::access/clusters/*"}`)
	lister, _ := role(t, "s3-lister", `{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],`+
		`"Resource":["arn:aws:s3:::access","arn:aws:s3:::access/*"]}`)
	get := func(c *awss3.Client, key string, version *string) error {
		_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &b, Key: &key, VersionId: version})
		return err
	}
	require.NoError(t, get(reader, "clusters/demo.yaml", nil))
	require.Equal(t, "AccessDenied", code(get(reader, "secret", nil)))
	require.Equal(t, "AccessDenied", code(get(reader, "clusters/demo.yaml", first.VersionId)), "a version needs GetObjectVersion")
	require.Equal(t, "AccessDenied", code(get(reader, "clusters/absent.yaml", nil)), "an absent key is forbidden without ListBucket")
	require.Equal(t, "NoSuchKey", code(get(lister, "clusters/absent.yaml", nil)))
	_, err := reader.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: &b, Key: aws.String("clusters/absent.yaml")})
	require.ErrorContains(t, err, "403")
	_, err = reader.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: &b})
	require.Equal(t, "AccessDenied", code(err))
	_, err = reader.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &b, Key: aws.String("clusters/x"), Body: strings.NewReader("")})
	require.Equal(t, "AccessDenied", code(err))
	_, err = reader.CopyObject(t.Context(), &awss3.CopyObjectInput{
		Bucket: &b, Key: aws.String("clusters/x"), CopySource: aws.String("access/secret"),
	})
	require.Equal(t, "AccessDenied", code(err))
	_, err = reader.DeleteObjects(t.Context(), &awss3.DeleteObjectsInput{Bucket: &b, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("clusters/demo.yaml")}, {Key: aws.String("secret")}},
	}})
	require.Equal(t, "AccessDenied", code(err))
	require.NoError(t, get(reader, "clusters/demo.yaml", nil), "nothing was deleted")

	_, err = account.s3.Get(t.Context(), caller, b, "secret", "")
	require.ErrorContains(t, err, "AccessDenied", "in process as over the wire")
	got, err := account.s3.Get(t.Context(), caller, b, "clusters/demo.yaml", "")
	require.NoError(t, err)
	require.Equal(t, "x", string(got.Body))
	require.Equal(t, *first.VersionId, got.VersionID)
	admin, _ := account.identities.Admin()
	_, err = account.s3.Get(t.Context(), admin, b, "absent", "")
	require.ErrorContains(t, err, "NoSuchKey")
}

func TestBucketPolicies(t *testing.T) { everyStore(t, testBucketPolicies) }

func testBucketPolicies(t *testing.T) {
	b := newBucket(t, "policies")
	putObject(t, admin(), b, "a", "x")
	stranger, caller := role(t, "s3-stranger", `{"Effect":"Allow","Action":"none:none","Resource":"*"}`)
	_, err := stranger.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &b, Key: aws.String("a")})
	require.Equal(t, "AccessDenied", code(err))
	policy := `{"Version":"2012-10-17","Statement":[
		{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::policies","arn:aws:s3:::policies/*"],` +
		`"Condition":{"Bool":{"aws:SecureTransport":"false"}}},
		{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::policies","arn:aws:s3:::policies/*"],` +
		`"Condition":{"NumericLessThan":{"s3:TlsVersion":1.2}}},
		{"Effect":"Allow","Principal":{"AWS":"` + caller.RoleARN() + `"},"Action":"s3:GetObject","Resource":"arn:aws:s3:::policies/a"},
		{"Effect":"Deny","Principal":"*","Action":"s3:DeleteObject","Resource":"arn:aws:s3:::policies/*"}]}`
	_, err = admin().PutBucketPolicy(t.Context(), &awss3.PutBucketPolicyInput{Bucket: &b, Policy: &policy})
	require.NoError(t, err)
	_, err = stranger.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &b, Key: aws.String("a")})
	require.NoError(t, err)
	_, err = admin().DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: aws.String("a")})
	require.Equal(t, "AccessDenied", code(err), "a deny holds for administrators")
	got, err := admin().GetBucketPolicy(t.Context(), &awss3.GetBucketPolicyInput{Bucket: &b})
	require.NoError(t, err)
	require.Equal(t, policy, *got.Policy)
	_, err = admin().PutBucketPolicy(t.Context(), &awss3.PutBucketPolicyInput{Bucket: &b, Policy: aws.String(`{"Statement":[]}`)})
	require.Equal(t, "MalformedPolicy", code(err))
}

func TestSignatures(t *testing.T) {
	b := newBucket(t, "signatures")
	_, right := account.identities.Admin()
	_, session, err := account.identities.AssumeRoleAs(func() string {
		_, caller := role(t, "s3-session", `{"Effect":"Allow","Action":"s3:*","Resource":"*"}`)
		return caller.RoleARN()
	}(), "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	list := func(c iam.Credentials) error {
		_, err := client(c).ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: &b})
		return err
	}
	require.NoError(t, list(right))
	require.NoError(t, list(session))
	wrong := right
	wrong.SecretAccessKey += "x"
	require.Equal(t, "SignatureDoesNotMatch", code(list(wrong)))
	wrong = session
	wrong.SessionToken += "x"
	require.Equal(t, "InvalidAccessKeyId", code(list(wrong)))
	wrong.AccessKeyID = "AKIAUNKNOWN"
	require.Equal(t, "InvalidAccessKeyId", code(list(wrong)))
	anonymous, err := http.Get(account.url + "/" + b)
	require.NoError(t, err)
	defer anonymous.Body.Close()
	require.Equal(t, 403, anonymous.StatusCode)

	putObject(t, client(session), b, "a", "presigned")
	presigner := awss3.NewPresignClient(client(session))
	signed, err := presigner.PresignGetObject(t.Context(), &awss3.GetObjectInput{
		Bucket: &b, Key: aws.String("a"),
	}, awss3.WithPresignExpires(time.Minute))
	require.NoError(t, err)
	for url, want := range map[string]int{signed.URL: 200, strings.Replace(signed.URL, "/a?", "/b?", 1): 403, signed.URL + "0": 403} {
		response, err := http.Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, string(body))
	}
}

func TestLargeObjectsInParts(t *testing.T) {
	b, c := newBucket(t, "parts"), admin()
	key, part := aws.String("large"), bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	upload, err := c.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: &b, Key: key})
	require.NoError(t, err)
	var parts []types.CompletedPart
	for i := range int32(2) {
		out, err := c.UploadPart(t.Context(), &awss3.UploadPartInput{
			Bucket: &b, Key: key, UploadId: upload.UploadId, PartNumber: aws.Int32(i + 1), Body: bytes.NewReader(part),
		})
		require.NoError(t, err)
		parts = append(parts, types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(i + 1)})
	}
	_, err = c.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
		Bucket: &b, Key: key, UploadId: upload.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	require.NoError(t, err)
	events := eventsOf(b)
	require.Len(t, events, 1)
	require.Equal(t, "CompleteMultipartUpload", events[0].detail["reason"])
	require.EqualValues(t, 2*len(part), events[0].detail["object"].(map[string]any)["size"])
}

func TestBucketConfiguration(t *testing.T) { everyStore(t, testBucketConfiguration) }

func testBucketConfiguration(t *testing.T) {
	caller, _ := account.identities.Admin()
	provider := account.s3.Resources()["AWS::S3::Bucket"]
	r := resource.Request{StackName: "Drover", LogicalID: "Specs", Caller: caller, Tags: map[string]string{
		"stack": "s",
	}, Properties: map[string]any{
		"BucketEncryption": map[string]any{"ServerSideEncryptionConfiguration": []any{map[string]any{
			"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "k"}, "BucketKeyEnabled": true,
		}}},
		"LifecycleConfiguration": map[string]any{"Rules": []any{map[string]any{"Id": "old", "Status": "Enabled", "Prefix": "waiters/",
			"ExpirationInDays": 7.0, "NoncurrentVersionExpiration": map[string]any{"NoncurrentDays": 30.0}}}},
		"PublicAccessBlockConfiguration": map[string]any{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"Tags": []any{map[string]any{"Key": "a", "Value": "b"}},
	}}
	result, err := provider.Create(t.Context(), r)
	require.NoError(t, err)
	b := result.PhysicalID
	require.True(t, strings.HasPrefix(b, "drover-specs-"), b)
	c := admin()
	encryption, err := c.GetBucketEncryption(t.Context(), &awss3.GetBucketEncryptionInput{Bucket: &b})
	require.NoError(t, err)
	require.Equal(t, "k", *encryption.ServerSideEncryptionConfiguration.Rules[0].ApplyServerSideEncryptionByDefault.KMSMasterKeyID)
	lifecycle, err := c.GetBucketLifecycleConfiguration(t.Context(), &awss3.GetBucketLifecycleConfigurationInput{Bucket: &b})
	require.NoError(t, err)
	require.EqualValues(t, 7, *lifecycle.Rules[0].Expiration.Days)
	require.EqualValues(t, 30, *lifecycle.Rules[0].NoncurrentVersionExpiration.NoncurrentDays)
	block, err := c.GetPublicAccessBlock(t.Context(), &awss3.GetPublicAccessBlockInput{Bucket: &b})
	require.NoError(t, err)
	require.True(t, *block.PublicAccessBlockConfiguration.RestrictPublicBuckets)
	tags, err := c.GetBucketTagging(t.Context(), &awss3.GetBucketTaggingInput{Bucket: &b})
	require.NoError(t, err)
	require.Len(t, tags.TagSet, 2)
	versioning, err := c.GetBucketVersioning(t.Context(), &awss3.GetBucketVersioningInput{Bucket: &b})
	require.NoError(t, err)
	require.Empty(t, versioning.Status)
	notification, err := c.GetBucketNotificationConfiguration(t.Context(), &awss3.GetBucketNotificationConfigurationInput{Bucket: &b})
	require.NoError(t, err)
	require.Nil(t, notification.EventBridgeConfiguration)

	r.PhysicalID, r.Old = b, r.Properties
	r.Properties = map[string]any{"VersioningConfiguration": map[string]any{"Status": "Enabled"}}
	_, err = provider.Update(t.Context(), r)
	require.NoError(t, err)
	_, err = c.GetBucketLifecycleConfiguration(t.Context(), &awss3.GetBucketLifecycleConfigurationInput{Bucket: &b})
	require.Equal(t, "NoSuchLifecycleConfiguration", code(err))

	putObject(t, c, b, "a", "x")
	_, err = c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: aws.String("a")})
	require.NoError(t, err)
	require.ErrorContains(t, provider.Delete(t.Context(), r), "not empty", "old versions and markers count")
	versions, err := c.ListObjectVersions(t.Context(), &awss3.ListObjectVersionsInput{Bucket: &b})
	require.NoError(t, err)
	for _, v := range versions.Versions {
		_, err = c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: v.Key, VersionId: v.VersionId})
		require.NoError(t, err)
	}
	for _, v := range versions.DeleteMarkers {
		_, err = c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: v.Key, VersionId: v.VersionId})
		require.NoError(t, err)
	}
	require.NoError(t, provider.Delete(t.Context(), r))
	require.NoError(t, provider.Delete(t.Context(), r), "deleting twice succeeds")
	_, err = provider.Create(t.Context(), resource.Request{
		Caller: caller, Properties: map[string]any{"LoggingConfiguration": map[string]any{}},
	})
	require.ErrorContains(t, err, "LoggingConfiguration")
}

func TestUnsupported(t *testing.T) {
	b, c := newBucket(t, "missing"), admin()
	_, err := c.GetBucketAcl(t.Context(), &awss3.GetBucketAclInput{Bucket: &b})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
	_, err = c.PutBucketTagging(t.Context(), &awss3.PutBucketTaggingInput{Bucket: &b, Tagging: &types.Tagging{TagSet: []types.Tag{}}})
	require.Equal(t, "UnsupportedByLocalAccount", code(err))
	_, err = c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String("no-such-bucket")})
	require.Equal(t, "NoSuchBucket", code(err))
}

func TestParseURL(t *testing.T) {
	for name, test := range map[string]struct{ url, bucket, key, version string }{
		"path style": {url: "https://s3.eu-west-1.amazonaws.com/b/k/l.yaml", bucket: "b", key: "k/l.yaml"},
		"host style": {
			url: "https://b.s3.eu-west-1.amazonaws.com/k/l.yaml?versionId=v", bucket: "b", key: "k/l.yaml", version: "v",
		},
		"a bucket with dots":          {url: "https://b.c.s3.amazonaws.com/k", bucket: "b.c", key: "k"},
		"the local endpoint":          {url: "http://127.0.0.1:4566/b/k", bucket: "b", key: "k"},
		"its name":                    {url: "http://localhost:4566/b/k", bucket: "b", key: "k"},
		"its host style":              {url: "http://b.localhost:4566/k%20l", bucket: "b", key: "k l"},
		"rejects a URL without a key": {url: "https://s3.amazonaws.com/b"},
		"rejects a path":              {url: "b/k"},
		"rejects other hosts":         {url: "https://example.com/b/k"},
		"rejects other schemes":       {url: "file:///b/k"},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, key, version, err := s3.ParseURL(test.url)
			require.Equal(t, []string{test.bucket, test.key, test.version}, []string{bucket, key, version})
			var e *wire.Error
			require.Equal(t, test.bucket == "", errors.As(err, &e))
		})
	}
}
