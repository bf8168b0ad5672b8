package main

// The two buckets: users write specs, drover writes state. Both are in the base stack and are retained when that stack is deleted. The
// policy is RetainExceptOnCreate: a creation that rolls back deletes them, so that it can be repeated under the same names.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// rolloutDays is for how many days the plans of rollouts and the answers to decisions are kept. No run takes as long.
const rolloutDays = 400

func newBuckets(scope constructs.Construct) {
	specs := newBucket(scope, "Specs", specsBucket, &awss3.LifecycleRule{
		Id: jsii.String("old-specs"),
		// The last good spec of a cluster may be old, so the newest hundred versions never expire.
		NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(365)),
		NoncurrentVersionsToRetain:  jsii.Number(100),
	})
	// An override, because the construct's own option adds a custom resource.
	specs.Node().DefaultChild().(awss3.CfnBucket).
		AddPropertyOverride(jsii.String("NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled"), true)

	state := newBucket(scope, "State", stateBucket,
		&awss3.LifecycleRule{
			// Templates, releases and user data are named by their content and may be in use at any age: nodes that start next year
			// fetch today's user data. Only what drover replaced or deleted expires.
			Id:                          jsii.String("replaced"),
			NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(30)),
			ExpiredObjectDeleteMarker:   jsii.Bool(true),
		},
		&awss3.LifecycleRule{
			// An execution lives for five days at most, and no plan outlives its execution.
			Id:         jsii.String("plans"),
			Prefix:     jsii.String("plans/"),
			Expiration: awscdk.Duration_Days(jsii.Number(90)),
		},
		&awss3.LifecycleRule{
			// A plan that is still the newest of its rollout is stored again when the rollout is evaluated.
			Id:         jsii.String("rollout-plans"),
			Prefix:     jsii.String(names.RolloutPlans),
			Expiration: awscdk.Duration_Days(jsii.Number(rolloutDays)),
		},
		&awss3.LifecycleRule{
			Id:         jsii.String("decision-answers"),
			Prefix:     jsii.String(names.DecisionAnswers),
			Expiration: awscdk.Duration_Days(jsii.Number(rolloutDays)),
		},
		&awss3.LifecycleRule{
			// While a run is active, these are rewritten every few seconds.
			Id:                          jsii.String("replaced-runs"),
			Prefix:                      jsii.String(names.RolloutRecords),
			NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1)),
		},
		&awss3.LifecycleRule{
			Id:                          jsii.String("replaced-fleet"),
			Prefix:                      jsii.String("fleet/"),
			NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1)),
		},
		&awss3.LifecycleRule{
			// The state of workloads before an upgrade. It is compared at the end of the upgrade, within weeks.
			Id:         jsii.String("baselines"),
			Prefix:     jsii.String("baselines/"),
			Expiration: awscdk.Duration_Days(jsii.Number(90)),
		})
	state.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("OnlyDroverWrites"),
		Effect:     awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()},
		// Replication writes with separate actions.
		Actions:    jsii.Strings("s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:ReplicateObject", "s3:ReplicateDelete"),
		Resources:  &[]*string{state.ArnForObjects(jsii.String("*"))},
		Conditions: &map[string]any{"ArnNotEquals": map[string]any{"aws:PrincipalArn": subs(writers())}},
	}))
}

// writers are the roles of the functions that write the state bucket.
func writers() []string {
	var out []string
	for _, f := range functionTable {
		for _, g := range functionGrants[f.name] {
			writes := slices.Contains(g.actions, "s3:PutObject") || slices.Contains(g.actions, "s3:DeleteObject")
			if writes && strings.HasPrefix(g.resources[0], stateARN) {
				out = append(out, roleARN(f.name))
				break
			}
		}
	}
	return out
}

func newBucket(scope constructs.Construct, id, name string, rules ...*awss3.LifecycleRule) awss3.Bucket {
	rules = append(rules, &awss3.LifecycleRule{
		Id:                                  jsii.String("unfinished-uploads"),
		AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(7)),
	})
	return awss3.NewBucket(scope, jsii.String(id), &awss3.BucketProps{
		BucketName:        sub(name),
		Versioned:         jsii.Bool(true),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:     awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
		LifecycleRules:    &rules,
	})
}
