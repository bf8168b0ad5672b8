package runner

import (
	"fmt"
	"slices"
	"time"
)

// Rate is the price of a resource.
type Rate struct {
	Name string
	// PerHour in US dollars.
	PerHour float64
	// WholeHours reports whether AWS bills each hour that began.
	WholeHours bool
}

// Meter estimates the cost of what runs.
type Meter struct{ runs []charge }

// charge is a rate that counts from a time on.
type charge struct {
	rate       Rate
	what       string
	from, to   time.Time
	terminated bool
}

// Start begins to count. what names the owner of the resource, for Stop.
func (m *Meter) Start(what string, at time.Time, rates ...Rate) {
	for _, rate := range rates {
		m.runs = append(m.runs, charge{rate: rate, what: what, from: at})
	}
}

// Stop ends what Start began for an owner.
func (m *Meter) Stop(what string, at time.Time) {
	for i := range m.runs {
		if run := &m.runs[i]; run.what == what && !run.terminated {
			run.to, run.terminated = at, true
		}
	}
}

// Total is the estimate in US dollars.
func (m *Meter) Total(now time.Time) (total float64) {
	for _, run := range m.runs {
		total += run.cost(now)
	}
	return total
}

func (r charge) cost(now time.Time) float64 {
	if r.terminated {
		now = r.to
	}
	hours := now.Sub(r.from).Hours()
	if r.rate.WholeHours {
		whole := now.Sub(r.from).Truncate(time.Hour)
		if whole < now.Sub(r.from) {
			whole += time.Hour
		}
		hours = whole.Hours()
	}
	return hours * r.rate.PerHour
}

// Parts are the estimate by resource, the largest first.
func (m *Meter) Parts(now time.Time) []string {
	sums := map[string]float64{}
	var names []string
	for _, run := range m.runs {
		if _, found := sums[run.rate.Name]; !found {
			names = append(names, run.rate.Name)
		}
		sums[run.rate.Name] += run.cost(now)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case sums[a] > sums[b]:
			return -1
		case sums[a] < sums[b]:
			return 1
		}
		return 0
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s $%.2f", name, sums[name]))
	}
	return parts
}
