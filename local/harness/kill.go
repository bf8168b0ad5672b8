package harness

// Functions that die: before or after any of their calls, as a killed process does. Nothing that they would have done later is
// done, and nobody hears of their result.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
)

// Call is a call to AWS that a function is about to make.
type Call struct {
	// Function such as change; Attempt counts from 1 how often the same was asked of it since it last succeeded.
	Function string
	Attempt  int
	// Number of the call within the invocation, from 1.
	Number  int
	Payload []byte
}

// Death says whether a function dies at a call.
type Death int

// The deaths. After means that AWS did what was asked, and nobody knows.
const (
	Lives Death = iota
	Before
	After
)

// Kill has functions die as decide says; nil lets them live. It is asked before every call.
func (f *Functions) Kill(decide func(Call) Death) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill = decide
}

type invocation struct {
	function, asked string
	attempt         int
	payload         []byte
	cancel          context.CancelFunc

	mu    sync.Mutex
	calls int
	dead  bool
}

type invocationKey struct{}

func (f *Functions) begin(ctx context.Context, step string, payload []byte) (context.Context, *invocation) {
	i := &invocation{function: step, asked: step + asked(payload), payload: payload}
	f.mu.Lock()
	f.attempts[i.asked]++
	i.attempt = f.attempts[i.asked]
	f.busy++
	f.mu.Unlock()
	ctx, i.cancel = context.WithCancel(context.WithValue(ctx, invocationKey{}, i))
	return ctx, i
}

// asked is a payload without what differs from one attempt to the next.
func asked(payload []byte) string {
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
	f.mu.Unlock()
	f.account.happened()
	return killed
}

// transport is how functions reach AWS.
type transport struct {
	functions *Functions
	next      http.Transport
}

var errKilled = errors.New("the function was killed")

// RoundTrip makes a call unless the function is dead, or dies of it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	i, ok := r.Context().Value(invocationKey{}).(*invocation)
	if !ok {
		return t.next.RoundTrip(r)
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
	i.mu.Unlock()
	if dead || death == Before {
		i.cancel()
		return nil, errKilled
	}
	response, err := t.next.RoundTrip(r)
	if death == After {
		if err == nil {
			_ = response.Body.Close()
		}
		i.cancel()
		return nil, errKilled
	}
	return response, err
}
