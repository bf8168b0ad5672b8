package deletion_test

// Deletions of clusters whose stacks were changed outside drover before the spec was deleted. The protection of their data must hold.

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// A deleted control plane cannot report which volumes its cluster retains.
func TestDeletionWithoutList(t *testing.T) {
	run(t, func(a *life) {
		before := a.AllResources()
		a.Cluster("demo", lives.Unprotected)
		volumes := a.KubernetesMakes("demo")
		a.PersistVolume("demo", volumes[0], "Delete")
		a.PersistVolume("demo", volumes[1], "Retain")
		a.DeleteStack("demo", names.ControlPlane)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		for arn := range a.AllResources() {
			if slices.ContainsFunc(volumes, func(id string) bool { return strings.HasSuffix(arn, "/"+id) }) {
				before[arn] = a.AllResources()[arn]
			}
		}
		a.RequireDeleted("demo", before)
		s := a.Status("demo")
		require.False(t, s.Deletion.RetainListed)
		for _, id := range volumes {
			require.Contains(t, s.Deletion.Retained, "volume "+id)
			require.Contains(t, s.Message, "volume "+id)
			require.Len(t, slices.DeleteFunc(slices.Collect(maps.Keys(a.AllResources())), func(arn string) bool {
				return !strings.HasSuffix(arn, "/"+id)
			}), 1)
		}
	})
}

// CloudFormation would delete these stacks, as termination protection is off. The control plane's parameter and the
// accepted spec protect them.
func TestDeletionWithoutTerminationProtection(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("demo", "")
		for _, stack := range []string{names.Network, names.ControlPlane} {
			_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
				StackName: names.Stack("demo", stack),
			})
			require.NoError(t, err)
			require.False(t, a.Stack("demo", stack).TerminationProtection)
		}
		require.Equal(t, "true", a.Stack("demo", names.ControlPlane).Parameters["DeletionProtection"])
		all := slices.Sorted(maps.Keys(a.AllResources()))
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase)
		require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "(control-plane, network)", "the spec protects the network, which has no parameter")
		require.Equal(t, all, slices.Sorted(maps.Keys(a.AllResources())))
	})
}
