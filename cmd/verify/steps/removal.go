package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// remove deletes the clusters of the run through drover.
func (t *Target) remove(ctx context.Context, log *runner.Log) error {
	marked, err := t.isMarked(ctx)
	if err != nil {
		return err
	}
	if !marked {
		return runner.Skip("this run made no cluster")
	}
	specs, err := t.specs(ctx)
	if err != nil {
		return err
	}
	stacks, err := t.clusterStacks(ctx)
	if err != nil {
		return err
	}
	if len(specs)+len(stacks) == 0 {
		return runner.Skip("this run made no cluster")
	}
	var failed []error
	for _, cluster := range specs {
		_, err := t.drover(ctx, log, "delete", cluster, "--watch")
		if err == nil {
			t.Meter.Stop(cluster, time.Now())
			log.Found("drover reports cluster %s as Deleted", cluster)
		}
		failed = append(failed, err)
	}
	stacks, err = t.clusterStacks(ctx)
	if err == nil && len(stacks) > 0 {
		err = fmt.Errorf("stacks remain: %s", strings.Join(stacks, ", "))
	}
	err = errors.Join(append(failed, err)...)
	t.removed = err == nil
	return err
}

// specs lists the clusters of the run that have a spec.
func (t *Target) specs(ctx context.Context) ([]string, error) {
	bucket := names.SpecsBucket(t.account, t.Region)
	var found []string
	pages := s3.NewListObjectsV2Paginator(t.objects, &s3.ListObjectsV2Input{
		Bucket: &bucket, Prefix: aws.String(names.ClusterSpecs + t.cluster()),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		var failure smithy.APIError
		if errors.As(err, &failure) && failure.ErrorCode() == "NoSuchBucket" {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the specs: %w", err)
		}
		for _, object := range page.Contents {
			if cluster, ok := names.ClusterOfKey(aws.ToString(object.Key)); ok {
				found = append(found, cluster)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// clusterStacks lists the stacks of the run's clusters.
func (t *Target) clusterStacks(ctx context.Context) ([]string, error) {
	all, err := t.stacks(ctx)
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, names.EKSCluster(t.cluster())) }), err
}
