package asl

// Task tokens: how the world answers a task that waits.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-wait-token

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
)

// What answering a token may say, under the names of the API.
var (
	ErrTaskDoesNotExist = errors.New("TaskDoesNotExist")
	ErrTaskTimedOut     = errors.New("TaskTimedOut")
	ErrInvalidToken     = errors.New("InvalidToken")
)

// Tokens are the open and the answered tokens of all executions of an account. The zero value is ready.
type Tokens struct {
	mu      sync.Mutex
	waiters map[string]*waiter
	unheard int // answers that their tasks have not acted on
}

// waiter is one task that waits.
type waiter struct {
	answers chan answer   // one answer at most
	beats   chan struct{} // heartbeats, one remembered
	closed  bool
	// answered, and its task has not acted on it yet.
	answered bool
}

type answer struct {
	output json.RawMessage
	err    error
}

// tokenBytes are the random bytes of a token.
const tokenBytes = 48

func (t *Tokens) issue() (string, *waiter) {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	token := base64.StdEncoding.EncodeToString(b)
	w := &waiter{answers: make(chan answer, 1), beats: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiters == nil {
		t.waiters = map[string]*waiter{}
	}
	t.waiters[token] = w
	return token, w
}

// close ends a token: who answers it from now on is told ErrTaskTimedOut.
func (t *Tokens) close(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiters[token]
	w.closed = true
	if w.answered {
		w.answered = false
		t.unheard--
	}
}

// Unheard is how many answers were given that their tasks have not acted on. They will, or end otherwise.
func (t *Tokens) Unheard() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unheard
}

func (t *Tokens) open(token string) (*waiter, error) {
	if b, err := base64.StdEncoding.DecodeString(token); err != nil || len(b) != tokenBytes {
		return nil, ErrInvalidToken
	}
	w := t.waiters[token]
	switch {
	case w == nil:
		return nil, ErrTaskDoesNotExist
	case w.closed:
		return nil, ErrTaskTimedOut
	}
	return w, nil
}

func (t *Tokens) answer(token string, a answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.open(token)
	if err != nil {
		return err
	}
	w.closed, w.answered = true, true
	t.unheard++
	w.answers <- a
	return nil
}

// Succeed ends the waiting task with its result, which is JSON.
func (t *Tokens) Succeed(token string, output json.RawMessage) error {
	return t.answer(token, answer{output: output})
}

// Fail ends the waiting task with an error.
func (t *Tokens) Fail(token, name, cause string) error {
	return t.answer(token, answer{err: &Failure{Name: name, Cause: cause}})
}

// Heartbeat says that work on the task goes on: its HeartbeatSeconds count anew.
func (t *Tokens) Heartbeat(token string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.open(token)
	if err != nil {
		return err
	}
	select {
	case w.beats <- struct{}{}:
	default:
	}
	return nil
}
