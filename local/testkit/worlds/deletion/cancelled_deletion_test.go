package deletion_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// A deletion failed. The user uploads the spec again, with deletion protection.
func TestFailedDeletionIsCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		stack, kind string // whose deletion fails
		// kept is the reason why the cluster is not adopted. If it is empty, drover recreates the stack.
		kept string
	}{
		"the network's, after the control plane was deleted":     {"network", "AWS::EC2::VPC", ""},
		"the control plane's, after the EKS cluster was deleted": {"control-plane", "AWS::KMS::Key", ""},
		"the EKS cluster's own": {
			"control-plane", "AWS::EKS::Cluster", "the EKS cluster drover-demo still exists",
		},
		"the control plane's, before the EKS cluster was tried": {
			"control-plane", "AWS::EKS::AccessEntry", "the EKS cluster drover-demo still exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(a *life) {
				a.Cluster("demo", lives.Unprotected)
				a.OnResource(func(step string, r resource.Request) error {
					if step == "delete" && r.Type == c.kind && r.StackName == names.Stack("demo", c.stack) {
						return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
					}
					return nil
				})
				a.Remove("clusters/demo.yaml", "")
				a.Settle()
				require.Equal(t, "DELETE_FAILED", a.Stacks("demo")[c.stack])
				network := a.Stack("demo", "network").Outputs["VpcId"]
				if c.kind == "AWS::EC2::VPC" {
					require.Contains(t, a.Status("demo").Message, "to find what blocks it: aws ec2 describe-network-interfaces --filters "+
						"Name=vpc-id,Values="+network+" ")
				}
				a.OnResource(nil)
				a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: true\n"))
				a.Settle()
				s := a.Status("demo")
				if c.kept == "" {
					require.Equal(t, status.Ready, s.Phase, s.Message)
					require.True(t, a.Protected("drover-demo"))
					require.Equal(t, c.stack == "control-plane", network == a.Stack("demo", "network").Outputs["VpcId"], "what could be kept was")
					return
				}
				require.Equal(t, status.Failed, s.Phase)
				require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason)
				require.Contains(t, s.Message, c.kept)
				require.Contains(t, s.Message, "failed to delete: [", "AWS's own reason")
				require.Equal(t, "DELETE_FAILED", a.Stacks("demo")["control-plane"])
				require.True(t, a.Stack("demo", "network").TerminationProtection, "what can be adopted is")
			})
		})
	}
}
