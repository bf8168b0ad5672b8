package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	taggingtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// nothingLeft proves that no resource of the run's clusters exists. Services list what they have, by name or tag. The tagging API then
// names resources of every other service; it may name a resource for a while after its deletion.
// https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
func (t *Target) nothingLeft(ctx context.Context, log *runner.Log) error {
	marked, err := t.isMarked(ctx)
	if err != nil {
		return err
	}
	if !marked {
		return runner.Skip("this run made no cluster")
	}
	var left, pending []string
	if !t.removed { // what drover did not delete does not end by itself
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, time.Minute)
		defer end()
	}
	err = t.until(ctx, 15*time.Second, "the end of what is left", func() (bool, error) {
		found, waiting, err := t.leftovers(ctx)
		if err != nil {
			return false, err
		}
		left, pending = found, waiting
		if len(left) > 0 {
			log.Show("still there: %s", strings.Join(left, ", "))
		}
		return len(left) == 0, nil
	})
	switch {
	case err != nil && len(left) > 0: // the time may end within a list: the last whole one counts
		return fmt.Errorf("%w; still there: %s", err, strings.Join(left, ", "))
	case err != nil:
		return err
	}
	log.Found("no resource has the tag %s=%s: asked the tagging API, EC2, Auto Scaling, KMS", tagKey, t.Suffix)
	log.Found("no stack, EKS cluster, role, function or log group has a name that begins with %s or %s", t.prefix(), t.ownPrefix())
	for _, key := range pending {
		log.Found("%s waits for its deletion, as every deleted key does, and costs nothing until then", key)
	}
	return nil
}

// leftovers lists what exists of the run's clusters, and the keys that wait for their deletion.
func (t *Target) leftovers(ctx context.Context) (left, pending []string, err error) {
	for _, list := range []func(context.Context) ([]string, error){
		t.clusterStacks, t.ownStacks, t.leftEKS, t.leftEC2, t.leftGroups, t.leftRoles, t.leftFunctions, t.leftLogs,
	} {
		found, err := list(ctx)
		if err != nil {
			return nil, nil, err
		}
		left = append(left, found...)
	}
	tagged, err := t.taggedARNs(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, arn := range tagged {
		switch exists, waits, err := t.exists(ctx, arn); {
		case err != nil:
			return nil, nil, err
		case waits:
			pending = append(pending, arn)
		case exists:
			left = append(left, arn)
		}
	}
	slices.Sort(left)
	return slices.Compact(left), pending, nil
}

// taggedARNs lists the ARNs that the tagging API names for the run.
func (t *Target) taggedARNs(ctx context.Context) ([]string, error) {
	var found []string
	pages := resourcegroupstaggingapi.NewGetResourcesPaginator(resourcegroupstaggingapi.NewFromConfig(t.cfg),
		&resourcegroupstaggingapi.GetResourcesInput{TagFilters: []taggingtypes.TagFilter{{Key: aws.String(tagKey), Values: []string{t.Suffix}}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing resources by tag: %w", err)
		}
		for _, resource := range page.ResourceTagMappingList {
			found = append(found, aws.ToString(resource.ResourceARN))
		}
	}
	return found, nil
}
