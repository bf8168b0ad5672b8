package harness

// The nodes that the sweep observes: one for each instance in service, unless a test decides otherwise.

import (
	"context"
	"strings"
	"sync"

	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// Nodes are the nodes of all clusters.
type Nodes struct {
	account *Account

	mu     sync.Mutex
	decide func(cluster string, nodes []pool.NodeHealth) ([]pool.NodeHealth, error)
}

// Decide sets the function that returns the state of a cluster's nodes. nil makes all Ready.
func (n *Nodes) Decide(decide func(cluster string, nodes []pool.NodeHealth) ([]pool.NodeHealth, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.decide = decide
}

// Health implements the method of kube.Clusters.
func (n *Nodes) Health(ctx context.Context, cluster string, _ stack.API) ([]pool.NodeHealth, error) {
	all, err := n.account.Groups().All(ctx)
	if err != nil {
		return nil, err
	}
	var nodes []pool.NodeHealth
	for _, group := range all {
		poolName, ours := strings.CutPrefix(group.Name, names.Group(cluster, ""))
		if !ours {
			continue
		}
		for _, i := range group.Instances {
			if i.IsInService() {
				nodes = append(nodes, pool.NodeHealth{Name: "node-of-" + i.ID, Instance: i.ID, Pool: poolName, Ready: true})
			}
		}
	}
	n.mu.Lock()
	decide := n.decide
	n.mu.Unlock()
	if decide == nil {
		return nodes, nil
	}
	return decide(cluster, nodes)
}

// Groups returns the account's Auto Scaling groups, as the administrator sees them.
func (a *Account) Groups() *autoscaling.Groups {
	return autoscaling.New(autoscalingapi.NewFromConfig(a.Config()))
}
