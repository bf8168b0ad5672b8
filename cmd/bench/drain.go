package main

// Drains of nodes on one real API server: drover's, kubectl's in several configurations, and a lower bound.

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes/workload"
)

const (
	// maxToKubectl and maxToBound apply to 240 pods on a node, maxSharedToKubectl to ten nodes under one budget.
	maxToKubectl, maxToBound, maxSharedToKubectl = 1.0 / 20, 1.3, 1.0 / 4
	// drainPatience bounds one trial, createPatience the creation of its pods.
	drainPatience, createPatience = 5 * time.Minute, time.Minute
)

// drainCase is a workload on nodes that are being drained.
type drainCase struct {
	name string
	// number of the case, which the names of its nodes contain.
	number int
	// nodes to drain, with this many pods each, all of one workload.
	nodes, pods int
	workload    workload.Workload
	tools       []tool
	// swift controllers replace pods at 500 calls a second, others within the default client limits of Kubernetes.
	swift bool
	// Limits of drover's median, relative to the sequential kubectl and to the bound. 0 is no limit.
	toKubectl, toBound float64
}

func drainCases() []drainCase {
	one := []tool{drover, throughRelay, kubectl, kubectlUnlimited}
	many := []tool{drover, kubectl, kubectlAtOnce, kubectlUnlimited}
	plain, alone := workload.Workload{Kind: workload.Deployment}, workload.Workload{Kind: workload.Pods}
	budget := func(maxUnavailable string) workload.Workload {
		return workload.Workload{Kind: workload.Deployment, MaxUnavailable: maxUnavailable}
	}
	slow := budget("20%")
	slow.ReadyAfter, slow.EndsAfter, slow.Grace = time.Second, 5*time.Second, 5*time.Second
	return []drainCase{
		{name: "30 pods", nodes: 1, pods: 30, workload: plain, tools: one},
		{name: "100 pods", nodes: 1, pods: 100, workload: plain, tools: one},
		{name: "240 pods", nodes: 1, pods: 240, workload: plain, tools: one, toKubectl: maxToKubectl, toBound: maxToBound},
		// Without replacements. Otherwise the API server and its controllers use most of the time on the same cores.
		{
			name: "240 pods that nothing replaces", nodes: 1, pods: 240, workload: alone, tools: one,
			toKubectl: maxToKubectl, toBound: maxToBound,
		},
		{name: "20 pods, 1 at a time", nodes: 1, pods: 20, workload: budget("1"), tools: one},
		{name: "50 pods, 10 % at a time", nodes: 1, pods: 50, workload: budget("10%"), tools: one},
		{name: "30 pods, 20 % at a time, Ready after 1 s, gone after 5 s", nodes: 1, pods: 30, workload: slow, tools: one},
		{
			name: "10 nodes with 30 pods, 10 % of all at a time", nodes: 10, pods: 30, workload: budget("10%"), tools: many,
			toKubectl: maxSharedToKubectl,
		},
		{name: "32 nodes with 10 pods", nodes: 32, pods: 10, workload: plain, tools: []tool{drover}},
		{name: "240 pods, controllers at 500 calls/s", nodes: 1, pods: 240, workload: plain, tools: one, swift: true},
	}
}

// trial is one drain of all nodes of a case.
type trial struct {
	took float64 // seconds
	// busy reports whether the machine was busy when the trial began.
	busy bool
	// failed nodes, and the error of the first of them.
	failed   int
	why      string
	requests int
	// answers to evictions, by status.
	answers map[int]int
	// least is the smallest number of healthy pods that the watcher saw.
	least int
	// nodes has the time of each node, in seconds.
	nodes []float64
}

// durations returns how long each trial took, in seconds.
func durations(trials []trial) []float64 {
	var all []float64
	for _, t := range trials {
		all = append(all, t.took)
	}
	return all
}

// measureDrain runs the cases.
func measureDrain(ctx context.Context, s *settings, r *report) error {
	// Other work in this process would affect the measurement, and no later section needs the account.
	s.account.Close()
	s.account = nil
	// broken counts by program: the name of a tool until its comma. So "kubectl" stands for all configurations of kubectl.
	broken, table, limited := map[string]int{}, drainTable, time.Duration(0)
	for _, swift := range []bool{false, true} {
		rows, waited, err := measureDrainsOn(ctx, s, r, swift, broken)
		if err != nil {
			return err
		}
		table += rows
		limited += waited
	}
	fmt.Fprintf(r.out, "\n%s\n", table)
	reportWatching(r)
	r.add("budgets broken by drover's drains", float64(broken[drover.name]), "", atMost(0),
		"seen by a separate watcher; by kubectl's drains: "+number(float64(broken["kubectl"])))
	r.add("time that drover's clients waited for their own limits", milliseconds(limited), "ms", atMost(0),
		"reported by client-go, in all drains of all cases")
	return nil
}

// measureDrainsOn runs the cases of one testbed. It returns their rows of the table, and the time that clients waited for their own limits.
func measureDrainsOn(ctx context.Context, s *settings, r *report, swift bool, broken map[string]int) (rows string, limited time.Duration,
	err error) {
	cases := slices.DeleteFunc(drainCases(), func(c drainCase) bool { return c.swift != swift || !s.drain.MatchString(c.name) })
	if len(cases) == 0 {
		return "", 0, nil
	}
	b, err := openTestbed(ctx, s, swift)
	if err != nil {
		return "", 0, err
	}
	defer b.Close()
	for _, c := range cases {
		c.tools = chosenTools(c.tools, s.tools)
		c.workload.Namespace, c.workload.Name, c.workload.Replicas = "bench", "web", c.nodes*c.pods
		started := time.Now()
		row, err := b.measure(ctx, s, r, c, broken)
		if err != nil {
			return "", 0, fmt.Errorf("%s: %w", c.name, err)
		}
		rows += row
		fmt.Fprintf(r.out, "  measured in %.0f s: %s", time.Since(started).Seconds(), row)
	}
	return rows, b.limiterWait(), nil
}

// chosenTools returns drover and the tools whose names match.
func chosenTools(all []tool, names *regexp.Regexp) (chosen []tool) {
	for _, who := range all {
		if who.name == drover.name || names.MatchString(who.name) {
			chosen = append(chosen, who)
		}
	}
	return chosen
}

// measure measures a case: all tools in turn, starting with another one in each trial. It returns the case's row of the table.
func (b *testbed) measure(ctx context.Context, s *settings, r *report, c drainCase, broken map[string]int) (row string, err error) {
	if err := b.prepare(ctx, &c); err != nil {
		return "", err
	}
	keep, err := c.workload.MustKeep()
	if err != nil {
		return "", err
	}
	tools := c.tools
	if keep == 0 {
		tools = append(slices.Clone(tools), bare)
	}
	trials, spent := map[string][]trial{}, map[string]time.Duration{}
	for i := range s.count {
		for j := range tools {
			who := tools[(i+j)%len(tools)]
			if who.slow && s.patience > 0 && spent[who.name] > s.patience {
				continue
			}
			t, err := b.try(ctx, c, who)
			if err != nil {
				return "", fmt.Errorf("%s: %w", who.name, err)
			}
			trials[who.name] = append(trials[who.name], t)
			spent[who.name] += time.Duration(t.took * float64(time.Second))
			if t.least < keep {
				name, _, _ := strings.Cut(who.name, ",")
				broken[name]++
			}
		}
	}
	var bound float64
	var how string
	if keep > 0 {
		if bound, how, err = b.budgetBound(ctx, c, keep); err != nil {
			return "", err
		}
	} else {
		bound, how = median(durations(trials[bare.name])), "all evictions at once by a program that knows the pods, until no pod is left"
	}
	c.report(r, trials, keep, bound, how)
	return c.row(trials, bound), b.clear(ctx, c)
}

// report adds the figures of a case.
func (c drainCase) report(r *report, trials map[string][]trial, keep int, bound float64, how string) {
	serial := 0.0
	if all := trials[kubectl.name]; all != nil {
		serial = median(durations(all))
	}
	for _, who := range c.tools {
		all := trials[who.name]
		notes := []string{fmt.Sprintf("%.2f–%.2f in %d trials", quantile(durations(all), 0), quantile(durations(all), 1), len(all))}
		m := median(durations(all))
		if who.name != kubectl.name && serial > 0 {
			notes = append(notes, fmt.Sprintf("%.3f of kubectl's", m/serial))
		}
		notes = append(notes, fmt.Sprintf("%.2f × the bound", m/bound))
		var requests, nodes []float64
		failed, busy, why, least, statuses := 0, 0, "", all[0].least, map[int]int{}
		for _, t := range all {
			if t.busy {
				busy++
			}
			requests = append(requests, float64(t.requests))
			least = min(least, t.least)
			failed += t.failed
			nodes = append(nodes, t.nodes...)
			if why == "" {
				why = t.why
			}
			for status, n := range t.answers {
				statuses[status] += n
			}
		}
		notes = append(notes, number(median(requests))+" requests"+refusalsPerTrial(statuses, len(all)))
		if c.nodes > 1 && who.name == drover.name {
			notes = append(notes, fmt.Sprintf("a node %.2f–%.2f s", quantile(nodes, 0), quantile(nodes, 1)))
		}
		if keep > 0 {
			notes = append(notes, fmt.Sprintf("least healthy %d, budget %d of %d", least, keep, c.workload.Replicas))
		}
		if busy > 0 {
			notes = append(notes, fmt.Sprintf("%d began while the machine was busy with something else", busy))
		}
		if failed > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d drains of nodes failed: %s", failed, c.nodes*len(all), why))
		}
		r.add(c.name+": "+who.name, m, "s", nil, strings.Join(notes, "; "))
		if who.name == drover.name {
			r.add("— failed drains", float64(failed), "", atMost(0), "")
		}
	}
	r.add("— the bound", bound, "s", nil, how)
	mine := median(durations(trials[drover.name]))
	if all := trials[throughRelay.name]; len(all) > 0 {
		limit := atMost(maxRelayedToDirect)
		if c.toBound == 0 {
			limit = nil
		}
		r.add("— through the relay to direct", median(durations(all))/mine, "", limit, "")
	}
	if c.toKubectl > 0 && serial > 0 {
		r.add("— drover's to kubectl's", mine/serial, "", atMost(c.toKubectl), "")
	}
	if c.toBound > 0 {
		r.add("— drover's to the bound", mine/bound, "", atMost(c.toBound), "")
	}
}

// drainTable is the header of the table in docs/performance.md. Each case has a row.
const drainTable = `| Drains, medians | drover | — through the relay | kubectl drain | — 10 at once | — without client limit | The bound |
|---|---|---|---|---|---|---|
`

// row of the table: seconds, requests and failed drains of the tools that tried the case.
func (c drainCase) row(trials map[string][]trial, bound float64) string {
	cells := []string{c.name}
	for _, who := range []tool{drover, throughRelay, kubectl, kubectlAtOnce, kubectlUnlimited} {
		all, cell := trials[who.name], ""
		if len(all) > 0 {
			failed, requests := 0, make([]float64, len(all))
			for i, t := range all {
				failed += t.failed
				requests[i] = float64(t.requests)
			}
			cell = fmt.Sprintf("%s s, %s requests", number(median(durations(all))), number(median(requests)))
			if failed > 0 {
				cell += fmt.Sprintf(", %d of %d failed", failed, c.nodes*len(all))
			}
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(append(cells, number(bound)+" s"), " | ") + " |\n"
}

// refusalsPerTrial returns the average number of refused evictions in a trial, by status.
func refusalsPerTrial(statuses map[int]int, trials int) string {
	var all []string
	for _, status := range slices.Sorted(func(yield func(int) bool) {
		for status := range statuses {
			if status >= 300 && !yield(status) {
				return
			}
		}
	}) {
		all = append(all, fmt.Sprintf("%s × %d", number(float64(statuses[status])/float64(trials)), status))
	}
	if all == nil {
		return ""
	}
	return " (evictions refused: " + strings.Join(all, ", ") + ")"
}
