package harness

// Upgrades by the real machine and function, in virtual time.

import (
	"encoding/json"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// upgrade starts the upgrade machine as a person does, and returns its execution.
func (l *life) upgrade(in events.Upgrade) string {
	l.t.Helper()
	in.Cluster = "demo"
	input, err := json.Marshal(in)
	require.NoError(l.t, err)
	arn, err := l.States.Start(l.t.Context(), l.Admin(), l.machineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(l.t, err)
	return arn
}

// old creates a cluster of Kubernetes 1.35; the release r2 is of 1.36.
func (l *life) old(more string) {
	l.t.Helper()
	l.Upload(names.ReleaseSpec("r1"), ReleaseOf("1.35", "r1"))
	l.Upload(names.ReleaseSpec("r2"), ReleaseOf("1.36", "r2"))
	l.change(more)
	l.phase(status.Ready)
}
