package harness

// Functions that die before or after any of their calls, like a killed process. Nothing that they would have done later
// happens, and their result is lost.

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
)

// Call is a call to AWS that a function is about to make.
type Call struct {
	// Function is a name such as change. Attempt counts from 1 the invocations with the same payload since the last
	// success.
	Function string
	Attempt  int
	// Number of the call within the invocation, from 1.
	Number  int
	Payload []byte
}

// Death is whether and when a function dies at a call.
type Death int

// The deaths. After means that AWS performed the call, but the function does not learn it.
const (
	Lives Death = iota
	Before
	After
)

// Kill sets decide, which is called before every call of a function. nil kills none.
func (f *Functions) Kill(decide func(Call) Death) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill = decide
}

type invocation struct {
	function, asked string
	id              int
	attempt         int
	payload         []byte
	cancel          context.CancelFunc

	mu    sync.Mutex
	calls int
	dead  bool
	// lost reports whether the answer to the call in flight does not arrive.
	lost bool
}

// number returns the number of the call in flight.
func (i *invocation) number() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

// die kills the invocation at the call in flight, whose answer is lost.
func (i *invocation) die() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dead = true
}

func (i *invocation) isDead() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead
}

func (i *invocation) loseAnswer() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lost = true
}

// what describes a call, equally in every replay. Concurrent calls differ in it.
func (i *invocation) what(r *http.Request) string {
	sum := fnv.New32a()
	if r.Body != nil && r.Body != http.NoBody {
		var body bytes.Buffer
		body.Grow(int(max(0, r.ContentLength)) + bytes.MinRead)
		_, _ = body.ReadFrom(r.Body) // in memory
		_ = r.Body.Close()
		_, _ = sum.Write(body.Bytes())
		r.Body = io.NopCloser(&body)
	}
	return i.function + " " + strconv.Itoa(i.id) + ": " + r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("X-Amz-Target") + " " +
		hex.EncodeToString(sum.Sum(nil))
}

type invocationKey struct{}

func (f *Functions) begin(ctx context.Context, step string, payload []byte) (context.Context, *invocation) {
	i := &invocation{function: step, asked: step + withoutAttempt(payload), payload: payload}
	f.mu.Lock()
	f.attempts[i.asked]++
	f.invocations++
	i.id = f.invocations
	i.attempt = f.attempts[i.asked]
	f.busy++
	f.mu.Unlock()
	ctx, i.cancel = context.WithCancel(context.WithValue(ctx, invocationKey{}, i))
	context.AfterFunc(f.account.ending, i.cancel)
	return ctx, i
}

// withoutAttempt returns a payload without the parts that differ between attempts.
func withoutAttempt(payload []byte) string {
	if !bytes.Contains(payload, []byte(`"taskToken"`)) {
		return string(payload)
	}
	var v map[string]any
	if json.Unmarshal(payload, &v) != nil {
		return string(payload)
	}
	delete(v, "taskToken")
	body, _ := json.Marshal(v) // it was JSON
	return string(body)
}

func (f *Functions) end(i *invocation, err error) (killed bool) {
	i.cancel()
	i.mu.Lock()
	killed = i.dead
	i.mu.Unlock()
	f.mu.Lock()
	f.busy--
	if err == nil && !killed {
		delete(f.attempts, i.asked)
	}
	if err != nil && !killed {
		f.failed = append(f.failed, i.function+": "+err.Error())
	}
	f.mu.Unlock()
	f.account.wake()
	return killed
}

// transport is how functions call AWS.
type transport struct {
	functions *Functions
	next      http.RoundTripper
}

var (
	errKilled     = errors.New("the function was killed")
	errAnswerLost = fmt.Errorf("read: %w", syscall.ECONNRESET) // the SDK retries it
)

// RoundTrip makes a call unless the function is dead or dies at it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	i, ok := r.Context().Value(invocationKey{}).(*invocation)
	if !ok {
		return t.next.RoundTrip(r)
	}
	if clock := t.functions.account.clock; clock.Turns != nil {
		clock.Take(i.what(r))
	}
	t.functions.mu.Lock()
	kill := t.functions.kill
	t.functions.mu.Unlock()
	i.mu.Lock()
	i.calls++
	death := Lives
	if kill != nil && !i.dead {
		death = kill(Call{Function: i.function, Attempt: i.attempt, Number: i.calls, Payload: i.payload})
	}
	dead := i.dead
	i.dead = i.dead || death != Lives
	i.lost = false
	i.mu.Unlock()
	if dead || death == Before {
		i.cancel()
		return nil, errKilled
	}
	response, err := t.next.RoundTrip(r)
	i.mu.Lock()
	dead, lost := i.dead, i.lost
	i.mu.Unlock()
	if err == nil && (dead || lost) {
		_ = response.Body.Close()
	}
	switch {
	case dead:
		i.cancel()
		return nil, errKilled
	case lost:
		return nil, errAnswerLost
	}
	return response, err
}
