package autoscaling

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An instance ends by itself from the start of its termination on, except while a hook holds it.
func TestInstanceThatEndsByItself(t *testing.T) {
	pending, completed := &action{}, &action{result: "CONTINUE"}
	for _, c := range []struct {
		state   string
		actions []*action
		want    bool
	}{
		{inService, nil, false},
		{terminating, nil, true},
		{terminatingWait, []*action{pending}, false},
		{terminatingWait, []*action{completed, pending}, false},
		{terminatingWait, []*action{completed}, true},
		{terminatingProceed, []*action{completed}, true},
	} {
		m := &member{state: c.state, actions: c.actions}
		require.Equal(t, c.want, m.endsByItself(), "%s with %d actions", c.state, len(c.actions))
	}
}
