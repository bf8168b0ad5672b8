package asl

// Task tokens: the answers to a waiting task.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-wait-token

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
)

// Errors of an answer, named as in the API.
var (
	ErrTaskDoesNotExist = errors.New("TaskDoesNotExist")
	ErrTaskTimedOut     = errors.New("TaskTimedOut")
	ErrInvalidToken     = errors.New("InvalidToken")
)

// Tokens are the tokens of all executions of an account. The zero value is ready to use.
type Tokens struct {
	mu      sync.Mutex
	waiters map[string]*waiter
	pending int // answers that their tasks have not processed
}

// waiter is a task that waits for an answer.
type waiter struct {
	answers chan answer   // at most one answer
	beats   chan struct{} // heartbeats; at most one is buffered
	closed  bool
	// pending is true from the answer until the task has processed it.
	pending bool
}

type answer struct {
	output json.RawMessage
	err    error
}

// tokenBytes is the number of random bytes in a token.
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

// close ends a token. Later answers fail with ErrTaskTimedOut.
func (t *Tokens) close(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiters[token]
	w.closed = true
	if w.pending {
		w.pending = false
		t.pending--
	}
}

// PendingAnswers returns the number of accepted answers that their tasks have not processed yet.
func (t *Tokens) PendingAnswers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending
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
	w.closed, w.pending = true, true
	t.pending++
	w.answers <- a
	return nil
}

// Succeed completes the waiting task with its result, which is JSON.
func (t *Tokens) Succeed(token string, output json.RawMessage) error {
	return t.answer(token, answer{output: output})
}

// Fail completes the waiting task with an error.
func (t *Tokens) Fail(token, name, cause string) error {
	return t.answer(token, answer{err: &Failure{Name: name, Cause: cause}})
}

// Heartbeat restarts the task's HeartbeatSeconds.
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
