package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

const goodRollout = `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata:
  name: next
spec:
  subject: {release: "1.37-1"}
  stages:
    - name: canary
      selector: {matchLabels: {stage: canary}}
    - name: prod
      selector: {}
      groupBy: drover.run/region
      waves: [1, 10%, 100%]
      maxConcurrency: 10%
      window: {start: "09:00", duration: 7h, timeZone: Europe/Berlin}
      before: [{approval: {}}]
`

const goodDecision = `apiVersion: drover.run/v1alpha1
kind: Decision
metadata:
  name: go
spec:
  rollout: next
  plan: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
  verb: Approve
  stage: prod/eu-west-1/1
`

const goodFreeze = `apiVersion: drover.run/v1alpha1
kind: Freeze
metadata:
  name: sale
spec:
  clusters: {}
  from: "2026-11-26T00:00:00Z"
  until: "2026-12-01T00:00:00Z"
`

// fleetFile is an invalid file of a kind for fleets: edits of a valid one, and the errors with line and field.
type fleetFile struct {
	edits pairs
	want  []string
}

func requireErrors(t *testing.T, errs api.Errors, want []string) {
	t.Helper()
	got := lines(errs)
	require.Len(t, got, len(want), "%s", errs)
	for i := range want {
		require.True(t, strings.HasPrefix(got[i], want[i]), "%s\nwant %s", got[i], want[i])
	}
}

func TestReadRollout(t *testing.T) {
	r, errs := api.ReadRollout("next.yaml", []byte(goodRollout), api.Options{Name: "next"})
	require.NoError(t, errs.Err())
	full := r.Defaulted().Spec
	require.Equal(t, api.UnmatchedRefuse, full.Unmatched)
	require.Equal(t, api.StartManual, full.Start)
	require.Equal(t, api.NewerFinish, full.OnNewer)
	require.Equal(t, api.FailureStop, full.OnFailure)
	canary := full.Stages[0]
	require.Equal(t, []any{api.Amount("1"), api.Amount("0"), api.BudgetStrict, "15m", "1h", ""},
		[]any{canary.MaxConcurrency, canary.MaxFailures, canary.Budget, canary.Settle, canary.Soak, canary.Deadline})
	require.Equal(t, 1, full.Stages[1].Before[0].Approval.Count)
	require.Empty(t, r.Spec.Unmatched, "defaults are filled into a copy")

	stage := "      selector: {}\n"
	for name, test := range map[string]fleetFile{
		"a field of another place": {pairs{stage, stage + "      onFailure: Stop\n"}, []string{
			"next.yaml:12: spec.stages[1].onFailure: Forbidden: unknown field: the field is spec.onFailure",
		}},
		"modules, by name": {pairs{`{release: "1.37-1"}`, "{modules: [ingress]}"}, []string{
			"next.yaml:6: spec.subject.release: Required value: or state releases",
			"next.yaml:6: spec.subject.modules: Forbidden: not supported yet: ",
		}},
		"provenBy, by name": {pairs{`release: "1.37-1"`, `release: "1.37-1", provenBy: staging`}, []string{
			"next.yaml:6: spec.subject.provenBy: Forbidden: not supported yet: ",
		}},
		"absent, by name": {pairs{`release: "1.37-1"`, `release: "1.37-1", absent: true`}, []string{
			"next.yaml:6: spec.subject.absent: Forbidden: not supported yet: ",
		}},
		"hooks, by name": {pairs{"[{approval: {}}]", "[{hook: {function: f}}]"}, []string{
			"next.yaml:16: spec.stages[1].before[0].approval: Required value",
			"next.yaml:16: spec.stages[1].before[0].hook: Forbidden: not supported yet: ",
		}},
		"several approvals": {pairs{"{approval: {}}", "{approval: {count: 2}}"}, []string{
			"next.yaml:16: spec.stages[1].before[0].approval.count: Forbidden: not supported yet: ",
		}},
		"approvers, by name": {pairs{"{approval: {}}", "{approval: {by: [a]}}"}, []string{
			"next.yaml:16: spec.stages[1].before[0].approval.by: Forbidden: not supported yet: ",
		}},
		"two subjects": {pairs{`{release: "1.37-1"}`, `{release: "1.37-1", releases: {"1.37": "1.37-1"}}`}, []string{
			"next.yaml:6: spec.subject.releases: Forbidden: ",
		}},
		"a subject for no version": {pairs{`{release: "1.37-1"}`, `{releases: {new: "1.37-1"}}`}, []string{
			`next.yaml:6: spec.subject.releases[new]: Invalid value: "new": must be a minor version`,
		}},
		"stages of its own and of another": {pairs{"  stages:", "  like: nodes\n  stages:"}, []string{"next.yaml:7: spec.like: Forbidden: "}},
		"a selector that is missing":       {pairs{stage, ""}, []string{"next.yaml:10: spec.stages[1].selector: Required value"}},
		"an operator without values": {pairs{stage, "      selector: {matchExpressions: [{key: a, operator: In}]}\n"}, []string{
			"next.yaml:11: spec.stages[1].selector.matchExpressions[0].values: Required value: for the operator In",
		}},
		"values without a use": {pairs{stage, "      selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}\n"}, []string{
			"next.yaml:11: spec.stages[1].selector.matchExpressions[0].values: Forbidden: the operator Exists has no values",
		}},
		"groups without a label": {pairs{"groupBy: drover.run/region", "groups: [eu-west-1]"}, []string{
			"next.yaml:12: spec.stages[1].groups: Forbidden: needs groupBy",
		}},
		"a wave that is no larger": {pairs{"[1, 10%, 100%]", "[10%, 10%, 100%]"}, []string{
			"next.yaml:13: spec.stages[1].waves[1]: Invalid value: \"10%\": must be more than the wave before",
		}},
		"waves that leave clusters out": {pairs{"[1, 10%, 100%]", "[1, 50%]"}, []string{
			"next.yaml:13: spec.stages[1].waves[1]: Invalid value: \"50%\": the last wave must be 100%",
		}},
		"an empty wave": {pairs{"[1, 10%, 100%]", "[0, 100%]"}, []string{
			"next.yaml:13: spec.stages[1].waves[0]: Invalid value: 0: must be at least 1",
		}},
		"no concurrency": {pairs{"maxConcurrency: 10%", "maxConcurrency: 0"}, []string{
			"next.yaml:14: spec.stages[1].maxConcurrency: Invalid value: 0: must be at least 1",
		}},
		"a soak that is too long": {pairs{"maxConcurrency: 10%", "soak: 999h"}, []string{
			`next.yaml:14: spec.stages[1].soak: Invalid value: "999h": must be between 0s and 720h`,
		}},
		"a deadline within settle": {pairs{"maxConcurrency: 10%", "deadline: 15m"}, []string{
			`next.yaml:14: spec.stages[1].deadline: Invalid value: "15m": must be longer than settle`,
		}},
		"a window that never opens": {pairs{`{start: "09:00", duration`, `{cron: "0 0 30 2 ? *", duration`}, []string{
			`next.yaml:15: spec.stages[1].window.cron: Invalid value: "0 0 30 2 ? *": the window never opens`,
		}},
		"two windows": {pairs{`start: "09:00"`, `start: "09:00", cron: "0 0 ? * * *"`}, []string{
			"next.yaml:15: spec.stages[1].window.start: Forbidden: ",
		}},
		"a stage twice": {pairs{"name: prod", "name: canary"}, []string{`next.yaml:10: spec.stages[1].name: Duplicate value: "canary"`}},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			_, errs := api.ReadRollout("next.yaml", edit(t, goodRollout, test.edits), api.Options{Name: "next"})
			requireErrors(t, errs, test.want)
		})
	}
	_, errs = api.ReadRollout("r.yaml",
		[]byte("apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {subject: {release: a}, like: r}"),
		api.Options{})
	requireErrors(t, errs, []string{`r.yaml:4: spec.like: Invalid value: "r": must be another rollout`})
}

func TestReadDecision(t *testing.T) {
	_, errs := api.ReadDecision("go.yaml", []byte(goodDecision), api.Options{Name: "go"})
	require.NoError(t, errs.Err())
	plan := "  plan: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n"
	for name, test := range map[string]fleetFile{
		"an approval of no plan": {pairs{plan, ""}, []string{"go.yaml:5: spec.plan: Required value: "}},
		"a short digest": {pairs{plan, "  plan: 2c26b46b\n"}, []string{
			`go.yaml:7: spec.plan: Invalid value: "2c26b46b": must be a SHA-256 in 64 hex digits`,
		}},
		"an approval of no stage": {pairs{"  stage: prod/eu-west-1/1\n", ""}, []string{
			"go.yaml:5: spec.stage: Required value: for the verb Approve",
		}},
		"a retry of no cluster": {pairs{"Approve\n  stage: prod/eu-west-1/1", "Retry"}, []string{
			"go.yaml:5: spec.clusters: Required value: for the verb Retry",
		}},
		"an override of no freeze": {pairs{"Approve\n  stage: prod/eu-west-1/1", "Override"}, []string{
			"go.yaml:5: spec.freeze: Required value: for the verb Override",
		}},
		"a field without a use": {pairs{"Approve", "Start"}, []string{"go.yaml:9: spec.stage: Forbidden: the verb Start has none"}},
		"an unknown verb":       {pairs{"Approve", "Approves"}, []string{`go.yaml:8: spec.verb: Unsupported value: "Approves"`}},
		"proof, by name": {pairs{"  stage:", "  proof: https://example.com\n  stage:"}, []string{
			"go.yaml:9: spec.proof: Forbidden: not supported yet: ",
		}},
		"a stage with an empty part": {pairs{"prod/eu-west-1/1", "prod//1"}, []string{"go.yaml:9: spec.stage: Invalid value: "}},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			_, errs := api.ReadDecision("go.yaml", edit(t, goodDecision, test.edits), api.Options{Name: "go"})
			requireErrors(t, errs, test.want)
		})
	}
	for _, verb := range []api.Verb{api.VerbPause, api.VerbAbort, api.VerbReject} {
		t.Run("needs no plan for "+string(verb), func(t *testing.T) {
			require.True(t, verb.Brakes())
			_, errs := api.ReadDecision("go.yaml", edit(t, goodDecision, pairs{
				plan, "", "Approve", string(verb), "  stage: prod/eu-west-1/1\n", "",
			}), api.Options{Name: "go"})
			require.NoError(t, errs.Err())
		})
	}
}

func TestReadFreeze(t *testing.T) {
	_, errs := api.ReadFreeze("sale.yaml", []byte(goodFreeze), api.Options{Name: "sale"})
	require.NoError(t, errs.Err())
	from, until := "  from: \"2026-11-26T00:00:00Z\"\n", "  until: \"2026-12-01T00:00:00Z\"\n"
	for name, test := range map[string]fleetFile{
		"no clusters":   {pairs{"  clusters: {}\n", ""}, []string{"sale.yaml:5: spec.clusters: Required value"}},
		"no time":       {pairs{from, "", until, ""}, []string{"sale.yaml:5: spec.from: Required value: or state windows"}},
		"no end":        {pairs{until, ""}, []string{"sale.yaml:5: spec.until: Required value"}},
		"an end before": {pairs{"2026-12-01", "2026-11-25"}, []string{"sale.yaml:8: spec.until: Invalid value: "}},
		"windows and times": {pairs{until, until + "  windows: [{start: \"00:00\", duration: 1h}]\n"}, []string{
			"sale.yaml:9: spec.windows: Forbidden: ",
		}},
		"a short window": {pairs{from, "", until, "  windows: [{start: \"00:00\", duration: 1m}]\n"}, []string{
			"sale.yaml:7: spec.windows[0].duration: Invalid value: ",
		}},
		"work that it does not know": {pairs{until, until + "  stops: [Deletions]\n"}, []string{
			"sale.yaml:9: spec.stops[0]: Unsupported value: ",
		}},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			_, errs := api.ReadFreeze("sale.yaml", edit(t, goodFreeze, test.edits), api.Options{Name: "sale"})
			requireErrors(t, errs, test.want)
		})
	}
}

func TestSelectorMatches(t *testing.T) {
	labels := map[string]string{"env": "prod", "empty": ""}
	requirement := func(key string, operator api.Operator, values ...string) api.Selector {
		return api.Selector{MatchExpressions: []api.Requirement{{Key: key, Operator: operator, Values: values}}}
	}
	for text, test := range map[string]struct {
		selector api.Selector
		want     bool
	}{
		"{}":                {api.Selector{}, true},
		"env=prod":          {api.Selector{MatchLabels: map[string]string{"env": "prod"}}, true},
		"empty=, env=dev":   {api.Selector{MatchLabels: map[string]string{"env": "dev", "empty": ""}}, false},
		"none=":             {api.Selector{MatchLabels: map[string]string{"none": ""}}, false},
		"env in (dev,prod)": {requirement("env", api.OperatorIn, "dev", "prod"), true},
		"none in ()":        {requirement("none", api.OperatorIn), false},
		"env notin (prod)":  {requirement("env", api.OperatorNotIn, "prod"), false},
		"none notin (prod)": {requirement("none", api.OperatorNotIn, "prod"), true},
		"empty":             {requirement("empty", api.OperatorExists), true},
		"none":              {requirement("none", api.OperatorExists), false},
		"!none":             {requirement("none", api.OperatorDoesNotExist), true},
		"!env":              {requirement("env", api.OperatorDoesNotExist), false},
	} {
		t.Run(text, func(t *testing.T) {
			require.Equal(t, test.want, test.selector.Matches(labels))
			require.Equal(t, text, test.selector.String())
		})
	}
}

func TestFrozen(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	freeze := func(name, fields string) api.Freeze {
		f, errs := api.ReadFreeze(name+".yaml",
			[]byte("apiVersion: drover.run/v1alpha1\nkind: Freeze\nmetadata: {name: "+name+"}\nspec: "+fields), api.Options{})
		require.NoError(t, errs.Err())
		return *f
	}
	sale := freeze("sale", `{clusters: {matchLabels: {env: prod}}, from: "2026-11-26T00:00:00Z", until: "2026-12-01T00:00:00Z"}`)
	longer := freeze("longer", `{clusters: {}, from: "2026-11-30T00:00:00Z", until: "2026-12-02T00:00:00Z", stops: [Rollouts]}`)
	weekend := freeze("weekend", `{clusters: {}, windows: [{days: [Sat], start: "00:00", duration: 48h, timeZone: Europe/Berlin}]}`)
	always := freeze("always", `{clusters: {}, windows: [{start: "00:00", duration: 48h}]}`)
	all := []api.Freeze{sale, longer, weekend}
	prod, dev := map[string]string{"env": "prod"}, map[string]string{"env": "dev"}
	for name, test := range map[string]struct {
		freezes []api.Freeze
		what    api.Stop
		labels  map[string]string
		now     string
		freeze  string
		until   string
	}{
		"begins at its first second": {
			freezes: all, what: api.StopRollouts, labels: prod, now: "2026-11-26T00:00:00Z", freeze: "sale", until: "2026-12-01T00:00:00Z",
		},
		"has not begun a second before":    {freezes: all, what: api.StopRollouts, labels: prod, now: "2026-11-25T23:59:59Z"},
		"does not apply to other clusters": {freezes: all, what: api.StopRollouts, labels: dev, now: "2026-11-26T00:00:00Z"},
		"is the one that ends last": {
			freezes: all, what: api.StopRollouts, labels: prod, now: "2026-11-30T12:00:00Z", freeze: "longer", until: "2026-12-02T00:00:00Z",
		},
		"stops only what it names": {freezes: all, what: api.StopUpgrades, labels: dev, now: "2026-11-30T12:00:00Z"},
		"has ended at its end":     {freezes: all, what: api.StopUpgrades, labels: prod, now: "2026-12-01T00:00:00Z"},
		"follows a window": {
			freezes: all, what: api.StopUpgrades, labels: dev, now: "2026-06-13T12:00:00Z", freeze: "weekend", until: "2026-06-14T22:00:00Z",
		},
		"is elapsed time when clocks change": {
			freezes: all, what: api.StopUpgrades, labels: dev, now: "2026-10-25T12:00:00Z", freeze: "weekend", until: "2026-10-25T22:00:00Z",
		},
		"never ends if its windows overlap": {
			freezes: append(all, always), what: api.StopRollouts, labels: prod, now: "2026-11-30T12:00:00Z", freeze: "always",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, until := api.Frozen(test.freezes, test.what, test.labels, at(test.now))
			if test.freeze == "" {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, test.freeze, got.Metadata.Name)
			if test.until == "" {
				require.Zero(t, until)
				return
			}
			require.WithinDuration(t, at(test.until), until, 0)
		})
	}
}

func TestWindowOpening(t *testing.T) {
	berlin := api.Window{Days: []string{"Mon", "Sun"}, Start: "09:00", Duration: "7h", TimeZone: "Europe/Berlin"}
	for now, want := range map[string]struct {
		open  bool
		until string
	}{
		"2026-11-23T07:59:59Z": {false, "2026-11-23T08:00:00Z"}, // a Monday in winter
		"2026-11-23T08:00:00Z": {true, "2026-11-23T15:00:00Z"},
		"2026-11-23T15:00:00Z": {false, "2026-11-29T08:00:00Z"},
		"2026-03-29T06:59:59Z": {false, "2026-03-29T07:00:00Z"}, // the Sunday on which clocks are put forward
		"2026-10-25T08:00:00Z": {true, "2026-10-25T15:00:00Z"},  // and back
	} {
		t.Run(now, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, now)
			require.NoError(t, err)
			until, err := time.Parse(time.RFC3339, want.until)
			require.NoError(t, err)
			open, got := berlin.Opening(at)
			require.Equal(t, want.open, open)
			require.WithinDuration(t, until, got, 0)
		})
	}
}
