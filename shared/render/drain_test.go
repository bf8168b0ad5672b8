package render

// The drain function reads the metadata of the terminate hook.

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/drain"
)

func TestTerminateHookHasTheDrainPolicy(t *testing.T) {
	off := false
	for name, c := range map[string]struct {
		drain api.Drain
		want  drain.Policy
	}{
		"by default": {api.Drain{}, drain.Policy{
			Timeout: 1800, OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged,
		}},
		"every field": {
			api.Drain{Timeout: "1h30m", OnTimeout: api.OnTimeoutForce, PodGracePeriod: "90s", DeleteEmptyDirData: &off,
				UnmanagedPods: api.UnmanagedWait, LoadBalancerWait: "2m"},
			drain.Policy{Timeout: 5400, OnTimeout: drain.Force, PodGracePeriod: 90, UnmanagedPods: drain.WaitForUnmanaged, LoadBalancerWait: 120},
		},
		"with Continue": {api.Drain{OnTimeout: api.OnTimeoutContinue, UnmanagedPods: api.UnmanagedEvict}, drain.Policy{
			Timeout: 1800, OnTimeout: drain.Continue, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fullCluster()
			cluster.Spec.Pools[0].Drain = c.drain
			var template struct {
				Resources struct {
					Group struct {
						Properties struct {
							LifecycleHookSpecificationList []struct{ LifecycleHookName, NotificationMetadata string }
						}
					}
				}
			}
			require.NoError(t, yaml.Unmarshal(stackOf(t, render(t, resolve(t, cluster)), "pool-workers").Template, &template))
			hooks := template.Resources.Group.Properties.LifecycleHookSpecificationList
			require.Len(t, hooks, 2)
			read := func(text string) (pool events.HookMetadata) {
				require.NoError(t, json.Unmarshal([]byte(text), &pool))
				return pool
			}
			require.Nil(t, read(hooks[0].NotificationMetadata).Drain)
			require.Equal(t, events.HookMetadata{Cluster: "full", Pool: "workers", Drain: &c.want}, read(hooks[1].NotificationMetadata))
			require.Equal(t, "terminate", hooks[1].LifecycleHookName)
		})
	}
}
