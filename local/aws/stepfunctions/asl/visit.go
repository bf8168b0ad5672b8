package asl

// The types of states, except Task.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// attempts runs a Task, Parallel or Map with its Retry, Catch, Output and Assign.
func (v *visit) attempts(ctx context.Context, do func(context.Context) (json.RawMessage, error)) (after, error) {
	used := make([]int, len(v.retry))
	for {
		result, err := do(ctx)
		a, err := v.conclude(ctx, err, result, result)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
		failure := asFailure(v.recordFailure(err))
		if i := v.retrier(failure); i >= 0 && used[i] < v.retry[i].maxAttempts {
			used[i]++
			v.retries++
			if err := v.host.Clock.Timer(ctx, v.retry[i].delay(used[i], v.host.Random)); err != nil {
				return after{}, err
			}
			v.history.transition()
			continue
		}
		for _, c := range v.catch {
			if failure.matches(c.errors) {
				out := failure.ErrorOutput()
				return v.leave(v.query(ctx, nil, out), c.next, out, c.output, c.assign)
			}
		}
		return after{}, failure
	}
}

// retrier returns the index of the first retrier that matches the failure, or -1.
func (v *visit) retrier(f *Failure) int {
	for i, r := range v.retry {
		if f.matches(r.errors) {
			return i
		}
	}
	return -1
}

func (v *visit) choose(ctx context.Context) (after, error) {
	q := v.query(ctx, nil, nil)
	for _, c := range v.choices {
		value, err := c.condition.eval(q)
		if err != nil {
			return after{}, err
		}
		switch string(value) {
		case "true":
			return v.leave(q, c.next, v.input, c.output, c.assign)
		case "false":
		default:
			return after{}, queryFailure(c.condition, "returned a value that is no boolean: %s", value)
		}
	}
	if v.defaultNext == "" {
		return after{}, &Failure{Name: errNoChoice, Cause: fmt.Sprintf("No choice rule of the state '%s' matched and it has no Default.", v.name)}
	}
	return v.leave(q, v.defaultNext, v.input, v.output, v.assign)
}

func (v *visit) wait(ctx context.Context) error {
	q := v.query(ctx, nil, nil)
	if v.timestamp != nil {
		raw, err := v.timestamp.eval(q)
		if err != nil {
			return err
		}
		var s string
		_ = json.Unmarshal(raw, &s)
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return queryFailure(v.timestamp, "returned %s, which is no RFC3339 timestamp.", raw)
		}
		return v.host.Clock.Timer(ctx, t.Sub(v.host.Clock.Now()))
	}
	n, err := v.number(q, v.seconds, 0)
	if err != nil {
		return err
	}
	return v.host.Clock.Timer(ctx, time.Duration(n)*time.Second)
}

// number evaluates a field to an integer from least to maxSeconds.
func (v *visit) number(q *query, t *template, least int64) (int64, error) {
	raw, err := t.eval(q)
	if err != nil {
		return 0, err
	}
	var n float64
	if err := json.Unmarshal(raw, &n); err != nil || n != math.Trunc(n) || n < float64(least) || n > maxSeconds {
		return 0, queryFailure(t, "returned %s, which is no integer between %d and %d.", raw, least, maxSeconds)
	}
	return int64(n), nil
}

func (v *visit) fail(ctx context.Context) error {
	f := &Failure{}
	q := v.query(ctx, nil, nil)
	for _, field := range []struct {
		from *template
		into *string
	}{{v.err, &f.Name}, {v.cause, &f.Cause}} {
		if field.from == nil {
			continue
		}
		raw, err := field.from.eval(q)
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, field.into) != nil {
			return queryFailure(field.from, "returned %s, which is no string.", raw)
		}
	}
	return f
}

func (v *visit) parallel(ctx context.Context) (json.RawMessage, error) {
	input := v.input
	if v.arguments != nil {
		var err error
		if input, err = v.arguments.eval(v.query(ctx, nil, nil)); err != nil {
			return nil, err
		}
	}
	if err := v.event("ParallelStateStarted", nil); err != nil {
		return nil, err
	}
	outputs, err := v.each(ctx, len(v.branches), 0, func(ctx context.Context, i int) (json.RawMessage, error) {
		return v.flow(ctx, v.inner(v.item), v.branches[i], input)
	})
	return v.together("Parallel", outputs, err)
}

func (v *visit) mapItems(ctx context.Context) (json.RawMessage, error) {
	q := v.query(ctx, nil, nil)
	raw := v.input
	if v.items != nil {
		var err error
		if raw, err = v.items.eval(q); err != nil {
			return nil, err
		}
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		if v.items != nil && v.items.expr != nil {
			return nil, queryFailure(v.items, "returned a value that is no array; only arrays are supported by the local account.")
		}
		return nil, &Failure{Name: errRuntime, Cause: fmt.Sprintf("The items of the Map state '%s' are no array.", v.name)}
	}
	concurrency := int64(0)
	if v.maxConcurrency != nil {
		var err error
		if concurrency, err = v.number(q, v.maxConcurrency, 0); err != nil {
			return nil, err
		}
	}
	if err := v.event("MapStateStarted", map[string]any{"length": len(items)}); err != nil {
		return nil, err
	}
	outputs, err := v.each(ctx, len(items), int(concurrency), func(ctx context.Context, i int) (json.RawMessage, error) {
		return v.iterate(ctx, i, items[i])
	})
	return v.together("Map", outputs, err)
}

// iterate runs the item processor for one item.
func (v *visit) iterate(ctx context.Context, i int, item json.RawMessage) (json.RawMessage, error) {
	f := v.inner(encode(struct {
		Item struct {
			Index int
			Value json.RawMessage
		}
	}{struct {
		Index int
		Value json.RawMessage
	}{i, item}}))
	iteration := func(kind string, more map[string]any) error {
		details := map[string]any{"name": v.name, "index": i}
		for k, d := range more {
			details[k] = d
		}
		return v.history.add(f.previous, "MapIteration"+kind, v.name, details)
	}
	if err := iteration("Started", nil); err != nil {
		return nil, err
	}
	input := item
	if v.itemSelector != nil {
		selector := &visit{run: v.run, frame: f, state: v.state, input: v.input, entered: v.entered, retries: v.retries}
		var err error
		if input, err = v.itemSelector.eval(selector.query(ctx, nil, nil)); err != nil {
			return nil, err
		}
	}
	output, err := v.flow(ctx, f, v.processor, input)
	switch {
	case err == nil:
		return output, iteration("Succeeded", nil)
	case ctx.Err() != nil:
		_ = iteration("Aborted", nil)
	default:
		_ = iteration("Failed", nil)
	}
	return nil, err
}

// inner returns the frame of an inner flow. It copies the variables, so that the flow assigns its own.
func (v *visit) inner(item json.RawMessage) *frame {
	variables := make(map[string]json.RawMessage, len(v.variables))
	for name, raw := range v.variables {
		variables[name] = raw
	}
	previous := *v.previous
	return &frame{variables: variables, item: item, previous: &previous}
}

// inlineConcurrency limits the concurrent iterations of an inline Map.
// https://docs.aws.amazon.com/step-functions/latest/dg/state-map-inline.html
const inlineConcurrency = 40

// errSibling cancels the flows whose sibling failed.
var errSibling = errors.New("a sibling flow failed")

// each runs n flows, at most limit of them concurrently, and returns their outputs in order. The first failure cancels
// the others.
func (v *visit) each(ctx context.Context, n, limit int, do func(context.Context, int) (json.RawMessage, error)) ([]json.RawMessage, error) {
	if limit == 0 || limit > inlineConcurrency {
		limit = inlineConcurrency
	}
	if v.kind == "Parallel" {
		limit = n
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group   sync.WaitGroup
		once    sync.Once
		first   error
		outputs = make([]json.RawMessage, n)
		places  = make(chan struct{}, limit)
	)
	for i := range n {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		turn := v.host.Clock.Ticket(fmt.Sprintf("states: %s %d of %s", v.kind, i, v.name))
		group.Go(func() {
			defer func() { <-places }()
			turn()
			output, err := do(ctx, i)
			if err != nil {
				once.Do(func() { first = err; cancel(errSibling) })
			}
			outputs[i] = output
		})
	}
	group.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return outputs, first
}

// together joins the outputs of flows into one array.
func (v *visit) together(kind string, outputs []json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		failure := asFailure(err)
		_ = v.event(kind+"StateFailed", failureDetails(failure))
		return nil, err
	}
	result := encode(outputs)
	if err := v.limit("result", result); err != nil {
		return nil, err
	}
	return result, v.event(kind+"StateSucceeded", nil)
}
