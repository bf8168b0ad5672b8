package drainer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// A source is watched once it is needed. If the list is old by then, it is read again.
func TestSourceIsWatchedOnceItIsNeeded(t *testing.T) {
	const never = time.Duration(-1)
	for name, test := range map[string]struct {
		needed time.Duration
		asked  string
	}{
		"needed at once":           {0, "[list watch v1]"},
		"needed soon":              {relistAfter, "[list watch v1]"},
		"needed after relistAfter": {relistAfter + 1, "[list list watch v2]"},
		"never needed":             {never, "[list]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				needed, asked, lists := make(chan struct{}), []string{}, 0
				s := source[corev1.Pod]{
					needed: needed,
					list: func(context.Context) ([]corev1.Pod, string, error) {
						lists++
						asked = append(asked, "list")
						return nil, fmt.Sprintf("v%d", lists), nil
					},
					watch: func(ctx context.Context, version string) (watch.Interface, error) {
						asked = append(asked, "watch "+version)
						w := watch.NewFake()
						context.AfterFunc(ctx, w.Stop)
						return w, nil
					},
				}
				out := make(chan change[corev1.Pod], 2)
				go follow(ctx, s, out, nil)
				if test.needed != never {
					time.Sleep(test.needed)
					close(needed)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, test.asked, fmt.Sprint(asked))
				require.Len(t, out, lists)
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A failing source is retried with growing pauses, and each error is reported. An expired version is no error. After a
// success the pause is short again.
func TestSourceThatFails(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	for name, test := range map[string]struct {
		// listing and watching are errors of the calls. The watch ends with ends.
		listing, watching error
		ends              *apierrors.StatusError
		// pauses between tries, and the reported error.
		pauses  string
		trouble string
	}{
		"it cannot be listed":  {listing: errors.New("no"), pauses: "[100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]", trouble: "no"},
		"it cannot be watched": {watching: errors.New("no"), pauses: "[100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]", trouble: "no"},
		"the watch fails": {
			ends: apierrors.NewInternalError(errors.New("no")), pauses: "[100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]",
			trouble: "watching: Internal error occurred: no",
		},
		"the version expired":    {ends: expired, pauses: "[50ms 50ms 50ms 50ms 50ms 50ms 50ms 50ms]"},
		"the version is too old": {ends: apierrors.NewGone("too old"), pauses: "[50ms 50ms 50ms 50ms 50ms 50ms 50ms 50ms]"},
		"the watch ends":         {pauses: "[50ms 50ms 50ms 50ms 50ms 50ms 50ms 50ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var asked []time.Time
				s := source[corev1.Pod]{
					list: func(context.Context) ([]corev1.Pod, string, error) {
						asked = append(asked, time.Now())
						return nil, "v1", test.listing
					},
					watch: func(context.Context, string) (watch.Interface, error) {
						w := watch.NewFakeWithChanSize(1, false)
						if test.ends != nil {
							w.Error(&test.ends.ErrStatus)
						}
						w.Stop()
						return w, test.watching
					},
				}
				out, trouble := make(chan change[corev1.Pod], 10_000), make(chan error, 1)
				go follow(ctx, s, out, trouble)
				time.Sleep(time.Minute)
				synctest.Wait()
				var pauses []time.Duration
				for i := range 8 {
					pauses = append(pauses, asked[i+1].Sub(asked[i]))
				}
				require.Equal(t, test.pauses, fmt.Sprint(pauses))
				if test.trouble == "" {
					require.Empty(t, trouble)
				} else {
					require.EqualError(t, <-trouble, test.trouble)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
	t.Run("only at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var asked []time.Time
			s := source[corev1.Pod]{
				list: func(context.Context) ([]corev1.Pod, string, error) {
					if asked = append(asked, time.Now()); len(asked) < 6 {
						return nil, "", errors.New("no")
					}
					return nil, "v1", nil
				},
				watch: func(context.Context, string) (watch.Interface, error) {
					w := watch.NewFake()
					w.Stop()
					return w, nil
				},
			}
			out := make(chan change[corev1.Pod], 10_000)
			go follow(ctx, s, out, nil)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, shortPause, asked[6].Sub(asked[5]))
			cancel()
			synctest.Wait()
		})
	})
}
