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
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/s3"
)

// prepared are the stacks of a client by operation that no call goes through. Middlewares of direct calls keep
// nothing of a call, but a stack does while it is under way.
type prepared struct {
	service     string
	credentials aws.CredentialsProvider
	http        aws.HTTPClient
	retryer     aws.RetryerV2 // the client's
	mu          sync.Mutex
	stacks      map[string][]*middleware.Stack
}

func preparing(service string, cfg aws.Config) (*prepared, aws.Config) {
	p := &prepared{service: service, credentials: cfg.Credentials, http: cfg.HTTPClient, stacks: map[string][]*middleware.Stack{}}
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Prepared", func(ctx context.Context, in middleware.InitializeInput,
			next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			defer p.put(stack) // nothing of it is called any more
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
	return p, cfg
}

func (p *prepared) put(stack *middleware.Stack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stacks[stack.ID()] = append(p.stacks[stack.ID()], stack)
}

// take a stack of an operation, nil when there is none that is free.
func (p *prepared) take(operation string) *middleware.Stack {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.stacks[operation]
	if len(free) == 0 {
		return nil
	}
	p.stacks[operation] = free[:len(free)-1]
	return free[len(free)-1]
}

// call makes a call: its first attempt by itself where it can.
func call[I, O any](
	ctx context.Context, p *prepared, operation string, writer middleware.SerializeMiddleware, in *I, first func(context.Context) (*O, error),
) (*O, error) {
	made := (*attempt)(nil)
	if in != nil {
		made = p.try(ctx, operation, writer, in)
	}
	if made != nil {
		if out, ok := made.taken().(*O); ok {
			return out, nil
		}
	}
	return goOn(ctx, p, operation, in, made, first)
}

// goOn with a call whose first attempt was made, if it was, as the client did it the first time.
func goOn[I, O any](ctx context.Context, p *prepared, operation string, in *I, made *attempt,
	first func(context.Context) (*O, error)) (*O, error) {
	if made != nil {
		ctx = context.WithValue(ctx, attemptKey{}, made)
	}
	if in == nil {
		return first(ctx)
	}
	stack := p.take(operation)
	if stack == nil {
		return first(ctx)
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
	s3     *awss3.Client
	groups awsautoscaling.DescribeAutoScalingGroupsAPIClient
	stacks awscloudformation.DescribeStacksAPIClient
	eks    awseks.DescribeClusterAPIClient
}

// clientsOf a configuration. Those of a function share what is prepared.
func (a *Account) clientsOf(cfg aws.Config) *clients {
	whose, one := cfg.Credentials.(*aws.CredentialsCache)
	if c := a.clients[whose]; one && c != nil {
		return c
	}
	c := &clients{s3: s3.NewClient(cfg)}
	p, with := preparing(awsautoscaling.ServiceID, cfg)
	groups := awsautoscaling.NewFromConfig(with)
	p.retryer, _ = groups.Options().Retryer.(aws.RetryerV2)
	c.groups = groupCalls{groups, p}
	p, with = preparing(awscloudformation.ServiceID, cfg)
	stacks := awscloudformation.NewFromConfig(with)
	p.retryer, _ = stacks.Options().Retryer.(aws.RetryerV2)
	c.stacks = stackCalls{stacks, p}
	p, with = preparing(awseks.ServiceID, cfg)
	clusters := awseks.NewFromConfig(with)
	p.retryer, _ = clusters.Options().Retryer.(aws.RetryerV2)
	c.eks = clusterCalls{clusters, p}
	if one {
		a.clients[whose] = c
	}
	return c
}

// s3 is a client of S3.
func (a *Account) s3(cfg aws.Config) *awss3.Client {
	if a.options.Bubble {
		return a.clientsOf(cfg).s3
	}
	return s3.NewClient(cfg)
}

// eks describes EKS clusters.
func (a *Account) eks(cfg aws.Config) awseks.DescribeClusterAPIClient {
	if a.options.Bubble {
		return a.clientsOf(cfg).eks
	}
	return awseks.NewFromConfig(cfg)
}

// versions are those of EKS.
func (a *Account) versions(cfg aws.Config) *eks.Versions {
	v := eks.New(awseks.NewFromConfig(cfg))
	v.Described = a.eks(cfg)
	return v
}

// groups are those of Auto Scaling.
func (a *Account) groups(cfg aws.Config) *autoscaling.Groups {
	g := autoscaling.New(awsautoscaling.NewFromConfig(cfg))
	if a.options.Bubble {
		g.Described = a.clientsOf(cfg).groups
	}
	return g
}

// stacks are those of CloudFormation, which acts as a role.
func (a *Account) stacks(cfg aws.Config, role string) *cloudformation.Stacks {
	s := cloudformation.New(awscloudformation.NewFromConfig(cfg), resourcegroupstaggingapi.NewFromConfig(cfg), role)
	if a.options.Bubble {
		s.Described = a.clientsOf(cfg).stacks
	} else {
		s.Pause = time.Millisecond
	}
	return s
}

// How calls are written whose first attempts are made here.
var (
	writtenGroups = writing(func(cfg aws.Config) error {
		_, err := awsautoscaling.NewFromConfig(cfg).DescribeAutoScalingGroups(context.Background(), nil)
		return err
	})
	writtenStacks = writing(func(cfg aws.Config) error {
		_, err := awscloudformation.NewFromConfig(cfg).DescribeStacks(context.Background(), nil)
		return err
	})
	writtenCluster = writing(func(cfg aws.Config) error {
		_, err := awseks.NewFromConfig(cfg).DescribeCluster(context.Background(), nil)
		return err
	})
)

// groupCalls are a client's calls about groups.
type groupCalls struct {
	*awsautoscaling.Client
	*prepared
}

func (c groupCalls) DescribeAutoScalingGroups(
	ctx context.Context, in *awsautoscaling.DescribeAutoScalingGroupsInput, o ...func(*awsautoscaling.Options),
) (*awsautoscaling.DescribeAutoScalingGroupsOutput, error) {
	return call(ctx, c.prepared, "DescribeAutoScalingGroups", writtenGroups, in,
		func(ctx context.Context) (*awsautoscaling.DescribeAutoScalingGroupsOutput, error) {
			return c.Client.DescribeAutoScalingGroups(ctx, in, o...)
		})
}

// stackCalls are a client's calls about stacks.
type stackCalls struct {
	*awscloudformation.Client
	*prepared
}

func (c stackCalls) DescribeStacks(
	ctx context.Context, in *awscloudformation.DescribeStacksInput, o ...func(*awscloudformation.Options),
) (*awscloudformation.DescribeStacksOutput, error) {
	type output = awscloudformation.DescribeStacksOutput
	return call(ctx, c.prepared, "DescribeStacks", writtenStacks, in, func(ctx context.Context) (*output, error) {
		return c.Client.DescribeStacks(ctx, in, o...)
	})
}

// clusterCalls are a client's calls about EKS clusters.
type clusterCalls struct {
	*awseks.Client
	*prepared
}

func (c clusterCalls) DescribeCluster(ctx context.Context, in *awseks.DescribeClusterInput,
	o ...func(*awseks.Options)) (*awseks.DescribeClusterOutput, error) {
	writer := writtenCluster
	if in == nil || aws.ToString(in.Name) == "" { // the SDK refuses it
		writer = nil
	}
	return call(ctx, c.prepared, "DescribeCluster", writer, in, func(ctx context.Context) (*awseks.DescribeClusterOutput, error) {
		return c.Client.DescribeCluster(ctx, in, o...)
	})
}
