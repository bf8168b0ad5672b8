package drainer

// Lists that are kept current by watches. The API server may close a watch at any time, several times in a burst of
// evictions. Then the list is read again.

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// change is a new list, or one object that was added, modified or deleted.
type change[T any] struct {
	all, deleted bool
	items        []T
	// asked is when the list was requested.
	asked time.Time
}

// applyTo applies a change to the objects of a view, and returns its objects. of returns the object of an item, and its key.
func applyTo[T any, K comparable, V any](view map[K]V, change change[T], of func(*T) (K, V)) (objects []V) {
	if change.all {
		clear(view)
	}
	for i := range change.items {
		key, object := of(&change.items[i])
		if change.deleted {
			delete(view, key)
		} else {
			view[key] = object
		}
		objects = append(objects, object)
	}
	return objects
}

// source lists and watches one kind of object.
type source[T any] struct {
	list  func(ctx context.Context) (items []T, version string, err error)
	watch func(ctx context.Context, version string) (watch.Interface, error)
	// needed is closed when changes after the first list matter; nil is always.
	needed <-chan struct{}
}

// relistAfter is how long the watch may begin after the list. Later, a new list costs less than all events since.
const relistAfter = 250 * time.Millisecond

// awaitNeed returns once the source must be watched. stale reports whether the list must be read again.
func (s source[T]) awaitNeed(ctx context.Context) (stale bool) {
	if s.needed == nil {
		return false
	}
	listed := time.Now()
	select {
	case <-s.needed:
	case <-ctx.Done():
	}
	return time.Since(listed) > relistAfter
}

// Pauses between two tries to list.
const (
	shortPause = 50 * time.Millisecond
	longPause  = 5 * time.Second
)

// follow sends the changes of a source until ctx ends. It sends errors to trouble, and retries.
func follow[T any](ctx context.Context, s source[T], out chan<- change[T], trouble chan<- error) {
	pause := shortPause
	for ctx.Err() == nil {
		err := listAndWatch(ctx, s, out)
		if err == nil {
			pause = shortPause
		} else if ctx.Err() == nil {
			select {
			case trouble <- err:
			default: // the buffer is full: the reader is busy
			}
			pause = min(2*pause, longPause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// listAndWatch lists and watches until the watch ends.
func listAndWatch[T any](ctx context.Context, s source[T], out chan<- change[T]) error {
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
		version, current = listed, !s.awaitNeed(ctx)
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
				send(change[T]{deleted: event.Type == watch.Deleted, items: []T{*object}})
			}
		}
	}
	return nil
}
