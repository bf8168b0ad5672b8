package lambda

// A function and its pool of environments.

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
)

const (
	// idleTimeout is how long a warm environment waits for an invocation. AWS documents no number.
	idleTimeout = 5 * time.Minute
	// maxAge of an environment. It is well below the lifetime of the credentials.
	maxAge = 6 * time.Hour
	// Payload limits in bytes: of a synchronous invocation, of its response, and of an asynchronous invocation.
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	maxPayload  = 6 << 20
	maxResponse = 6<<20 + 100
	maxEvent    = 1 << 20
)

// function is a Lambda function.
type function struct {
	service *Service
	arn     string

	mu         sync.Mutex
	settings   settings
	code       unpackedPackage
	modified   time.Time
	revision   string
	policy     []statement
	retries    *eventConfig
	idle, busy []*environment
	generation int // environments of an older generation are not reused
	// state, update and the reason of their failures: see the states in vpc.go. vpc are the interfaces that the function has.
	state, update, reasonCode, reason string
	vpc                               *vpcConfig
	removed                           bool
}

// invalidate records a change of settings or code. Environments that started earlier take no further invocation.
func (f *function) invalidate() {
	f.generation++
	f.modified = f.service.config.Clock.Now()
	f.revision = uuid.NewString()
	for _, e := range f.idle {
		e.kill()
	}
	f.idle = nil
}

// retire kills all environments.
func (f *function) retire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range append(f.idle, f.busy...) {
		e.kill()
	}
	f.idle = nil
	f.generation++
}

func (f *function) holder(accessKeyID string) *environment {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range append(slices.Clone(f.busy), f.idle...) {
		if e.key == accessKeyID {
			return e
		}
	}
	return nil
}

// acquire returns a warm environment, or starts a new one.
func (f *function) acquire() (e *environment, cold bool, generation int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.service.ctx.Err(); err != nil {
		return nil, false, 0, err
	}
	for len(f.idle) > 0 && e == nil {
		e = f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		select {
		case <-e.exited:
			e = nil // it exited while idle
		default:
			if f.service.config.Clock.Now().Sub(e.started) > maxAge {
				e.kill()
				e = nil
			}
		}
	}
	if e == nil {
		cold = true
		if e, err = f.start(f.settings, f.code.dir); err != nil {
			return nil, false, 0, err
		}
	}
	f.busy = append(f.busy, e)
	return e, cold, f.generation, nil
}

// release returns an environment to the pool, or kills it if it is not usable.
func (f *function) release(e *environment, generation int, usable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = slices.DeleteFunc(f.busy, func(b *environment) bool { return b == e })
	if !usable || generation != f.generation {
		e.kill()
		return
	}
	f.idle = append(f.idle, e)
	used := f.service.config.Clock.Now()
	time.AfterFunc(idleTimeout, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if i := slices.Index(f.idle, e); i >= 0 && !used.Before(e.lastUse) {
			f.idle = slices.Delete(f.idle, i, i+1)
			e.kill()
		}
	})
	e.lastUse = used
}

// run invokes the function once and waits for the end of the response.
func (f *function) run(i *invocation) (response, Report, error) {
	a, report, err := f.runOnce(i)
	name := f.arn[strings.LastIndex(f.arn, ":")+1:]
	if err != nil {
		return response{}, Report{}, err
	}
	failed := 0.0
	if a.failed {
		failed = 1
	}
	f.service.metric(name, "Invocations", 1, "Count")
	f.service.metric(name, "Errors", failed, "Count")
	f.service.metric(name, "Duration", float64(report.Duration)/float64(time.Millisecond), "Milliseconds")
	if f.service.Observe != nil {
		report.Payload, report.Answer = i.payload, a.payload
		f.service.Observe(report)
	}
	return a, report, nil
}

// runOnce runs the function in this process or in an environment.
func (f *function) runOnce(i *invocation) (response, Report, error) {
	end, err := f.service.Concurrency.Begin(f.arn[strings.LastIndex(f.arn, ":")+1:])
	if err != nil {
		return response{}, Report{}, err
	}
	defer end()
	if f.service.config.Run != nil {
		return f.runInside(i)
	}
	e, cold, generation, err := f.acquire()
	if err != nil {
		return response{}, Report{}, err
	}
	a, report, usable := e.run(i, cold)
	f.release(e, generation, usable)
	return a, report, nil
}

func tooLarge(size, limit int) error {
	return &iam.Error{
		Code: "RequestTooLargeException", Message: fmt.Sprintf("%d byte payload is too large for the limit of %d bytes", size, limit),
		Status: http.StatusRequestEntityTooLarge,
	}
}
