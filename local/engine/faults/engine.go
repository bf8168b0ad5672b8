package faults

// The engine: rules that stand, and what they do at each moment.

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Engine decides. It may be used by many at once.
type Engine struct {
	mu    sync.Mutex
	seed  uint64
	last  int // id of the newest rule
	rules []*standing
	total map[Kind]int
}

// standing is a rule that was added.
type standing struct {
	Rule
	id              int
	added           time.Time
	matched, struck int
	lastStruck      time.Time
	// seen is how often each kind of moment was matched: the n-th of its kind has the same chance whatever others do.
	seen map[Moment]int
}

// Standing is a rule as List shows it.
type Standing struct {
	ID int `json:"id"`
	// Rule as Parse reads it.
	Rule string `json:"rule"`
	// Matched is how many moments it was about while it held, Struck at how many of them it struck.
	Matched int `json:"matched"`
	Struck  int `json:"struck"`
	// Over is true when it will never strike again.
	Over bool `json:"over"`
}

// New makes an engine without rules: nothing goes wrong.
func New(seed uint64) *Engine { return &Engine{seed: seed, total: map[Kind]int{}} }

// Seed of the engine.
func (e *Engine) Seed() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seed
}

// Reset removes all rules and begins anew with a seed: what follows is what follows New(seed).
func (e *Engine) Reset(seed uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seed, e.last, e.rules, e.total = seed, 0, nil, map[Kind]int{}
}

// Add adds a rule and returns its id, which counts from 1 and says which chances it has.
func (e *Engine) Add(now time.Time, r Rule) (id int, err error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.rules = append(e.rules, &standing{Rule: r, id: e.last, added: now, seen: map[Moment]int{}})
	return e.last, nil
}

// Remove removes a rule; false when there is none of that id.
func (e *Engine) Remove(id int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.rules)
	e.rules = slices.DeleteFunc(e.rules, func(s *standing) bool { return s.id == id })
	return len(e.rules) < before
}

// Clear removes all rules: faults stop.
func (e *Engine) Clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules = nil
}

// List are the rules, oldest first.
func (e *Engine) List(now time.Time) []Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := []Standing{}
	for _, s := range e.rules {
		all = append(all, Standing{ID: s.id, Rule: s.String(), Matched: s.matched, Struck: s.struck, Over: s.over(now)})
	}
	return all
}

// Struck is how often each kind of fault struck, those of removed rules included.
func (e *Engine) Struck() map[Kind]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.total)
}

// Decide says what goes wrong at a moment: what the first rule says that strikes; latencies of calls come on top.
func (e *Engine) Decide(now time.Time, m Moment) Strike {
	e.mu.Lock()
	defer e.mu.Unlock()
	var strike Strike
	for _, s := range e.rules {
		decided := strike.Kind != "" && strike.Kind != Latency
		if decided && s.Kind != Latency || !s.holds(now) || !s.matches(m) || !s.strikes(e.seed, now, m) {
			continue
		}
		e.total[s.Kind]++
		if s.Kind == Latency {
			strike.Delay += s.Duration
			if strike.Kind == "" {
				strike.Kind, strike.Rule = Latency, s.id
			}
			continue
		}
		strike = Strike{Kind: s.Kind, Rule: s.id, Code: s.Code, Status: s.Status, Delay: strike.Delay + s.Duration}
	}
	return strike
}

// holds says whether a rule may strike now.
func (s *standing) holds(now time.Time) bool {
	since := now.Sub(s.added)
	return since >= s.After && !s.over(now) && (s.Every == 0 || s.struck == 0 || now.Sub(s.lastStruck) >= s.Every)
}

func (s *standing) over(now time.Time) bool {
	return s.For != 0 && now.Sub(s.added) >= s.After+s.For || s.Count != 0 && s.struck >= s.Count || s.Nth != 0 && s.matched >= s.Nth
}

// strikes counts a matching moment and says whether it is struck.
func (s *standing) strikes(seed uint64, now time.Time, m Moment) bool {
	s.matched++
	m.Number = 0 // counted by seen
	s.seen[m]++
	if s.Nth != 0 && s.matched != s.Nth {
		return false
	}
	if s.Probability != 0 && draw(seed, s.id, m, s.seen[m]) >= s.Probability {
		return false
	}
	s.struck++
	s.lastStruck = now
	return true
}

// draw is a number from 0 up to 1 that depends on its arguments alone.
func draw(seed uint64, id int, m Moment, n int) float64 {
	h := fnv.New64a()
	var number [8]byte
	for _, v := range []uint64{seed, uint64(id), uint64(n)} {
		binary.LittleEndian.PutUint64(number[:], v)
		_, _ = h.Write(number[:])
	}
	_, _ = fmt.Fprintf(h, "%s\x00%v", m.What, m.Conditional)
	for _, f := range fields {
		_, _ = h.Write([]byte("\x00" + strings.ToLower(f.moment(m))))
	}
	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix spreads what FNV leaves close together (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
