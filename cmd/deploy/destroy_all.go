package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/shared/names"
)

// destroyAll removes both stacks and the buckets. It refuses while a cluster exists, in AWS or as a spec: without the base stack, no
// function could join or drain its nodes, and its spec would be lost.
func destroyAll(ctx context.Context, t *target) error {
	clusters, err := t.clusters(ctx)
	if err != nil {
		return err
	}
	if len(clusters) > 0 {
		return fmt.Errorf("clusters exist: %s: delete them first (drover delete CLUSTER --watch), or keep the base stack with make destroy",
			strings.Join(clusters, ", "))
	}
	buckets := []string{names.SpecsBucket(t.account, t.region), names.StateBucket(t.account, t.region)}
	specs, err := t.specs(ctx, buckets[0])
	if err != nil {
		return err
	}
	if len(specs) > 0 {
		return fmt.Errorf("specs of clusters exist: %s: delete them first (drover delete CLUSTER)", strings.Join(specs, ", "))
	}
	err = t.confirm("This removes drover from account %s, region %s, with every object in the buckets %s.", t.account, t.region,
		strings.Join(buckets, " and "))
	if err != nil {
		return err
	}
	if err := t.removeCell(ctx); err != nil {
		return err
	}
	exists, err := t.exists(ctx, names.BaseStack)
	if err != nil {
		return err
	}
	if exists {
		if err := t.protect(ctx, names.BaseStack, false); err != nil {
			return err
		}
		if err := t.cdk.run(ctx, "destroy", names.BaseStack, "--exclusively", "--force"); err != nil {
			return fmt.Errorf("%w: fix the cause and run the command again", err)
		}
	}
	// The stack retains its buckets. It removes their policies, which would deny this.
	for _, bucket := range buckets {
		if err := t.removeBucket(ctx, bucket); err != nil {
			return err
		}
	}
	t.say("drover and its buckets are removed.")
	return nil
}

// specs lists the clusters that have a spec.
func (t *target) specs(ctx context.Context, bucket string) ([]string, error) {
	var found []string
	pages := s3.NewListObjectsV2Paginator(t.objects, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: aws.String(names.ClusterSpecs)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if isMissingBucket(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the specs in %s: %w", bucket, err)
		}
		for _, object := range page.Contents {
			found = append(found, aws.ToString(object.Key))
		}
	}
	return found, nil
}

// removeBucket deletes all versions of all objects of a bucket, and the bucket.
func (t *target) removeBucket(ctx context.Context, bucket string) error {
	deleted := 0
	pages := s3.NewListObjectVersionsPaginator(t.objects, &s3.ListObjectVersionsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if isMissingBucket(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the versions in %s: %w", bucket, err)
		}
		var versions []types.ObjectIdentifier
		for _, v := range page.Versions {
			versions = append(versions, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			versions = append(versions, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(versions) == 0 {
			continue
		}
		out, err := t.objects.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: versions}})
		if err != nil {
			return fmt.Errorf("emptying %s: %w", bucket, err)
		}
		for _, failure := range out.Errors {
			return fmt.Errorf("deleting %s from %s: %s: %s", aws.ToString(failure.Key), bucket, aws.ToString(failure.Code),
				aws.ToString(failure.Message))
		}
		deleted += len(versions)
		t.say("deleted %d object versions from %s", deleted, bucket)
	}
	if _, err := t.objects.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket}); err != nil && !isMissingBucket(err) {
		return fmt.Errorf("deleting bucket %s: %w", bucket, err)
	}
	return nil
}

func isMissingBucket(err error) bool {
	var failure smithy.APIError
	return errors.As(err, &failure) && failure.ErrorCode() == "NoSuchBucket"
}
