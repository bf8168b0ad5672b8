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
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// removalPoll is the pause between two reads of the statuses of clusters that are being deleted.
const removalPoll = 3 * time.Second

// remove deletes the clusters of the run through drover, all at once, and the stacks that the run made itself.
func (t *Target) remove(ctx context.Context, log *runner.Log) error {
	marked, err := t.isMarked(ctx)
	if err != nil {
		return err
	}
	if !marked {
		return runner.Skip("this run made no cluster")
	}
	clusters, err := t.specs(ctx)
	if err != nil {
		return err
	}
	stacks, err := t.clusterStacks(ctx)
	if err != nil {
		return err
	}
	own, err := t.ownStacks(ctx)
	if err != nil {
		return err
	}
	if len(clusters)+len(stacks)+len(own) == 0 {
		t.removed = true
		return runner.Skip("this run made no cluster")
	}
	var failed []error
	failed = append(failed, t.beginRemoval(ctx, own))
	for _, cluster := range clusters {
		_, err := t.drover(ctx, log, "delete", cluster)
		failed = append(failed, err)
	}
	failed = append(failed, t.removeOwn(ctx, own))
	for _, cluster := range clusters {
		failed = append(failed, t.awaitDeleted(ctx, log, cluster))
	}
	stacks, err = t.clusterStacks(ctx)
	if err == nil && len(stacks) > 0 {
		err = fmt.Errorf("stacks remain: %s", strings.Join(stacks, ", "))
	}
	err = errors.Join(append(failed, err)...)
	t.removed = err == nil
	return err
}

// sharedStack is the stack that the other stacks of the run use.
func (t *Target) sharedStack() string { return t.ownPrefix() + rolesStep }

// beginRemoval starts the deletion of the run's own stacks that no operation changes, without waiting.
func (t *Target) beginRemoval(ctx context.Context, own []string) error {
	for _, name := range own {
		stack, err := t.stack(ctx, name)
		if err != nil {
			return err
		}
		if name == t.sharedStack() || stack == nil || strings.HasSuffix(string(stack.StackStatus), "_IN_PROGRESS") {
			continue
		}
		_, err = cloudformation.NewFromConfig(t.cfg).DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &name})
		if err != nil {
			return fmt.Errorf("deleting stack %s: %w", name, err)
		}
	}
	return nil
}

// removeOwn deletes the run's own stacks, the shared one last. It waits until no operation changes a stack.
func (t *Target) removeOwn(ctx context.Context, own []string) error {
	var failed error
	for _, last := range []bool{false, true} {
		for _, name := range own {
			if (name == t.sharedStack()) != last {
				continue
			}
			stack, err := t.stackResult(ctx, name)
			if err == nil && stack != nil {
				err = t.removeStack(ctx, name)
			}
			failed = errors.Join(failed, err)
			if err == nil {
				t.Meter.Stop(strings.TrimPrefix(name, t.ownPrefix()), time.Now())
			}
		}
	}
	return failed
}

// awaitDeleted waits until drover reports a cluster as Deleted.
func (t *Target) awaitDeleted(ctx context.Context, log *runner.Log, cluster string) error {
	shown := ""
	return t.until(ctx, removalPoll, "the deletion of cluster "+cluster, func() (bool, error) {
		s, err := t.status(ctx, log, cluster)
		if err != nil {
			return false, err
		}
		if line := s.Status.Phase + ": " + s.Status.Message; line != shown {
			shown = line
			log.Show("%s is %s", cluster, line)
		}
		if s.Status.Phase != "Deleted" {
			return false, nil
		}
		t.Meter.Stop(cluster, time.Now())
		log.Found("drover reports cluster %s as Deleted: %s", cluster, s.Status.Message)
		return true, nil
	})
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
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, t.prefix()) }), err
}
