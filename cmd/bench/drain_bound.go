package main

// What nobody can be faster than under a budget.

import (
	"context"
	"fmt"
	"time"
)

// budgetBound measures, on the API server that the contestants had, how long a single eviction keeps its place in the budget,
// and how many evictions under one budget the API server accepts in a second when all are allowed.
func (g *ground) budgetBound(ctx context.Context, c drainCase, keep int) (seconds float64, how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := g.reset(ctx, c); err != nil {
		return 0, "", err
	}
	if err := g.cluster.Reset(ctx, false, c.nodeNames()...); err != nil {
		return 0, "", err
	}
	client, err := policyClient(g.as(bare.user))
	if err != nil {
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
	all := c.workload
	all.MaxUnavailable = "100%"
	free := c
	free.workload = all
	t, err := g.try(ctx, free, bare)
	if err != nil {
		return 0, "", err
	}
	rate := float64(c.workload.Replicas) / (t.took - end)
	slots := c.workload.Replicas - keep
	rounds := (c.workload.Replicas + slots - 1) / slots
	byRounds := float64(rounds-1)*median(places) + end
	byRate := float64(c.workload.Replicas)/rate + end
	how = fmt.Sprintf("%d rounds of %.2f s, the last %.2f s; or %d evictions at %.0f/s under one budget: %.2f s", rounds, median(places), end, c.workload.Replicas, rate, byRate)
	return max(byRounds, byRate), how, nil
}
