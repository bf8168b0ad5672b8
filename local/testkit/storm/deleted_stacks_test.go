package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
)

// A protected cluster loses a stack. Operators delete the cluster as the status and the runbook describe. They delete
// the resources that the lost stack retained; drover deletes the existing stacks.
func TestDeletionAfterALostStack(t *testing.T) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		t.Run(stack, func(t *testing.T) {
			p := quiet()
			p.acts[0].spec.protected = true
			p.acts[1] = act{cluster: "c0", at: 30 * time.Minute, what: "lose " + stack, do: func(w *world) { w.deleteLiveStack("c0", stack) }}
			p.last["c0"] = p.acts[0].spec
			p.breakAtEnd = func(w *world) {
				require.Empty(t, w.Stacks("c0"))
				for _, call := range w.Calls.Since(0) {
					mine := harness.CalledBy(call) == "admin" && call.Service == "ec2" && call.Mutating
					require.False(t, mine && stack == names.ControlPlane, "%s: drover deletes what the network's stack holds", call.Action)
				}
			}
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, story(o))
			require.Equal(t, 1, o.Acts["abandon"], story(o))
			require.Zero(t, o.Acts["nudge"], "the status named sufficient actions:\n%s", story(o))
		})
	}
}
