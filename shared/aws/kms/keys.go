// Package kms describes KMS keys. It changes nothing.
package kms

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/drover-run/drover/shared/aws/internal/call"
	"github.com/drover-run/drover/shared/fault"
)

// Keys of a region.
type Keys struct {
	describeKey call.Operation[kms.DescribeKeyInput, kms.DescribeKeyOutput, kms.Options]
}

// New returns the keys of a configuration's region.
func New(config aws.Config) *Keys { return &Keys{kms.NewFromConfig(call.Once(config)).DescribeKey} }

// Describe returns the state of a key, such as Enabled. found is false if the key does not exist. permitted is false if the key may not be
// described: its policy may allow others to use it.
// https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html
func (k *Keys) Describe(ctx context.Context, arn string) (state string, found, permitted bool, err error) {
	out, err := k.describeKey(ctx, &kms.DescribeKeyInput{KeyId: &arn})
	switch fault.Code(err) {
	case "NotFoundException":
		return "", false, true, nil
	case "AccessDeniedException", "AccessDenied":
		return "", true, false, nil
	}
	if err != nil {
		return "", false, false, fmt.Errorf("describing key %s: %w", arn, call.Error(err))
	}
	return string(out.KeyMetadata.KeyState), true, true, nil
}
