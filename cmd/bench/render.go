package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// minPlans is the number of clusters with three pools that one core must plan in a second.
const minPlans = 2000

// measureRender runs the benchmarks of shared/render on one core, in turn, so that a drift of the machine's speed affects all of them.
func measureRender(ctx context.Context, s *settings, r *report) error {
	pkg := filepath.Join(s.root, "shared", "render")
	program := filepath.Join(s.build, "render.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".")
	build.Dir = pkg
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmarks: %w\n%s", err, out)
	}
	rates := map[string][]float64{}
	for range s.count {
		run := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=.", "-test.cpu=1")
		run.Dir = pkg
		out, err := run.CombinedOutput()
		if err != nil {
			return fmt.Errorf("running the benchmarks: %w\n%s", err, out)
		}
		for name, rate := range clustersPerSecond(string(out)) {
			rates[name] = append(rates[name], rate)
		}
	}
	const planned, read, rendered, floor = "BenchmarkPlanUnchanged", "BenchmarkPlanFiles", "BenchmarkRender", "BenchmarkPlainTemplates"
	for _, name := range []string{planned, read, rendered, floor} {
		if len(rates[name]) != s.count {
			return fmt.Errorf("shared/render has no %s that reports clusters/s", name)
		}
	}
	note := func(name string) string {
		var ratios []float64
		for i, rate := range rates[name] {
			ratios = append(ratios, rates[floor][i]/rate)
		}
		return fmt.Sprintf("takes %.2f times as long as plain text/template", median(ratios))
	}
	r.add("render and plan an unchanged cluster of 3 pools", median(rates[planned]), "clusters/s", atLeast(minPlans), note(planned))
	r.add("the same, reading and validating its files first", median(rates[read]), "clusters/s", nil, note(read))
	r.add("render it", median(rates[rendered]), "clusters/s", nil, note(rendered))
	r.add("floor: text/template executes the same templates", median(rates[floor]), "clusters/s", nil,
		"no encoding, no parameters, no checksums, nothing stored")
	return nil
}

// clustersPerSecond reads the rates that benchmarks print.
func clustersPerSecond(out string) map[string]float64 {
	rates := map[string]float64{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			if rate, err := strconv.ParseFloat(fields[i-1], 64); err == nil && fields[i] == "clusters/s" {
				rates[fields[0]] = rate
			}
		}
	}
	return rates
}
