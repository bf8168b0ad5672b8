// Package live reads the state of AWS and of clusters now, with the caller's credentials, and counts the progress of stacks and pools. It
// calls CloudFormation rarely: AWS throttles DescribeStacks for the whole account, and drover's functions need it. It prints nothing:
// package cli does.
package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

const (
	// liveTimeout bounds one read of one source.
	liveTimeout = 10 * time.Second
	// idleStackAge is how old a stack without an operation may be before it is read again.
	idleStackAge = 15 * time.Second
	// nextStacks is how many of the stacks that drover changes next are read each time.
	nextStacks = 2
	// tokenAge is the age after which a new token is used. EKS accepts a token for 15 minutes.
	tokenAge = 10 * time.Minute
)

// Stack is a stack as CloudFormation describes it, with its operation if one is in progress.
type Stack struct {
	Status    string
	Operation cloudformation.Operation
	read      time.Time
}

// Cluster is the state of a cluster from three sources. Each source may have failed on its own.
type Cluster struct {
	Stacks    map[string]Stack
	StacksErr error
	// Groups by pool.
	Groups    map[string]pool.Group
	GroupsErr error
	Nodes     []pool.NodeHealth
	NodesErr  error
}

// Fleet is the state of all clusters, without their Kubernetes APIs. The key of Stacks is the full name.
type Fleet struct {
	Stacks    map[string]stack.Deployed
	StacksErr error
	Groups    []pool.Group
	GroupsErr error
}

// Source reads a Cluster or a Fleet repeatedly.
type Source struct {
	cfg    aws.Config
	stacks *cloudformation.Stacks
	groups *autoscaling.Groups
	// cached has the last read of each stack. opened is the connection to the cluster's API since the time since.
	cached map[string]Stack
	opened *kube.Cluster
	since  time.Time
}

// New returns a source for the account and region of a configuration.
func New(cfg aws.Config) *Source {
	return &Source{
		cfg: cfg, cached: map[string]Stack{}, groups: autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
		stacks: cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""),
	}
}

// Cluster reads the three sources in parallel.
func (l *Source) Cluster(ctx context.Context, c *status.Cluster) *Cluster {
	live, expected := &Cluster{}, StackNames(c.Status)
	inParallel(ctx, func(ctx context.Context) {
		live.Stacks, live.StacksErr = l.readStacks(ctx, c, expected)
	}, func(ctx context.Context) {
		live.Groups, live.GroupsErr = l.readGroups(ctx, c.Metadata.Name, expected)
	}, func(ctx context.Context) {
		live.Nodes, live.NodesErr = l.readNodes(ctx, c.Metadata.Name, expected)
	})
	return live
}

// Pools reads the groups and the nodes of a cluster, without its stacks.
func (l *Source) Pools(ctx context.Context, c *status.Cluster) *Cluster {
	live, expected := &Cluster{}, StackNames(c.Status)
	inParallel(ctx, func(ctx context.Context) {
		live.Groups, live.GroupsErr = l.readGroups(ctx, c.Metadata.Name, expected)
	}, func(ctx context.Context) {
		live.Nodes, live.NodesErr = l.readNodes(ctx, c.Metadata.Name, expected)
	})
	return live
}

// readGroups describes the groups of a cluster, by pool.
func (l *Source) readGroups(ctx context.Context, cluster string, stackNames []string) (map[string]pool.Group, error) {
	pools, groups := map[string]string{}, map[string]pool.Group{}
	var all []string
	for _, stack := range stackNames {
		if pool, ok := strings.CutPrefix(stack, names.PoolPrefix); ok {
			group := names.Group(cluster, pool)
			pools[group], all = pool, append(all, group)
		}
	}
	found, err := l.groups.DescribeNamed(ctx, all...)
	for _, group := range found {
		groups[pools[group.Name]] = group
	}
	return groups, err
}

// Fleet lists stacks and groups, a few calls each.
func (l *Source) Fleet(ctx context.Context) *Fleet {
	live := &Fleet{}
	inParallel(ctx, func(ctx context.Context) {
		live.Stacks, live.StacksErr = l.stacks.All(ctx)
	}, func(ctx context.Context) {
		live.Groups, live.GroupsErr = l.groups.All(ctx)
	})
	return live
}

func inParallel(ctx context.Context, reads ...func(context.Context)) {
	var all sync.WaitGroup
	for _, read := range reads {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, liveTimeout)
			defer cancel()
			read(ctx)
		})
	}
	all.Wait()
}

// StackNames returns the recorded and the planned stacks of a cluster's status.
func StackNames(s status.Status) []string {
	var all []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	for _, stack := range s.Stacks {
		add(stack.Name)
	}
	for _, change := range s.Plan {
		add(change.Stack)
	}
	return all
}

// Unfinished lists the planned changes that drover has not recorded as done, in their order. A change that ended in the second in which the
// converge began is done: the time of CloudFormation's events has no fractions.
func Unfinished(s status.Status) []status.Change {
	if !s.Converges() {
		return nil
	}
	converged := s.Condition(status.Converged)
	done := func(since time.Time) bool {
		return converged == nil || !since.Before(converged.LastTransitionTime.Truncate(time.Second))
	}
	return slices.DeleteFunc(slices.Clone(s.Plan), func(change status.Change) bool {
		i := slices.IndexFunc(s.Stacks, func(stack status.Stack) bool { return stack.Name == change.Stack })
		return i >= 0 && done(s.Stacks[i].Since)
	})
}

// readStacks describes the stacks that may have changed since the last read.
func (l *Source) readStacks(ctx context.Context, c *status.Cluster, expected []string) (map[string]Stack, error) {
	recorded := map[string]string{}
	for _, stack := range c.Status.Stacks {
		recorded[stack.Name] = stack.Status
	}
	next := map[string]bool{}
	for i, change := range Unfinished(c.Status) {
		next[change.Stack] = i < nextStacks
	}
	all := map[string]Stack{}
	for _, name := range expected {
		last, ok := l.cached[name]
		idle := ok && !next[name] && !stack.InProgress(last.Status) && last.Status == recorded[name]
		if idle && time.Since(last.read) < idleStackAge {
			all[name] = last
			continue
		}
		full := names.Stack(c.Metadata.Name, name)
		deployed, err := l.stacks.Describe(ctx, full)
		if err != nil {
			return all, err
		}
		now := Stack{Status: deployed.Status, read: time.Now()}
		if stack.InProgress(deployed.Status) {
			if now.Operation, err = l.stacks.Operation(ctx, full); err != nil {
				return all, err
			}
		}
		all[name], l.cached[name] = now, now
	}
	return all, nil
}

// readNodes lists the nodes of a cluster from its Kubernetes API.
func (l *Source) readNodes(ctx context.Context, cluster string, stackNames []string) ([]pool.NodeHealth, error) {
	if l.opened == nil || time.Since(l.since) > tokenAge {
		opened, err := kube.NewClusters(l.cfg, kube.WithRelay(relay.To(lambda.New(l.cfg)))).Open(ctx, cluster)
		if err != nil {
			return nil, err
		}
		l.opened, l.since = opened, time.Now()
	}
	nodes, err := l.opened.Health(ctx)
	if kube.IsDenied(err) {
		hint := ""
		for _, stack := range stackNames {
			if pool, ok := strings.CutPrefix(stack, names.PoolPrefix); ok {
				hint = fmt.Sprintf("; `drover roll %s %s --dry-run` prints one for its spec", cluster, pool)
			}
		}
		return nil, fmt.Errorf("you may not list its nodes: the cluster has no access entry for you that allows it%s", hint)
	}
	if err != nil {
		l.opened = nil // the endpoint may have changed by the next read
	}
	return nodes, err
}
