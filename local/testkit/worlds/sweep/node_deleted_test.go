package sweep_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// A user deletes a Node object, and its instance stays in service without one: no pods run there. The audit replaces that instance and
// no other.
func TestDeletedNodeIsReplaced(t *testing.T) {
	lives.Run(t, func(a *lives.Life) {
		a.Upload(names.ReleaseSpec("r1"), harness.Release())
		a.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "minSize: 1", "minSize: 3", 1))
		a.Settle()
		serving := func() (ids []string) {
			for _, i := range a.Group("demo", "a").Instances {
				if i.State == pool.InService {
					ids = append(ids, i.ID)
				}
			}
			return ids
		}
		before := serving()
		require.Len(t, before, 3)
		marked := []string{}
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "SetInstanceHealth" {
				marked = append(marked, call.Resource)
			}
			return nil
		})
		api := a.API(names.EKSCluster("demo"))
		deleted := api.Nodes()[1]
		require.Equal(t, http.StatusOK, a.DeleteNode("demo", deleted.Name))
		require.Len(t, api.Nodes(), 2)

		instance := deleted.ProviderID[strings.LastIndex(deleted.ProviderID, "/")+1:]
		require.NoError(t, a.AuditNow())
		require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "instance "+instance+" of pool a is in service without a node")
		a.Settle()
		time.Sleep(10 * time.Minute) // another instance boots and joins
		a.Settle()
		require.Len(t, marked, 1)
		after := serving()
		require.Len(t, after, 3)
		require.NotContains(t, after, instance)
		for _, id := range before {
			require.Equal(t, id != instance, slices.Contains(after, id), id)
		}
		require.Len(t, api.Nodes(), 3)
		require.NoError(t, a.AuditNow())
		require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
	})
}
