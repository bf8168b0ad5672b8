package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhenWhatBlocksIsTold(t *testing.T) {
	budget := func(pod, key string) Blocked { return Blocked{Pod: pod, Why: WhyBudget, Budgets: []string{key}} }
	failed := func(pod string) Blocked { return Blocked{Pod: pod, Why: WhyFailed + ": webhook said no to " + pod} }
	type look struct {
		at      time.Duration
		blocked []Blocked
		// went are the budgets under which a pod went just then.
		went []Key
	}
	every := func(from, to, step time.Duration, blocked []Blocked, went ...Key) (looks []look) {
		for at := from; at <= to; at += step {
			looks = append(looks, look{at, blocked, went})
		}
		return looks
	}
	const s = time.Second
	a, b := budget("shop/a", "shop/one"), budget("shop/b", "shop/two")
	for name, c := range map[string]struct {
		looks []look
		told  []time.Duration
	}{
		"nothing":                    {every(0, 50*s, s, nil), nil},
		"for a moment":               {[]look{{0, []Blocked{a}, nil}, {6 * s, nil, nil}}, nil},
		"for long":                   {[]look{{0, []Blocked{a}, nil}}, []time.Duration{7 * s}},
		"for long, and much happens": {every(0, 50*s, 10*time.Millisecond, []Blocked{a}), []time.Duration{7 * s}},
		"from later on":              {[]look{{0, nil, nil}, {20 * s, []Blocked{a}, nil}}, []time.Duration{27 * s}},
		"one more for the same reason": {
			[]look{{0, []Blocked{failed("shop/a")}, nil}, {20 * s, []Blocked{failed("shop/a"), failed("shop/b")}, nil}}, []time.Duration{7 * s},
		},
		"something else, but not at once": {
			[]look{{0, []Blocked{a}, nil}, {s, []Blocked{a, b}, nil}}, []time.Duration{7 * s, 22 * s},
		},
		"something else, much later": {
			[]look{{0, []Blocked{a}, nil}, {30 * s, []Blocked{a, b}, nil}}, []time.Duration{7 * s, 37 * s},
		},
		"in its turn, while others of its budget go": {every(0, 50*s, 5*s, []Blocked{a}, "shop/one"), nil},
		"while others of another budget go":          {every(0, 50*s, 5*s, []Blocked{a}, "shop/two"), []time.Duration{7 * s}},
		"in its turn, until none goes any more": {
			append(every(0, 20*s, 5*s, []Blocked{a}, "shop/one"), look{21 * s, []Blocked{a}, nil}), []time.Duration{27 * s},
		},
		"time and again, as it is asked for between that": {
			append(every(0, 9*s, 2*s, []Blocked{failed("shop/a")}), every(s, 9*s, 2*s, nil)...), []time.Duration{8 * s},
		},
		"again after a while": {
			[]look{{0, []Blocked{a}, nil}, {5 * s, nil, nil}, {22 * s, nil, nil}, {23 * s, []Blocked{a}, nil}}, []time.Duration{30 * s},
		},
		"some by turns": {
			append(every(0, 48*s, 8*s, []Blocked{a}), every(4*s, 48*s, 8*s, []Blocked{b})...), []time.Duration{8 * s, 23 * s},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w Waits
			var told []time.Duration
			var alarm time.Time
			at := map[time.Duration]look{}
			for _, l := range c.looks {
				at[l.at] = l
			}
			view := View{Tries: map[types.UID]Try{}}
			var last look
			for after := time.Duration(0); after <= 50*s; after += 10 * time.Millisecond {
				l, event := at[after]
				if event {
					last = l
				}
				if !event && (alarm.IsZero() || now.Add(after).Before(alarm)) {
					continue
				}
				for i, key := range l.went {
					view.Tries[types.UID(fmt.Sprint(after, i))] = Try{Budget: key, Accepted: now.Add(after)}
				}
				var due bool
				due, alarm = w.Due(now.Add(after), Decision{Blocked: last.blocked}, view)
				if due {
					told = append(told, after)
				}
			}
			require.Equal(t, c.told, told)
		})
	}
}
