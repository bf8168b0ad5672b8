package planner

// The conditions of planning, one by one: which stacks and releases apply, and what an earlier status keeps.

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestStacksThatAClusterMayHave(t *testing.T) {
	ofSpec := []string{names.Network, names.ControlPlane, names.Addons, names.NodeAddons, "pool-a"}
	execution := Request{Cluster: "demo", StacksOfStatus: true}
	find := func(t *testing.T, s *cluster, in Request) ([]string, error) {
		t.Helper()
		spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
		require.Empty(t, errs)
		return s.planner().candidateStacks(t.Context(), in, spec)
	}
	known := &status.Status{Stacks: []status.Stack{{Name: "pool-b"}, {Name: "pool-a"}}, Plan: []status.Change{{Stack: "pool-c"}}}
	t.Run("are those of its spec and of its status", func(t *testing.T) {
		s := withSpec(t)
		s.status = known
		stacks, err := find(t, s, execution)
		require.NoError(t, err)
		require.Equal(t, append(ofSpec, "pool-b", "pool-c"), stacks)
	})
	t.Run("are those of its spec in a preview", func(t *testing.T) {
		s := withSpec(t)
		s.status = known
		stacks, err := find(t, s, Request{Cluster: "demo"})
		require.NoError(t, err)
		require.Equal(t, ofSpec, stacks)
	})
	t.Run("are those of its spec before it has a status", func(t *testing.T) {
		s := withSpec(t)
		s.status = nil
		stacks, err := find(t, s, execution)
		require.NoError(t, err)
		require.Equal(t, ofSpec, stacks)
	})
	t.Run("are unknown when the status cannot be read", func(t *testing.T) {
		s := withSpec(t)
		s.err["status"] = errors.New("throttled")
		_, err := find(t, s, execution)
		require.ErrorIs(t, err, s.err["status"])
	})
}

func TestPlanOverAnEarlierStatus(t *testing.T) {
	retry := planTime.Add(time.Hour)
	changes := plan.Plan{Changes: []plan.Change{{Stack: names.Network, Operation: plan.Update}}}
	for name, test := range map[string]struct {
		good, newest string
		record       *upgrade.Record
		failures     int
		refusal      bool
		phase        status.Phase
	}{
		"keeps what was of the same spec":                {good: "v1", newest: "v1", failures: 2, refusal: true, phase: status.Converging},
		"counts no failure of an earlier spec":           {good: "v2", newest: "v1", refusal: true, phase: status.Converging},
		"drops the refusal that an earlier spec was for": {good: "v1", newest: "v2", failures: 2, phase: status.Converging},
		"is a step of an upgrade that runs": {
			good: "v1", newest: "v1", record: &upgrade.Record{State: upgrade.Running}, failures: 2, refusal: true, phase: status.Upgrading,
		},
		"is no step of an upgrade that is over": {
			good: "v1", newest: "v1", record: &upgrade.Record{State: upgrade.Done}, failures: 2, refusal: true, phase: status.Converging,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSpec(t)
			s.status = &status.Status{GoodVersion: "v1", PlannedVersion: "v1", Failures: 2, RetryAt: &retry}
			s.status.Refuse(status.ReasonRollRefused, "there is no pool b", planTime)
			w := work{cluster: "demo", version: test.good, newest: test.newest, resolved: &api.Cluster{}, rendered: &render.Output{},
				record: test.record}
			(&Outcome{Plan: changes, work: w}).Record(s.status, "mine", planTime)
			require.Equal(t, test.failures, s.status.Failures)
			require.Equal(t, test.refusal, s.status.Condition(status.RequestAccepted) != nil)
			require.Equal(t, test.phase, s.status.Phase)
			require.Nil(t, s.status.RetryAt, "it is tried now")
		})
	}
	t.Run("keeps the next try when there is nothing to change", func(t *testing.T) {
		for version, kept := range map[string]bool{"v1": true, "v2": false} {
			s := withSpec(t)
			s.status = &status.Status{GoodVersion: "v1", RetryAt: &retry}
			w := work{cluster: "demo", version: version, newest: version, resolved: &api.Cluster{}, rendered: &render.Output{}}
			(&Outcome{work: w}).Record(s.status, "mine", planTime)
			require.Equal(t, kept, s.status.RetryAt != nil, version)
		}
	})
}

// Events of a deletion may arrive in any order. The status shows its end, whichever event comes last.
func TestStatusOfAPoolThatThePlanDeletes(t *testing.T) {
	const pool = "pool-old"
	changes := plan.Plan{Changes: []plan.Change{{Stack: pool, Operation: plan.Delete}}}
	w := work{cluster: "demo", version: "v1", newest: "v1", readAt: planTime, resolved: &api.Cluster{}, rendered: &render.Output{},
		deployed: map[string]stack.Deployed{pool: {Status: stack.CreateComplete}}}
	s := &status.Status{}
	(&Outcome{Plan: changes, work: w}).Record(s, "mine", planTime)
	require.Equal(t, []status.Stack{{Name: pool, Status: stack.CreateComplete, Since: planTime, ReportedAt: planTime}}, s.Stacks)
	begin, end := planTime.Truncate(time.Second).Add(time.Second), planTime.Add(time.Minute)
	s.EndStack(status.Stack{Name: pool}, status.StackReport{Status: stack.DeleteComplete, At: end, Event: true})
	late := status.StackEvent{Stack: pool, Status: stack.DeleteInProgress, At: begin}
	require.False(t, s.RecordStack(late))
	require.Equal(t, stack.DeleteComplete, s.Stacks[0].Status)
}

// The event of an upload may be lost: then planning accepts it.
func TestPlanningAcceptsSpec(t *testing.T) {
	before := status.Upload{Version: "v1", UploadedAt: planTime}
	for name, test := range map[string]struct {
		uploaded time.Duration
		rejected *Stop
		want     string
	}{
		"that admission has not read":             {time.Second, nil, "v2"},
		"unless admission accepted a newer one":   {-time.Second, nil, "v1"},
		"unless it rejected the newest":           {time.Second, &Stop{}, "v1"},
		"that was uploaded within the one second": {0, nil, "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &status.Status{Accepted: &before}
			w := work{version: "v2", newest: "v2", uploadedAt: planTime.Add(test.uploaded), rejected: test.rejected, resolved: &api.Cluster{},
				rendered: &render.Output{}}
			(&Outcome{work: w}).Record(s, "mine", planTime)
			require.Equal(t, test.want, s.AcceptedVersion())
		})
	}
}

func TestReleaseThatAClusterIsAt(t *testing.T) {
	spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
	require.Empty(t, errs)
	at := func(status, release string) map[string]stack.Deployed {
		cp := stack.Deployed{Status: status, Outputs: map[string]string{"KubernetesVersion": "1.36"}, Tags: map[string]string{}}
		if release != "" {
			cp.Tags[names.TagRelease] = release + "@sha"
		}
		return map[string]stack.Deployed{names.ControlPlane: cp}
	}
	record := &upgrade.Record{State: upgrade.Blocked, From: upgrade.Target{Release: "r0", SHA256: "sha-0", KubernetesVersion: "1.35"}}
	for name, test := range map[string]struct {
		deployed map[string]stack.Deployed
		record   *upgrade.Record
		recorded string
		want     upgrade.Target
	}{
		"is the tag's": {at("CREATE_COMPLETE", "r1"), record, "r2",
			upgrade.Target{Release: "r1", SHA256: "sha", KubernetesVersion: "1.36"}},
		"is empty without a control plane":                  {nil, record, "r2", upgrade.Target{}},
		"is empty for a failed creation at another release": {at("ROLLBACK_COMPLETE", "r1"), record, "r2", upgrade.Target{}},
		"is the tag's of a failed creation at the same release": {at("ROLLBACK_COMPLETE", "1.36-1"), nil, "",
			upgrade.Target{Release: "1.36-1", SHA256: "sha"}},
		"is empty for a failed creation without a tag": {at("ROLLBACK_COMPLETE", ""), record, "r2", upgrade.Target{}},
		"is the last upgrade's when the tag is absent": {at("CREATE_COMPLETE", ""), record, "r2",
			upgrade.Target{Release: "r0", SHA256: "sha-0", KubernetesVersion: "1.36"}},
		"is the status's when the tag is absent before any upgrade": {at("CREATE_COMPLETE", ""), nil, "r2",
			upgrade.Target{Release: "r2", KubernetesVersion: "1.36"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSpec(t)
			s.status.Release = test.recorded
			got, err := s.planner().deployedTarget(t.Context(), &work{cluster: "demo", deployed: test.deployed, record: test.record}, spec)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	t.Run("is unknown without a status", func(t *testing.T) {
		s := withSpec(t)
		s.status = nil
		got, err := s.planner().deployedTarget(t.Context(), &work{cluster: "demo", deployed: at("CREATE_COMPLETE", "")}, spec)
		require.NoError(t, err)
		require.Equal(t, upgrade.Target{KubernetesVersion: "1.36"}, got)
	})
	t.Run("fails when the status cannot be read", func(t *testing.T) {
		s := withSpec(t)
		s.err["status"] = errors.New("throttled")
		_, err := s.planner().deployedTarget(t.Context(), &work{cluster: "demo", deployed: at("CREATE_COMPLETE", "")}, spec)
		require.ErrorIs(t, err, s.err["status"])
	})
}

func TestSpecsThatStacksWereMadeFrom(t *testing.T) {
	before := func(t *testing.T, s *cluster) (map[string]*api.Cluster, error) {
		t.Helper()
		w := work{cluster: "demo", current: upgrade.Target{Release: "1.36-1", SHA256: "sha"}, deployed: map[string]stack.Deployed{
			names.Network:      {Tags: map[string]string{names.TagSpecVersion: "v1"}},
			names.ControlPlane: {Tags: map[string]string{names.TagSpecVersion: "v0"}},
			names.Addons:       {},
		}}
		return s.planner().deployedSpecs(t.Context(), w)
	}
	kept := func(t *testing.T) *cluster {
		s := withSpec(t)
		s.objects[names.PinnedRelease("sha")], s.versions = s.objects[names.ReleaseSpec("1.36-1")], map[string]string{"v1": specOfA}
		return s
	}
	t.Run("are those whose versions are there", func(t *testing.T) {
		old, err := before(t, kept(t))
		require.NoError(t, err)
		require.Len(t, old, 1)
		require.Equal(t, "10.0.0.0/16", old[names.Network].Spec.Network.CIDR)
	})
	t.Run("are none without the release", func(t *testing.T) {
		s := kept(t)
		delete(s.objects, names.PinnedRelease("sha"))
		old, err := before(t, s)
		require.NoError(t, err)
		require.Empty(t, old)
	})
	t.Run("are resolved with the release of a control plane that could not be created", func(t *testing.T) {
		s := kept(t)
		old, err := s.planner().deployedSpecs(t.Context(), work{cluster: "demo", deployed: map[string]stack.Deployed{
			names.Network:      {Tags: map[string]string{names.TagSpecVersion: "v1"}},
			names.ControlPlane: {Status: "ROLLBACK_COMPLETE", Tags: map[string]string{names.TagRelease: "1.36-1@sha"}},
		}})
		require.NoError(t, err)
		require.Len(t, old, 1)
	})
	for what, key := range map[string]string{"the release": names.PinnedRelease("sha"), "a version": "version"} {
		t.Run("are unknown when AWS does not give "+what, func(t *testing.T) {
			s := kept(t)
			s.err[key] = errors.New("throttled")
			_, err := before(t, s)
			require.ErrorIs(t, err, s.err[key])
		})
	}
}

func TestDecisionOfAnUpgrade(t *testing.T) {
	t.Run("is none without a spec", func(t *testing.T) {
		s := withSpec(t)
		delete(s.objects, names.ClusterSpec("demo"))
		decision, err := s.planner().NextUpgrade(t.Context(), "demo", nil)
		require.NoError(t, err)
		require.Nil(t, decision)
	})
	t.Run("ignores the record of an earlier cluster", func(t *testing.T) {
		spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
		require.Empty(t, errs)
		for name, counts := range map[string]bool{"stack-1": true, "stack-0": false} {
			s := withSpec(t)
			w := work{cluster: "demo", releases: map[string]content{}, record: &upgrade.Record{Stack: name, State: upgrade.Done},
				deployed: map[string]stack.Deployed{
					names.ControlPlane: {
						ID: "stack-1", Status: "CREATE_COMPLETE", Outputs: map[string]string{"KubernetesVersion": "1.36"},
						Tags: map[string]string{names.TagRelease: "1.36-1@sha"},
					},
				}}
			s.objects[names.PinnedRelease("sha")] = s.objects[names.ReleaseSpec("1.36-1")]
			require.NoError(t, s.planner().decide(t.Context(), &w, spec))
			require.Equal(t, counts, w.record != nil, name)
		}
	})
	t.Run("fails when AWS does not give the release of a channel", func(t *testing.T) {
		spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
		require.Empty(t, errs)
		spec.Spec.Upgrade.Channel = api.ChannelStable
		channels, err := os.ReadFile("../../examples/releases/channels.yaml")
		require.NoError(t, err)
		s := withSpec(t)
		s.objects[names.ReleaseSpec(api.ChannelsName)] = strings.ReplaceAll(string(channels), "1.36-1", "1.37-1")
		w := work{cluster: "demo", releases: map[string]content{}, deployed: map[string]stack.Deployed{names.ControlPlane: {
			ID: "stack-1", Status: "CREATE_COMPLETE", Outputs: map[string]string{"KubernetesVersion": "1.36"},
			Tags: map[string]string{names.TagRelease: "1.36-1@sha"},
		}}}
		s.objects[names.PinnedRelease("sha")] = s.objects[names.ReleaseSpec("1.36-1")]
		require.NoError(t, s.planner().decide(t.Context(), &w, spec), "one that is absent is waited for")
		key := names.ReleaseSpec("1.37-1")
		s.objects[key], s.err[key] = "x", errors.New("throttled")
		require.ErrorIs(t, s.planner().decide(t.Context(), &w, spec), s.err[key])
	})
	t.Run("ignores channels that cannot be used", func(t *testing.T) {
		spec, errs := api.ReadCluster("", []byte(specOfA), api.Options{})
		require.Empty(t, errs)
		spec.Spec.Upgrade.Channel = api.ChannelStable
		key := names.ReleaseSpec(api.ChannelsName)
		throttled := errors.New("throttled")
		for name, test := range map[string]struct {
			body      string
			err, want error
		}{
			"absent":  {"", nil, nil},
			"large":   {"x", &store.TooLarge{}, nil},
			"invalid": {"x", nil, nil},
			"unread":  {"x", throttled, throttled},
		} {
			s := withSpec(t)
			if test.body != "" {
				s.objects[key] = test.body
			}
			s.err[key] = test.err
			channels, err := s.planner().channels(t.Context(), spec)
			require.ErrorIs(t, err, test.want, name)
			require.Nil(t, channels, name)
		}
	})
}
