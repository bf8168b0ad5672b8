package harness

// The whole life of a cluster whose endpoint is private, without NAT gateways.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// privateEndpoint makes the endpoint private.
const privateEndpoint = "  controlPlane: {endpoint: {public: false}}\n"

func TestPrivateClusterLife(t *testing.T) {
	bubble(t, func(a *Account) {
		l := &life{a}
		l.Upload(names.ReleaseSpec("r1"), Release())
		l.Upload(names.ClusterSpec("demo"),
			strings.Replace(Spec("demo", privateEndpoint+unprotected), "natGateways: Single", "natGateways: None", 1))
		l.settle()
		l.phase(status.Ready) // prepare and join reached the API
		require.Len(t, a.Lambda.Tagged(t.Context()), 1)
		require.Contains(t, a.Lambda.Tagged(t.Context())[0].ARN, names.Relay("demo"))
		l.audited()
		require.Nil(t, l.Status("demo").Condition(status.InSync), "the audit reads the nodes")
		l.terminate()
		l.settle()
		l.phase(status.Ready)

		begin := time.Now()
		l.Remove(names.ClusterSpec("demo"), "")
		l.settle()
		l.phase(status.Deleted)
		require.Empty(t, a.Lambda.Tagged(t.Context()))
		require.Empty(t, a.EC2.Tagged(t.Context()), "the network interfaces of the relay are deleted")
		require.Less(t, time.Since(begin), 2*time.Hour)
	})
}
