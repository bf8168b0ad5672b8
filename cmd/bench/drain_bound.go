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
	client, err := policyClient(g.config())
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
	rate, err := g.budgetRate(ctx, c)
	if err != nil {
		return 0, "", err
	}
	slots := c.workload.Replicas - keep
	rounds := (c.workload.Replicas + slots - 1) / slots
	place := quantile(places, 0)
	byRounds := float64(rounds-1)*place + end
	byRate := float64(c.workload.Replicas)/rate + end
	how = fmt.Sprintf("%d rounds of %.3f s and %.2f s for the last: %.2f s; %d evictions at %.0f/s, the most under one budget: %.2f s",
		rounds, place, end, byRounds, c.workload.Replicas, rate, byRate)
	return max(byRounds, byRate), how, nil
}

// budgetRate is how many evictions in a second the API server accepts under one budget that allows all of them: each is a
// write of the budget, as is what the disruption controller has to say, and who writes second waits for half a second.
func (g *ground) budgetRate(ctx context.Context, c drainCase) (float64, error) {
	const each = 40
	if g.rate > 0 {
		return g.rate, nil
	}
	client, err := policyClient(g.config())
	if err != nil {
		return 0, err
	}
	inFlight := []int{1, 2, 4, 8, 32}
	free := drainCase{nodes: 1, pods: len(inFlight) * each, workload: c.workload}
	free.workload.Replicas, free.workload.MaxUnavailable = free.pods, "100%"
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
	for i, limit := range inFlight {
		started := time.Now()
		for _, o := range atOnce(pods[i*each:(i+1)*each], limit, func(pod string) error { return evict(ctx, client, "bench", pod) }) {
			if o.err != nil {
				return 0, o.err
			}
		}
		g.rate = max(g.rate, each/time.Since(started).Seconds())
	}
	return g.rate, g.cluster.RemoveNodes(ctx, free.nodeNames()...)
}
