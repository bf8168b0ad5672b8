package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// Roles agrees with what the templates create.
func TestRoles(t *testing.T) {
	relay, agent, without := fullCluster(), fullCluster(), fullCluster()
	relay.Spec.ControlPlane.Endpoint = api.Endpoint{PublicCIDRs: []string{"198.51.100.0/24"}}
	agent.Spec.Addons = []api.Addon{
		{Name: "vpc-cni", Version: "v1"}, {Name: "eks-pod-identity-agent", Version: "v1"}, {Name: "coredns", Version: "v1"},
		{Name: "aws-ebs-csi-driver", Version: "v1"},
	}
	without.Spec.Addons, without.Spec.PodIdentities = []api.Addon{{Name: "vpc-cni", Version: "v1"}}, nil
	for name, cluster := range map[string]*api.Cluster{"full": fullCluster(), "relay": relay, "agent": agent, "no agent": without} {
		t.Run(name, func(t *testing.T) {
			in := resolve(t, cluster)
			if name == "no agent" {
				in.Resolved.Spec.Addons = without.Spec.Addons
			}
			created := 0
			for _, stack := range render(t, in).Stacks {
				created += strings.Count(string(stack.Template), "AWS::IAM::Role\"") + strings.Count(string(stack.Template), "Type: AWS::IAM::Role\n")
			}
			require.NotZero(t, created)
			require.Equal(t, created, Roles(in.Resolved))
		})
	}
}
