package private_test

// The whole life of a cluster whose endpoint is private, without NAT gateways.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestPrivateClusterLife(t *testing.T) {
	run(t, func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"),
			strings.Replace(harness.Spec("demo", lives.PrivateEndpoint+lives.Unprotected), "natGateways: Single", "natGateways: None", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready) // prepare and join reached the API
		require.Len(t, l.Lambda.Tagged(t.Context()), 1)
		require.Contains(t, l.Lambda.Tagged(t.Context())[0].ARN, names.Relay("demo"))
		l.Audit()
		require.Nil(t, l.Status("demo").Condition(status.InSync), "the audit reads the nodes")
		l.TerminateInstance()
		l.SettleAll()
		l.RequirePhase(status.Ready)

		begin := time.Now()
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		l.RequirePhase(status.Deleted)
		require.Empty(t, l.Lambda.Tagged(t.Context()))
		require.Empty(t, l.EC2.Tagged(t.Context()), "the network interfaces of the relay are deleted")
		require.Less(t, time.Since(begin), 2*time.Hour)
	})
}
