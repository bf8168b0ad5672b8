package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// EKS has one role for a service account. That of an add-on cannot have a second one.
func TestPodIdentityOfAnAddonsAccount(t *testing.T) {
	settings, err := api.ParseCellSettings(`{"workloadRoles": ["` + workloads + `*"]}`)
	require.NoError(t, err)
	settings.Account = "111122223333"
	o := options
	o.Cell = &settings
	read := func(addon, namespace, account string) []string {
		_, errs := api.ReadCluster("demo.yaml", edit(t, good, pairs{"  controlPlane: {}", "  controlPlane: {}\n  addons:\n    - " + addon +
			"\n  podIdentities:\n    - {namespace: " + namespace + ", serviceAccount: " + account + ", roleARN: " + workloads + "x}"}), o)
		return lines(errs)
	}
	const refused = " has this service account and a role for it: remove this entry, or state podIdentities of the add-on"
	require.Equal(t, []string{`demo.yaml:15: spec.podIdentities[0].serviceAccount: Invalid value: "kube-system/aws-node": the add-on vpc-cni` +
		refused}, read("{name: vpc-cni}", "kube-system", "aws-node"))
	require.Empty(t, read("{name: vpc-cni}", "shop", "aws-node"))
	require.Empty(t, read("{name: vpc-cni, podIdentities: []}", "kube-system", "aws-node"))
	const logs = "{name: amazon-cloudwatch-observability, " +
		"podIdentities: [{serviceAccount: cloudwatch-agent, policies: [CloudWatchAgentServerPolicy]}]}"
	require.Equal(t, []string{`demo.yaml:15: spec.podIdentities[0].serviceAccount: Invalid value: "amazon-cloudwatch/cloudwatch-agent": the ` +
		`add-on amazon-cloudwatch-observability` + refused}, read(logs, "amazon-cloudwatch", "cloudwatch-agent"))
}
