package main

// The lower bound of a drain under a disruption budget.

import (
	"context"
	"fmt"
	"time"
)

// budgetBound measures three times on the API server of the tools, and returns the longest:
//   - the rounds of evictions, given the time for which a single eviction occupies the budget,
//   - all evictions at the rate that the API server accepts without a budget,
//   - the creation of the pods that must be replaced before the last eviction.
func (b *testbed) budgetBound(ctx context.Context, c drainCase, keep int) (seconds float64, how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := b.reset(ctx, c); err != nil {
		return 0, "", err
	}
	made := b.made.Seconds()
	if err := b.cluster.Reset(ctx, false, c.nodeNames()...); err != nil {
		return 0, "", err
	}
	client, err := policyClient(b.config())
	if err != nil {
		return 0, "", err
	}
	// As before each trial: creating the pods used up the burst of the controllers' clients.
	if _, err := waitForQuiet(ctx); err != nil {
		return 0, "", err
	}
	var places []float64
	end := 0.0
	for i, pod := range b.watcher.On("bench", c.nodeNames()[0])[:min(5, c.pods)] {
		left, started := b.podsLeft(c.nodeNames()), time.Now()
		if err := evict(ctx, client, "bench", pod); err != nil {
			return 0, "", err
		}
		if err := b.cluster.Budgeted(ctx, c.workload); err != nil {
			return 0, "", err
		}
		places = append(places, time.Since(started).Seconds())
		if i > 0 {
			continue
		}
		if err := b.watcher.Wait(ctx, "the pod to end", func() bool { return b.podsLeft(c.nodeNames()) < left }); err != nil {
			return 0, "", err
		}
		end = time.Since(started).Seconds()
	}
	rate, err := b.evictionRate(ctx, c)
	if err != nil {
		return 0, "", err
	}
	slots := c.workload.Replicas - keep
	rounds := (c.workload.Replicas + slots - 1) / slots
	place := quantile(places, 0)
	byRounds := float64(rounds-1)*place + end
	byRate := float64(c.workload.Replicas)/rate + end
	byMaking := made*float64(keep)/float64(c.workload.Replicas) + end
	how = fmt.Sprintf("%d rounds of %.3f s and %.2f s for the last: %.2f s; %d evictions at %.0f/s, the rate without a budget: %.2f s; "+
		"%d replaced, and creating all took %.2f s: %.2f s", rounds, place, end, byRounds, c.workload.Replicas, rate, byRate,
		keep, made, byMaking)
	return max(byRounds, byRate, byMaking), how, nil
}

// evictionRate returns the evictions a second that the API server accepts without a budget.
func (b *testbed) evictionRate(ctx context.Context, c drainCase) (float64, error) {
	if b.rate > 0 {
		return b.rate, nil
	}
	client, err := policyClient(b.config())
	if err != nil {
		return 0, err
	}
	free := drainCase{nodes: 1, pods: 200, workload: c.workload}
	free.workload.Replicas, free.workload.MaxUnavailable = free.pods, ""
	free.workload.ReadyAfter, free.workload.EndsAfter = 0, 0
	if err := b.clear(ctx, c); err != nil {
		return 0, err
	}
	if err := b.prepare(ctx, &free); err != nil {
		return 0, err
	}
	if err := b.reset(ctx, free); err != nil {
		return 0, err
	}
	if err := b.cluster.Reset(ctx, false, free.nodeNames()...); err != nil {
		return 0, err
	}
	pods := b.watcher.On("bench", free.nodeNames()[0])
	started := time.Now()
	for _, o := range atOnce(pods, bareAtOnce, func(pod string) error { return evict(ctx, client, "bench", pod) }) {
		if o.err != nil {
			return 0, o.err
		}
	}
	b.rate = float64(len(pods)) / time.Since(started).Seconds()
	return b.rate, b.cluster.RemoveNodes(ctx, free.nodeNames()...)
}
