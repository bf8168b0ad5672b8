package handler

// Planning the deletion of a cluster, with fakes.

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Either protection alone keeps the cluster: disabling termination protection does not allow its deletion.
func TestDeletionOfAProtectedCluster(t *testing.T) {
	for name, protect := range map[string]func(map[string]stack.Deployed){
		"is refused by termination protection": func(all map[string]stack.Deployed) {
			for _, stack := range []string{names.Network, names.ControlPlane} {
				d := all[stack]
				d.TerminationProtection, d.Parameters = true, map[string]string{"DeletionProtection": "false"}
				all[stack] = d
			}
		},
		"is refused by the parameter DeletionProtection when termination protection was turned off by hand": func(map[string]stack.Deployed) {},
	} {
		t.Run(name, func(t *testing.T) {
			c := &specless{
				status: &status.Status{Phase: status.Ready, Fence: 4, PlannedVersion: "v1"}, lease: store.Lease{Fence: 4},
				deployed: deployedAll("true"),
			}
			protect(c.deployed)
			result, err := c.plan(t)
			require.NoError(t, err)
			require.Equal(t, events.OutcomeStopped, result.Outcome)
			require.Equal(t, status.ReasonDeletionProtected, result.Reason)
			require.Contains(t, result.Message, "deletion protection is on (control-plane, network): nothing is deleted")
			require.Nil(t, result.Deletion)
			require.Empty(t, c.kept, "there is no plan")
			require.Zero(t, c.acquired, "the lease is not taken")
			require.Equal(t, status.Stopped, c.status.Phase)
			require.Equal(t, result.Message, c.status.Message)
			require.Equal(t, status.ReasonDeletionProtected, c.status.Condition(status.Converged).Reason)
			require.Equal(t, "https://x", c.status.Endpoint)
			require.Empty(t, c.status.PlannedVersion)
		})
	}
}

// bareStacks are a network and a control plane that nothing deployed protects, with the specs that changed them last.
func bareStacks(network, controlPlane string) map[string]stack.Deployed {
	all := deployedAll("false")
	for stack, version := range map[string]string{names.Network: network, names.ControlPlane: controlPlane} {
		d := all[stack]
		d.Tags = map[string]string{names.TagSpecVersion: version}
		all[stack] = d
	}
	return all
}

func TestDeletionGoesByAcceptedSpecs(t *testing.T) {
	versions := map[string]string{
		"on":      "apiVersion: v0\nkind: Cluster\nspec: {deletionProtection: true}\n",
		"default": "kind: Cluster\nspec: {region: eu-central-1}\n",
		"off":     "kind: Cluster\nspec: {deletionProtection: false}\n",
	}
	withoutControlPlane := bareStacks("on", "")
	delete(withoutControlPlane, names.ControlPlane)
	for name, test := range map[string]struct {
		deployed map[string]stack.Deployed
		good     string
		want     string // the protected stacks; "" is none
	}{
		"its spec protects a control plane whose first update was rolled back":    {bareStacks("off", "on"), "off", "(control-plane)"},
		"the default protects a control plane whose first update was rolled back": {bareStacks("off", "default"), "off", "(control-plane)"},
		"its spec protects a network without a control plane":                     {withoutControlPlane, "off", "(network)"},
		"the accepted spec protects both stacks before it was converged to":       {bareStacks("off", "off"), "on", "(control-plane, network)"},
		"an accepted spec that was not converged to turns no protection off":      {bareStacks("on", "on"), "off", "(control-plane, network)"},
		"specs without protection protect nothing":                                {bareStacks("off", "off"), "off", ""},
		"versions that expired protect nothing":                                   {bareStacks("expired", ""), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &specless{status: &status.Status{Phase: status.Ready, GoodVersion: test.good}, deployed: test.deployed, versions: versions}
			result, err := c.plan(t)
			require.NoError(t, err)
			if test.want == "" {
				require.Equal(t, events.OutcomeDeletes, result.Outcome)
				return
			}
			require.Equal(t, status.ReasonDeletionProtected, result.Reason)
			require.Contains(t, result.Message, test.want)
			require.Nil(t, result.Deletion)
			require.Empty(t, c.kept, "there is no plan")
			require.Zero(t, c.acquired)

			result, err = c.plan(t)
			require.NoError(t, err)
			require.Equal(t, status.ReasonDeletionProtected, result.Reason, "the next try answers the same")
		})
	}
	t.Run("an accepted spec protects before it is planned", func(t *testing.T) {
		for accepted, want := range map[string]events.Outcome{"on": events.OutcomeStopped, "off": events.OutcomeDeletes} {
			c := &specless{
				status: &status.Status{
					Phase: status.Converging, PlannedVersion: "off", GoodVersion: "off", Accepted: &status.Upload{Version: accepted, UploadedAt: planTime},
				},
				deployed: bareStacks("off", "off"), versions: versions,
			}
			result, err := c.plan(t)
			require.NoError(t, err)
			require.Equal(t, want, result.Outcome)
			require.Equal(t, accepted, c.status.AcceptedVersion(), "the next step of the deletion needs it")
		}
	})
	t.Run("no stack is deleted if a version cannot be read", func(t *testing.T) {
		c := &specless{
			status: &status.Status{}, deployed: bareStacks("off", "off"), versions: versions, err: map[string]error{
				"version": errors.New("throttled"),
			},
		}
		_, err := c.plan(t)
		require.ErrorContains(t, err, "throttled")
		require.Empty(t, c.kept)
	})
	t.Run("each version is read once", func(t *testing.T) {
		c := &specless{status: &status.Status{GoodVersion: "off"}, deployed: bareStacks("off", "off"), versions: versions}
		_, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, []string{"off"}, c.read)
	})
}

func TestDeletion(t *testing.T) {
	t.Run("plans its first step under the lease", func(t *testing.T) {
		c := &specless{
			status: &status.Status{
				Phase: status.Ready, Fence: 4, GoodVersion: "v1", Plan: []status.Change{{Stack: "pool-b"}}, Stacks: []status.Stack{{Name: "pool-c"}},
			},
			lease: store.Lease{Fence: 4}, deployed: deployedAll("false"),
		}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeDeletes, result.Outcome)
		require.Equal(t, &events.Deletion{Stacks: []string{"pool-a"}}, result.Deletion)
		require.EqualValues(t, 5, result.Fence)
		require.EqualValues(t, 5, result.Seen)
		require.Equal(t, []string{result.PlanKey}, c.kept)
		require.Equal(t, []string{"addons", "addons-on-nodes", "control-plane", "network", "pool-b", "pool-c"}, c.expected,
			"also what only the status knows")
		require.Equal(t, status.Deleting, c.status.Phase)
		require.Equal(t, "x", c.status.Execution)
		require.EqualValues(t, 5, c.status.Fence)
		require.Empty(t, c.status.GoodVersion)
		require.Len(t, c.status.Plan, 1)
		require.Equal(t, "pool-a", c.status.Plan[0].Stack)
		require.Equal(t, "Delete", c.status.Plan[0].Operation)
		require.NotEmpty(t, c.status.Plan[0].Reasons)
		require.Equal(t, status.ReasonDeleting, c.status.Condition(status.Converged).Reason)
		require.Len(t, c.status.Stacks, 3)
	})
	t.Run("reads again if another execution took the lease in between", func(t *testing.T) {
		c := &specless{status: &status.Status{Phase: status.Ready}, deployed: deployedAll("false"), conflicts: 3}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeDeletes, result.Outcome)
	})
	t.Run("fails as Transient after four lost races", func(t *testing.T) {
		c := &specless{status: &status.Status{Phase: status.Ready}, deployed: deployedAll("false"), conflicts: 4}
		_, err := c.plan(t)
		require.Equal(t, "Transient", fault.NameOf(err))
		require.Empty(t, c.kept)
		require.Equal(t, status.Ready, c.status.Phase)
	})
	t.Run("leaves the status of a later holder alone", func(t *testing.T) {
		for _, protection := range []string{"false", "true"} {
			c := &specless{status: &status.Status{Phase: status.Converging, Fence: 9}, deployed: deployedAll(protection)}
			_, err := c.plan(t)
			require.Equal(t, "Transient", fault.NameOf(err), "what was read is out of date")
			require.Equal(t, &status.Status{Phase: status.Converging, Fence: 9}, c.status)
		}
	})
	t.Run("waits for a running holder", func(t *testing.T) {
		c := &specless{
			status: &status.Status{Phase: status.Ready}, deployed: deployedAll("false"), running: true, lease: store.Lease{Execution: "y", Fence: 2},
		}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeBusy, result.Outcome)
		require.Zero(t, c.acquired)
	})
	t.Run("removes the leftovers once no stack remains", func(t *testing.T) {
		c := &specless{status: &status.Status{Phase: status.Deleting}}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, &events.Deletion{Stacks: []string{}, Leftovers: true}, result.Deletion)
	})
	t.Run("has nothing to do for a cluster that is deleted", func(t *testing.T) {
		c := &specless{status: &status.Status{Phase: status.Deleted}}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeGone, result.Outcome)
		require.Zero(t, c.acquired)
	})
	t.Run("continues if a stack of a deleted cluster exists again", func(t *testing.T) {
		c := &specless{status: &status.Status{Phase: status.Deleted}, deployed: deployedAll("false")}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeDeletes, result.Outcome)
	})
	t.Run("does nothing for an unknown cluster", func(t *testing.T) {
		c := &specless{}
		result, err := c.plan(t)
		require.NoError(t, err)
		require.Equal(t, events.OutcomeUnknown, result.Outcome)
		require.Zero(t, c.acquired)
	})
	for _, what := range []string{"status", "stacks", "keep", "write"} {
		t.Run("fails with the call: "+what, func(t *testing.T) {
			for _, protection := range []string{"false", "true"} {
				if protection == "true" && what == "keep" {
					continue
				}
				failed := fmt.Errorf("throttled %s", what)
				c := &specless{status: &status.Status{Phase: status.Ready}, deployed: deployedAll(protection), err: map[string]error{what: failed}}
				_, err := c.plan(t)
				require.True(t, errors.Is(err, failed), "%v", err)
			}
		})
	}
}
