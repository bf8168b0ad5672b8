package main

// An upgrade by one minor version with 2 pools of 10 nodes: its cost, and its time compared with the unavoidable part.

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxUpgrade limits the state transitions of the upgrade machine.
	maxUpgrade = 25
	// maxUpgradeToMinimum limits the total time.
	maxUpgradeToMinimum = 1.15
	upgradeTest         = "TestUpgradeCosts"
	// Upper bounds of a function: seconds of computing in an invocation, with cold starts, and gigabytes of memory.
	mostCompute, mostMemory = 0.2, 0.5
	// https://aws.amazon.com/eventbridge/pricing/, custom events.
	eventPrice = 1.0 / 1e6
)

// measureUpgrade runs the test of such an upgrade with the real functions and machines in virtual time, where every wait is as long as on
// AWS. The test logs the unavoidable time.
func measureUpgrade(ctx context.Context, s *settings, r *report) error {
	run := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^"+upgradeTest+"$", ".")
	run.Dir = filepath.Join(s.root, "local", "testkit", "worlds", "upgrade")
	out, err := run.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s: %w\n%s", upgradeTest, err, out)
	}
	found := figures(string(out))
	transitions := map[string]int{}
	for name, value := range found {
		if machine, ok := strings.CutPrefix(name, "transitions/"); ok {
			transitions[machine] = int(value)
		}
	}
	if found["nodes"] != 20 || found["minimum"] == 0 || transitions["upgrade"] == 0 {
		return fmt.Errorf("%s logged no measurements:\n%s", upgradeTest, out)
	}
	r.add("state transitions of drover-upgrade", float64(transitions["upgrade"]), "", atMost(maxUpgrade),
		"2 pools of 10 nodes, by one minor version")
	delete(transitions, "upgrade")
	r.add("— of the executions that it starts", float64(sum(transitions)), "", nil, counts(transitions))
	r.add("— list price of all of them", (found["transitions/upgrade"]+float64(sum(transitions)))*transitionPrice, "$", nil,
		"state transitions alone")
	lambda := found["invocations"]*invocationPrice + (found["invocations"]*mostCompute+found["waited"])*mostMemory*gigabyteSecondPrice
	requests := requestCost(string(out))
	r.add("— with functions, objects and notices", (found["transitions/upgrade"]+float64(sum(transitions)))*transitionPrice+lambda+requests,
		"$", nil, fmt.Sprintf(
			"at most: %.0f invocations that compute for %.1f s and wait for %.0f s in all, at %.1f GB: $%.4f; S3, SNS and EventBridge $%.4f",
			found["invocations"], mostCompute, found["waited"], mostMemory, lambda, requests))
	took := time.Duration(found["seconds"]) * time.Second
	r.add("time", took.Minutes(), "min", nil, "with the times of EKS and EC2 on AWS")
	r.add("— relative to the minimum", found["seconds"]/found["minimum"], "", atMost(maxUpgradeToMinimum), fmt.Sprintf(
		"%s: the update of the control plane, and ten boots one after the other", time.Duration(found["minimum"])*time.Second))
	return nil
}

// requestCost returns the price of the calls that the test lists.
func requestCost(out string) float64 {
	cost := 0.0
	for line := range strings.Lines(out) {
		_, action, ok := strings.Cut(strings.TrimSpace(line), " called ")
		switch {
		case !ok || strings.HasPrefix(action, "Delete"):
		case action == "Publish":
			cost += publishPrice
		case action == "PutEvents":
			cost += eventPrice
		case strings.HasPrefix(action, "Put") || strings.HasPrefix(action, "List"):
			cost += s3WritePrice
		default:
			cost += s3ReadPrice
		}
	}
	return cost
}

// figures reads the figures that the test logs: the word "figure", a name and a value in a line.
func figures(out string) map[string]float64 {
	found := map[string]float64{}
	for line := range strings.Lines(out) {
		_, text, ok := strings.Cut(line, " figure ")
		if fields := strings.Fields(text); ok && len(fields) == 2 {
			if value, err := strconv.ParseFloat(fields[1], 64); err == nil {
				found[fields[0]] = value
			}
		}
	}
	return found
}
