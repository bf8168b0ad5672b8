// Command ocm compares drover's rollouts with those of Open Cluster Management: https://open-cluster-management.io. It plays the same
// traces of clusters to drover's tick and to that project's RolloutHandler, and prints one JSON line for each experiment and system.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

func main() {
	seeds := flag.Int("seeds", 1000, "the number of traces of each experiment")
	flag.Parse()
	for _, e := range experiments {
		count := *seeds
		if !e.bad {
			count = max(1, count/100) // only the hours depend on chance, and they hardly differ
		}
		if err := e.run(count, json.NewEncoder(os.Stdout)); err != nil {
			fmt.Fprintf(os.Stderr, "ocm: %s: %v\n", e.Name, err)
			os.Exit(1)
		}
	}
}

// experiment is a rollout of one system over the same traces.
type experiment struct {
	Name, System string
	size         int
	// bad reports whether the version breaks each cluster.
	bad bool
	new func(clusters []*cluster, bad bool) (system, error)
}

// figures of an experiment over all seeds.
type figures struct {
	Experiment, System             string
	Seeds, HarmedMedian, HarmedMax int
	HoursMedian                    float64
}

func drover(settings string) func([]*cluster, bool) (system, error) {
	return func(clusters []*cluster, bad bool) (system, error) { return newDrover(clusters, bad, settings) }
}

func others(strategy clusterv1alpha1.RolloutStrategy) func([]*cluster, bool) (system, error) {
	return func(clusters []*cluster, bad bool) (system, error) { return newOCM(clusters, bad, strategy) }
}

// experiments of the fleet:
//
//   - defaults: a version breaks each of 500 clusters five minutes after its upgrade. Each system has its own defaults.
//   - 2 of 50: the same, with at most 2 failures and 50 clusters at once.
//   - healthy: 1,000 clusters and a good version, with the same budget.
var experiments = []experiment{
	{Name: "defaults", System: "drover", size: 500, bad: true, new: drover("")},
	{Name: "defaults", System: "OCM", size: 500, bad: true, new: others(clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{},
	})},
	{Name: "2 of 50", System: "drover, Strict", size: 500, bad: true, new: drover(", maxFailures: 2, maxConcurrency: 50")},
	{Name: "2 of 50", System: "drover, Soft", size: 500, bad: true, new: drover(", maxFailures: 2, maxConcurrency: 50, budget: Soft")},
	{Name: "2 of 50", System: "OCM", size: 500, bad: true, new: others(progressive(50, 2, 0))},
	{Name: "2 of 50", System: "OCM, success 15m", size: 500, bad: true, new: others(progressive(50, 2, 15*time.Minute))},
	{Name: "healthy", System: "drover, Strict", size: 1000, new: drover(", maxFailures: 2, maxConcurrency: 50, soak: 0s")},
	{Name: "healthy", System: "drover, Soft", size: 1000, new: drover(", maxFailures: 2, maxConcurrency: 50, budget: Soft, soak: 0s")},
	{Name: "healthy", System: "OCM, success 15m", size: 1000, new: others(progressive(50, 2, 15*time.Minute))},
}

func (e *experiment) run(seeds int, out *json.Encoder) error {
	var harmed []int
	var hours []float64
	for seed := range seeds {
		clusters := trace(uint64(seed), e.size) // #nosec G115 -- not negative
		s, err := e.new(clusters, e.bad)
		if err != nil {
			return err
		}
		o, err := play(s, clusters, e.bad)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		harmed, hours = append(harmed, o.harmed), append(hours, o.took.Hours())
	}
	slices.Sort(harmed)
	slices.Sort(hours)
	return out.Encode(figures{e.Name, e.System, seeds, harmed[seeds/2], harmed[seeds-1], hours[seeds/2]})
}
