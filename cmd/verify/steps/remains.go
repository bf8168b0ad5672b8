package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/shared/names"
)

// remainsOfDrover lists what exists of drover itself, without the CDK's own stack.
func (t *Target) remainsOfDrover(ctx context.Context) (left []string, err error) {
	roles, err := t.roles(ctx, func(name string) bool { return strings.HasPrefix(name, names.Role(t.Region, "")) })
	if err != nil {
		return nil, err
	}
	functions, err := t.functions(ctx, names.Prefix)
	if err != nil {
		return nil, err
	}
	logs, err := t.logGroups(ctx, "/aws/lambda/"+names.Prefix, "/aws/vendedlogs/states/"+names.Prefix)
	if err != nil {
		return nil, err
	}
	left = append(append(roles, functions...), logs...)
	for _, bucket := range []string{names.SpecsBucket(t.account, t.Region), names.StateBucket(t.account, t.Region)} {
		_, err := t.objects.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
		var failure smithy.APIError
		if errors.As(err, &failure) && (failure.ErrorCode() == "NotFound" || failure.ErrorCode() == "NoSuchBucket") {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading bucket %s: %w", bucket, err)
		}
		left = append(left, "bucket "+bucket)
	}
	return left, nil
}
