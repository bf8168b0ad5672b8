package preflight_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// back is a rollback from 1.36 to 1.35, in the middle of the period that EKS allows.
func back() *world {
	w := well()
	w.plan.From, w.plan.To = w.plan.To, w.plan.From
	w.plan.Before, w.plan.After = w.plan.After, w.plan.Before
	w.plan.Rollback, w.plan.RollbackUntil = true, now.Add(84*time.Hour)
	w.plan.Steps = []upgrade.Step{
		{Kind: upgrade.StepNodesBack, KubernetesVersion: "1.36"},
		{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", NodesRolledBack: true},
		{Kind: upgrade.StepAddons, KubernetesVersion: "1.35", NodesRolledBack: true}, {
			Kind: upgrade.StepNodes, KubernetesVersion: "1.35", NodesRolledBack: true,
		},
	}
	w.facts.ControlPlane.Version = "1.36"
	return w
}

// The nodes are rolled back first. So an impossible rollback of the control plane must be reported before.
func TestBeforeARollback(t *testing.T) {
	extended := func(w *world) {
		w.facts.Catalog[0].Status, w.facts.Catalog[0].EndOfStandard = "EXTENDED_SUPPORT", old
	}
	for name, c := range map[string]struct {
		spoil func(*world)
		want  []finding
	}{
		"a possible rollback": {func(*world) {}, nil},
		"to a version that the cluster may no longer have": {
			extended, blocks("SupportDates", "EKS rolls no control plane back to Kubernetes 1.35"),
		},
		"to a version that it may have": {
			func(w *world) {
				extended(w)
				w.plan.After.Spec.ControlPlane.SupportType = api.SupportExtended
			}, warns("SupportDates", "in extended support since"),
		},
		"of nodes only": {
			func(w *world) {
				extended(w)
				w.plan.From.KubernetesVersion, w.facts.ControlPlane.Version = "1.35", "1.35"
			}, warns("SupportDates", "in extended support since"),
		},
		"with little time left": {func(w *world) { w.plan.RollbackUntil = now.Add(30 * time.Hour) }, warns("SupportDates", "in 30h0m0s")},
	} {
		t.Run(name, func(t *testing.T) {
			w := back()
			c.spoil(w)
			requireFindings(t, c.want, preflight.Before(w.facts, w.plan))
		})
	}
}

// EKS itself upgrades a control plane when support ends, and users do in its console.
func TestMovedControlPlane(t *testing.T) {
	w := well()
	w.from("1.34")
	w.plan.From.KubernetesVersion, w.plan.UpgradeFrom = "1.35", "1.34"
	requireFindings(t, blocks("ControlPlaneHealthy", "EKS runs Kubernetes 1.34, and drover deployed 1.35"),
		preflight.Before(w.facts, w.plan))
	w.facts.ControlPlane.Version = "1.36"
	require.Empty(t, preflight.Before(w.facts, w.plan), "a version of this upgrade")

	_, next := preflight.VersionChangedOutside("demo", "1.37", "1.36")
	require.Contains(t, next, "Upgrade to a release of Kubernetes 1.37")
	_, next = preflight.VersionChangedOutside("demo", "1.35", "1.36") // an upgrade to an older version is refused
	require.Contains(t, next, "Upgrade it to 1.36 again")
	what, _ := preflight.VersionChangedOutside("demo", "1.36", "1.36")
	require.Empty(t, what)
	what, _ = preflight.VersionChangedOutside("demo", "", "1.36")
	require.Empty(t, what, "unknown")
}

// A check that did not run has not passed.
func TestMissedChecks(t *testing.T) {
	w := well()
	require.Empty(t, preflight.NotRun(w.facts))
	w.facts.Unreachable = "no route"
	found := preflight.Before(w.facts, w.plan)
	missed, passed := preflight.NotRun(w.facts), preflight.Passed(w.facts, found)
	require.Contains(t, missed, "BudgetsAllow")
	require.NotContains(t, passed, "BudgetsAllow")
	require.Len(t, preflight.BeforeNames(), len(missed)+len(passed)+len(found), "each check is missed, passed or found something")
}

func TestWebhookOutsideTheCluster(t *testing.T) {
	w := well()
	w.facts.Survey.Webhooks = []preflight.Webhook{
		{Configuration: "ValidatingWebhookConfiguration policy", Name: "v.example.com", Host: "policy.example.com", Matches: []string{
			"evictions",
		}},
	}
	requireFindings(t, warns("Webhooks", "v.example.com of ValidatingWebhookConfiguration policy (policy.example.com, called for evictions)"),
		preflight.Before(w.facts, w.plan))
}

func TestAfterWithoutABaseline(t *testing.T) {
	w, _ := upgradedWorld()
	requireFindings(t, warns("WorkloadsReady", "is no longer known"), preflight.After(preflight.Baseline{Lost: true}, w.facts, w.plan))
}
