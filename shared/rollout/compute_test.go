package rollout_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// read reads a rollout of the release 1.37-1 with more fields of its spec.
func read(t testing.TB, spec string) *api.Rollout {
	t.Helper()
	if !strings.Contains(spec, "subject:") {
		spec = "  subject: {release: \"1.37-1\"}\n" + spec
	}
	r, errs := api.ReadRollout("next.yaml",
		[]byte("apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: next}\nspec:\n"+spec), api.Options{})
	require.NoError(t, errs.Err())
	return r
}

func subject() rollout.Subject {
	return rollout.Subject{Releases: []rollout.Release{{Name: "1.37-1", SHA256: sha('b'), KubernetesVersion: "1.37"}}}
}

func sha(letter byte) string { return strings.Repeat(string(letter), 64) }

// onlyCell is the cell of fact.
const onlyCell = "111122223333-eu-west-1"

// fact is of a cluster of Kubernetes 1.36 with labels such as "stage=prod".
func fact(name string, labels ...string) rollout.Fact {
	f := rollout.Fact{
		Cluster: name, Region: "eu-west-1", Account: "111122223333", Stack: "arn:" + name, Labels: map[string]string{}, Nodes: 10,
		Deployed: upgrade.Target{Release: "1.36-1", SHA256: sha('a'), KubernetesVersion: "1.36"},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		f.Labels[key] = value
	}
	return f
}

func compute(t testing.TB, r *api.Rollout, facts ...rollout.Fact) *rollout.Plan {
	t.Helper()
	p, errs := rollout.Compute(r, subject(), facts)
	require.NoError(t, errs.Err())
	return p
}

// shape is one line for each stage: its name and its members in order.
func shape(p *rollout.Plan) (lines []string) {
	for i := range p.Stages {
		var members []string
		for _, m := range p.Stages[i].Members {
			members = append(members, m.Cluster)
		}
		lines = append(lines, fmt.Sprintf("%d %s: %s", p.Stages[i].Number, p.Stages[i].Name, strings.Join(members, " ")))
	}
	return lines
}

func TestComputeExpandsStages(t *testing.T) {
	region := func(f rollout.Fact, region string) rollout.Fact { f.Region = region; return f }
	facts := []rollout.Fact{
		fact("lab", "stage=canary"), fact("a", "stage=prod", "radius=10"), fact("b", "stage=prod", "radius=9"), fact("c", "stage=prod"),
		region(fact("d", "stage=prod"), "us-east-1"), region(fact("e", "stage=prod"), "us-east-1"), region(fact("f", "stage=prod"), "ap-south-1"),
	}
	canary := "  - {name: canary, selector: {matchLabels: {stage: canary}}}\n"
	prod := "  - {name: prod, selector: {matchLabels: {stage: prod}}, "
	for name, test := range map[string]struct {
		fields string
		want   []string
	}{
		"in one part, by name":     {"}", []string{"1 canary: lab", "2 prod: a b c d e f"}},
		"by the number of a label": {"order: radius}", []string{"1 canary: lab", "2 prod: b a c d e f"}},
		"by groups, sorted": {"groupBy: drover.run/region}", []string{
			"1 canary: lab", "2 prod/ap-south-1: f", "3 prod/eu-west-1: a b c", "4 prod/us-east-1: d e",
		}},
		"by groups in an order": {`groupBy: drover.run/region, groups: [us-east-1, "*", ap-south-1, none]}`, []string{
			"1 canary: lab", "2 prod/us-east-1: d e", "3 prod/eu-west-1: a b c", "4 prod/ap-south-1: f",
		}},
		"by waves, rounded up": {"waves: [1, 40%, 100%]}", []string{"1 canary: lab", "2 prod/1: a", "3 prod/2: b c", "4 prod/3: d e f"}},
		"without empty waves":  {"waves: [1, 5, 10%, 99, 100%]}", []string{"1 canary: lab", "2 prod/1: a", "3 prod/2: b c d e", "4 prod/4: f"}},
		"by waves within groups": {"groupBy: drover.run/region, waves: [1, 100%]}", []string{
			"1 canary: lab", "2 prod/ap-south-1/1: f", "3 prod/eu-west-1/1: a", "4 prod/eu-west-1/2: b c",
			"5 prod/us-east-1/1: d", "6 prod/us-east-1/2: e",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, shape(compute(t, read(t, "  stages:\n"+canary+prod+test.fields), facts...)))
		})
	}
}

func TestComputeCountsPercentages(t *testing.T) {
	r := read(t, "  unmatched: Skip\n  stages: [{name: all, selector: {}, maxConcurrency: 10%, maxFailures: 10%, waves: [10%, 100%]}]")
	for n, want := range map[int][]int{ // members, concurrency and failures of each wave
		0: nil, 1: {1, 1, 0}, 3: {1, 1, 0, 2, 1, 0}, 9: {1, 1, 0, 8, 1, 0}, 10: {1, 1, 0, 9, 1, 0}, 999: {100, 10, 10, 899, 89, 89},
	} {
		var facts []rollout.Fact
		for i := range n {
			facts = append(facts, fact(fmt.Sprintf("c%03d", i)))
		}
		var got []int
		for _, s := range compute(t, r, facts...).Stages {
			got = append(got, len(s.Members), s.MaxConcurrency, s.MaxFailures)
			require.False(t, s.SharedFailures)
		}
		require.Equal(t, want, got, n)
	}
}

func TestComputeGivesGatesToTheEnds(t *testing.T) {
	p := compute(t, read(t, `  stages:
  - name: prod
    selector: {}
    waves: [1, 2, 100%]
    maxFailures: 2
    maxConcurrency: 9
    before: [{approval: {}}]
    after: [{approval: {early: true}}]`), fact("a"), fact("b"), fact("c"))
	require.Equal(t, []int{1, 0, 0}, []int{len(p.Stages[0].Before), len(p.Stages[1].Before), len(p.Stages[2].Before)})
	require.Equal(t, []int{0, 0, 1}, []int{len(p.Stages[0].After), len(p.Stages[1].After), len(p.Stages[2].After)})
	require.True(t, p.Stages[2].After[0].Early)
	require.True(t, p.Stages[0].SharedFailures)
	require.Equal(t, 1, p.Stages[0].Parallel(), "a wave of one")
	require.Equal(t, 3*(15*time.Minute+time.Hour), p.Least())
	require.Equal(t, (15*time.Minute + (3+4+3)*time.Hour + 5*24*time.Hour).String(), p.Stages[0].Deadline.String())
}

func TestComputeLeavesClustersOut(t *testing.T) {
	with := func(f rollout.Fact, change func(*rollout.Fact)) rollout.Fact { change(&f); return f }
	facts := []rollout.Fact{
		fact("goes", "stage=all"),
		with(fact("pinned", "stage=all"), func(f *rollout.Fact) { f.Pinned = true }),
		with(fact("new", "stage=all"), func(f *rollout.Fact) { f.Deployed = upgrade.Target{} }),
		with(fact("already", "stage=all"), func(f *rollout.Fact) { f.Deployed = subject().Releases[0].Target() }),
		with(fact("old", "stage=all"), func(f *rollout.Fact) { f.Deployed.KubernetesVersion = "1.35" }),
		with(fact("ahead", "stage=all"), func(f *rollout.Fact) { f.Deployed.KubernetesVersion = "1.38" }),
		fact("other"),
	}
	p := compute(t, read(t, "  clusters: {}\n  unmatched: Skip\n  stages: [{name: all, selector: {matchLabels: {stage: all}}}]"), facts...)
	require.Equal(t, []string{"1 all: goes"}, shape(p))
	require.Equal(t, []rollout.LeftOut{
		{Cluster: "ahead", Reason: rollout.ReasonIncompatibleVersion, Message: "it runs 1.38: 1.37-1 is of 1.37"},
		{Cluster: "already", Reason: rollout.ReasonUpToDate},
		{Cluster: "new", Reason: rollout.ReasonNotCreated, Message: "it has no control plane"},
		{Cluster: "old", Reason: rollout.ReasonIncompatibleVersion, Message: "it runs 1.35: 1.37-1 upgrades from 1.36"},
		{Cluster: "other", Reason: rollout.ReasonUnmatched, Message: "no stage selects it"},
		{Cluster: "pinned", Reason: rollout.ReasonPinned, Message: "spec.fleet.release of the cluster is Pinned"},
	}, p.LeftOut)
	for _, left := range p.LeftOut {
		require.Contains(t, rollout.LeftOutReasons(), left.Reason)
	}
	require.Empty(t, compute(t, read(t, "  stages: [{name: all, selector: {matchLabels: {stage: all}}}]"), facts[0], facts[6]).LeftOut,
		"without `clusters`, a cluster that no stage selects is no candidate")
}

func TestComputeByKubernetesVersion(t *testing.T) {
	r := read(t, "  subject: {releases: {\"1.35\": \"1.35-7\", \"1.36\": \"1.36-4\"}}\n  stages: [{name: all, selector: {}}]")
	content := func(name, version string) rollout.Content {
		return rollout.Content{SHA256: sha('c'), Release: &api.Release{
			Metadata: api.Metadata{Name: name}, Spec: api.ReleaseSpec{KubernetesVersion: version},
		}}
	}
	s, errs := rollout.SubjectOf(r, map[string]rollout.Content{"1.35-7": content("1.35-7", "1.35"), "1.36-4": content("1.36-4", "1.36")})
	require.NoError(t, errs.Err())
	old, newer := fact("old"), fact("newer")
	old.Deployed.KubernetesVersion, newer.Deployed.KubernetesVersion = "1.35", "1.37"
	p, errs := rollout.Compute(r, s, []rollout.Fact{fact("a"), old, newer})
	require.NoError(t, errs.Err())
	require.Equal(t, []string{"1 all: a old"}, shape(p))
	require.Equal(t, "1.36-4", p.Stages[0].Members[0].To.Release)
	require.Equal(t, "1.35-7", p.Stages[0].Members[1].To.Release)
	require.Equal(t, "the rollout has no release for 1.37", p.LeftOut[0].Message)

	_, errs = rollout.SubjectOf(r, map[string]rollout.Content{"1.36-4": content("1.36-4", "1.35")})
	require.Equal(t, []string{
		`spec.subject.releases[1.35]: Invalid value: "1.35-7": there is no such release`,
		`spec.subject.releases[1.36]: Invalid value: "1.36-4": it is a release of Kubernetes 1.35`,
	}, strings.Split(errs.Error(), "\n"))
}

func TestComputeRefuses(t *testing.T) {
	facts := []rollout.Fact{fact("a", "stage=one", "env=x"), fact("b", "stage=one"), fact("c", "stage=two", "env=y")}
	edited := fact("d", "stage=one")
	edited.Deployed.Release = "1.37-1"
	for name, test := range map[string]struct {
		spec  string
		facts []rollout.Fact
		want  string
	}{
		"a stage that selects nothing": {
			"  stages: [{name: one, selector: {}}, {name: three, selector: {matchLabels: {stage: three}}}]", facts,
			`spec.stages[1].selector: Invalid value: "stage=three": it matches no cluster: correct it, or set unmatched: Skip`,
		},
		"stages that overlap": {
			"  stages: [{name: one, selector: {matchLabels: {stage: one}}}, {name: rest, selector: {}}]", facts,
			`spec.stages[1].selector: Invalid value: "{}": stage one also selects a, b: a cluster is in one stage`,
		},
		"a candidate without a stage": {
			"  clusters: {}\n  stages: [{name: one, selector: {matchLabels: {stage: one}}}]", facts,
			`spec.clusters: Invalid value: "{}": no stage selects c: add a stage, or set unmatched: Skip`,
		},
		"a cluster without the label of its group": {
			"  stages: [{name: all, selector: {}, groupBy: env}]", facts,
			`spec.stages[0].groupBy: Invalid value: "env": no such label on b`,
		},
		"a group that is not in the list": {
			"  stages: [{name: all, selector: {}, groupBy: stage, groups: [two]}]", facts,
			`spec.stages[0].groups: Invalid value: "two": the label stage has other values too: add one, or "*"`,
		},
		"a release that was edited": {
			"  stages: [{name: all, selector: {}}]", append(facts, edited),
			`spec.subject.release: Invalid value: "1.37-1": it was edited after a cluster was pinned to it: publish it under a new name`,
		},
		"a cluster twice": {"  stages: [{name: all, selector: {}}]", append(facts, facts[0]), `spec.clusters: Duplicate value: "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := rollout.Compute(read(t, test.spec), subject(), test.facts)
			require.Nil(t, p)
			require.EqualError(t, errs.Err(), test.want)
		})
	}
}

func TestWithStages(t *testing.T) {
	other := read(t, "  stages: [{name: all, selector: {}}]")
	like := read(t, "  like: other\n  start: Auto")
	full, errs := rollout.WithStages(like, map[string]*api.Rollout{"other": other})
	require.NoError(t, errs.Err())
	require.Equal(t, "all", full.Spec.Stages[0].Name)
	require.Equal(t, api.StartAuto, full.Spec.Start)
	_, errs = rollout.WithStages(like, nil)
	require.EqualError(t, errs.Err(), `spec.like: Invalid value: "other": there is no such rollout`)
	_, errs = rollout.WithStages(like, map[string]*api.Rollout{"other": like})
	require.EqualError(t, errs.Err(), `spec.like: Invalid value: "other": it has no stages of its own: name other`)
}

// TestComputePartitions expands random rollouts over random clusters: each selected cluster is in one stage or left out, numbers are
// consecutive, and neither the order of the input nor a second call changes a byte.
func TestComputePartitions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	for range 500 {
		var facts []rollout.Fact
		for i := range random.IntN(40) {
			f := fact(fmt.Sprintf("c%02d", i), "stage="+pick("one", "two"), "rank="+pick("1", "2", "10", "x"), "zone="+pick("a", "b", "c"))
			f.Pinned = random.IntN(9) == 0
			if random.IntN(9) == 0 {
				f.Deployed.KubernetesVersion = pick("1.30", "1.38")
			}
			facts = append(facts, f)
		}
		stages := ""
		for _, name := range []string{"one", "two"} {
			stages += fmt.Sprintf("  - {name: %s, selector: {matchLabels: {stage: %[1]s}}, %s %s %s maxConcurrency: %s, maxFailures: %s}\n", name,
				pick("", "groupBy: zone,", `groupBy: zone, groups: [c, "*"],`), pick("", "waves: [1, 100%],", "waves: [10%, 3, 50%, 100%],"),
				pick("", "order: rank,"), pick("1", "7", "10%", "100%"), pick("0", "3", "10%"))
		}
		r := read(t, "  unmatched: Skip\n  stages:\n"+stages)
		p := compute(t, r, facts...)
		seen := map[string]int{}
		for i, s := range p.Stages {
			require.Equal(t, i+1, s.Number)
			require.NotEmpty(t, s.Members)
			require.Positive(t, s.MaxConcurrency)
			for _, m := range s.Members {
				seen[m.Cluster]++
			}
		}
		for _, l := range p.LeftOut {
			seen[l.Cluster]++
		}
		require.Len(t, seen, len(facts))
		for name, n := range seen {
			require.Equal(t, 1, n, name)
		}
		want, err := json.Marshal(p)
		require.NoError(t, err)
		random.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
		got, err := json.Marshal(compute(t, r, facts...))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		var again rollout.Plan
		require.NoError(t, json.Unmarshal(got, &again))
		require.Equal(t, p.Digest(), again.Digest(), "JSON round trip")
	}
}

// TestDigestChangesWithEachField changes each field of a plan in turn.
func TestDigestChangesWithEachField(t *testing.T) {
	full := rollout.Plan{
		Rollout: "r", Spec: "s", Subject: rollout.Subject{Releases: []rollout.Release{{Name: "a"}}}, LeftOut: []rollout.LeftOut{{Cluster: "x"}},
		Stages: []rollout.Stage{{
			Window: &api.Window{Days: []string{"Mon"}}, Alarms: []string{"a"}, Before: []api.Approval{{Count: 1}}, After: []api.Approval{{Count: 1}},
			Members: []rollout.Member{{Cluster: "m"}},
		}},
	}
	before, changed := full.Digest(), 0
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		set := func(value any) {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.Set(reflect.ValueOf(value).Convert(v.Type()))
			require.NotEqual(t, before, full.Digest(), path)
			v.Set(old)
			changed++
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.Pointer:
			walk(v.Elem(), path)
		case reflect.Slice:
			require.Positive(t, v.Len(), "%s: the plan of this test has no item", path)
			walk(v.Index(0), path+"[0]")
		case reflect.String:
			set("changed")
		case reflect.Bool:
			set(!v.Bool())
		default:
			set(7)
		}
	}
	walk(reflect.ValueOf(&full), "Plan")
	require.Equal(t, before, full.Digest())
	require.Greater(t, changed, 40)
}

func TestPlanDifference(t *testing.T) {
	r := read(t, "  stages: [{name: one, selector: {matchLabels: {stage: one}}}, {name: two, selector: {matchLabels: {stage: two}}}]")
	old := compute(t, r, fact("a", "stage=one"), fact("b", "stage=two"), fact("c", "stage=two"))
	require.Empty(t, old.Difference(old))
	p := compute(t, r, fact("a", "stage=one"), fact("b", "stage=one"), fact("d", "stage=two"), fact("e", "stage=two"))
	require.Equal(t, []string{"2 clusters joined two", "1 cluster left two", "1 cluster is in another stage"}, p.Difference(old))
	busy := fact("a", "stage=one")
	busy.Deployed.Release = "1.36-2"
	require.Equal(t, []string{"the state of clusters changed"},
		compute(t, r, busy, fact("b", "stage=two"), fact("c", "stage=two")).Difference(old))
	edited := *old
	edited.Spec, edited.Subject = "other", rollout.Subject{Releases: []rollout.Release{{Name: "1.37-2", SHA256: sha('d')}}}
	require.Equal(t, []string{"the release is 1.37-2@dddddddddddd", "the spec of the rollout was edited"}, edited.Difference(old))
}

func TestWaits(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	paused, busy, unready, closed, frozen := fact("paused"), fact("busy"), fact("unready"), fact("window"), fact("frozen", "env=prod")
	paused.Paused, busy.Busy, unready.Unready = true, true, true
	closed.Opening = &rollout.Opening{Opens: at.Add(time.Hour)}
	freeze := api.Freeze{Spec: api.FreezeSpec{
		Clusters: api.Selector{MatchLabels: map[string]string{"env": "prod"}}, From: "2026-11-26T00:00:00Z", Until: "2026-11-27T00:00:00Z",
	}}
	facts := []rollout.Fact{fact("free"), paused, busy, unready, closed, frozen}
	p := compute(t, read(t, "  stages: [{name: all, selector: {}}]"), facts...)
	require.Equal(t, []rollout.Wait{
		{Cluster: "busy", Reason: rollout.ReasonBusy},
		{Cluster: "frozen", Reason: rollout.ReasonFreeze, Until: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)},
		{Cluster: "paused", Reason: rollout.ReasonClusterPaused},
		{Cluster: "unready", Reason: rollout.ReasonNotReady},
		{Cluster: "window", Reason: rollout.ReasonClusterWindow, Until: at.Add(time.Hour)},
	}, rollout.Waits(p, facts, []api.Freeze{freeze}, at))
	timeless := rollout.Waits(p, facts, []api.Freeze{freeze}, time.Time{})
	require.Equal(t, []string{"busy", "paused", "unready"}, []string{timeless[0].Cluster, timeless[1].Cluster, timeless[2].Cluster})
}

func TestAllLabels(t *testing.T) {
	f := fact("a", "env=prod", "drover.run/region=faked", "drover.run/cell=faked")
	require.Equal(t, map[string]string{
		"env": "prod", api.LabelRegion: "eu-west-1", api.LabelAccount: "111122223333", api.LabelCell: names.Cell("111122223333", "eu-west-1"),
		api.LabelKubernetes: "1.36",
	}, f.AllLabels())
	f.Account = ""
	require.Equal(t, map[string]string{"env": "prod", api.LabelRegion: "eu-west-1", api.LabelKubernetes: "1.36"}, f.AllLabels(),
		"of a file: the cell is not known")
	require.Equal(t, "faked", f.Labels[api.LabelRegion])
	require.True(t, slices.Contains(rollout.States(), rollout.Waiting))
}
