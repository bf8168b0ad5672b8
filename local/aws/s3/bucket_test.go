package s3_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// smallPages limits listings to two keys a page.
type smallPages struct{}

func (smallPages) HandleInitialize(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if list, ok := in.Parameters.(*awss3.ListObjectsV2Input); ok {
		list.MaxKeys = aws.Int32(2)
	}
	return next.HandleInitialize(ctx, in)
}

func (smallPages) ID() string { return "smallPages" }

// TestStoreObjects runs the table of drover's store over its adapter and this S3.
func TestStoreObjects(t *testing.T) {
	everyStore(t, func(t *testing.T) {
		buckets := 0
		open := func(t *testing.T) store.Objects {
			buckets++
			name := fmt.Sprint("objects-", strings.ToLower(t.Name()[len("TestStoreObjects/"):][:6]), "-", buckets)
			return s3adapter.NewBucket(admin(), newBucket(t, name))
		}
		storetest.Conformance(t, open)
		t.Run("lists all pages", func(t *testing.T) {
			b := open(t)
			for i := range 7 {
				_, err := b.Put(t.Context(), fmt.Sprintf("list/%d", i), nil)
				require.NoError(t, err)
			}
			_, credentials := account.identities.Admin()
			small := s3adapter.NewBucket(client(credentials, func(o *awss3.Options) {
				o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
					return stack.Initialize.Add(smallPages{}, middleware.Before)
				})
			}), b.Name())
			entries, err := small.List(t.Context(), "list/")
			require.NoError(t, err)
			require.Len(t, entries, 7)
			for i, entry := range entries {
				require.Equal(t, fmt.Sprintf("list/%d", i), entry.Key)
			}
		})
	})
}
