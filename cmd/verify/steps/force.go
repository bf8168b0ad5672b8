package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// force deletes what drover did not delete: the specs, and the stacks of clusters in the reverse order of their creation. It is skipped if
// drover deleted everything. Nodes are not drained, and hooks of Auto Scaling end after their timeout.
func (t *Target) force(ctx context.Context, log *runner.Log) error {
	specs, err := t.specs(ctx)
	if err != nil {
		return err
	}
	stacks, err := t.clusterStacks(ctx)
	if err != nil {
		return err
	}
	if len(specs)+len(stacks) == 0 {
		return runner.Skip("drover deleted every cluster")
	}
	bucket := names.SpecsBucket(t.account, t.Region)
	for _, cluster := range specs {
		_, err := t.objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String(names.ClusterSpec(cluster))})
		if err != nil {
			return fmt.Errorf("deleting the spec of %s: %w", cluster, err)
		}
		log.Found("deleted the spec of %s", cluster)
	}
	slices.SortStableFunc(stacks, func(a, b string) int { return rank(a) - rank(b) })
	client := cloudformation.NewFromConfig(t.cfg)
	var failed []error
	for _, name := range stacks {
		log.Show("deleting stack %s", name)
		_, err := client.UpdateTerminationProtection(ctx, &cloudformation.UpdateTerminationProtectionInput{
			StackName: &name, EnableTerminationProtection: aws.Bool(false),
		})
		if err == nil {
			err = t.removeStack(ctx, name)
		}
		if err == nil {
			log.Found("deleted stack %s", name)
		}
		failed = append(failed, err)
	}
	for _, cluster := range specs {
		t.Meter.Stop(cluster, time.Now())
	}
	return errors.Join(failed...)
}

// rank orders the stacks of clusters for their deletion: what needs another stack first.
func rank(name string) int {
	for i, suffix := range []string{"-" + names.NodeAddons, "-" + names.PoolStack(poolName), "-" + names.Addons, "-" + names.ControlPlane} {
		if strings.HasSuffix(name, suffix) {
			return i
		}
	}
	return 10
}
