// Package join_test has the tests of join that start an account.
package join_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}

// booting watches the instances of a pool that boot at the same time.
type booting struct {
	*harness.Account
	t *testing.T
	// ready and joined are when a node was seen Ready and its instance was seen past the launch hook, by instance.
	ready, joined map[string]time.Time
	// seen are all instances that the group ever had.
	seen map[string]bool
}

// scale changes the size of the pool of a cluster, and watches its instances until all have joined or the time is over.
func scale(t *testing.T, a *harness.Account, size int, within time.Duration) *booting {
	t.Helper()
	c := &booting{Account: a, t: t, ready: map[string]time.Time{}, joined: map[string]time.Time{}, seen: map[string]bool{}}
	a.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "minSize: 1, maxSize: 3",
		fmt.Sprintf("minSize: %d, maxSize: %[1]d", size), 1))
	for began := time.Now(); time.Since(began) < within && len(c.joined) < size; time.Sleep(100 * time.Millisecond) {
		c.observe()
	}
	return c
}

// observe records which instances are new, Ready or past their launch hook.
func (b *booting) observe() {
	group, _, err := b.Groups().Describe(b.t.Context(), names.Group("demo", "a"))
	require.NoError(b.t, err)
	now := time.Now()
	for _, i := range group.Instances {
		b.seen[i.ID] = true
		if _, seen := b.joined[i.ID]; !seen && (i.State == pool.InService || i.State == pool.PendingProceed) {
			b.joined[i.ID] = now
		}
	}
	for _, n := range b.API(names.EKSCluster("demo")).Nodes() {
		id := n.ProviderID[strings.LastIndex(n.ProviderID, "/")+1:]
		if _, seen := b.ready[id]; !seen && n.Ready {
			b.ready[id] = now
		}
	}
}

// delays returns how long after its node was Ready each instance joined, in order.
func (b *booting) delays() (all []time.Duration) {
	for id, at := range b.joined {
		all = append(all, at.Sub(b.ready[id]))
	}
	slices.Sort(all)
	return all
}

// bubble runs a test in an account with an idle cluster of one node, in virtual time.
func bubble(t *testing.T, rule string, test func(t *testing.T, a *harness.Account)) {
	synctest.Test(t, func(t *testing.T) {
		injected := faults.New(1)
		r, err := faults.Parse(rule)
		require.NoError(t, err)
		_, err = injected.Add(time.Now(), r)
		require.NoError(t, err)
		a := harness.StartWith(t, harness.Options{Bubble: true, Faults: injected})
		defer a.Close()
		a.Cluster("demo", "")
		time.Sleep(time.Minute)
		test(t, a)
	})
}

// A new AWS account may have a limit of ten concurrent executions for all of its functions. All nodes of a large pool still join, and
// soon after they are Ready. Each call to AWS takes a while, so that calls of functions coincide.
func TestFiftyNodesJoinWithAConcurrencyOfTen(t *testing.T) {
	for name, test := range map[string]struct {
		limit float64
		after time.Duration
	}{"ten": {10, 40 * time.Second}, "a thousand": {1000, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "latency=100ms caller=join", func(t *testing.T, a *harness.Account) {
				require.True(t, a.Quotas.Set(servicequotas.LambdaConcurrency, test.limit))
				before, spent := a.Functions.Ran()
				c := scale(t, a, 50, 20*time.Minute)
				times, took := a.Functions.Ran()
				delays := c.delays()
				t.Logf("limit %v: %d joined, %d instances; delays %v; %d calls of functions, %v", test.limit, len(c.joined), len(c.seen),
					delays, times-before, took-spent)
				require.Len(t, c.joined, 50)
				require.Len(t, c.seen, 50, "no instance was replaced")
				require.Less(t, delays[len(delays)-1], test.after)
				a.Settle() // the last calls may be in flight
			})
		})
	}
}

// Other functions of the account use all of its concurrency for an hour while instances boot. Each joins afterwards.
func TestNodesJoinAfterAnHourAtTheLimit(t *testing.T) {
	bubble(t, "lambda-limit after=55m for=1h", func(t *testing.T, a *harness.Account) {
		time.Sleep(50 * time.Minute)
		c := scale(t, a, 3, 2*time.Hour)
		require.Len(t, c.joined, 3)
		require.Len(t, c.seen, 3, "no instance was replaced")
		require.Less(t, c.delays()[2], 63*time.Minute)
	})
}
