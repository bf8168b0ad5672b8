package route

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/upgrade"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// Targets of the tests.
var (
	r1 = upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}
	r2 = upgrade.Target{Release: "r2", SHA256: "sha2", KubernetesVersion: "1.36"}
	r3 = upgrade.Target{Release: "r3", SHA256: "sha3", KubernetesVersion: "1.37"}
)

// requireStop requires that an error stops the upgrade, and that its message contains the words.
func requireStop(t *testing.T, err error, words string) {
	t.Helper()
	var stop *StopError
	require.ErrorAs(t, err, &stop)
	require.Contains(t, stop.Message, words)
}

func TestDeployedTarget(t *testing.T) {
	of := func(tag, version string) stack.Deployed {
		s := stack.Deployed{Tags: map[string]string{names.TagRelease: tag}, Outputs: map[string]string{"KubernetesVersion": version}}
		if tag == "" {
			s.Tags = nil
		}
		return s
	}
	target, err := Deployed("demo", of("r1@sha1", "1.35"))
	require.NoError(t, err)
	require.Equal(t, r1, target)
	_, err = Deployed("demo", of("", "1.35"))
	requireStop(t, err, names.TagRelease+" was removed from stack drover-demo-control-plane")
	for _, tag := range []string{"", "r1@sha1"} {
		_, err = Deployed("demo", of(tag, ""))
		requireStop(t, err, "cluster demo has no control plane yet")
	}
}

func TestBusy(t *testing.T) {
	for status, waits := range map[string]bool{
		"UPDATE_COMPLETE": false, "UPDATE_ROLLBACK_COMPLETE": false, "": false, "UPDATE_IN_PROGRESS": true, "ROLLBACK_COMPLETE": true,
	} {
		busy := Busy(stack.Deployed{Status: status})
		require.Equal(t, waits, busy != "", status)
		if waits {
			require.Contains(t, busy, "("+status+")")
		}
	}
	require.NotEqual(t, Busy(stack.Deployed{Status: "DELETE_IN_PROGRESS"})[:10], Busy(stack.Deployed{Status: "ROLLBACK_COMPLETE"})[:10])
}

func TestSetTarget(t *testing.T) {
	stopped := func(origin upgrade.Origin) *upgrade.Record {
		return &upgrade.Record{State: upgrade.Stopped, Origin: origin, Target: r2}
	}
	done := &upgrade.Record{State: upgrade.Done, Target: r2}
	for name, test := range map[string]struct {
		last             *upgrade.Record
		requested        string
		want             upgrade.Target
		pinned, complete bool
	}{
		"is the release of the spec":                {want: upgrade.Target{Release: "r3"}},
		"is the requested release":                  {requested: "r4", want: upgrade.Target{Release: "r4"}},
		"keeps the content of the deployed release": {requested: "r1", want: upgrade.Target{Release: "r1", SHA256: "sha1"}, pinned: true},
		"is the target of the upgrade that stopped": {last: stopped(upgrade.OriginCommand), want: r2, pinned: true, complete: true},
		"is the spec's after a rollback stopped":    {last: stopped(upgrade.OriginRollback), want: upgrade.Target{Release: "r3"}},
		"is the spec's after an upgrade":            {last: done, want: upgrade.Target{Release: "r3"}},
		"keeps the content of the stopped upgrade": {
			last: stopped(upgrade.OriginCommand), requested: "r2", want: upgrade.Target{Release: "r2", SHA256: "sha2"}, pinned: true,
		},
		"reads the release of a finished upgrade": {last: done, requested: "r2", want: upgrade.Target{Release: "r2"}},
		"keeps the deployed content after a stop": {
			last: stopped(upgrade.OriginCommand), requested: "r1", want: upgrade.Target{Release: "r1", SHA256: "sha1"}, pinned: true,
		},
		"is another release than the upgrade's when": {
			last: stopped(upgrade.OriginCommand), requested: "r4", want: upgrade.Target{Release: "r4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Route{Spec: &api.Cluster{}, From: r1, Last: test.last}
			r.Spec.Spec.Release.Name = "r3"
			pinned, complete := r.SetTarget(events.Upgrade{Release: test.requested})
			require.Equal(t, test.want, r.To)
			require.Equal(t, test.pinned, pinned)
			require.Equal(t, test.complete, complete)
		})
	}
	t.Run("is the requested content", func(t *testing.T) {
		r := Route{Spec: &api.Cluster{}, From: r1, Last: stopped(upgrade.OriginCommand)}
		pinned, complete := r.SetTarget(events.Upgrade{Release: "r2", SHA256: "sha9"})
		require.Equal(t, upgrade.Target{Release: "r2", SHA256: "sha9"}, r.To)
		require.Equal(t, []bool{true, false}, []bool{pinned, complete})
	})
}

func TestSetVersion(t *testing.T) {
	for name, test := range map[string]struct{ requested, stated, of, want string }{
		"is the requested one":              {requested: "1.34", stated: "1.35", of: "r2", want: "1.34"},
		"is the spec's for its release":     {stated: "1.35", of: "r2", want: "1.35"},
		"is the release's for another one":  {stated: "1.35", of: "r1", want: "1.36"},
		"is the release's without the spec": {of: "r2", want: "1.36"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Route{Spec: &api.Cluster{}, New: &api.Release{}, To: upgrade.Target{Release: "r2"}}
			r.Spec.Spec.Release.Name, r.Spec.Spec.KubernetesVersion, r.New.Spec.KubernetesVersion = test.of, test.stated, "1.36"
			r.SetVersion(events.Upgrade{KubernetesVersion: test.requested})
			require.Equal(t, test.want, r.To.KubernetesVersion)
		})
	}
}

func TestSetRollbackTarget(t *testing.T) {
	// upgraded is the record of an upgrade from r1 to r2, whose control plane was updated that long ago.
	upgraded := func(ago time.Duration, change ...func(*upgrade.Record)) *upgrade.Record {
		r := &upgrade.Record{State: upgrade.Done, Origin: upgrade.OriginSpec, From: r1, Target: r2, Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36", Ended: noon.Add(-ago)},
			{Kind: upgrade.StepNodes, KubernetesVersion: "1.36", Ended: noon},
		}}
		for _, change := range change {
			change(r)
		}
		return r
	}
	origin := func(state upgrade.State) func(*upgrade.Record) {
		return func(r *upgrade.Record) {
			r.Origin, r.State, r.Target, r.RollbackUntil = upgrade.OriginRollback, state, r1, noon.Add(day)
		}
	}
	requests := map[string]events.Upgrade{
		"the release that the request names":      {Release: "r1", SHA256: "sha1"},
		"none when the request names another":     {Release: "r3"},
		"none when the request has other content": {Release: "r1", SHA256: "sha9"},
	}
	for name, test := range map[string]struct {
		last  *upgrade.Record
		want  upgrade.Target
		until time.Time
		stop  string
	}{
		"the release that the request names":      {upgraded(day), r1, noon.Add(6 * day), ""},
		"none when the request names another":     {upgraded(day), upgrade.Target{}, time.Time{}, "the release before the last upgrade is r1"},
		"none when the request has other content": {upgraded(day), upgrade.Target{}, time.Time{}, "release r1 is not possible"},
		"none without an upgrade":                 {nil, upgrade.Target{}, time.Time{}, "no upgrade that can be rolled back"},
		"the release before":                      {upgraded(day), r1, noon.Add(6 * day), ""},
		"the release before, in seven days":       {upgraded(7 * day), r1, noon, ""},
		"none after seven days": {
			upgraded(7*day + 1), r1, noon, "rolls a control plane back within 7 days",
		},
		"the release before, at any time, when the version stays": {
			upgraded(8*day, func(r *upgrade.Record) { r.From.KubernetesVersion = "1.36" }),
			upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.36"}, time.Time{}, "",
		},
		"the release before, when the control plane was not updated": {
			upgraded(8*day, func(r *upgrade.Record) { r.Steps[0].Ended = time.Time{} }), r1, time.Time{}, "",
		},
		"the release before, by its update to the deployed version": {
			upgraded(day, func(r *upgrade.Record) {
				r.Steps = append([]upgrade.Step{{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", Ended: noon.Add(-9 * day)}}, r.Steps...)
			}), r1, noon.Add(6 * day), "",
		},
		"the one that the record names": {
			upgraded(day, func(r *upgrade.Record) { r.RollbackTarget, r.RollbackUntil = &r3, noon.Add(2*day) }), r3, noon.Add(2 * day), "",
		},
		"none of a rollback that is done": {
			upgraded(day, origin(upgrade.Done)), upgrade.Target{}, time.Time{}, "rolled back already, to release r1",
		},
		"the same of a rollback that stopped": {upgraded(day, origin(upgrade.Stopped)), r1, noon.Add(day), ""},
		"the one before a blocked upgrade's": {
			&upgrade.Record{State: upgrade.Blocked, From: r2, Target: r3, Last: upgraded(day)}, r1, noon.Add(6 * day), "",
		},
		"none of the first, which was blocked": {
			&upgrade.Record{State: upgrade.Blocked, From: r2, Target: r3}, upgrade.Target{}, time.Time{}, "no upgrade that can be rolled back",
		},
		"none after the deadline of the record": {upgraded(day, func(r *upgrade.Record) {
			r.RollbackTarget, r.RollbackUntil = &r3, noon.Add(-1)
		}), r3, noon.Add(-1), "within 7 days"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Route{From: r2, Last: test.last}
			err := r.SetRollbackTarget(requests[name], noon)
			if test.stop != "" {
				requireStop(t, err, test.stop)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, r.To)
			require.Equal(t, test.until, r.RollbackUntil)
		})
	}
}

// release is a release with an image and the add-ons.
func release(t *testing.T, name, kubernetes, image string) *api.Release {
	t.Helper()
	r, errs := api.ReadRelease(name, fmt.Appendf(nil, `apiVersion: drover.run/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  kubernetesVersion: "%s"
  images: {amd64: %s, arm64: ami-0123456789abcdef9}
  addons:
    - {name: vpc-cni, version: v1.21.1-eksbuild.1}
    - {name: coredns, version: v1.13.2-eksbuild.1}
  templateVersion: v1
`, name, kubernetes, image), api.Options{Name: name})
	require.Nil(t, errs)
	return r
}

const oldImage, newImage = "ami-0123456789abcdef1", "ami-0123456789abcdef2"

// route is a route of cluster demo from r1 to r2.
func route(t *testing.T) *Route {
	t.Helper()
	spec, errs := api.ReadCluster("demo", []byte(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r2}
  network: {cidr: 10.0.0.0/16, zones: [eu-west-1a, eu-west-1b]}
  upgrade: {alarms: [errors]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
`), api.Options{Name: "demo"})
	require.Nil(t, errs)
	return &Route{Spec: spec, From: r1, To: r2, Old: release(t, "r1", "1.35", oldImage), New: release(t, "r2", "1.36", newImage)}
}

func TestResolve(t *testing.T) {
	t.Run("resolves the cluster before and after", func(t *testing.T) {
		r := route(t)
		require.NoError(t, r.Resolve())
		require.Equal(t, []string{"1.35", oldImage}, []string{r.Before.Spec.KubernetesVersion, r.Before.Spec.Pools[0].ImageID})
		require.Equal(t, []string{"1.36", newImage}, []string{r.After.Spec.KubernetesVersion, r.After.Spec.Pools[0].ImageID})
	})
	without := func(r *api.Release) { delete(r.Spec.Images, "amd64") }
	for name, test := range map[string]struct {
		change func(*Route)
		stop   string
	}{
		"stops when the spec does not fit the deployed release": {func(r *Route) { without(r.Old) }, "deployed release (r1)"},
		"stops when the spec does not fit the target":           {func(r *Route) { without(r.New) }, "the spec is invalid with the release r2"},
		"stops when the cluster would not be valid": {
			func(r *Route) { r.New.Spec.TemplateVersion = "v999" }, "the cluster would be invalid with the release r2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := route(t)
			test.change(r)
			requireStop(t, r.Resolve(), test.stop)
		})
	}
}

func TestApplyDeployed(t *testing.T) {
	r := route(t)
	require.NoError(t, r.Resolve())
	require.Equal(t, []string{names.Addons, names.NodeAddons, "pool-a", "pool-b"}, r.ComponentStacks())
	r.ApplyDeployed(map[string]stack.Deployed{
		names.Addons: {Outputs: map[string]string{"VpcCniVersion": "v1.20.0-eksbuild.1"}},
		"pool-a":     {Outputs: map[string]string{"ImageId": "ami-0123456789abcdef7"}},
	})
	require.Equal(t, map[string]string{"a": "ami-0123456789abcdef7"}, r.Images)
	require.Equal(t, []string{"ami-0123456789abcdef7", oldImage}, []string{r.Before.Spec.Pools[0].ImageID, r.Before.Spec.Pools[1].ImageID})
	var addons []string
	for _, a := range r.Before.Spec.Addons {
		addons = append(addons, a.Version)
	}
	require.Equal(t, []string{"v1.20.0-eksbuild.1", "v1.13.2-eksbuild.1"}, addons)
}

func TestChecked(t *testing.T) {
	r := route(t)
	require.NoError(t, r.Resolve())
	r.New.Spec.UpgradeFrom, r.RollbackUntil = "1.34", noon
	steps := []upgrade.Step{{Kind: upgrade.StepNodes}}
	require.Equal(t, &preflight.Plan{
		Cluster: "demo", From: r1, To: r2, Steps: steps, Before: r.Before, After: r.After, Alarms: []string{"errors"}, UpgradeFrom: "1.34",
		Rollback: true, RollbackUntil: noon,
	}, r.Checked("demo", true, steps))
}

func TestFinished(t *testing.T) {
	for name, test := range map[string]struct {
		to   upgrade.Target
		last *upgrade.Record
		want bool
	}{
		"at its target":                  {r1, nil, true},
		"at its target after an upgrade": {r1, &upgrade.Record{State: upgrade.Done}, true},
		"not between two steps":          {r1, &upgrade.Record{State: upgrade.Stopped}, false},
		"not before an upgrade":          {r2, nil, false},
		"at its target after a block":    {r1, &upgrade.Record{State: upgrade.Blocked}, true},
		"not with a stop before that":    {r1, &upgrade.Record{State: upgrade.Blocked, Last: &upgrade.Record{State: upgrade.Stopped}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, (&Route{From: r1, To: test.to, Last: test.last}).Finished())
		})
	}
}

func TestRouteSteps(t *testing.T) {
	steps := func(from, to string, rollback bool) ([]upgrade.Step, error) {
		r := Route{Before: &api.Cluster{}, After: &api.Cluster{}}
		r.Before.Spec.KubernetesVersion, r.After.Spec.KubernetesVersion = from, to
		return r.Steps(rollback, nil)
	}
	forward, err := steps("1.35", "1.36", false)
	require.NoError(t, err)
	require.Equal(t, upgrade.StepControlPlane, forward[0].Kind)
	back, err := steps("1.36", "1.35", true)
	require.NoError(t, err)
	require.Equal(t, upgrade.StepNodesBack, back[0].Kind)
	_, err = steps("1.33", "1.37", false)
	var far *upgrade.TooFar
	require.ErrorAs(t, err, &far)
	require.Equal(t, &upgrade.TooFar{From: "1.33", To: "1.37"}, far)
	_, err = steps("1.36", "1.35", false)
	requireStop(t, err, "Kubernetes 1.36, and 1.35 is older")
	_, err = steps("1.37", "1.35", true)
	requireStop(t, err, "EKS rolls a control plane back by one minor version only")
}

func TestUnfinished(t *testing.T) {
	require.False(t, Unfinished(nil))
	for state, want := range map[upgrade.State]bool{
		upgrade.Done: false, upgrade.Stopped: true, upgrade.Running: true, upgrade.Blocked: false, upgrade.Checking: false,
	} {
		require.Equal(t, want, Unfinished(&upgrade.Record{State: state}), state)
	}
}
