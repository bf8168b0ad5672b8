package kube

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// What nobody needs to know is not watched. Who comes to need it is told of what happened since the list, or, when that may be much, reads a new one.
func TestASourceIsWatchedOnceItIsNeeded(t *testing.T) {
	const never = time.Duration(-1)
	for name, test := range map[string]struct {
		needed time.Duration
		asked  string
	}{
		"at once":            {0, "[list watch v1]"},
		"soon":               {listAgain, "[list watch v1]"},
		"when much happened": {listAgain + 1, "[list list watch v2]"},
		"never":              {never, "[list]"},
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
				require.Equal(t, test.asked, fmt.Sprint(asked))
				require.Len(t, out, lists)
				cancel()
				synctest.Wait()
			})
		})
	}
}
