package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// breaksAfter is how long a cluster with a bad version is well after its upgrade.
	breaksAfter = 5 * time.Minute
	// maxRollout is how long a rollout may take.
	maxRollout = 30 * 24 * time.Hour
	// reportPeriod is how often facts that did not change are reported: as the sweep makes drover do.
	reportPeriod = 5 * time.Minute
	// step is the time between two evaluations of a rollout.
	step = time.Minute
)

var epoch = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// cluster is one cluster of a trace. Both systems see the same clusters.
type cluster struct {
	name string
	// takes is how long its upgrade takes.
	takes time.Duration
	// started is when a system gave it the version; zero before that.
	started time.Time
}

// ready returns when the upgrade of a started cluster is complete.
func (c *cluster) ready() time.Time { return c.started.Add(c.takes) }

// broken reports whether the version has broken the cluster.
func (c *cluster) broken(bad bool, now time.Time) bool {
	return bad && !c.started.IsZero() && !now.Before(c.ready().Add(breaksAfter))
}

// trace returns the clusters of a seed. An upgrade takes 20 to 40 minutes.
func trace(seed uint64, size int) []*cluster {
	random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a trace that can be repeated
	all := make([]*cluster, size)
	for i := range all {
		all[i] = &cluster{name: fmt.Sprintf("shop-%04d", i), takes: 20*time.Minute + time.Duration(random.Int64N(int64(20*time.Minute)))}
	}
	return all
}

// system is a rollout of one version over all clusters of a trace.
type system interface {
	// Next returns the clusters that get the version now, and whether the rollout has ended or stopped.
	Next(now time.Time) (start []*cluster, done bool, err error)
}

// outcome is what a rollout did to the clusters of a trace.
type outcome struct {
	harmed int
	took   time.Duration
}

// play lets a system roll a version out until it ends or stops.
func play(s system, clusters []*cluster, bad bool) (o outcome, err error) {
	for now := epoch; now.Sub(epoch) < maxRollout; now = now.Add(step) {
		start, done, err := s.Next(now)
		if err != nil {
			return o, err
		}
		for _, c := range start {
			c.started = now
		}
		if !done {
			continue
		}
		o.took = now.Sub(epoch)
		for _, c := range clusters {
			if bad && !c.started.IsZero() {
				o.harmed++
			}
		}
		return o, nil
	}
	return o, fmt.Errorf("the rollout neither ended nor stopped within %s", maxRollout)
}
