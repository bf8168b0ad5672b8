package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files of this package")

// facts of the examples, and the rollouts to plan over them.
const (
	exampleFacts = "examples/rollouts/facts.json"
	exampleNext  = "examples/rollouts/kubernetes-1.37.yaml"
)

// The text and the JSON of a plan are golden: equal input gives equal bytes on every machine and at every time.
func TestRolloutPlanIsByteStable(t *testing.T) {
	for name, arguments := range map[string][]string{
		"kubernetes.txt": {exampleNext, "-o", "wide"}, "kubernetes.json": {exampleNext, "-o", "json"},
		"like.txt":   {"examples/rollouts/kubernetes-1.36.yaml"},
		"frozen.txt": {exampleNext, "examples/rollouts/black-friday.yaml", "--at", "2026-11-27T09:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"rollout", "plan", "--facts", exampleFacts}, arguments...)...)
			require.Equal(t, 2, r.Code, r.Stderr)
			require.Empty(t, r.Stderr)
			golden := filepath.Join("testdata", "plans", name)
			if *updateGolden {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(r.Stdout), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), r.Stdout)
		})
	}
}

func TestRolloutPlanReadsSpecs(t *testing.T) {
	t.Run("from the folders of the specs bucket", func(t *testing.T) {
		r := droverIn(t, nil, "rollout", "plan", exampleNext, "-o", "wide")
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, "3 clusters in 2 stages, 2 left out")
		require.Contains(t, r.Stdout, "everything        Pinned")
		require.Contains(t, r.Stdout, "scheduled  1.35-1  1.37-1  1.35 → 1.37")
	})
	t.Run("from files that are named, which give the same plan", func(t *testing.T) {
		near := droverIn(t, nil, "rollout", "plan", exampleNext, "-o", "json")
		named := droverIn(t, nil, "rollout", "plan", exampleNext, "examples/releases", "examples/clusters", "-o", "json")
		require.Equal(t, near.Stdout, named.Stdout, named.Stderr)
	})
	t.Run("exits with 0 if no cluster changes", func(t *testing.T) {
		same := clitest.Write(t, "same.yaml", `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: same}
spec: {subject: {release: "1.36-1"}, stages: [{name: all, selector: {matchLabels: {stage: canary}}}]}`)
		r := droverIn(t, nil, "rollout", "plan", same, "examples/clusters", "examples/releases", "-o", "json")
		require.Equal(t, 0, r.Code, r.Stderr)
		var p struct {
			Members int
			Plan    struct {
				LeftOut []struct{ Cluster, Reason string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &p))
		require.Zero(t, p.Members)
		require.Equal(t, []struct{ Cluster, Reason string }{{"demo", "UpToDate"}, {"minimal", "UpToDate"}}, p.Plan.LeftOut)
	})
}

func TestRolloutPlanErrors(t *testing.T) {
	next := clitest.Write(t, "kubernetes-1.37.yaml", example(t, "rollouts/kubernetes-1.37.yaml", "{stage: canary}", "{stage: none}"))
	facts := func(text string) string { return clitest.Write(t, "facts.json", text) }
	for name, test := range map[string]struct {
		arguments []string
		want      []string
	}{
		"a stage without clusters, with its line": {
			[]string{next, "examples/releases", "--facts", exampleFacts},
			[]string{next + ":20: spec.stages[0].selector: ", "it matches no cluster"},
		},
		"a release that is missing, with its line": {
			[]string{next, "--facts", exampleFacts}, []string{next + ":11: spec.subject.release: ", "there is no such release"},
		},
		"a file of another kind":  {[]string{"examples/clusters/demo.yaml"}, []string{"is of kind Cluster: name the file of a rollout first"}},
		"no clusters":             {[]string{next, "examples/releases"}, []string{"there are no clusters: name specs"}},
		"two sources of clusters": {[]string{exampleNext, "examples/clusters", "--facts", exampleFacts}, []string{"name only one of them"}},
		"facts of another form": {
			[]string{exampleNext, "--facts", facts("[{\"cluster\": \"a\"},\n {\"name\": \"b\"}]")},
			[]string{`facts.json:2: not a list of facts: unknown field "name"`},
		},
		"facts of no cluster":  {[]string{exampleNext, "--facts", facts(`[{"cluster": "A b"}]`)}, []string{`fact 1: cluster: "A b" is not the`}},
		"text after the facts": {[]string{exampleNext, "--facts", facts(`[] []`)}, []string{"text follows the list"}},
		"negative nodes":       {[]string{exampleNext, "--facts", facts(`[{"cluster": "a", "nodes": -1}]`)}, []string{"must not be negative"}},
		"a time of another form": {
			[]string{exampleNext, "--facts", exampleFacts, "--at", "noon"}, []string{`--at: "noon" is not a time`},
		},
		"a missing file": {[]string{"none.yaml"}, []string{"none.yaml: no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"rollout", "plan"}, test.arguments...)...)
			require.Equal(t, 1, r.Code)
			require.Empty(t, r.Stdout)
			for _, want := range test.want {
				require.Contains(t, r.Stderr, want)
			}
		})
	}
}

// Files of fleets are checked by themselves, and together with the clusters, releases and rollouts that they name.
func TestValidateFleets(t *testing.T) {
	all := func(pattern string) (files []string) {
		files, err := filepath.Glob(filepath.Join(repository, "examples", pattern, "*.yaml"))
		require.NoError(t, err)
		return files
	}
	t.Run("accepts all examples together", func(t *testing.T) {
		r := droverIn(t, nil, append([]string{"validate"}, append(append(all("clusters"), all("releases")...), all("rollouts")...)...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
	})
	t.Run("accepts each example alone", func(t *testing.T) {
		for _, file := range all("rollouts") {
			require.Equal(t, 0, droverIn(t, nil, "validate", file).Code, file)
		}
	})
	nowhere := clitest.Write(t, "nowhere.yaml", `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: nowhere}
spec:
  subject: {release: "9.99-1"}
  stages:
    - name: all
      selector: {matchLabels: {stage: none}}`)
	stray := clitest.Write(t, "stray.yaml", "apiVersion: drover.run/v1alpha1\nkind: Decision\nmetadata: {name: stray}\n"+
		"spec:\n  rollout: none\n  verb: Pause\n")
	like := clitest.Write(t, "like.yaml", "apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: like}\n"+
		"spec:\n  subject: {release: a}\n  like: none\n")
	for name, test := range map[string]struct {
		files []string
		want  []string
	}{
		"a selector that matches nothing": {
			append(all("clusters"), nowhere), []string{nowhere + ":8: spec.stages[0].selector: ", "it matches no cluster"},
		},
		"a release that is missing":                 {append(all("releases"), nowhere), []string{nowhere + ":5: spec.subject.release: "}},
		"a decision on a rollout that is not there": {append(all("rollouts"), stray), []string{stray + ":5: spec.rollout: "}},
		"stages of a rollout that is not there":     {append(all("rollouts"), like), []string{like + ":6: spec.like: "}},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"validate"}, test.files...)...)
			require.Equal(t, 1, r.Code)
			for _, want := range test.want {
				require.Contains(t, r.Stderr, want)
			}
			require.Contains(t, r.Stderr, "1 of ")
		})
	}
	for _, file := range []string{nowhere, stray, like} {
		require.Equal(t, 0, droverIn(t, nil, "validate", file).Code, "%s alone", file)
	}
}
