package harness

// Prepared calls: the SDK puts together what a call goes through for each call anew, which of a direct call is most of what it costs.
// Of the calls that lives make most it is kept from the first.

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/store"
)

// prepared are the stacks of a client by operation, once each was called. Middlewares of direct calls keep nothing of a call.
type prepared struct {
	service string
	mu      sync.Mutex
	stacks  map[string]*middleware.Stack
}

func preparing(service string, cfg aws.Config) (*prepared, aws.Config) {
	p := &prepared{service: service, stacks: map[string]*middleware.Stack{}}
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), func(stack *middleware.Stack) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stacks[stack.ID()] = stack
		return nil
	})
	return p, cfg
}

// call makes a call as the client did it the first time.
func call[I, O any](ctx context.Context, p *prepared, operation string, in *I, first func() (*O, error)) (*O, error) {
	p.mu.Lock()
	stack := p.stacks[operation]
	p.mu.Unlock()
	if stack == nil || in == nil {
		return first()
	}
	ctx = awsmiddleware.SetServiceID(middleware.ClearStackValues(ctx), p.service)
	ctx = middleware.WithOperationName(middleware.WithServiceID(ctx, p.service), operation)
	result, _, err := stack.HandleMiddleware(ctx, in, nobody{})
	if err != nil {
		return nil, &smithy.OperationError{ServiceID: p.service, OperationName: operation, Err: err}
	}
	return result.(*O), nil
}

// nobody is behind the deserializer, which asks by itself.
type nobody struct{}

func (nobody) Handle(context.Context, any) (any, middleware.Metadata, error) {
	panic("a direct call is made by its deserializer")
}

// objectCalls are a client's calls about objects.
type objectCalls struct {
	*awss3.Client
	*prepared
}

// s3 is a client of S3: in virtual time its calls are prepared.
func (a *Account) s3(cfg aws.Config) store.Client {
	if !a.options.Bubble {
		return environment.S3(cfg)
	}
	p, cfg := preparing(awss3.ServiceID, cfg)
	return objectCalls{environment.S3(cfg), p}
}

func (c objectCalls) GetObject(ctx context.Context, in *awss3.GetObjectInput, o ...func(*awss3.Options)) (*awss3.GetObjectOutput, error) {
	return call(ctx, c.prepared, "GetObject", in, func() (*awss3.GetObjectOutput, error) { return c.Client.GetObject(ctx, in, o...) })
}

func (c objectCalls) PutObject(ctx context.Context, in *awss3.PutObjectInput, o ...func(*awss3.Options)) (*awss3.PutObjectOutput, error) {
	return call(ctx, c.prepared, "PutObject", in, func() (*awss3.PutObjectOutput, error) { return c.Client.PutObject(ctx, in, o...) })
}

func (c objectCalls) DeleteObject(ctx context.Context, in *awss3.DeleteObjectInput, o ...func(*awss3.Options)) (*awss3.DeleteObjectOutput, error) {
	return call(ctx, c.prepared, "DeleteObject", in, func() (*awss3.DeleteObjectOutput, error) { return c.Client.DeleteObject(ctx, in, o...) })
}

func (c objectCalls) ListObjectsV2(ctx context.Context, in *awss3.ListObjectsV2Input, o ...func(*awss3.Options)) (*awss3.ListObjectsV2Output, error) {
	return call(ctx, c.prepared, "ListObjectsV2", in, func() (*awss3.ListObjectsV2Output, error) { return c.Client.ListObjectsV2(ctx, in, o...) })
}
