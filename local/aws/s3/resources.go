package s3

// CloudFormation resource types: AWS::S3::Bucket and AWS::S3::BucketPolicy.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_S3.html

import (
	"context"
	"errors"
	"fmt"
	"strings"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Resources returns the providers by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::S3::Bucket": bucketProvider{s}, "AWS::S3::BucketPolicy": policyProvider{s}}
}

type bucketProvider struct{ s *Service }

func (bucketProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"BucketName": resource.Replaces, "AccessControl": resource.InPlace, "BucketEncryption": resource.InPlace,
			"LifecycleConfiguration": resource.InPlace, "NotificationConfiguration": resource.InPlace, "OwnershipControls": resource.InPlace,
			"PublicAccessBlockConfiguration": resource.InPlace, "Tags": resource.InPlace, "VersioningConfiguration": resource.InPlace,
		},
		Attributes: []string{"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName"},
	}
}

type bucketProperties struct {
	BucketName, AccessControl string
	BucketEncryption          *struct {
		ServerSideEncryptionConfiguration []struct {
			BucketKeyEnabled              bool
			ServerSideEncryptionByDefault encryptionDefault
		}
	}
	LifecycleConfiguration *struct {
		Rules []struct {
			Id, Prefix, Status             string // the properties' names
			ExpirationInDays               int
			ExpiredObjectDeleteMarker      bool
			NoncurrentVersionExpiration    *noncurrentExpiration
			AbortIncompleteMultipartUpload *abortUploads
		}
	}
	NotificationConfiguration *struct {
		EventBridgeConfiguration *struct{ EventBridgeEnabled *bool }
	}
	OwnershipControls *struct {
		Rules []struct{ ObjectOwnership string }
	}
	PublicAccessBlockConfiguration *struct {
		BlockPublicAcls, IgnorePublicAcls, BlockPublicPolicy, RestrictPublicBuckets bool
	}
	Tags                    []resource.Tag
	VersioningConfiguration *struct{ Status string }
}

func (p bucketProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	// If another resource of the stack fails, the bucket is still created as a whole, and the rollback deletes it.
	ctx = context.WithoutCancel(ctx)
	var in bucketProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	name := in.BucketName
	if name == "" {
		name = strings.ToLower(r.GeneratedName(63))
	}
	if err := p.s.authorize(r.Caller, "CreateBucket", name, "", nil); err != nil {
		return resource.Result{}, err
	}
	create := &awss3.CreateBucketInput{Bucket: &name}
	if p.s.identities.Region != "us-east-1" {
		create.CreateBucketConfiguration = &types.CreateBucketConfiguration{
			LocationConstraint: types.BucketLocationConstraint(p.s.identities.Region),
		}
	}
	if _, err := p.s.client.CreateBucket(ctx, create); err != nil {
		return resource.Result{}, p.s.fromGateway(err)
	}
	if err := p.configure(ctx, r, name, in); err != nil {
		_, cleanup := p.s.client.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: &name})
		return resource.Result{}, errors.Join(err, cleanup)
	}
	return p.result(name), nil
}

func (p bucketProvider) result(name string) resource.Result {
	region := p.s.identities.Region
	return resource.Result{PhysicalID: name, Attributes: map[string]any{
		"Arn": p.s.arn(name, ""), "DomainName": name + ".s3.amazonaws.com",
		"DualStackDomainName": name + ".s3.dualstack." + region + ".amazonaws.com",
		"RegionalDomainName":  name + ".s3." + region + ".amazonaws.com",
	}}
}

// configure applies the properties to a bucket.
func (p bucketProvider) configure(ctx context.Context, r resource.Request, name string, in bucketProperties) error {
	if in.AccessControl != "" && in.AccessControl != "Private" {
		return wire.Unsupported("s3", "the canned ACL "+in.AccessControl)
	}
	want := bucket{created: p.s.clock.Now(), tags: tagging.Merge(r.Tags, in.Tags)}
	if in.BucketEncryption != nil {
		want.encryption = &encryption{NS: namespace}
		for _, rule := range in.BucketEncryption.ServerSideEncryptionConfiguration {
			want.encryption.Rules = append(want.encryption.Rules, encryptionRule{rule.ServerSideEncryptionByDefault, rule.BucketKeyEnabled})
		}
	}
	if in.LifecycleConfiguration != nil {
		want.lifecycle = &lifecycle{NS: namespace}
		for _, rule := range in.LifecycleConfiguration.Rules {
			if rule.Status != "Enabled" && rule.Status != "Disabled" {
				return wire.Errorf("ValidationError", "a lifecycle rule's Status must be Enabled or Disabled, not %q", rule.Status)
			}
			converted := lifecycleRule{
				ID: rule.Id, Status: rule.Status, NoncurrentVersionExpiration: rule.NoncurrentVersionExpiration,
				AbortIncompleteMultipartUpload: rule.AbortIncompleteMultipartUpload,
			}
			converted.Filter.Prefix = rule.Prefix
			if rule.ExpirationInDays > 0 || rule.ExpiredObjectDeleteMarker {
				converted.Expiration = &lifecycleExpiration{rule.ExpirationInDays, rule.ExpiredObjectDeleteMarker}
			}
			want.lifecycle.Rules = append(want.lifecycle.Rules, converted)
		}
	}
	if n := in.NotificationConfiguration; n != nil && n.EventBridgeConfiguration != nil {
		want.eventBridge = n.EventBridgeConfiguration.EventBridgeEnabled == nil || *n.EventBridgeConfiguration.EventBridgeEnabled
	}
	if in.OwnershipControls != nil {
		if len(in.OwnershipControls.Rules) != 1 || in.OwnershipControls.Rules[0].ObjectOwnership != "BucketOwnerEnforced" {
			return wire.Unsupported("s3", "ownership other than BucketOwnerEnforced")
		}
		want.ownership = "BucketOwnerEnforced"
	}
	if b := in.PublicAccessBlockConfiguration; b != nil {
		want.publicBlock = &publicAccessBlock{
			BlockPublicAcls: b.BlockPublicAcls, IgnorePublicAcls: b.IgnorePublicAcls, BlockPublicPolicy: b.BlockPublicPolicy,
			RestrictPublicBuckets: b.RestrictPublicBuckets,
		}
	}
	for action, set := range map[string]bool{
		"PutEncryptionConfiguration": want.encryption != nil, "PutLifecycleConfiguration": want.lifecycle != nil,
		"PutBucketNotification":      in.NotificationConfiguration != nil,
		"PutBucketOwnershipControls": in.OwnershipControls != nil, "PutBucketPublicAccessBlock": want.publicBlock != nil,
		"PutBucketTagging":    len(want.tags) > 0,
		"PutBucketVersioning": in.VersioningConfiguration != nil,
	} {
		if !set {
			continue
		}
		if err := p.s.authorize(r.Caller, action, name, "", nil); err != nil {
			return err
		}
	}
	if v := in.VersioningConfiguration; v != nil {
		if _, err := p.s.client.PutBucketVersioning(ctx, &awss3.PutBucketVersioningInput{
			Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatus(v.Status)},
		}); err != nil {
			return p.s.fromGateway(err)
		}
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if old, ok := p.s.buckets[name]; ok {
		want.created, want.policy, want.policyText = old.created, old.policy, old.policyText
	}
	p.s.buckets[name] = &want
	return nil
}

func (p bucketProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	var in, old bucketProperties
	if err := errors.Join(resource.Decode(r.Properties, &in), resource.Decode(r.Old, &old)); err != nil {
		return resource.Result{}, err
	}
	if in.VersioningConfiguration == nil && old.VersioningConfiguration != nil {
		in.VersioningConfiguration = &struct{ Status string }{"Suspended"} // versioning cannot be disabled again, only suspended
	}
	if err := p.configure(ctx, r, r.PhysicalID, in); err != nil {
		return resource.Result{}, err
	}
	return p.result(r.PhysicalID), nil
}

func (p bucketProvider) Delete(ctx context.Context, r resource.Request) error {
	if err := p.s.authorize(r.Caller, "DeleteBucket", r.PhysicalID, "", nil); err != nil {
		return err
	}
	// versitygw would delete a bucket that has only old versions and delete markers.
	versions, err := p.s.client.ListObjectVersions(ctx, &awss3.ListObjectVersionsInput{Bucket: &r.PhysicalID})
	if err == nil {
		if len(versions.Versions)+len(versions.DeleteMarkers) > 0 {
			return &wire.Error{
				Code: "BucketNotEmpty", Message: "The bucket you tried to delete is not empty. You must delete all versions in the bucket.",
				Status: 409,
			}
		}
		_, err = p.s.client.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: &r.PhysicalID})
	}
	if err = p.s.fromGateway(err); err != nil && !isNotFound(err) {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.buckets, r.PhysicalID)
	return nil
}

type policyProvider struct{ s *Service }

func (policyProvider) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{"Bucket": resource.Replaces, "PolicyDocument": resource.InPlace},
		Required:   []string{"Bucket", "PolicyDocument"},
	}
}

func (p policyProvider) put(r resource.Request) (resource.Result, error) {
	var in struct {
		Bucket         string
		PolicyDocument any
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	_, text, err := iam.ParsePolicyValue(in.PolicyDocument, true)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.s.authorize(r.Caller, "PutBucketPolicy", in.Bucket, "", nil); err != nil {
		return resource.Result{}, err
	}
	if err := p.s.setPolicy(in.Bucket, text); err != nil {
		return resource.Result{}, fmt.Errorf("put the policy of %s: %w", in.Bucket, err)
	}
	return resource.Result{PhysicalID: in.Bucket}, nil
}

func (p policyProvider) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.put(r)
}

func (p policyProvider) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	return p.put(r)
}

func (p policyProvider) Delete(_ context.Context, r resource.Request) error {
	if err := p.s.authorize(r.Caller, "DeleteBucketPolicy", r.PhysicalID, "", nil); err != nil {
		return err
	}
	if err := p.s.setPolicy(r.PhysicalID, ""); err != nil && !isNotFound(err) {
		return err
	}
	return nil
}
