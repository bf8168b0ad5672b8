package cloudformation

import (
	"context"
	"sync"
)

// This file runs work in the order of dependencies, as much at once as they allow.

// walk visits every node of a graph (node -> what it comes after) once all that it comes after have succeeded. Nodes after
// a failed one are not visited. With stopOnFailure the first failure cancels the context of the visits under way and no
// further one starts. It returns the failures by node.
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
				if other, there := outcomes[name]; there {
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

// reverse turns a graph around.
func reverse[K comparable](graph map[K][]K) map[K][]K {
	reversed := make(map[K][]K, len(graph))
	for node := range graph {
		reversed[node] = nil
	}
	for node, after := range graph {
		for _, other := range after {
			if _, there := graph[other]; there {
				reversed[other] = append(reversed[other], node)
			}
		}
	}
	return reversed
}
