package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestUpgradeRecord(t *testing.T) {
	_, s := state()
	ctx := t.Context()
	none, etag, err := s.Upgrade(ctx, "demo")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Empty(t, etag)

	first := &upgrade.Record{
		Number: 1, Origin: upgrade.OriginSpec, Key: "spec v1", State: upgrade.Running, Started: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC),
		From: upgrade.Target{
			Release: "r1", SHA256: "a", KubernetesVersion: "1.36",
		}, Answered: map[upgrade.Origin]string{upgrade.OriginSpec: "spec v1"},
		Steps: []upgrade.Step{{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.37", Addons: map[string]string{"coredns": "v1"}}},
	}
	written, err := s.PutUpgrade(ctx, "demo", first, etag)
	require.NoError(t, err)
	_, err = s.PutUpgrade(ctx, "demo", &upgrade.Record{Number: 9}, "")
	require.ErrorIs(t, err, store.ErrConflict, "another one was first")
	_, err = s.PutUpgrade(ctx, "demo", &upgrade.Record{Number: 9}, `"0123456789abcdef0123456789abcdef"`)
	require.ErrorIs(t, err, store.ErrConflict, "another one was written since")

	read, etag, err := s.Upgrade(ctx, "demo")
	require.NoError(t, err)
	require.Equal(t, first, read)
	require.Equal(t, written, etag)
	read.Step = 1
	_, err = s.PutUpgrade(ctx, "demo", read, etag)
	require.NoError(t, err)
	read, _, err = s.Upgrade(ctx, "demo")
	require.NoError(t, err)
	require.Equal(t, 1, read.Step)
}
