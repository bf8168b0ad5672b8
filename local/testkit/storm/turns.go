package storm

// Turns: of all who could go on, one does, and the seed says which.

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

// turns gives turns to goroutines of one bubble. Its order is that of the seed as long as whoever has a turn wakes only such as
// ask for theirs before they do anything that others could see.
type turns struct {
	random *rand.Rand
	began  time.Time
	// after is called after every turn, when all stand still. It may end the world by returning false.
	after func(what string) bool
	// trace of all turns, kept if tracing.
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

// ticket is clock.Clock's Turns.
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

// run gives turns until stop is closed or after says so; then everyone may go at once.
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
			// Time goes on while all wait for it.
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

// next is whose turn it is, nil when nobody asks.
func (t *turns) next() *asker {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asking) == 0 {
		return nil
	}
	// Those who woke at the same moment asked in any order.
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

// release ends the order: whoever asks goes.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for _, a := range t.asking {
		close(a.turn)
	}
	t.asking = nil
}

// over says whether the order has ended.
func (t *turns) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// lived says what happened: how many turns, what they add up to, and their trace.
func (t *turns) lived() (count int, sum uint64, trace []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.sum, t.trace
}

// note something in the trace, so that replays differ when it does.
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

// sign what happened now: sum is that of all that was signed.
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
