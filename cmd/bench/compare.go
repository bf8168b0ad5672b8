package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// rolloutLimits are the limits of drover's rollouts, by experiment and system. Those of Open Cluster Management have no limit.
var rolloutLimits = map[string]struct{ harmed, hours *limit }{
	"defaults: drover":          {harmed: atMost(1)},
	"2 of 50: drover, Strict":   {harmed: atMost(3)},
	"2 of 50: drover, Soft":     {harmed: atMost(52)},
	"healthy: drover, Soft":     {hours: atMost(16.5)}, // 1.1 times ⌈1,000/50⌉ times 30 minutes of upgrade and 15 of settle
	"healthy: drover, Strict":   {},
	"defaults: OCM":             {},
	"2 of 50: OCM":              {},
	"2 of 50: OCM, success 15m": {},
	"healthy: OCM, success 15m": {},
}

// measureComparison plays the same traces of clusters to drover's rollouts and to those of Open Cluster Management.
func measureComparison(ctx context.Context, s *settings, r *report) error {
	play := exec.CommandContext(ctx, "go", "run", ".")
	play.Dir, play.Stderr = filepath.Join(s.root, "cmd", "bench", "ocm"), os.Stderr
	out, err := play.Output()
	if err != nil {
		return fmt.Errorf("playing the traces: %w", err)
	}
	var played int
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); played++ {
		var f struct {
			Experiment, System      string
			Seeds                   int
			HarmedMedian, HarmedMax int
			HoursMedian             float64
		}
		if err := decoder.Decode(&f); err != nil {
			return err
		}
		name := f.Experiment + ": " + f.System
		limits, found := rolloutLimits[name]
		if !found {
			return fmt.Errorf("no limit is known for %q", name)
		}
		r.add(name+": clusters harmed", float64(f.HarmedMax), "", limits.harmed,
			fmt.Sprintf("the most of %d traces; median %d", f.Seeds, f.HarmedMedian))
		r.add(name+": until it ended or stopped", f.HoursMedian, "h", limits.hours, "median")
	}
	if played != len(rolloutLimits) {
		return fmt.Errorf("%d of %d experiments were played", played, len(rolloutLimits))
	}
	return nil
}
