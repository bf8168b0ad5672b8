package main

// A rollout over 1,000 clusters of one cell: what its functions call and cost, and how soon the next cluster starts.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

const (
	runClusters = 1000
	// countedClusters are the upgrades that are counted, after the first warmClusters. The rest of the run is not played.
	countedClusters, warmClusters = 100, 60
	// maxFreed bounds the time from a fact that frees a slot to the next converge, in seconds; maxFreedByTime if a time frees the slot.
	maxFreed, maxFreedByTime = 60, 360
	// slots of the rollout.
	slots = 50
)

// worldRollout starts by itself.
const worldRollout = `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: next}
spec:
  subject: {release: "1.37-1"}
  clusters: {}
  start: Auto
  stages:
    - {name: all, selector: {}, maxConcurrency: %d, maxFailures: 0, budget: Soft, settle: %s}
`

// measureFleetRun plays two rollouts: in one a member is Good 15 minutes after its upgrade, in the other at once.
func measureFleetRun(ctx context.Context, r *report) error {
	w, err := playRollout(ctx, runClusters, "15m")
	if err != nil {
		return err
	}
	total := w.total()
	var parts []string
	const scale = float64(runClusters) / countedClusters
	for _, function := range slices.Sorted(maps.Keys(w.spent)) {
		s := w.spent[function]
		parts = append(parts, fmt.Sprintf("%s %.0f calls, %.0f GB-s", function, s.invocations*scale, s.gigabyteSeconds*scale))
	}
	what := fmt.Sprintf("a rollout over %d clusters", runClusters)
	r.add(what+": reads of S3", total.reads*scale, "", nil, fmt.Sprintf("%d at once; counted for %d clusters", slots, countedClusters))
	r.add("— writes and listings of S3", total.writes*scale, "", nil, "")
	r.add("— other calls", total.others*scale, "", nil, "stacks, nodes, executions, starts of functions, notices")
	r.add("— Lambda", total.gigabyteSeconds*scale, "GB-s", nil, strings.Join(parts, "; "))
	r.add("— state transitions", 0, "", nil, "those of the upgrades are in the section upgrade")
	r.add("— list price", total.dollars()*scale, "$", nil, "without the upgrades; with logs and traces")
	freed := w.freed(15 * time.Minute)
	r.add("— from the end of settle to the next converge: p95", quantile(freed, 0.95), "s", atMost(maxFreedByTime),
		fmt.Sprintf("median %s s, slowest %s s, of %d", number(median(freed)), number(quantile(freed, 1)), len(freed)))
	if w, err = playRollout(ctx, runClusters, "0s"); err != nil {
		return err
	}
	freed = w.freed(0)
	r.add("— from an upgrade's end that frees a slot to the next converge: p95", quantile(freed, 0.95), "s", atMost(maxFreed),
		fmt.Sprintf("median %s s, slowest %s s, of %d", number(median(freed)), number(quantile(freed, 1)), len(freed)))
	return nil
}

// playRollout plays a rollout until the counted upgrades have ended.
func playRollout(ctx context.Context, size int, settle string) (*cellWorld, error) {
	w, err := newCellWorld(ctx, size)
	if err != nil {
		return nil, err
	}
	w.schedules()
	spec := fmt.Sprintf(worldRollout, slots, settle)
	if _, errs := api.ReadRollout("next.yaml", []byte(spec), api.Options{}); len(errs) > 0 {
		return nil, errs.Err()
	}
	w.specs.Upload(names.ReleaseSpec("1.37-1"), worldRelease("1.37-1", "1.37"))
	w.upload(names.Rollout("next"), spec)
	for _, ended := range []int{warmClusters, warmClusters + countedClusters} {
		clear(w.spent)
		if err := w.until(ctx, w.now.Add(7*24*time.Hour), func() bool { return len(w.ended) >= ended }); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// freed returns the seconds from each moment at which a slot became free to the start of the next member, in order. A slot is free when
// settle has passed since the end of an upgrade.
func (w *cellWorld) freed(settle time.Duration) (all []float64) {
	for i, begun := range w.begun[slots:] {
		all = append(all, begun.Sub(w.ended[i].Add(settle)).Seconds())
	}
	return all
}
