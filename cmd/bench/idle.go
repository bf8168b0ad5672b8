package main

// The cost of an idle deployment: the resources of the synthesized template, and the sweeps and audits.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
)

// standing is the monthly price of a resource in us-east-1, without free tiers. Other types cost nothing while they
// are not used: functions, machines, roles, rules, schedule groups, topics, buses, queues, and empty buckets and log
// groups. https://aws.amazon.com/cloudwatch/pricing/, https://aws.amazon.com/kms/pricing/
var standing = map[string]float64{
	"AWS::CloudWatch::Alarm":     0.10, // of one metric, at standard resolution
	"AWS::CloudWatch::Dashboard": 3.00,
	"AWS::KMS::Key":              1.00, // and as much again for each of the first two years' rotations
}

const (
	// logsPrice is for an ingested gigabyte, tracePrice for a trace: https://aws.amazon.com/xray/pricing/
	logsPrice, tracePrice = 0.50, 5.00 / 1e6
	// logSize is the assumed size of the logs of a call that finds no work, in gigabytes: three lines of Lambda's.
	logSize = 1000. / 1e9
)

// idleSizes are the numbers of clusters of the priced deployments.
var idleSizes = []int{0, 100}

// alarmsBefore is the number of alarms before rollouts. maxFleetIdle is what rollouts may add, in dollars a month.
const alarmsBefore, maxFleetIdle = 39, 0.10

// measureIdleFleet prices what rollouts add to a month without changes: calls of functions, with their logs and traces, and alarms. own is
// the part of the functions fleet and rollout, by number of clusters.
func measureIdleFleet(ctx context.Context, r *report, alarms int) (own map[int]float64, err error) {
	const days = 2
	own = map[int]float64{}
	for _, size := range idleSizes {
		w, err := newCellWorld(ctx, size)
		if err != nil {
			return nil, err
		}
		clear(w.spent)
		w.schedules()
		if err := w.until(ctx, w.now.Add(days*24*time.Hour), nil); err != nil {
			return nil, err
		}
		const months = days * 24. / monthHours
		var parts []string
		for _, function := range slices.Sorted(maps.Keys(w.spent)) {
			s := w.spent[function]
			parts = append(parts, fmt.Sprintf("%s %.0f calls, $%.3f", function, s.invocations/months, s.dollars()/months))
		}
		scheduled := monthHours * time.Hour.Seconds() / backoff.RolloutPlanPeriod.Seconds() * schedulePrice
		total := w.total()
		own[size] = (total.dollars()-w.spent["sweep"].dollars())/months + scheduled
		r.add(fmt.Sprintf("idle deployment with %d clusters: of these, for rollouts", size),
			total.dollars()/months+scheduled+float64(alarms-alarmsBefore)*standing["AWS::CloudWatch::Alarm"], "$/month", atMost(maxFleetIdle),
			fmt.Sprintf("%s; %d more alarms than before rollouts", strings.Join(parts, "; "), alarms-alarmsBefore))
	}
	return own, nil
}

// measureIdle prices a month without changes. sweeps is the price of the sweeps and audits by number of clusters, calls their number.
func measureIdle(ctx context.Context, s *settings, r *report, sweeps map[int]float64, calls float64) error {
	// The base stack has nothing that costs money while it is not used.
	path := filepath.Join(s.build, "cdk.out", names.CellStack+".template.json")
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s does not exist; run make local first", path)
	}
	if err != nil {
		return err
	}
	fixed, what, alarms, err := priceStanding(body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rollouts, err := measureIdleFleet(ctx, r, alarms)
	if err != nil {
		return err
	}
	observed := calls * (logSize*logsPrice + tracePrice)
	for _, size := range idleSizes {
		r.add(fmt.Sprintf("idle deployment with %d clusters", size), fixed+observed+sweeps[size]+rollouts[size], "$/month", nil,
			fmt.Sprintf("$%.2f %s; $%.2f sweeps and audits; $%.2f their logs and traces; $%.2f the functions fleet and rollout", fixed, what,
				sweeps[size], observed, rollouts[size]))
	}
	return nil
}

// priceStanding prices the resources of a template that cost money while they are not used, and lists them.
func priceStanding(template []byte) (dollars float64, what string, alarms int, err error) {
	var t struct {
		Resources map[string]struct{ Type string }
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return 0, "", 0, err
	}
	counts := map[string]int{}
	for _, resource := range t.Resources {
		if price, costs := standing[resource.Type]; costs {
			counts[resource.Type]++
			dollars += price
		}
	}
	var words []string
	for kind, n := range counts {
		words = append(words, fmt.Sprintf("%d %s", n, kind[strings.LastIndex(kind, ":")+1:]))
	}
	slices.Sort(words)
	return dollars, strings.Join(words, ", "), counts["AWS::CloudWatch::Alarm"], nil
}
