package change_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

const otherVersion = "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"

// stuckRollback returns an account with a cluster whose add-ons can be neither changed nor rolled back.
func stuckRollback(t *testing.T) *harness.Account {
	a := harness.Start(t)
	a.Cluster("demo", "")
	failing(a, "update", "AWS::EKS::Addon", "addons", errQuota) // the change and its rollback
	a.Upload("clusters/demo.yaml", harness.Spec("demo", otherVersion))
	a.Settle()
	require.Equal(t, "UPDATE_ROLLBACK_FAILED", a.Stacks("demo")["addons"])
	return a
}

// times counts a call of drover since a mark.
func times(a *harness.Account, mark int, action string) (n int) {
	for _, call := range a.Calls.Since(mark) {
		if call.Action == action && harness.CalledBy(call) != "admin" {
			n++
		}
	}
	return n
}

func TestFailedRollbackContinuesWithTheRetry(t *testing.T) {
	a := stuckRollback(t)
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "drover-demo-addons is UPDATE_ROLLBACK_FAILED: ")
	require.Contains(t, s.Message, errQuota.Message)
	require.Contains(t, s.Message, "continue-update-rollback --stack-name drover-demo-addons --resources-to-skip VpcCni")
	clean(t, a, "demo")
	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.Equal(t, []string{
		"UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED",
		"UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE",
		"UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE",
	}, statuses(t, a, "drover-demo-addons")[3:])
	clean(t, a, "demo")
}

func TestRepeatedlyFailingRollback(t *testing.T) {
	a := stuckRollback(t)
	for range 2 {
		mark := a.Calls.Mark()
		x := a.Converge("demo")
		a.Settle()
		require.Equal(t, "FAILED", a.Execution(x).Status)
		require.Equal(t, 1, times(a, mark, "ContinueUpdateRollback"))
		require.Zero(t, times(a, mark, "CreateChangeSet"))
		s := a.Status("demo")
		require.Contains(t, s.Message, "is UPDATE_ROLLBACK_FAILED")
		require.Contains(t, s.Message, "stuck at: VpcCni (")
		clean(t, a, "demo")
	}
	// An operator skips the resource.
	message := a.Status("demo").Message
	skip := strings.Fields(message[strings.Index(message, "--resources-to-skip ")+len("--resources-to-skip "):])
	_, err := a.CloudFormation.ContinueUpdateRollback(t.Context(), a.Admin(), &cloudformation.ContinueUpdateRollbackInput{
		StackName: "drover-demo-addons", ResourcesToSkip: skip,
	})
	require.NoError(t, err)
	a.Settle()
	require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", a.Stacks("demo")["addons"])
	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// A newer spec is a retry, too.
func TestFailedRollbackContinuesForTheNextSpec(t *testing.T) {
	a := stuckRollback(t)
	a.OnResource(nil)
	a.Cluster("demo", "")
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["addons"])
	clean(t, a, "demo")
}
