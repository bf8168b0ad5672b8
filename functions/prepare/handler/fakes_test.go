package handler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// world is a cluster that accepts drover's roles after some time, and its status. It implements Clusters and Cluster.
type world struct {
	start   time.Time
	openErr error
	// refuses is how long the API does not know the caller. hangs is when the API stops to answer; 0 is never.
	refuses, hangs time.Duration
	// opened are the clusters that were opened. granted counts the grants.
	opened  []string
	granted int
	volumes []string
	objects *storetest.Bucket
	state   *store.State
}

func newWorld() *world {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	w := &world{objects: storetest.NewBucket("state")}
	w.state = store.NewState(w.objects, store.Silent, time.Now)
	return w
}

func (w *world) set(t *testing.T, s status.Status) *world {
	t.Helper()
	require.NoError(t, w.state.UpdateStatus(t.Context(), "demo", func(current *status.Status) { *current = s }))
	return w
}

// deletion is the part of the status that shows the deletion.
func (w *world) deletion(t *testing.T) *status.Deletion {
	t.Helper()
	document, err := w.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return document.Status.Deletion
}

func (w *world) Open(_ context.Context, cluster string) (Cluster, error) {
	w.opened = append(w.opened, cluster)
	return w, w.openErr
}

// refusal is the error of a call to the API.
func (w *world) refusal(ctx context.Context) error {
	passed := time.Since(w.start)
	if w.hangs > 0 && passed >= w.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if passed < w.refuses {
		return &fault.ClusterUnreachable{Cause: fmt.Errorf("not yet after %s", passed)}
	}
	return nil
}

func (w *world) GrantRoles(ctx context.Context) error {
	if err := w.refusal(ctx); err != nil {
		return err
	}
	w.granted++
	return nil
}

func (w *world) RetainedVolumes(ctx context.Context) ([]string, error) {
	return w.volumes, w.refusal(ctx)
}

// prepare runs the function in virtual time, and returns how long it took.
func (w *world) prepare(t *testing.T, listRetained bool) (took time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		w.start = time.Now()
		// The last pause and the timeout do not end at the same moment: then either could come first.
		h := &Handler{Clusters: w, State: w.state, Timeout: 79 * time.Second, Pause: 2 * time.Second}
		_, err = h.Handle(t.Context(), events.PrepareRequest{Cluster: "demo", ListRetained: listRetained, Fence: 7})
		took = time.Since(w.start)
	})
	return took, err
}
