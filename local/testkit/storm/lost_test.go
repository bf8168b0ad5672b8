package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// A protected cluster loses a stack, and people delete it as the status and the runbook say, one step after the
// other: what the gone stack kept goes by their hand, what is in a stack that is there by drover's.
func TestPeopleDeleteAClusterThatLostAStack(t *testing.T) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			p := quiet()
			p.acts[0].spec.protected = true
			p.acts[1] = act{cluster: "c0", at: 30 * time.Minute, what: "lose " + stack, do: func(w *world) { w.lose("c0", stack) }}
			p.last["c0"] = p.acts[0].spec
			p.ending = func(w *world) {
				require.Empty(t, w.Stacks("c0"))
				for _, call := range w.Calls.Since(0) {
					mine := harness.CalledBy(call) == "admin" && call.Service == "ec2" && call.Mutating
					require.False(t, mine && stack == names.ControlPlane, "%s: drover deletes what the network's stack holds", call.Action)
				}
			}
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, story(o))
			require.Equal(t, 1, o.Acts["give"], story(o))
			require.Zero(t, o.Acts["nudge"], "what to do was told, and was enough:\n%s", story(o))
		})
	}
}
