package aws_test

// The life of a cluster under both readings of AWS's open questions.

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// withAgent returns a release with the agent of pod identity, so that add-ons have pod identity associations.
func withAgent(release string) string {
	const cni = "    - {name: vpc-cni"
	return strings.Replace(release, cni, "    - {name: eks-pod-identity-agent, version: v1.3.10-eksbuild.1}\n"+cni, 1)
}

// TestReadings is one life with everything on which the readings differ: a key, access entries of roles, add-ons with pod identity, rolls
// by both strategies, an upgrade and its rollback. TestAddedNodeIsNoBatch has the signals of instances that an autoscaler adds.
func TestReadings(t *testing.T) {
	tests := map[string]questions.Readings{"strict": nil}
	all, err := questions.Parse(questions.Every)
	require.NoError(t, err)
	tests["other"] = all
	for _, q := range questions.All() {
		tests["other "+string(q.Name)] = questions.Readings{q.Name: true}
	}
	for name, readings := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lives.StartWith(t, harness.Options{Bubble: true, Readings: readings})
				l.CreateResource("AWS::IAM::Role", map[string]any{"RoleName": "admins", "AssumeRolePolicyDocument": map[string]any{
					"Version": "2012-10-17", "Statement": []any{
						map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": harness.ID}, "Action": "sts:AssumeRole"},
					}}})
				const access = "  controlPlane: {access: [{principalARN: \"arn:aws:iam::" + harness.ID +
					":role/admins\", policies: [{name: AmazonEKSViewPolicy}]}]}\n"
				second := func(fields string) string {
					return "    - {name: b, instanceTypes: [m7i.large], minSize: 2, maxSize: 3, update: {strategy: InstanceRefresh}" + fields + "}\n"
				}
				l.Upload(names.ReleaseSpec("r1"), withAgent(harness.ReleaseOf("1.35", "r1")))
				l.Upload(names.ReleaseSpec("r2"), strings.Replace(withAgent(harness.ReleaseOf("1.36", "r2")),
					"v1.21.1-eksbuild.1", "v1.20.4-eksbuild.2", 1))
				l.ChangeSpec(second("") + access + lives.Unprotected)
				l.RequirePhase(status.Ready)
				l.ChangeSpec(second(", labels: {a: b}") + access + lives.Unprotected)
				l.RequirePhase(status.Ready)
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequirePhase(status.Ready)
				require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				l.StartUpgrade(events.Upgrade{Rollback: true})
				l.SettleAll()
				require.Equal(t, "Done", l.Status("demo").Upgrade.Phase, l.Status("demo").Upgrade.Message)
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				l.Remove(names.ClusterSpec("demo"), "")
				l.SettleAll()
				l.RequirePhase(status.Deleted)
			})
		})
	}
}
