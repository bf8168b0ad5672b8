package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// maxRun limits the time of make run after the build, in seconds.
const maxRun = 60

// stages of the demo. Each has the prefix of the line that ends it.
var stages = []struct{ name, end string }{
	{"deploy drover", "deployed drover"},
	{"network", "stack " + demo + " " + names.Network + " CREATE_COMPLETE"},
	{"control plane", "stack " + demo + " " + names.ControlPlane + " CREATE_COMPLETE"},
	{"add-ons", "stack " + demo + " " + names.Addons + " CREATE_COMPLETE"},
	{"pools", "stack " + demo + " " + names.PoolPrefix},
	{"add-ons on nodes", "stack " + demo + " " + names.NodeAddons + " CREATE_COMPLETE"},
	{"last plan and report", "status"},
}

// measureRun measures the time of the command that make run starts.
func measureRun(ctx context.Context, s *settings, r *report) error {
	var took []float64
	parts := map[string][]float64{}
	for range (s.count + 1) / 2 {
		run := exec.CommandContext(ctx, filepath.Join(s.build, "drover"), "local", "--demo", demoSpec, "--release", demoRelease, "--once")
		run.Dir = s.root
		started := time.Now()
		out, err := run.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		took = append(took, time.Since(started).Seconds())
		ends, err := stageEnds(string(out))
		if err != nil {
			return fmt.Errorf("%w in:\n%s", err, out)
		}
		before := 0.0
		for i, stage := range stages {
			parts[stage.name] = append(parts[stage.name], ends[i]-before)
			before = ends[i]
		}
		parts["list the nodes and stop"] = append(parts["list the nodes and stop"], took[len(took)-1]-before)
	}
	r.add("make run, once built", median(took), "s", atMost(maxRun),
		fmt.Sprintf("median of %d; slowest %.1f s; simulated work runs %d times faster than on AWS", len(took), quantile(took, 1), speed))
	for _, stage := range stages {
		r.add("— "+stage.name, median(parts[stage.name]), "s", nil, "")
	}
	r.add("— list the nodes and stop", median(parts["list the nodes and stop"]), "s", nil, "")
	return nil
}

// progressLine is a line of drover local: seconds since the start, and the event.
var progressLine = regexp.MustCompile(`(?m)^ *(\d+\.\d)s +(.*)$`)

// stageEnds returns the time of each stage's last line, in seconds since the start.
func stageEnds(out string) ([]float64, error) {
	ends := make([]float64, len(stages))
	for _, match := range progressLine.FindAllStringSubmatch(out, -1) {
		words := strings.Join(strings.Fields(match[2]), " ")
		for i, stage := range stages {
			if strings.HasPrefix(words, stage.end) {
				ends[i], _ = strconv.ParseFloat(match[1], 64) // digits
			}
		}
	}
	for i, end := range ends {
		if end == 0 {
			return nil, errors.New("no line says " + stages[i].end)
		}
	}
	return ends, nil
}
