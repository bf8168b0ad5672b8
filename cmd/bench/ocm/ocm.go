package main

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ocm "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	placement "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
)

// ocmRun is a rollout of Open Cluster Management's own RolloutHandler.
type ocmRun struct {
	handler  *ocm.RolloutHandler[struct{}]
	strategy clusterv1alpha1.RolloutStrategy
	clusters []*cluster
	byName   map[string]*cluster
	bad      bool
	clock    *clocktesting.FakeClock
	// called is when the handler was called last, with the statuses of counts.
	called time.Time
	counts map[ocm.RolloutStatus]int
}

// progressive is a strategy whose other fields have their defaults.
func progressive(maxConcurrency, maxFailures int32, minSuccessTime time.Duration) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
		RolloutConfig: clusterv1alpha1.RolloutConfig{
			MinSuccessTime: metav1.Duration{Duration: minSuccessTime}, MaxFailures: intstr.FromInt32(maxFailures),
		},
		MaxConcurrency: intstr.FromInt32(maxConcurrency),
	}}
}

// newOCM uses a clock of the trace for all rollouts of Open Cluster Management, so only one of them can run at a time.
func newOCM(clusters []*cluster, bad bool, strategy clusterv1alpha1.RolloutStrategy) (*ocmRun, error) {
	o := &ocmRun{strategy: strategy, clusters: clusters, byName: map[string]*cluster{}, bad: bad, clock: clocktesting.NewFakeClock(epoch)}
	names := sets.New[string]()
	for _, c := range clusters {
		names.Insert(c.name)
		o.byName[c.name] = c
	}
	ocm.RolloutClock = o.clock
	var err error
	o.handler, err = ocm.NewRolloutHandler[struct{}](placement.NewPlacementDecisionClustersTracker(nil, nil, names), nil)
	return o, err
}

// Next calls the handler with the true status of each cluster that has the version, as often as drover ticks. Without a deadline, which is
// the default, a failed cluster stays failed. So the rollout has stopped once no status can change.
func (o *ocmRun) Next(now time.Time) (start []*cluster, done bool, err error) {
	o.clock.SetTime(now)
	var statuses []ocm.ClusterRolloutStatus
	open := false // whether a status can still change by itself
	for _, c := range o.clusters {
		if c.started.IsZero() {
			continue
		}
		open = open || !c.broken(o.bad, now) && (o.bad || now.Before(c.ready().Add(o.strategy.Progressive.MinSuccessTime.Duration)))
		status, since := ocm.Progressing, c.started
		switch {
		case c.broken(o.bad, now):
			status, since = ocm.Failed, c.ready().Add(breaksAfter)
		case !now.Before(c.ready()):
			status, since = ocm.Succeeded, c.ready()
		}
		statuses = append(statuses, ocm.ClusterRolloutStatus{ClusterName: c.name, Status: status, LastTransitionTime: &metav1.Time{Time: since}})
	}
	counts := map[ocm.RolloutStatus]int{}
	for _, s := range statuses {
		counts[s.Status]++
	}
	if maps.Equal(counts, o.counts) && now.Sub(o.called) < reportPeriod {
		return nil, false, nil
	}
	o.called, o.counts = now, counts
	_, result, err := o.handler.GetRolloutCluster(o.strategy, statuses)
	if err != nil {
		return nil, false, err
	}
	for _, r := range result.ClustersToRollout {
		if r.Status == ocm.ToApply {
			start = append(start, o.byName[r.ClusterName])
		}
	}
	return start, len(start) == 0 && !open, nil
}
