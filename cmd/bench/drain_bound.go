package main

// What nobody can be faster than under a budget.

import (
	"context"
	"fmt"
	"time"
)

// budgetBound measures, on the API server that the contestants had, how long a single eviction keeps its place in the budget,
// how many evictions the API server accepts in a second when no budget is asked, and how long the controllers take to make as many
// pods as must be replaced before the last may go.
func (g *ground) budgetBound(ctx context.Context, c drainCase, keep int) (seconds float64, how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := g.reset(ctx, c); err != nil {
		return 0, "", err
	}
	made := g.made.Seconds()
	if err := g.cluster.Reset(ctx, false, c.nodeNames()...); err != nil {
		return 0, "", err
	}
	client, err := policyClient(g.config())
	if err != nil {
		return 0, "", err
	}
	// As before each trial: until then the making of the pods has used up what the controllers' clients may ask for in a burst.
	if _, err := waitForQuiet(ctx); err != nil {
		return 0, "", err
	}
	var places []float64
	end := 0.0
	for i, pod := range g.watcher.On("bench", c.nodeNames()[0])[:min(5, c.pods)] {
		left, started := g.left(c.nodeNames()), time.Now()
		if err := evict(ctx, client, "bench", pod); err != nil {
			return 0, "", err
		}
		if err := g.cluster.Budgeted(ctx, c.workload); err != nil {
			return 0, "", err
		}
		places = append(places, time.Since(started).Seconds())
		if i > 0 {
			continue
		}
		if err := g.watcher.Wait(ctx, "the pod to be gone", func() bool { return g.left(c.nodeNames()) < left }); err != nil {
			return 0, "", err
		}
		end = time.Since(started).Seconds()
	}
	rate, err := g.evictionRate(ctx, c)
	if err != nil {
		return 0, "", err
	}
	slots := c.workload.Replicas - keep
	rounds := (c.workload.Replicas + slots - 1) / slots
	place := quantile(places, 0)
	byRounds := float64(rounds-1)*place + end
	byRate := float64(c.workload.Replicas)/rate + end
	byMaking := made*float64(keep)/float64(c.workload.Replicas) + end
	how = fmt.Sprintf("%d rounds of %.3f s and %.2f s for the last: %.2f s; %d evictions at %.0f/s, the most without a budget: %.2f s; "+
		"%d replaced, all of which took %.2f s to be made: %.2f s", rounds, place, end, byRounds, c.workload.Replicas, rate, byRate,
		keep, made, byMaking)
	return max(byRounds, byRate, byMaking), how, nil
}

// evictionRate is how many evictions in a second the API server accepts when no budget is asked.
func (g *ground) evictionRate(ctx context.Context, c drainCase) (float64, error) {
	if g.rate > 0 {
		return g.rate, nil
	}
	client, err := policyClient(g.config())
	if err != nil {
		return 0, err
	}
	free := drainCase{nodes: 1, pods: 200, workload: c.workload}
	free.workload.Replicas, free.workload.MaxUnavailable = free.pods, ""
	free.workload.ReadyAfter, free.workload.EndsAfter = 0, 0
	if err := g.clear(ctx, c); err != nil {
		return 0, err
	}
	if err := g.prepare(ctx, &free); err != nil {
		return 0, err
	}
	if err := g.reset(ctx, free); err != nil {
		return 0, err
	}
	if err := g.cluster.Reset(ctx, false, free.nodeNames()...); err != nil {
		return 0, err
	}
	pods := g.watcher.On("bench", free.nodeNames()[0])
	started := time.Now()
	for _, o := range atOnce(pods, bareAtOnce, func(pod string) error { return evict(ctx, client, "bench", pod) }) {
		if o.err != nil {
			return 0, o.err
		}
	}
	g.rate = float64(len(pods)) / time.Since(started).Seconds()
	return g.rate, g.cluster.RemoveNodes(ctx, free.nodeNames()...)
}
