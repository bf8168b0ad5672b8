package passes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/stack"
)

// accountWithRelays is an account with private clusters, some without their relay.
type accountWithRelays struct {
	deployed map[string]stack.Deployed
	absent   map[string]bool
	failing  error
	listed   int
	calls    []string
}

func (r *accountWithRelays) All(context.Context) (map[string]stack.Deployed, error) {
	r.listed++
	return r.deployed, r.failing
}

func (r *accountWithRelays) Exists(_ context.Context, function string) (bool, error) {
	r.calls = append(r.calls, "find "+function)
	return !r.absent[function], r.failing
}

func (r *accountWithRelays) RequestInspection(_ context.Context, cluster, _ string) error {
	r.calls = append(r.calls, "inspect "+cluster)
	return nil
}

func TestRelays(t *testing.T) {
	sweeptest.Quiet()
	private := stack.Deployed{Outputs: map[string]string{stack.OutputRelay: "arm64/0"}}
	r := &accountWithRelays{
		deployed: map[string]stack.Deployed{
			"drover-a-control-plane": private, "drover-b-control-plane": private, "drover-b-network": {}, "drover-c-control-plane": {},
		},
		absent: map[string]bool{"drover-b-relay": true, "drover-c-relay": true},
	}
	now := noon
	p := Relays{Stacks: r, Functions: r, State: r, Cache: &work.RelayCache{}, Parallel: 1, Now: func() time.Time { return now }}
	found := []string{"find drover-a-relay", "find drover-b-relay", "inspect b"}
	require.NoError(t, p.Run(t.Context()))
	require.Equal(t, found, r.calls)
	r.calls = nil
	require.NoError(t, p.Run(t.Context()))
	require.Equal(t, found, r.calls, "until an audit repairs it")
	require.Equal(t, 1, r.listed, "the stacks are listed once")

	p.Cache.Fill(map[string]map[string]stack.Deployed{"a": {"control-plane": private}}, now)
	r.calls = nil
	require.NoError(t, p.Run(t.Context()))
	require.Equal(t, []string{"find drover-a-relay"}, r.calls, "the audit has seen that b was deleted")
	now = now.Add(time.Hour)
	require.NoError(t, p.Run(t.Context()))
	require.Equal(t, 2, r.listed, "no audit ran in this process")

	r.failing = errors.New("throttled")
	require.ErrorIs(t, p.Run(t.Context()), r.failing)
	now = now.Add(time.Hour)
	require.ErrorIs(t, p.Run(t.Context()), r.failing)
}
