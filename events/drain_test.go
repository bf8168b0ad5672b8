package events

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDrainRequestTarget(t *testing.T) {
	for want, in := range map[string]DrainRequest{
		"i-1":                 {Lifecycle: &Lifecycle{EC2InstanceID: "i-1"}, InstanceID: "i-2"},
		"i-2":                 {InstanceID: "i-2", Instance: "i-3"},
		"i-3":                 {Instance: "i-3", Node: "node-1"},
		"i-0123456789abcdef0": {Cluster: "demo", Node: "i-0123456789abcdef0"},
		"demo/node-1":         {Cluster: "demo", Node: "node-1"},
		"":                    {Cluster: "demo"},
	} {
		require.Equal(t, want, in.Target())
	}
}
