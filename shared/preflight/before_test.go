package preflight_test

// The findings before an upgrade.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestBeforeOfAHealthyCluster(t *testing.T) {
	w := well()
	require.Empty(t, preflight.Before(w.facts, w.plan))
	require.False(t, preflight.Blocks(nil))
}

// beforeCase is a problem of a cluster before its upgrade, with the findings.
type beforeCase struct {
	spoil func(w *world)
	want  []finding
}

func TestBefore(t *testing.T) {
	for _, cases := range []map[string]beforeCase{healthCases, budgetCases, apiCases, roomCases, versionCases, alarmCases, limitCases} {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				w := well()
				c.spoil(w)
				got := preflight.Before(w.facts, w.plan)
				requireFindings(t, c.want, got)
				var blocked bool
				for _, s := range c.want {
					blocked = blocked || s.blocks
				}
				require.Equal(t, blocked, preflight.Blocks(got))
			})
		}
	}
}

// Nodes are rolled back before the control plane, so a pool's nodes have the older kubelet by then.
func TestKubeletSkewOfRollback(t *testing.T) {
	w := well()
	w.plan.From.KubernetesVersion, w.plan.To.KubernetesVersion, w.plan.Rollback = "1.36", "1.35", true
	w.plan.Steps = []upgrade.Step{
		{Kind: upgrade.StepNodesBack, KubernetesVersion: "1.36"}, {
			Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.36", Addons: map[string]string{"kube-proxy": "v1.35.0"},
		},
		{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", Addons: map[string]string{"kube-proxy": "v1.35.0"}},
	}
	w.plan.After = w.plan.Before
	w.facts.ControlPlane.Version = "1.36"
	for i := range w.facts.Survey.Nodes {
		w.node(i).Kubelet = "v1.36.3"
	}
	w.facts.Survey.KubeProxies = []string{"v1.36.0"}
	require.Empty(t, preflight.Before(w.facts, w.plan))
	w.stranger("v1.36.3")
	requireFindings(t, blocks("KubeletSkew", "kubelet of stranger (v1.36.3) is newer than the control plane at 1.35"),
		preflight.Before(w.facts, w.plan))
	w.plan.Steps = append(w.plan.Steps[:1], w.plan.Steps[2])
	w.plan.Steps[1].Addons = nil
	require.Contains(t, preflight.Before(w.facts, w.plan)[0].Message, "kube-proxy v1.36.0 (v1.36.0) is newer")
	w.insight(preflight.Insight{Name: "Rollback", KubernetesVersion: "1.36", Status: "ERROR", Reason: "too late"})
	require.Contains(t, fmt.Sprint(preflight.Before(w.facts, w.plan)), "Rollback: too late")
}

// Problems may be the reason for a rollback.
func TestBeforeARollbackIgnoresHealth(t *testing.T) {
	w := well()
	w.node(0).Ready, w.facts.Alarms[0].State, w.facts.Addons[0].Status = false, "ALARM", "DEGRADED"
	w.facts.Survey.Pods = []preflight.Pod{
		{Namespace: "kube-system", Name: "aws-node-1", Workload: "Deployment dns", State: "CrashLoopBackOff", Since: old},
	}
	w.facts.ControlPlane.Issues = []string{"no address left"}
	for rollback, blocking := range map[bool][]string{
		false: {"ControlPlaneHealthy", "NodesReady", "SystemPods", "AddonsHealthy", "AlarmsQuiet"}, true: {"ControlPlaneHealthy"},
	} {
		w.plan.Rollback = rollback
		var found, blocks []string
		for _, c := range preflight.Before(w.facts, w.plan) {
			if found = append(found, c.Name); c.Blocks {
				blocks = append(blocks, c.Name)
			}
		}
		require.Subset(t, found, []string{"NodesReady", "SystemPods", "AddonsHealthy", "AlarmsQuiet"})
		require.Equal(t, blocking, blocks)
	}
}

// Passed checks ran and found nothing. Of an unreachable cluster, many do not run.
func TestPassed(t *testing.T) {
	w := well()
	require.Equal(t, preflight.BeforeNames(), preflight.Passed(w.facts, preflight.Before(w.facts, w.plan)))
	w.free(100, 4)
	found := preflight.Before(w.facts, w.plan)
	passed := preflight.Passed(w.facts, found)
	require.NotContains(t, passed, preflight.FreeAddresses)
	require.Len(t, passed, len(preflight.BeforeNames())-len(found))
	w = well()
	w.facts.Unreachable, w.facts.Survey = "no route to host", preflight.Survey{}
	passed = preflight.Passed(w.facts, preflight.Before(w.facts, w.plan))
	require.NotContains(t, passed, preflight.NodesReady)
	require.NotContains(t, passed, preflight.ControlPlaneHealthy)
	require.Contains(t, passed, preflight.Images)
}

// A forbidden API is not an unreachable one. It blocks nothing, and the checks that did not run have not passed.
func TestBeforeWithoutAccess(t *testing.T) {
	w := well()
	w.facts.Forbidden, w.facts.Survey = true, preflight.Survey{}
	found := preflight.Before(w.facts, w.plan)
	require.Empty(t, found)
	missed := preflight.NotRun(w.facts)
	require.Subset(t, missed, []string{preflight.NodesReady, preflight.BudgetsAllow})
	require.NotContains(t, missed, preflight.ControlPlaneHealthy)
	require.Len(t, preflight.Passed(w.facts, found), len(preflight.BeforeNames())-len(missed))
	w.facts.ControlPlane.Status = "UPDATING"
	require.True(t, preflight.Blocks(preflight.Before(w.facts, w.plan)), "EKS reports it")
}

func TestLongListsAreCut(t *testing.T) {
	w := well()
	w.manyNodes(5000)
	for i := range w.facts.Survey.Nodes {
		w.node(i).Ready = false
	}
	got := preflight.Before(w.facts, w.plan)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Message, "5000 of 5000 nodes not Ready: n0 ")
	require.True(t, strings.HasSuffix(got[0].Message, "and 4995 more"), got[0].Message)
	require.Less(t, len(got[0].Message), 500)
}

func TestQuotaCode(t *testing.T) {
	for instanceType, want := range map[string][2]string{
		"m7i.large": {"L-1216C47A", "L-34B43A08"}, "t4g.small": {"L-1216C47A", "L-34B43A08"}, "i4i.large": {"L-1216C47A", "L-34B43A08"},
		"inf2.xlarge": {"L-1945791B", "L-B5D1601B"},
		"im4gn.large": {"L-1216C47A", "L-34B43A08"}, "trn1.2xlarge": {"L-2C3B7624", "L-6B0D517C"}, "g5.xlarge": {"L-DB2E81BA", "L-3819A6DF"},
		"vt1.3xlarge": {"L-DB2E81BA", "L-3819A6DF"},
		"p5.48xlarge": {"L-417A185B", "L-C4BD4855"}, "p4d.24xlarge": {"L-417A185B", "L-7212CCBC"}, "gr6.4xlarge": {"L-DB2E81BA", "L-3819A6DF"},
		"x2gd.medium": {"L-7295265B", "L-E3A00192"}, "dl1.24xlarge": {"L-6E869C2A", "L-85EED4F7"}, "d3.xlarge": {"L-1216C47A", "L-34B43A08"},
		"hpc7a.12xlarge": {"L-F7808C92", ""}, "h1.2xlarge": {"L-1216C47A", "L-34B43A08"}, "u-6tb1.metal": {"L-43DA4232", ""},
		"u7i-12tb.224xlarge": {"L-43DA4232", ""}, "f1.2xlarge": {"L-74FC7D96", "L-88CF9481"},
		"mac1.metal": {"", ""}, "unheard.of": {"", ""},
	} {
		require.Equal(t, want, [2]string{preflight.QuotaCode(instanceType, false), preflight.QuotaCode(instanceType, true)}, instanceType)
	}
}
