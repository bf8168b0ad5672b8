package checker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

var toR2 = events.Upgrade{Cluster: "demo", Release: "r2"}

// kinds are the kinds and versions of steps.
func kinds(steps []upgrade.Step) (all []string) {
	for _, s := range steps {
		all = append(all, string(s.Kind)+" "+s.KubernetesVersion)
	}
	return all
}

func requireStop(t *testing.T, err error, message string) {
	t.Helper()
	var stop *route.StopError
	require.ErrorAs(t, err, &stop)
	require.Contains(t, stop.Message, message)
}

func TestPreview(t *testing.T) {
	whole := []string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"}
	for name, test := range map[string]struct {
		given func(*world)
		in    events.Upgrade
		want  []string
		stop  string
	}{
		"has the steps of the whole route": {func(*world) {}, toR2, whole, ""},
		"has the open steps of an upgrade that stopped": {
			func(l *world) {
				stoppedUpgrade(l).Step = 1
				l.eks.Version = "1.36"
				l.stack.Outputs["KubernetesVersion"] = "1.36"
			}, toR2,
			[]string{"Nodes 1.36"}, "",
		},
		"has no steps at the target": {
			func(l *world) { finishedUpgrade(l, 0) }, toR2, nil, "",
		},
		"has the steps back": {
			func(l *world) { finishedUpgrade(l, time.Hour) }, events.Upgrade{Cluster: "demo", Rollback: true},
			[]string{"NodesBack 1.36", "ControlPlane 1.35", "Addons 1.35", "Nodes 1.35"}, "",
		},
		"stops while the control plane changes": {
			func(l *world) {
				l.stack.Status = "UPDATE_IN_PROGRESS"
			}, toR2, nil, "is being changed (UPDATE_IN_PROGRESS): try again when that has finished",
		},
		"stops without a spec": {func(l *world) { l.spec = "" }, toR2, nil, "there is no spec clusters/demo.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			p, err := l.checker().Preview(t.Context(), test.in)
			if test.stop != "" {
				requireStop(t, err, test.stop)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, kinds(p.Steps))
			require.Equal(t, "demo", p.Cluster)
			require.Equal(t, test.in.Rollback, p.Rollback)
		})
	}
}

// facts are those of a Checker.
type facts struct {
	plan  *preflight.Plan
	facts *preflight.Facts
	err   error
}

func (f *facts) Before(_ context.Context, plan *preflight.Plan) (*preflight.Facts, error) {
	f.plan = plan
	return f.facts, f.err
}

func TestCheck(t *testing.T) {
	t.Run("runs the checks of the route", func(t *testing.T) {
		l := waiting()
		f := &facts{facts: &preflight.Facts{Forbidden: true, ControlPlane: preflight.ControlPlane{Version: "1.35", Status: "UPDATING"}}}
		c := l.checker()
		c.Facts = f
		found, err := c.Check(t.Context(), toR2)
		require.NoError(t, err)
		require.Equal(t, preflight.Before(f.facts, f.plan), found)
		require.NotEmpty(t, found)
		require.Equal(t, "r2", f.plan.To.Release)
	})
	t.Run("finds that the upgrade is impossible", func(t *testing.T) {
		l := waiting()
		l.spec = ""
		found, err := l.checker().Check(t.Context(), toR2)
		require.NoError(t, err)
		require.Equal(t, []status.Check{{
			Name: preflight.UpgradePossible, Blocks: true, Message: "there is no spec clusters/demo.yaml: there is nothing to upgrade",
			Next: "Correct it before the upgrade is due, or cancel the upgrade.",
		}}, found)
	})
	t.Run("fails with AWS", func(t *testing.T) {
		l := waiting()
		c := l.checker()
		c.Facts = &facts{err: errThrottled}
		_, err := c.Check(t.Context(), toR2)
		require.ErrorIs(t, err, errThrottled)
		l.fails = []string{"ControlPlane"}
		_, err = c.Check(t.Context(), toR2)
		require.ErrorIs(t, err, errThrottled)
	})
}

func TestReadsFail(t *testing.T) {
	read := []string{
		"Upgrade", "Describe drover-demo-control-plane", "Get " + names.PinnedRelease("sha1"), "Describe drover-demo-addons",
		"Describe drover-demo-addons-on-nodes", "Describe drover-demo-pool-a", "ControlPlane", "Compat [vpc-cni coredns]",
	}
	l := waiting()
	_, err := l.checker().Preview(t.Context(), toR2)
	require.NoError(t, err)
	require.Equal(t, read, l.calls)
	for _, call := range read {
		t.Run("Preview: "+call, func(t *testing.T) {
			l := waiting()
			l.fails = []string{call}
			_, err := l.checker().Preview(t.Context(), toR2)
			require.ErrorIs(t, err, errThrottled)
		})
	}
	running := func() *world {
		l := waiting()
		stoppedUpgrade(l).State, l.running = upgrade.Running, true
		return l
	}
	l = running()
	_, err = l.checker().Answer(t.Context(), toR2)
	require.NoError(t, err)
	require.Equal(t, []string{"Upgrade", "Running earlier", "Describe drover-demo-control-plane"}, l.calls)
	for _, call := range l.calls {
		t.Run("Answer: "+call, func(t *testing.T) {
			l := running()
			l.fails = []string{call}
			result, err := l.checker().Answer(t.Context(), toR2)
			require.ErrorIs(t, err, errThrottled)
			require.Empty(t, result)
		})
	}
	t.Run("Answer: Compat", func(t *testing.T) {
		l := waiting()
		l.fails = []string{"Compat [vpc-cni coredns]"}
		_, err := l.checker().Answer(t.Context(), toR2)
		require.ErrorIs(t, err, errThrottled)
	})
	for _, content := range []string{"", "kind: Other\n"} {
		t.Run(fmt.Sprintf("a rollback to a pinned release %q", content), func(t *testing.T) {
			l := waiting()
			finishedUpgrade(l, 0).From.SHA256, l.sha3 = "sha3", content
			_, err := l.checker().ResolveRoute(t.Context(), events.Upgrade{Cluster: "demo", Rollback: true}, l.record)
			if content == "" {
				require.ErrorContains(t, err, "reading the pinned release r1")
				return
			}
			requireStop(t, err, "is invalid")
		})
	}
}

func TestDeployed(t *testing.T) {
	l := waiting()
	target, err := l.checker().Deployed(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}, target)
	l.fails = []string{"Describe drover-demo-control-plane"}
	_, err = l.checker().Deployed(t.Context(), "demo")
	require.ErrorIs(t, err, errThrottled)
	_, err = l.checker().IsCurrent(t.Context(), "demo", l.record)
	require.ErrorIs(t, err, errThrottled)
	l.stack.Outputs, l.fails = nil, nil
	_, err = l.checker().Deployed(t.Context(), "demo")
	requireStop(t, err, "cluster demo has no control plane yet")
}

func TestLoadRoute(t *testing.T) {
	l := waiting()
	r, err := l.checker().LoadRoute(t.Context(), "demo", runningUpgrade())
	require.NoError(t, err)
	require.Equal(t, runningUpgrade().From, r.From)
	require.Equal(t, runningUpgrade().Target, r.To)
	require.Equal(t, []string{"1.35", "1.36"}, []string{r.Before.Spec.KubernetesVersion, r.After.Spec.KubernetesVersion})
	require.Equal(t, fmt.Sprintf(releaseText, "r2", "1.36"), string(r.NewBody))
	l.spec = ""
	_, err = l.checker().LoadRoute(t.Context(), "demo", runningUpgrade())
	requireStop(t, err, "there is no spec")
	for _, sha := range []string{"sha1", "sha2"} {
		l := waiting()
		l.fails = []string{"Get " + names.PinnedRelease(sha)}
		_, err = l.checker().LoadRoute(t.Context(), "demo", runningUpgrade())
		require.ErrorIs(t, err, errThrottled, sha)
	}
}

func TestRemainingSteps(t *testing.T) {
	plane := func(version string) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepControlPlane, KubernetesVersion: version}
	}
	nodes := func(version string) upgrade.Step {
		return upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: version}
	}
	first := upgrade.Step{Kind: upgrade.StepAddonsFirst, KubernetesVersion: "1.35", Started: noon}
	back := upgrade.Step{Kind: upgrade.StepNodesBack, KubernetesVersion: "1.35", NodesRolledBack: true}
	for name, test := range map[string]struct {
		runs  string
		steps []upgrade.Step
		open  int
		want  []string
		from  int
		back  bool
	}{
		"are computed for a new upgrade": {
			runs: "1.35", want: []string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"stay after the last update of the control plane": {
			runs: "1.35", steps: []upgrade.Step{plane("1.36"), nodes("1.36")}, open: 1, want: []string{"ControlPlane 1.36", "Nodes 1.36"}, from: 1,
		},
		"are computed again before the next update": {
			runs: "1.35", steps: []upgrade.Step{first, plane("1.36"), nodes("1.36")}, open: 1,
			want: []string{"ControlPlane 1.36", "Addons 1.36", "Nodes 1.36"},
		},
		"stay before an update that EKS made": {
			runs: "1.36", steps: []upgrade.Step{first, plane("1.36"), nodes("1.36")}, open: 1,
			want: []string{"AddonsFirst 1.35", "ControlPlane 1.36", "Nodes 1.36"}, from: 1,
		},
		"skip an update that EKS passed": {
			runs: "1.37", steps: []upgrade.Step{plane("1.36"), plane("1.37"), nodes("1.37")}, open: 0,
			want: []string{"ControlPlane 1.37", "Nodes 1.37"},
		},
		"are those of a rollback that continues": {
			runs: "1.35", steps: []upgrade.Step{back, {Kind: upgrade.StepControlPlane, KubernetesVersion: "1.34", NodesRolledBack: true}},
			open: 1, back: true,
			want: []string{"NodesBack 1.36", "ControlPlane 1.35", "Addons 1.35", "Nodes 1.35"},
		},
		"end with the last step": {
			runs: "1.36", steps: []upgrade.Step{plane("1.36"), nodes("1.36")}, open: 9, want: []string{"ControlPlane 1.36", "Nodes 1.36"}, from: 9,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			c := l.checker()
			r, err := c.LoadRoute(t.Context(), "demo", runningUpgrade())
			require.NoError(t, err)
			if test.back {
				r.Before, r.After = r.After, r.Before
			}
			l.eks.Version = test.runs
			steps, open, err := c.RemainingSteps(t.Context(), toR2, &r, test.steps, test.open)
			require.NoError(t, err)
			require.Equal(t, test.want, kinds(steps))
			require.Equal(t, test.from, open)
		})
	}
	t.Run("stop when the versions are too far apart", func(t *testing.T) {
		l := waiting()
		c := l.checker()
		r, err := c.LoadRoute(t.Context(), "demo", runningUpgrade())
		require.NoError(t, err)
		r.After.Spec.KubernetesVersion = "1.39"
		_, _, err = c.RemainingSteps(t.Context(), toR2, &r, nil, 0)
		requireStop(t, err, "EKS offers up to 1.36 here, upgrade to 1.36 first")
		l.fails = []string{"Offered"}
		_, _, err = c.RemainingSteps(t.Context(), toR2, &r, nil, 0)
		require.ErrorIs(t, err, errThrottled)
	})
}
