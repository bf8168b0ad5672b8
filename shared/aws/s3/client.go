package s3

import (
	"context"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of S3's client.
type operation[In, Out any] = call.Operation[In, Out, awss3.Options]

// client has the operations of S3 that this package needs: see call.Operation.
type client struct {
	DeleteObject  operation[awss3.DeleteObjectInput, awss3.DeleteObjectOutput]
	GetObject     operation[awss3.GetObjectInput, awss3.GetObjectOutput]
	ListObjectsV2 listObjectsV2
	PutObject     operation[awss3.PutObjectInput, awss3.PutObjectOutput]
}

func newClient(c *awss3.Client) client {
	return client{
		DeleteObject: c.DeleteObject, GetObject: c.GetObject, ListObjectsV2: c.ListObjectsV2, PutObject: c.PutObject,
	}
}

// listObjectsV2 is what the paginator of ListObjectsV2 needs of a client.
type listObjectsV2 operation[awss3.ListObjectsV2Input, awss3.ListObjectsV2Output]

func (l listObjectsV2) ListObjectsV2(
	ctx context.Context, in *awss3.ListObjectsV2Input, options ...func(*awss3.Options),
) (*awss3.ListObjectsV2Output, error) {
	return l(ctx, in, options...)
}
