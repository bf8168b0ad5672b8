package harness

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stack that has ended and whose event is not on the bus yet is in neither of the two.
func TestUndeliveredStackEventIsNotIdle(t *testing.T) {
	a := Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	reached, telling := make(chan struct{}), make(chan struct{})
	record := sync.OnceFunc(func() { close(telling) })
	defer record()
	a.OnStack(func(stackName, is string) {
		if stackName == "drover-demo-network" && is == "UPDATE_COMPLETE" {
			close(reached)
			<-telling
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
