package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// What belonged to a control plane that is gone goes behind the one that takes its place, and comes with the plan after that.
func TestTheStacksOfAControlPlaneThatIsGoneGoBehindAnother(t *testing.T) {
	first := Compute(input(spec(), nil, nil))
	deployed := deploy(nil, first)
	before := order(first)
	delete(deployed, names.ControlPlane)
	p := Compute(input(spec(), spec(), deployed))
	require.Equal(t, "Create control-plane", order(p)[0])
	for _, change := range p.Changes[1:] {
		require.True(t, change.Orphan(), change.Stack)
	}
	require.Len(t, p.Changes, len(before)-1, "all but the network")
	require.True(t, p.Changes[0].Founds())

	again := Compute(input(spec(), spec(), deploy(deployed, p)))
	for _, change := range again.Changes {
		require.Equal(t, Create, change.Operation, change.Stack)
	}
	require.Len(t, again.Changes, len(before)-2)
	require.Empty(t, Compute(input(spec(), spec(), deploy(deploy(deployed, p), again))).Changes)
}
