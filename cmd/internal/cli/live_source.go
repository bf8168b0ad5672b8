package cli

// The state of AWS and of clusters now, read with the caller's credentials. It calls CloudFormation rarely: AWS throttles
// DescribeStacks for the whole account, and drover's functions need it.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

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

// liveStack is a stack as CloudFormation describes it, with its operation if one is in progress.
type liveStack struct {
	Status    string
	Operation cloudformation.Operation
	read      time.Time
}

// liveCluster is the state of a cluster from three sources. Each source may have failed on its own.
type liveCluster struct {
	stacks    map[string]liveStack
	stacksErr error
	// groups by pool.
	groups    map[string]pool.Group
	groupsErr error
	nodes     []pool.NodeHealth
	nodesErr  error
}

// liveFleet is the state of all clusters, without their Kubernetes APIs. The key of stacks is the full name.
type liveFleet struct {
	stacks    map[string]stack.Deployed
	stacksErr error
	groups    []pool.Group
	groupsErr error
}

// liveSource reads liveCluster and liveFleet repeatedly.
type liveSource struct {
	c      *Cell
	stacks *cloudformation.Stacks
	groups *autoscaling.Groups
	// cached has the last read of each stack. opened is the connection to the cluster's API since the time since.
	cached map[string]liveStack
	opened *kube.Cluster
	since  time.Time
}

func newLiveSource(c *Cell) *liveSource {
	return &liveSource{
		c: c, cached: map[string]liveStack{}, groups: autoscaling.New(awsautoscaling.NewFromConfig(c.cfg)),
		stacks: cloudformation.New(awscloudformation.NewFromConfig(c.cfg), nil, ""),
	}
}

// cluster reads the three sources in parallel.
func (l *liveSource) cluster(ctx context.Context, c *status.Cluster) *liveCluster {
	live, expected := &liveCluster{}, stackNames(c.Status)
	inParallel(ctx, func(ctx context.Context) {
		live.stacks, live.stacksErr = l.readStacks(ctx, c, expected)
	}, func(ctx context.Context) {
		live.groups, live.groupsErr = l.readGroups(ctx, c.Metadata.Name, expected)
	}, func(ctx context.Context) {
		live.nodes, live.nodesErr = l.readNodes(ctx, c.Metadata.Name, expected)
	})
	return live
}

// pools reads the groups and the nodes of a cluster, without its stacks.
func (l *liveSource) pools(ctx context.Context, c *status.Cluster) *liveCluster {
	live, expected := &liveCluster{}, stackNames(c.Status)
	inParallel(ctx, func(ctx context.Context) {
		live.groups, live.groupsErr = l.readGroups(ctx, c.Metadata.Name, expected)
	}, func(ctx context.Context) {
		live.nodes, live.nodesErr = l.readNodes(ctx, c.Metadata.Name, expected)
	})
	return live
}

// readGroups describes the groups of a cluster, by pool.
func (l *liveSource) readGroups(ctx context.Context, cluster string, stackNames []string) (map[string]pool.Group, error) {
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

// fleet lists stacks and groups, a few calls each.
func (l *liveSource) fleet(ctx context.Context) *liveFleet {
	live := &liveFleet{}
	inParallel(ctx, func(ctx context.Context) {
		live.stacks, live.stacksErr = l.stacks.All(ctx)
	}, func(ctx context.Context) {
		live.groups, live.groupsErr = l.groups.All(ctx)
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

// stackNames returns the recorded and the planned stacks of a cluster's status.
func stackNames(s status.Status) []string {
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

// readStacks describes the stacks that may have changed since the last read.
func (l *liveSource) readStacks(ctx context.Context, c *status.Cluster, expected []string) (map[string]liveStack, error) {
	recorded := map[string]string{}
	for _, stack := range c.Status.Stacks {
		recorded[stack.Name] = stack.Status
	}
	next := map[string]bool{}
	for i, change := range unfinished(c.Status) {
		next[change.Stack] = i < nextStacks
	}
	all := map[string]liveStack{}
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
		now := liveStack{Status: deployed.Status, read: time.Now()}
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
func (l *liveSource) readNodes(ctx context.Context, cluster string, stackNames []string) ([]pool.NodeHealth, error) {
	if l.opened == nil || time.Since(l.since) > tokenAge {
		opened, err := kube.NewClusters(l.c.cfg, kube.WithRelay(relay.To(lambda.New(l.c.cfg)))).Open(ctx, cluster)
		if err != nil {
			return nil, err
		}
		l.opened, l.since = opened, time.Now()
	}
	nodes, err := l.opened.Health(ctx)
	if isDenied(err) {
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
