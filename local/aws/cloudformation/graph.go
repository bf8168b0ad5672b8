package cloudformation

import (
	"context"
	"sync"
)

// Parallel work in the order of dependencies.

// walk visits the nodes of a graph in parallel. The graph maps a node to those that it depends on, and a node is visited after all of these
// succeeded. Nodes after a failed one are not visited. With stopOnFailure, the first failure cancels running visits and starts no further
// one. walk returns the failures by node.
func walk[K comparable](ctx context.Context, graph map[K][]K, stopOnFailure bool, visit func(context.Context, K) error) map[K]error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		done chan struct{}
		ok   bool
	}
	outcomes := make(map[K]*outcome, len(graph))
	for node := range graph {
		outcomes[node] = &outcome{done: make(chan struct{})}
	}
	var mu sync.Mutex
	failed := map[K]error{}
	var wait sync.WaitGroup
	for node, after := range graph {
		wait.Go(func() {
			mine := outcomes[node]
			defer close(mine.done)
			for _, name := range after {
				if other, found := outcomes[name]; found {
					<-other.done
					if !other.ok {
						return
					}
				}
			}
			if stopOnFailure && ctx.Err() != nil {
				return
			}
			if err := visit(ctx, node); err != nil {
				mu.Lock()
				failed[node] = err
				mu.Unlock()
				if stopOnFailure {
					cancel()
				}
				return
			}
			mine.ok = true
		})
	}
	wait.Wait()
	return failed
}

// reverse reverses the edges of a graph.
func reverse[K comparable](graph map[K][]K) map[K][]K {
	reversed := make(map[K][]K, len(graph))
	for node := range graph {
		reversed[node] = nil
	}
	for node, after := range graph {
		for _, other := range after {
			if _, found := graph[other]; found {
				reversed[other] = append(reversed[other], node)
			}
		}
	}
	return reversed
}
