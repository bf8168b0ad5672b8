package main

// The promises of docs/security.md, checked against the synthesized template and, for nodes, against the rendered templates.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/names"
)

// resourcePolicies returns the statements of resource-based policies by logical id.
func resourcePolicies(t *testing.T) map[string][]map[string]any {
	t.Helper()
	out := map[string][]map[string]any{}
	for kind, property := range map[string]string{
		"AWS::S3::BucketPolicy": "PolicyDocument", "AWS::SNS::TopicPolicy": "PolicyDocument", "AWS::SQS::QueuePolicy": "PolicyDocument",
		"AWS::KMS::Key": "KeyPolicy",
	} {
		found := synthesizedStacks.ofType(kind)
		require.NotEmpty(t, found, kind)
		for id, properties := range found {
			for _, s := range properties[property].(map[string]any)["Statement"].([]any) {
				out[id] = append(out[id], s.(map[string]any))
			}
		}
	}
	return out
}

// Resource-based policies allow access only to the account itself, and to AWS services that act for this account's resources.
func TestNothingIsPublic(t *testing.T) {
	account := "arn:aws:iam::" + testAccount + ":root"
	for id, statements := range resourcePolicies(t) {
		for _, s := range statements {
			if s["Effect"] == "Deny" {
				continue
			}
			who := s["Principal"].(map[string]any)
			require.Len(t, who, 1, id)
			if roles, several := who["AWS"].([]any); several {
				for _, role := range roles {
					require.Regexp(t, "^arn:aws:iam::"+testAccount+":role/drover-", role, id)
				}
				continue
			}
			if who["AWS"] != nil {
				require.Equal(t, account, who["AWS"], id)
				continue
			}
			require.Regexp(t, `^[a-z]+\.amazonaws\.com$`, who["Service"], id)
			require.Regexp(t, `aws:Source(Account:|Arn:arn:aws:[a-z]+:`+testRegion+`:)`+testAccount, fmt.Sprint(s["Condition"]), "%s: %v", id, s)
		}
	}
	for id, p := range synthesizedStacks.ofType("AWS::Lambda::Permission") {
		require.Equal(t, "events.amazonaws.com", p["Principal"], id)
		require.True(t, strings.HasPrefix(p["SourceArn"].(string), "arn:aws:events:"+testRegion+":"+testAccount+":rule/drover-"), id)
	}
	for id, b := range synthesizedStacks.ofType("AWS::S3::Bucket") {
		require.NotContains(t, b, "AccessControl", id)
		require.NotContains(t, b, "WebsiteConfiguration", id)
		require.NotContains(t, b, "CorsConfiguration", id)
		for setting, on := range b["PublicAccessBlockConfiguration"].(map[string]any) {
			require.Equal(t, true, on, "%s: %s", id, setting)
		}
	}
	// Rules on another bus receive events that other callers of the account may put there. The function fleet takes only the name of a
	// cluster from them, and observes that cluster.
	for id, r := range synthesizedStacks.ofType("AWS::Events::Rule") {
		if _, other := r["EventBusName"]; other {
			targets := r["Targets"].([]any)
			require.Len(t, targets, 1, id)
			arn := targets[0].(map[string]any)["Arn"].(string)
			require.True(t, strings.HasSuffix(arn, ":function:drover-fleet"), "%s: %s", id, arn)
		}
	}
	for _, r := range synthesizedStacks.Resources {
		require.NotContains(t, []string{"AWS::Lambda::Url", "AWS::Events::EventBusPolicy", "AWS::SNS::Subscription", "AWS::S3::AccessPoint"},
			r.Type)
	}
}

func TestEverythingIsEncryptedAtRest(t *testing.T) {
	keys := synthesizedStacks.ofType("AWS::KMS::Key")
	require.Len(t, keys, 1)
	require.Equal(t, true, keys[noticesKey]["EnableKeyRotation"])
	key := synthesizedStacks.attribute(noticesKey, "Arn")
	for id, b := range synthesizedStacks.ofType("AWS::S3::Bucket") {
		require.Equal(t, map[string]any{"ServerSideEncryptionConfiguration": []any{
			map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}},
		}}, b["BucketEncryption"], id)
		require.Equal(t, map[string]any{"Rules": []any{map[string]any{"ObjectOwnership": "BucketOwnerEnforced"}}}, b["OwnershipControls"], id)
	}
	for id, x := range synthesizedStacks.ofType("AWS::SNS::Topic") {
		require.Equal(t, key, x["KmsMasterKeyId"], id)
	}
	for id, x := range synthesizedStacks.ofType("AWS::Events::EventBus") {
		require.Equal(t, key, x["KmsKeyIdentifier"], id)
	}
	for id, x := range synthesizedStacks.ofType("AWS::SQS::Queue") {
		require.Equal(t, true, x["SqsManagedSseEnabled"], id)
	}
	for id, x := range synthesizedStacks.ofType("AWS::Logs::LogGroup") {
		require.EqualValues(t, 90, x["RetentionInDays"], id)
	}
}

// An administrator is denied without TLS.
func TestAllTrafficIsEncrypted(t *testing.T) {
	const queue, topic = "arn:aws:sqs:eu-central-1:111122223333:drover-dead-letters", "arn:aws:sns:eu-central-1:111122223333:drover-notices"
	admin := iam.Principal{ARN: "arn:aws:iam::" + testAccount + ":user/admin", Account: testAccount}
	refused := map[string][]struct{ action, on string }{
		"AWS::SNS::TopicPolicy": {{"sns:Publish", topic}},
		"AWS::SQS::QueuePolicy": {{"sqs:SendMessage", queue}, {"sqs:ReceiveMessage", queue}},
	}
	for _, bucket := range []string{
		"arn:aws:s3:::drover-specs-111122223333-eu-central-1", "arn:aws:s3:::drover-state-111122223333-eu-central-1",
	} {
		refused[bucket] = []struct{ action, on string }{
			{"s3:GetObject", bucket + "/x"}, {"s3:PutObject", bucket + "/x"}, {"s3:DeleteObjectVersion", bucket + "/x"}, {"s3:ListBucket", bucket},
			{"s3:PutBucketPolicy", bucket},
		}
	}
	for what, calls := range refused {
		kind := what
		if strings.HasPrefix(what, "arn:") {
			kind = "AWS::S3::BucketPolicy"
		}
		held := 0
		for _, p := range synthesizedStacks.ofType(kind) {
			if kind == "AWS::S3::BucketPolicy" && !strings.HasSuffix(what, p["Bucket"].(string)) {
				continue
			}
			held++
			policy, _, err := iam.ParsePolicyValue(p["PolicyDocument"], true)
			require.NoError(t, err)
			for _, c := range calls {
				got := iam.EvaluateResourcePolicy(policy, admin, c.action, c.on, map[string]string{"aws:SecureTransport": "false"})
				require.Equal(t, iam.Denied, got, "%s on %s", c.action, c.on)
			}
		}
		require.Equal(t, 1, held, what)
	}
}

// Clusters run without drover. What they need is in the base stack, which outlives a removal of drover.
func TestBaseStack(t *testing.T) {
	named := map[string][]string{}
	for id, r := range synthesizedStacks.Resources {
		if r.Stack != names.BaseStack || r.Type == "AWS::S3::BucketPolicy" {
			continue
		}
		named[r.Type] = append(named[r.Type], synthesizedStacks.physical(r))
		if r.Type == "AWS::S3::Bucket" {
			// A creation that rolls back deletes the buckets, so that it can be repeated.
			require.Equal(t, "RetainExceptOnCreate Retain", r.DeletionPolicy+" "+r.UpdateReplacePolicy, id)
		} else {
			require.Contains(t, []string{"", "Delete"}, r.DeletionPolicy, id)
		}
	}
	roles := []string{"drover-eu-central-1-cloudformation"}
	for _, step := range clusterCallers {
		roles = append(roles, "drover-eu-central-1-"+step)
	}
	require.ElementsMatch(t, []string{"drover-specs-111122223333-eu-central-1", "drover-state-111122223333-eu-central-1"},
		named["AWS::S3::Bucket"])
	require.ElementsMatch(t, roles, named["AWS::IAM::Role"])
	require.Contains(t, named["AWS::IAM::ManagedPolicy"], "drover-eu-central-1-boundary")
	require.Len(t, named, 3, "%v", named)
}

// Each role that a cluster's access entries name is in the base stack, and no other role of a function.
func TestClusterCallersAreThoseOfTheTemplates(t *testing.T) {
	template, err := os.ReadFile("../templates/v1/control-plane.yaml.tmpl")
	require.NoError(t, err)
	var rendered []string
	for _, role := range regexp.MustCompile(`PrincipalArn: \{\{ yaml \.(\w+)Role \}\}`).FindAllSubmatch(template, -1) {
		rendered = append(rendered, strings.ToLower(string(role[1])))
	}
	require.ElementsMatch(t, rendered, clusterCallers)
}

// drover's roles may change stacks whose names start with drover-. Its own stacks have other names.
func TestNamesOfOwnStacks(t *testing.T) {
	for _, name := range []string{names.BaseStack, names.CellStack} {
		require.False(t, strings.HasPrefix(name, names.Prefix), name)
	}
}

// Pods are two network hops away from instance metadata, so the hop limit of one denies them the node's credentials. Secrets are encrypted
// with a key. Volumes are encrypted unless the spec disables encryption.
func TestNodesAndClustersAreIsolated(t *testing.T) {
	goldens, err := filepath.Glob("../shared/render/testdata/golden/*/*/*.yaml")
	require.NoError(t, err)
	found := map[string]int{}
	for _, golden := range goldens {
		body, err := os.ReadFile(golden)
		require.NoError(t, err)
		for _, r := range regexp.MustCompile(`(?m)^  \w+:\n    Type: `).Split(string(body), -1) {
			kind, _, _ := strings.Cut(r, "\n")
			found[kind]++
			switch kind {
			case "AWS::EC2::LaunchTemplate":
				require.Contains(t, r, "HttpTokens: required", golden)
				// Only a pool whose spec says so lets pods reach the metadata service.
				hops := map[bool]string{true: "HttpPutResponseHopLimit: 2\n", false: "HttpPutResponseHopLimit: 1\n"}
				require.Contains(t, r, hops[strings.HasSuffix(golden, "full/pool-workers.yaml")], golden)
				require.Equal(t, strings.Contains(golden, "plain-volume"), strings.Contains(r, "Encrypted: false"), golden)
				require.Contains(t, r, "Encrypted: ", golden)
			case "AWS::EKS::Cluster":
				require.Contains(t, r, "EncryptionConfig:", golden)
			case "AWS::KMS::Key":
				require.Contains(t, r, "EnableKeyRotation: true", golden)
			case "AWS::EC2::SecurityGroup":
				require.NotContains(t, r, "0.0.0.0/0", golden)
			case "AWS::EC2::Subnet":
				require.Contains(t, r, "MapPublicIpOnLaunch: false", golden)
			}
		}
	}
	for _, kind := range []string{
		"AWS::EC2::LaunchTemplate", "AWS::EKS::Cluster", "AWS::KMS::Key", "AWS::EC2::SecurityGroup", "AWS::EC2::Subnet",
	} {
		require.Positive(t, found[kind], kind)
	}
}
