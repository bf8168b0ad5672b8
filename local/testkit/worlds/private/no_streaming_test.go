package private_test

// A region without Lambda's response streaming. drover invokes relays for whole responses there.

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestRegionWithoutStreaming(t *testing.T) {
	for name, refusal := range map[string]*wire.Error{
		"that does not know the operation": {
			Code: lambda.UnknownOperation, Message: "The action or operation requested is not recognized", Status: 404,
		},
		"that does not serve the path": {
			Code: lambda.UnknownPath, Message: "Unable to determine service/operation name to be authorized", Status: 403,
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(l *life) {
				var refused, whole atomic.Int64
				l.OnCall(func(call endpoint.Call) error {
					switch call.Action {
					case "InvokeWithResponseStream":
						refused.Add(1)
						return refusal
					case "Invoke":
						if strings.Contains(call.Resource, names.Relay("demo")) {
							whole.Add(1)
						}
					}
					return nil
				})
				l.CreateOldCluster(lives.PrivateEndpoint + lives.Unprotected)
				l.RequirePhase(status.Ready)
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequirePhase(status.Ready)
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"], "the nodes were drained and joined")
				l.Audit()
				require.Nil(t, l.Status("demo").Condition(status.InSync), "the audit reads the nodes")
				l.Remove(names.ClusterSpec("demo"), "")
				l.SettleAll()
				l.RequirePhase(status.Deleted)
				require.Positive(t, whole.Load())
				require.Less(t, refused.Load(), whole.Load()/4, "each function finds it out once")
			})
		})
	}
}
