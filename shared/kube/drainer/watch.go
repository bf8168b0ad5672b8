package drainer

// Lists that are kept current. The API server closes watches as it likes, several times in a burst of evictions: each time
// the list is read anew.

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// change of what is watched: all of it, or one object that is there or gone.
type change[T any] struct {
	all, gone bool
	items     []T
	// asked is when a list was asked for.
	asked time.Time
}

// source is what is listed and watched.
type source[T any] struct {
	list  func(ctx context.Context) (items []T, version string, err error)
	watch func(ctx context.Context, version string) (watch.Interface, error)
	// needed is closed when somebody has to know what happens after the first list; nil is always.
	needed <-chan struct{}
}

// listAgain is how long after a list it costs less to list again than to be told of all that happened since.
const listAgain = 250 * time.Millisecond

// unneeded returns when the source must be watched. It says whether so much may have happened since a list that it is to be read again.
func (s source[T]) unneeded(ctx context.Context, asked time.Time) (stale bool) {
	if s.needed == nil {
		return false
	}
	select {
	case <-s.needed:
		return false
	default:
	}
	select {
	case <-s.needed:
	case <-ctx.Done():
	}
	return time.Since(asked) > listAgain
}

// Pauses between two tries to list.
const (
	shortPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// follow a source until ctx ends. Errors go to trouble, and are tried again.
func follow[T any](ctx context.Context, s source[T], out chan<- change[T], trouble chan<- error) {
	pause := shortPause
	for ctx.Err() == nil {
		err := once(ctx, s, out)
		if err == nil {
			pause = shortPause
		} else if ctx.Err() == nil {
			select {
			case trouble <- err:
			default: // nobody reads as fast as it fails
			}
			pause = min(2*pause, longPause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// once lists and watches until the watch ends.
func once[T any](ctx context.Context, s source[T], out chan<- change[T]) error {
	send := func(c change[T]) {
		select {
		case out <- c:
		case <-ctx.Done():
		}
	}
	version := ""
	for current := false; !current; {
		asked := time.Now()
		items, listed, err := s.list(ctx)
		if err != nil {
			return err
		}
		send(change[T]{all: true, items: items, asked: asked})
		version, current = listed, !s.unneeded(ctx, asked)
	}
	w, err := s.watch(ctx, version)
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Error:
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return nil
			}
			return fmt.Errorf("watching: %w", err)
		case watch.Added, watch.Modified, watch.Deleted:
			if object, ok := any(event.Object).(*T); ok {
				send(change[T]{gone: event.Type == watch.Deleted, items: []T{*object}})
			}
		}
	}
	return nil
}
