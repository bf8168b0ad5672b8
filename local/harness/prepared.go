package harness

// Prepared calls: the SDK puts together what a call goes through for each call anew, which of a direct call is most of what it costs.
// Of the calls that lives make most it is kept from the first.

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/versions"
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

// clients of a function: what it calls most is prepared.
type clients struct {
	s3     store.Client
	groups autoscaling.DescribeAutoScalingGroupsAPIClient
	stacks cloudformation.DescribeStacksAPIClient
	eks    eks.DescribeClusterAPIClient
}

// clientsOf a configuration. Those of a function share what is prepared.
func (a *Account) clientsOf(cfg aws.Config) *clients {
	whose, one := cfg.Credentials.(*aws.CredentialsCache)
	if c := a.clients[whose]; one && c != nil {
		return c
	}
	c := &clients{}
	p, with := preparing(awss3.ServiceID, cfg)
	c.s3 = a.objectCalls(environment.S3(with), p, cfg)
	p, with = preparing(autoscaling.ServiceID, cfg)
	c.groups = groupCalls{autoscaling.NewFromConfig(with), p}
	p, with = preparing(cloudformation.ServiceID, cfg)
	c.stacks = stackCalls{cloudformation.NewFromConfig(with), p}
	p, with = preparing(eks.ServiceID, cfg)
	c.eks = clusterCalls{eks.NewFromConfig(with), p}
	if one {
		a.clients[whose] = c
	}
	return c
}

// s3 is a client of S3.
func (a *Account) s3(cfg aws.Config) store.Client {
	if a.options.Bubble {
		return a.clientsOf(cfg).s3
	}
	return environment.S3(cfg)
}

// eks describes EKS clusters.
func (a *Account) eks(cfg aws.Config) eks.DescribeClusterAPIClient {
	if a.options.Bubble {
		return a.clientsOf(cfg).eks
	}
	return eks.NewFromConfig(cfg)
}

// versions are those of EKS.
func (a *Account) versions(cfg aws.Config) *versions.Versions {
	v := versions.New(eks.NewFromConfig(cfg))
	v.Described = a.eks(cfg)
	return v
}

// groups are those of Auto Scaling.
func (a *Account) groups(cfg aws.Config) *groups.Groups {
	g := groups.New(autoscaling.NewFromConfig(cfg))
	if a.options.Bubble {
		g.Described = a.clientsOf(cfg).groups
	}
	return g
}

// stacks are those of CloudFormation, which acts as a role.
func (a *Account) stacks(cfg aws.Config, role string) *stacks.Stacks {
	s := stacks.New(cloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), role)
	if a.options.Bubble {
		s.Described = a.clientsOf(cfg).stacks
	} else {
		s.Pause = time.Millisecond
	}
	return s
}

// groupCalls are a client's calls about groups.
type groupCalls struct {
	*autoscaling.Client
	*prepared
}

func (c groupCalls) DescribeAutoScalingGroups(
	ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, o ...func(*autoscaling.Options),
) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return call(ctx, c.prepared, "DescribeAutoScalingGroups", in, func() (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
		return c.Client.DescribeAutoScalingGroups(ctx, in, o...)
	})
}

// stackCalls are a client's calls about stacks.
type stackCalls struct {
	*cloudformation.Client
	*prepared
}

func (c stackCalls) DescribeStacks(
	ctx context.Context, in *cloudformation.DescribeStacksInput, o ...func(*cloudformation.Options),
) (*cloudformation.DescribeStacksOutput, error) {
	return call(ctx, c.prepared, "DescribeStacks", in, func() (*cloudformation.DescribeStacksOutput, error) { return c.Client.DescribeStacks(ctx, in, o...) })
}

// clusterCalls are a client's calls about EKS clusters.
type clusterCalls struct {
	*eks.Client
	*prepared
}

func (c clusterCalls) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput, o ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	return call(ctx, c.prepared, "DescribeCluster", in, func() (*eks.DescribeClusterOutput, error) { return c.Client.DescribeCluster(ctx, in, o...) })
}
