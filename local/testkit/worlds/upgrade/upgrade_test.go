package upgrade_test

// A successful upgrade with the real state machine and function, in virtual time, and its costs.

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestSuccessfulUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		require.False(t, l.AlarmEnabled())
		require.Equal(t, status.Upgrading, l.Status("demo").Phase)
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion, "while EKS is at it")
		l.WaitForUpdate("pool-a")
		require.Equal(t, "1.36", l.Status("demo").KubernetesVersion)
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		l.RequireUpgraded()
		s := l.Status("demo")
		require.Len(t, s.Upgrades, 1)
		require.Equal(t, []string{"control plane to 1.36", "add-ons to the versions of the release", "nodes to the images of the release"},
			stepNames(s.Upgrade))
		for _, step := range s.Upgrade.Steps {
			require.NotNil(t, step.Ended, step.Name)
		}
		t.Run("again finds nothing to do", func(t *testing.T) {
			before := len(l.Calls.Since(0))
			again := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(again))
			for _, call := range l.Calls.Since(before) {
				require.False(t, lives.Mutates(call) && harness.CalledBy(call) != "admin", "%s %s", call.Service, call.Action)
			}
		})
	})
}

func stepNames(u *status.Upgrade) (all []string) {
	for _, s := range u.Steps {
		all = append(all, s.Name)
	}
	return all
}

// transitions counts the states that the executions of each machine entered. Step Functions charges for them.
// https://aws.amazon.com/step-functions/pricing/
func (l *life) transitions(since int) map[string]int {
	l.T.Helper()
	count := map[string]int{}
	for _, x := range l.StepFunctions.Executions()[since:] {
		pages := sfn.NewGetExecutionHistoryPaginator(sfn.NewFromConfig(l.Config()), &sfn.GetExecutionHistoryInput{
			ExecutionArn: &x.ARN, MaxResults: 1000,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(l.T.Context())
			require.NoError(l.T, err)
			for _, e := range page.Events {
				if strings.HasSuffix(string(e.Type), "StateEntered") {
					count[strings.TrimPrefix(x.MachineName, names.Prefix)]++
				}
			}
		}
	}
	return count
}

// The costs of an upgrade by one minor version, with 2 pools of 10 nodes. cmd/bench reads the figures; docs/performance.md has them.
func TestUpgradeCosts(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		more := "    - {name: b, instanceTypes: [m7i.large], minSize: 10, maxSize: 12}\n" + lives.Alarmed
		spec := func(more string) string {
			return strings.Replace(harness.Spec("demo", more), "name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3",
				"name: c, instanceTypes: [m7i.large], minSize: 10, maxSize: 12", 1)
		}
		l.CreateOldCluster("")
		l.Upload(names.ClusterSpec("demo"), spec(more))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		before, began, mark := len(l.StepFunctions.Executions()), time.Now(), l.Calls.Mark()
		ranBefore, spentBefore := l.Functions.Ran()
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.over(arn)
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		took := time.Since(began)
		l.SettleAll()
		ran, spent := l.Functions.Ran()
		t.Logf("figure invocations %d", ran-ranBefore)
		t.Logf("figure waited %.0f", (spent - spentBefore).Seconds())
		for _, call := range l.Calls.Since(mark) {
			if harness.CalledBy(call) != "" && (call.Service == "s3" || call.Action == "Publish" || call.Action == "PutEvents") {
				t.Logf("called %s", call.Action)
			}
		}
		l.RequireUpgraded()
		count := l.transitions(before)
		// Both pools are replaced in parallel, one node at a time. No pods delay the drains.
		minimum := eks.UpdateTakes + 10*ec2.BootTakes
		ratio := took.Seconds() / minimum.Seconds()
		for machine, n := range count {
			t.Logf("figure transitions/%s %d", machine, n)
		}
		t.Logf("figure nodes %d", len(l.API("drover-demo").Nodes()))
		t.Logf("figure seconds %.0f", took.Seconds())
		t.Logf("figure minimum %.0f", minimum.Seconds())
		require.LessOrEqual(t, count["upgrade"], 25)
		require.GreaterOrEqual(t, ratio, 1.0)
		require.LessOrEqual(t, ratio, 1.15)
	})
}
