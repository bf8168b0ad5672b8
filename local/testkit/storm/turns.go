package storm

// Turns: one of all goroutines that could continue does, and the seed selects it.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// turns gives turns to the goroutines of one bubble. The seed determines their order, provided that a goroutine in its
// turn only wakes others that take a turn before they do anything observable.
type turns struct {
	random *rand.Rand
	began  time.Time
	// after is called after every turn, while everything waits. It ends the world by returning false.
	after func(what string) bool
	// trace of all turns, if tracing.
	tracing bool
	trace   []string

	mu      sync.Mutex
	asking  []*asker
	arrived chan struct{}
	tickets int
	count   int
	sum     uint64
	stopped bool
}

type asker struct {
	what   string
	number int // of the ticket
	turn   chan struct{}
}

func newTurns(random *rand.Rand) *turns {
	return &turns{random: random, began: time.Now(), arrived: make(chan struct{}, 1), sum: fnv.New64a().Sum64()}
}

// ticket implements clock.Clock's Turns.
func (t *turns) ticket(what string) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tickets++
	a := &asker{what, t.tickets, make(chan struct{})}
	return func() { t.wait(a) }
}

// take waits for a turn.
func (t *turns) take(what string) { t.ticket(what)() }

func (t *turns) wait(a *asker) {
	t.mu.Lock()
	if t.stopped {
		t.mu.Unlock()
		return
	}
	t.asking = append(t.asking, a)
	t.mu.Unlock()
	select {
	case t.arrived <- struct{}{}:
	default:
	}
	<-a.turn
}

// run gives turns until stop is closed or after returns false. Then all goroutines continue at once.
func (t *turns) run(stop <-chan struct{}) {
	for {
		synctest.Wait()
		select {
		case <-stop:
			t.release()
			return
		default:
		}
		next := t.next()
		if next == nil {
			// Time advances while all wait for it.
			select {
			case <-t.arrived:
			case <-stop:
			}
			continue
		}
		close(next.turn)
		synctest.Wait()
		if t.after != nil && !t.after(next.what) {
			t.release()
			return
		}
	}
}

// next returns the goroutine whose turn it is, or nil if none waits.
func (t *turns) next() *asker {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asking) == 0 {
		return nil
	}
	// Goroutines that woke at the same moment arrived in any order.
	slices.SortStableFunc(t.asking, func(a, b *asker) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.number, b.number)) })
	i := t.random.IntN(len(t.asking))
	a := t.asking[i]
	t.asking = slices.Delete(t.asking, i, i+1)
	t.count++
	t.sign(a.what, i, len(t.asking)+1)
	if t.tracing {
		t.trace = append(t.trace, fmt.Sprintf("%s %s (%d of %d)", time.Since(t.began), a.what, i, len(t.asking)+1))
	}
	return a
}

// release ends the order: all goroutines continue.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for _, a := range t.asking {
		close(a.turn)
	}
	t.asking = nil
}

// over reports whether the order has ended.
func (t *turns) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// totals returns the number of turns, their sum, and their trace.
func (t *turns) totals() (count int, sum uint64, trace []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.sum, t.trace
}

// note adds a fact to the trace, so that replays differ if it does.
func (t *turns) note(words ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, word := range words {
		t.sign(word)
	}
	if t.tracing {
		t.trace = append(t.trace, fmt.Sprintf("%s     %s", time.Since(t.began), strings.Join(words, " ")))
	}
}

// sign adds the current turn to the sum.
func (t *turns) sign(what string, numbers ...int) {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 48), t.sum)
	b = binary.LittleEndian.AppendUint64(b, uint64(time.Since(t.began)))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	_, _ = h.Write(b)
	_, _ = h.Write([]byte(what))
	t.sum = h.Sum64()
}
