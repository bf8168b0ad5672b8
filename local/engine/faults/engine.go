package faults

// The engine: its rules, and its decision at each moment.

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

// Engine decides which faults occur. It is safe for concurrent use.
type Engine struct {
	mu    sync.Mutex
	seed  uint64
	last  int // ID of the newest rule
	rules []*activeRule
	total map[Kind]int
}

// activeRule is a rule of the engine, with its counters.
type activeRule struct {
	Rule
	id              int
	added           time.Time
	matched, struck int
	lastStruck      time.Time
	// seen counts the matches of each kind of moment. So the chance of the n-th of its kind is independent of other
	// moments.
	seen map[Moment]int
}

// RuleStatus is a rule as List returns it.
type RuleStatus struct {
	ID int `json:"id"`
	// Rule in the syntax of Parse.
	Rule string `json:"rule"`
	// Matched counts the matching moments while the rule was in effect, Struck those at which it struck.
	Matched int `json:"matched"`
	Struck  int `json:"struck"`
	// Over reports whether the rule will never strike again.
	Over bool `json:"over"`
}

// New returns an engine without rules.
func New(seed uint64) *Engine { return &Engine{seed: seed, total: map[Kind]int{}} }

// Seed returns the engine's seed.
func (e *Engine) Seed() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seed
}

// Reset removes all rules and restarts with a seed, as New(seed) does.
func (e *Engine) Reset(seed uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seed, e.last, e.rules, e.total = seed, 0, nil, map[Kind]int{}
}

// Add adds a rule and returns its ID. IDs count from 1 and influence the rule's chances.
func (e *Engine) Add(now time.Time, r Rule) (id int, err error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.rules = append(e.rules, &activeRule{Rule: r, id: e.last, added: now, seen: map[Moment]int{}})
	return e.last, nil
}

// Remove removes a rule. It returns false if the ID is unknown.
func (e *Engine) Remove(id int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.rules)
	e.rules = slices.DeleteFunc(e.rules, func(s *activeRule) bool { return s.id == id })
	return len(e.rules) < before
}

// Clear removes all rules.
func (e *Engine) Clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules = nil
}

// List returns the rules, oldest first.
func (e *Engine) List(now time.Time) []RuleStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := []RuleStatus{}
	for _, s := range e.rules {
		all = append(all, RuleStatus{ID: s.id, Rule: s.String(), Matched: s.matched, Struck: s.struck, Over: s.over(now)})
	}
	return all
}

// Struck returns the number of strikes by kind, including those of removed rules.
func (e *Engine) Struck() map[Kind]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.total)
}

// Decide returns the fault at a moment: that of the first rule that strikes. Latencies of calls add up on top.
func (e *Engine) Decide(now time.Time, m Moment) Strike {
	e.mu.Lock()
	defer e.mu.Unlock()
	var strike Strike
	for _, s := range e.rules {
		decided := strike.Kind != "" && strike.Kind != Latency
		if decided && s.Kind != Latency || !s.inEffect(now) || !s.matches(m) || !s.strikes(e.seed, now, m) {
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

// inEffect reports whether a rule may strike now.
func (s *activeRule) inEffect(now time.Time) bool {
	since := now.Sub(s.added)
	return since >= s.After && !s.over(now) && (s.Every == 0 || s.struck == 0 || now.Sub(s.lastStruck) >= s.Every)
}

func (s *activeRule) over(now time.Time) bool {
	return s.For != 0 && now.Sub(s.added) >= s.After+s.For || s.Count != 0 && s.struck >= s.Count || s.Nth != 0 && s.matched >= s.Nth
}

// strikes counts a matching moment and decides whether the rule strikes.
func (s *activeRule) strikes(seed uint64, now time.Time, m Moment) bool {
	s.matched++
	m.Number = 0 // seen counts calls instead
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

// draw returns a number from 0 up to 1 that depends only on its arguments.
func draw(seed uint64, id int, m Moment, n int) float64 {
	h := fnv.New64a()
	var number [8]byte
	for _, v := range []uint64{seed, uint64(id), uint64(n)} {
		binary.LittleEndian.PutUint64(number[:], v)
		_, _ = h.Write(number[:])
	}
	_, _ = fmt.Fprintf(h, "%s\x00%v", m.Kind, m.Conditional)
	for _, f := range fields {
		_, _ = h.Write([]byte("\x00" + strings.ToLower(f.moment(m))))
	}
	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix distributes the similar values of FNV (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
