package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestWaitsDue(t *testing.T) {
	budget := func(pod, key string) Blocked {
		return Blocked{Pod: pod, Why: Reason{Code: BudgetEmpty}, Budgets: []string{key}}
	}
	failed := func(pod string) Blocked { return Blocked{Pod: pod, Why: Reason{Failed, "webhook denied " + pod}} }
	type check struct {
		at      time.Duration
		blocked []Blocked
		// evicted are the budgets under which a pod was evicted just then.
		evicted []Key
	}
	every := func(from, to, step time.Duration, blocked []Blocked, evicted ...Key) (checks []check) {
		for at := from; at <= to; at += step {
			checks = append(checks, check{at, blocked, evicted})
		}
		return checks
	}
	const s = time.Second
	a, b := budget("shop/a", "shop/one"), budget("shop/b", "shop/two")
	for name, c := range map[string]struct {
		checks  []check
		reports []time.Duration
	}{
		"nothing":                    {every(0, 50*s, s, nil), nil},
		"for a moment":               {[]check{{0, []Blocked{a}, nil}, {6 * s, nil, nil}}, nil},
		"for long":                   {[]check{{0, []Blocked{a}, nil}}, []time.Duration{7 * s}},
		"for long, with many events": {every(0, 50*s, 10*time.Millisecond, []Blocked{a}), []time.Duration{7 * s}},
		"later":                      {[]check{{0, nil, nil}, {20 * s, []Blocked{a}, nil}}, []time.Duration{27 * s}},
		"another pod for the same reason": {
			[]check{{0, []Blocked{failed("shop/a")}, nil}, {20 * s, []Blocked{failed("shop/a"), failed("shop/b")}, nil}}, []time.Duration{7 * s},
		},
		"another cause soon after": {
			[]check{{0, []Blocked{a}, nil}, {s, []Blocked{a, b}, nil}}, []time.Duration{7 * s, 22 * s},
		},
		"another cause much later": {
			[]check{{0, []Blocked{a}, nil}, {30 * s, []Blocked{a, b}, nil}}, []time.Duration{7 * s, 37 * s},
		},
		"waiting while pods of its budget leave": {every(0, 50*s, 5*s, []Blocked{a}, "shop/one"), nil},
		"while pods of another budget leave":     {every(0, 50*s, 5*s, []Blocked{a}, "shop/two"), []time.Duration{7 * s}},
		"waiting until no pod of its budget leaves": {
			append(every(0, 20*s, 5*s, []Blocked{a}, "shop/one"), check{21 * s, []Blocked{a}, nil}), []time.Duration{27 * s},
		},
		"with gaps for eviction requests": {
			append(every(0, 9*s, 2*s, []Blocked{failed("shop/a")}), every(s, 9*s, 2*s, nil)...), []time.Duration{8 * s},
		},
		"again after a long gap": {
			[]check{{0, []Blocked{a}, nil}, {5 * s, nil, nil}, {22 * s, nil, nil}, {23 * s, []Blocked{a}, nil}}, []time.Duration{30 * s},
		},
		"again after the longest gap that counts as none": {
			[]check{{0, []Blocked{a}, nil}, {5 * s, nil, nil}, {20 * s, nil, nil}, {21 * s, []Blocked{a}, nil}}, []time.Duration{21 * s},
		},
		"two in turns": {
			append(every(0, 48*s, 8*s, []Blocked{a}), every(4*s, 48*s, 8*s, []Blocked{b})...), []time.Duration{8 * s, 23 * s},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w Waits
			var reports []time.Duration
			var alarm time.Time
			at := map[time.Duration]check{}
			for _, l := range c.checks {
				at[l.at] = l
			}
			view := View{Tries: map[types.UID]Try{}}
			var last check
			for after := time.Duration(0); after <= 50*s; after += 10 * time.Millisecond {
				l, event := at[after]
				if event {
					last = l
				}
				if !event && (alarm.IsZero() || now.Add(after).Before(alarm)) {
					continue
				}
				for i, key := range l.evicted {
					view.Tries[types.UID(fmt.Sprint(after, i))] = Try{Budget: key, Accepted: now.Add(after)}
				}
				var due bool
				due, alarm = w.Due(now.Add(after), Decision{Blocked: last.blocked}, view)
				if due {
					reports = append(reports, after)
				}
			}
			require.Equal(t, c.reports, reports)
		})
	}
}
