package harness

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// An ended stack whose event is not on the bus yet counts as work in flight.
func TestUndeliveredStackEventIsNotIdle(t *testing.T) {
	a := Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	reached, delivered := make(chan struct{}), make(chan struct{})
	record := sync.OnceFunc(func() { close(delivered) })
	defer record()
	a.OnStack(func(stackName, state string) {
		if stackName == "drover-demo-network" && state == "UPDATE_COMPLETE" {
			close(reached)
			<-delivered
		}
	})
	require.NoError(t, a.Retag("drover-demo-network", func(tags map[string]string) { tags["team"] = "apes" }))
	<-reached
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["network"])
	require.False(t, a.Idle())
	require.False(t, a.Still())
	record()
	a.Settle()
	require.True(t, a.Still())
}
