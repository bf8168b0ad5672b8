package audit

// Differences that the audit records, repairs, or leaves alone.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Repairs that a plan may name, and a change that only another version of drover explains.
var (
	absent = plan.Change{
		Stack: names.Addons, Operation: plan.Create, Reasons: []status.Reason{{Field: "status.addons", Old: "absent", New: "present"}},
	}
	retag = plan.Change{
		Stack: names.Addons, Operation: plan.Update, Reasons: []status.Reason{{Field: "tags.drover:cluster", Old: "", New: "demo"}},
	}
	renderedChange = plan.Change{
		Stack: names.Addons, Operation: plan.Update, Reasons: []status.Reason{{Field: "checksum.addons", Old: "a", New: "b"}},
	}
)

func previewOf(changes ...plan.Change) plan.Preview {
	return plan.Preview{Plan: plan.Plan{Cluster: demo, Changes: changes}}
}

func TestAuditComparesACluster(t *testing.T) {
	unusable := condition(status.SpecAccepted, "False", status.ReasonReleaseUnusable)
	since := noon.Add(-15 * time.Minute)
	repair := func(at string) string { return "start: drift " + at }
	scheduled := &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Channel"}
	ended := condition(status.Converged, "False", status.ReasonExecutionEnded)
	ended.LastTransitionTime = noon
	for name, test := range map[string]struct {
		status  status.Status
		preview plan.Preview
		stacks  map[string]stack.Deployed
		want    []string
	}{
		"an unchanged cluster: nothing":                 {status.Status{Phase: status.Ready}, previewOf(), nil, []string{"compare"}},
		"a listing older than the status: not compared": {status.Status{Phase: status.Ready, UpdatedAt: noon.Add(1)}, previewOf(retag), nil, nil},
		"a stack changes: not compared": {
			status.Status{Phase: status.Ready}, previewOf(retag), map[string]stack.Deployed{names.Addons: {Status: "UPDATE_IN_PROGRESS"}}, nil,
		},
		"a lost tag: repaired at once": {
			status.Status{Phase: status.Ready}, previewOf(retag), nil, []string{"compare", "write", repair("2026-11-26T12:00:00Z")},
		},
		"a lost tag found 15 minutes ago: repaired again": {
			status.Status{Phase: status.Ready, DriftedAt: &since}, previewOf(retag), nil,
			[]string{"compare", "write", repair("2026-11-26T12:00:00Z")},
		},
		"a lost tag found 40 minutes ago: the repair of 30 minutes": {
			status.Status{Phase: status.Ready, DriftedAt: ago(40 * time.Minute)}, previewOf(retag), nil,
			[]string{"compare", "write", repair("2026-11-26T11:50:00Z")},
		},
		"another version of drover renders the stack: recorded only": {
			status.Status{Phase: status.Ready}, previewOf(renderedChange), nil, []string{"compare", "write"},
		},
		"an unwanted stack in review: recorded, then deleted": {
			status.Status{
				Phase: status.Ready,
			}, previewOf(plan.Change{Stack: names.Addons, Operation: plan.Delete, Reasons: []status.Reason{{Field: "status.addons"}}}),
			map[string]stack.Deployed{names.Addons: {Status: stack.InReview, Tags: map[string]string{names.TagCluster: demo}}},
			[]string{"compare", "write", "write", repair("2026-11-26T12:00:00Z")},
		},
		"its missing release was uploaded: started": {
			status.Status{Phase: status.Ready, Conditions: []status.Condition{unusable}}, previewOf(), nil,
			[]string{"compare", "start: release-arrived 2026-11-26T12:00:00Z"},
		},
		"its release is still unusable: nothing": {
			status.Status{Phase: status.Ready, Conditions: []status.Condition{unusable}}, plan.Preview{Reason: status.ReasonReleaseUnusable}, nil,
			[]string{"compare"},
		},
		"only the last good spec has a release: nothing": {
			status.Status{Phase: status.Ready, Conditions: []status.Condition{unusable}},
			plan.Preview{Unused: &events.Rejection{Reason: status.ReasonReleaseUnusable}}, nil, []string{"compare"},
		},
		"its spec was never valid: nothing": {
			status.Status{Phase: status.Ready, Conditions: []status.Condition{condition(status.SpecAccepted, "False", status.ReasonSpecInvalid)}},
			previewOf(), nil,
			[]string{"compare"},
		},
		"the status lacks labels: recorded": {
			status.Status{Phase: status.Ready, Accepted: &status.Upload{Version: "v1"}},
			plan.Preview{Plan: previewOf().Plan, Accepted: &status.Upload{Version: "v1", Labels: map[string]string{"env": "prod"}}}, nil,
			[]string{"compare", "write"},
		},
		"labels of a spec that admission has not recorded: nothing": {
			status.Status{Phase: status.Ready, Accepted: &status.Upload{Version: "v1"}},
			plan.Preview{Plan: previewOf().Plan, Accepted: &status.Upload{Version: "v2", Labels: map[string]string{"env": "prod"}}}, nil,
			[]string{"compare"},
		},
		"an upgrade that the status does not show: started": {
			status.Status{Phase: status.Ready}, plan.Preview{Next: scheduled}, nil,
			[]string{"compare", "start: upgrade-pending 2026-11-26T12:00:00Z"},
		},
		"an upgrade that the status shows: nothing": {
			status.Status{Phase: status.Ready, Upgrade: scheduled}, plan.Preview{Next: scheduled}, nil, []string{"compare"},
		},
		"an upgrade of a failed cluster: nothing": {
			status.Status{Phase: status.Failed}, plan.Preview{Next: scheduled}, nil, []string{"compare"},
		},
		"an aborted execution left no change: started, for a verdict": {
			status.Status{Phase: status.Failed, Conditions: []status.Condition{ended}}, previewOf(), nil,
			[]string{"compare", "start: aborted-execution 2026-11-26T12:00:00Z"},
		},
		"an aborted execution left a change: nothing": {
			status.Status{Phase: status.Failed, Conditions: []status.Condition{ended}}, previewOf(retag), nil, []string{"compare"},
		},
		"an aborted execution, and the spec is refused: nothing": {
			status.Status{Phase: status.Failed, Conditions: []status.Condition{ended}}, plan.Preview{Reason: status.ReasonSpecInvalid}, nil,
			[]string{"compare"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &test.status, preview: test.preview}
			r := a.run()
			r.stacks[demo] = test.stacks
			require.NoError(t, r.auditCluster(t.Context(), demo, a.status))
			require.Equal(t, test.want, a.calls)
		})
	}
	t.Run("an upgrade that a sweep starts: nothing", func(t *testing.T) {
		a := &auditFixture{status: &status.Status{Phase: status.Ready}, preview: plan.Preview{Next: scheduled}}
		r := a.run()
		r.due = map[string]bool{demo: true}
		require.NoError(t, r.auditCluster(t.Context(), demo, a.status))
		require.Equal(t, []string{"compare"}, a.calls)
	})
	for _, call := range []string{"compare", "write"} {
		t.Run("and starts nothing when a call fails: "+call, func(t *testing.T) {
			a := &auditFixture{status: &status.Status{Phase: status.Ready}, preview: previewOf(retag), failing: map[string]error{call: errThrottled}}
			require.ErrorIs(t, a.run().auditCluster(t.Context(), demo, a.status), errThrottled)
			require.NotContains(t, fmt.Sprint(a.calls), "start")
		})
	}
	t.Run("reports outdated nodes unless an upgrade replaces them", func(t *testing.T) {
		for phase, reported := range map[status.Phase]bool{status.Ready: true, status.Upgrading: false} {
			a := &auditFixture{status: &status.Status{Phase: phase}, preview: previewOf()}
			r := a.run()
			r.stacks[demo] = map[string]stack.Deployed{"pool-a": {Status: "CREATE_COMPLETE", Tags: map[string]string{names.TagCluster: demo}}}
			group := names.Group(demo, "a")
			r.groups[group] = pool.Group{
				Name: group, TemplateVersion: "2", Instances: []pool.Instance{{ID: "i-1", State: pool.InService, TemplateVersion: "1"}},
			}
			require.NoError(t, r.auditCluster(t.Context(), demo, a.status))
			require.Equal(t, reported, a.status.Condition(status.InSync) != nil, phase)
		}
	})
}

func ago(d time.Duration) *time.Time {
	at := noon.Add(-d)
	return &at
}

func TestAuditRecordsTheDeployedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		deployed, recorded string
		during             func(*status.Status)
		want               string
		calls              []string
	}{
		"that was not recorded":                 {deployed: "1.36", recorded: "1.35", want: "1.36", calls: []string{"write"}},
		"once":                                  {deployed: "1.36", recorded: "1.36", want: "1.36"},
		"not of a control plane that is absent": {recorded: "1.35", want: "1.35"},
		"not over a later one": {deployed: "1.36", recorded: "1.35", during: func(s *status.Status) {
			s.KubernetesVersion = "1.37"
		}, want: "1.37", calls: []string{"write"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &status.Status{KubernetesVersion: test.recorded}, during: test.during}
			r := a.run()
			r.stacks[demo] = map[string]stack.Deployed{
				names.ControlPlane: {Status: "UPDATE_COMPLETE", Outputs: map[string]string{"KubernetesVersion": test.deployed}},
			}
			before := *a.status
			require.NoError(t, r.syncVersion(t.Context(), demo, &before))
			require.Equal(t, test.want, a.status.KubernetesVersion)
			require.Equal(t, test.calls, a.calls)
		})
	}
}

func TestPhasesOfTheAudit(t *testing.T) {
	with := func(phase status.Phase, reason string, change ...func(*status.Status)) *status.Status {
		s := &status.Status{Phase: phase, Conditions: []status.Condition{condition(status.Converged, "False", reason)}}
		for _, c := range change {
			c(s)
		}
		return s
	}
	uploaded := func(s *status.Status) { s.ObservedVersion = "v2" }
	for name, test := range map[string]struct {
		is      func(*status.Status) bool
		yes, no []*status.Status
	}{
		"unfinished": {
			isUnfinished,
			[]*status.Status{with(status.Failed, status.ReasonExecutionEnded), with(status.Failed, status.ReasonConverging)},
			[]*status.Status{
				{Phase: status.Failed}, with(status.Failed, "StackFailed"), with(status.Ready, status.ReasonConverging),
				with(status.Failed, status.ReasonExecutionEnded, uploaded),
			},
		},
		"paused": {
			isPaused, []*status.Status{with(status.Stopped, status.ReasonPaused)},
			[]*status.Status{{Phase: status.Stopped}, with(status.Stopped, status.ReasonChangeRefused), with(status.Pending, status.ReasonPaused)},
		},
		"refused": {
			isRefused, []*status.Status{with(status.Stopped, status.ReasonChangeRefused)},
			[]*status.Status{{Phase: status.Stopped}, with(status.Stopped, status.ReasonPaused), with(status.Failed, status.ReasonChangeRefused)},
		},
	} {
		for i, s := range test.yes {
			require.True(t, test.is(s), "%s %d", name, i)
		}
		for i, s := range test.no {
			require.False(t, test.is(s), "%s %d", name, i)
		}
	}
}

func TestFindingsByPhase(t *testing.T) {
	ready := status.Status{Phase: status.Ready, Stacks: []status.Stack{{Name: names.Addons, Status: "CREATE_COMPLETE"}}}
	failed := ready
	failed.Phase = status.Failed
	upgrading := ready
	upgrading.Phase = status.Upgrading
	halted := func(reason string) status.Status {
		s := ready
		s.Phase, s.Conditions = status.Stopped, []status.Condition{condition(status.Converged, "False", reason)}
		return s
	}
	unknown := map[string]stack.Deployed{"other": {Status: "CREATE_COMPLETE"}}
	const missingStack, unknownStack = "stack addons is missing", "stack other (CREATE_COMPLETE) is in no spec and has no tag of drover: " +
		"delete it if it is not needed"
	const tag = `stack addons: tags.drover:cluster is "" instead of "demo"`
	const byHand = missingStack + ": run drover converge demo to create it"
	other := plan.Change{
		Stack: names.Network, Operation: plan.Update, Reasons: []status.Reason{{Field: "checksum.network", Old: "a", New: "b"}},
	}
	for name, test := range map[string]struct {
		status     status.Status
		changes    []plan.Change
		reason     string
		planned    []string
		others     []string
		repairable bool
	}{
		"ready": {
			status: ready, changes: []plan.Change{absent, retag}, planned: []string{missingStack, tag}, others: []string{unknownStack},
			repairable: true,
		},
		"ready, with a spec that is invalid": {
			status: ready, changes: []plan.Change{absent}, reason: status.ReasonSpecInvalid, planned: []string{missingStack},
			others: []string{unknownStack}, repairable: true,
		},
		"ready, with a release that is unusable": {
			status: ready, changes: []plan.Change{absent}, reason: status.ReasonReleaseUnusable, planned: []string{missingStack},
			others: []string{unknownStack}, repairable: true,
		},
		"ready, and something is new to this drover": {
			status: ready, changes: []plan.Change{absent, other}, planned: []string{byHand, driftOf("network")}, others: []string{unknownStack},
		},
		"ready, and a change is refused": {
			status: ready, changes: []plan.Change{retag}, reason: status.ReasonChangeRefused, planned: []string{tag, "message"},
			others: []string{unknownStack},
		},
		"ready, and nothing can be planned": {status: ready, changes: []plan.Change{retag}, reason: status.ReasonSpecAbsent},
		"refused already": {
			status: halted(status.ReasonChangeRefused), changes: []plan.Change{absent, retag}, reason: status.ReasonChangeRefused,
			planned: []string{missingStack},
		},
		"paused": {status: halted(status.ReasonPaused), changes: []plan.Change{absent}},
		"failed": {status: failed, changes: []plan.Change{absent, retag}, planned: []string{missingStack}},
		"failed, and the missing stack is refused": {
			status: failed, changes: []plan.Change{absent}, reason: status.ReasonChangeRefused, planned: []string{missingStack, "message"},
		},
		"failed, and something else is refused": {status: failed, changes: []plan.Change{retag}, reason: status.ReasonChangeRefused},
		"upgrading":                             {status: upgrading, changes: []plan.Change{absent, retag}, planned: []string{missingStack}},
	} {
		t.Run(name, func(t *testing.T) {
			planned, others, repairable := stackFindings(&test.status, plan.Plan{
				Cluster: demo, Changes: test.changes,
			}, test.reason, "message", unknown, noon)
			require.Equal(t, test.planned, planned)
			require.Equal(t, test.others, others)
			require.Equal(t, test.repairable, repairable)
		})
	}
	t.Run("only stacks that existed are reported as missing", func(t *testing.T) {
		p := plan.Plan{Changes: []plan.Change{absent}}
		for is, found := range map[string]bool{
			"CREATE_COMPLETE": true, "UPDATE_ROLLBACK_FAILED": true, "ROLLBACK_COMPLETE": false, "DELETE_COMPLETE": false,
		} {
			require.Equal(t, found, len(missingStacks(&status.Status{Stacks: []status.Stack{{Name: names.Addons, Status: is}}}, p)) > 0, is)
		}
		s := &status.Status{
			Stacks: []status.Stack{{Name: names.Addons, Status: "CREATE_COMPLETE"}, {Name: names.Network, Status: "CREATE_COMPLETE"}},
		}
		recreated := absent
		recreated.Reasons = []status.Reason{{Field: "status.addons", Old: "ROLLBACK_COMPLETE"}}
		deleted := absent
		deleted.Operation = plan.Delete
		require.Empty(t, missingStacks(s, plan.Plan{Changes: []plan.Change{recreated}}))
		require.Empty(t, missingStacks(s, plan.Plan{Changes: []plan.Change{deleted}}))
	})
}

func driftOf(stack string) string {
	return fmt.Sprintf("stack %s differs from what drover renders now (checksum.%s): drover was updated, or the stack was changed outside "+
		"drover; run drover converge demo to update it", stack, stack)
}

func TestFindingsAreRecorded(t *testing.T) {
	found, drifted := []string{"something"}, condition(status.InSync, "False", status.ReasonDrifted)
	again := condition(status.InSync, "True", status.ReasonInSync)
	for name, test := range map[string]struct {
		before     status.Status
		findings   []string
		repairable bool
		written    bool
		since      *time.Time
	}{
		"nothing, and nothing before: not written": {before: status.Status{}},
		"nothing, and InSync before: not written":  {before: status.Status{Conditions: []status.Condition{again}}},
		"a first finding: written": {
			before: status.Status{}, findings: found, repairable: true, written: true, since: &noon,
		},
		"a finding after InSync: written": {
			before: status.Status{Conditions: []status.Condition{again}}, findings: found, repairable: true, written: true, since: &noon,
		},
		"nothing, and drift before: written":                {before: status.Status{Conditions: []status.Condition{drifted}}, written: true},
		"nothing, and only a time of drift before: written": {before: status.Status{DriftedAt: ago(time.Hour)}, written: true},
		"a repairable finding keeps the time of the first": {
			before: status.Status{DriftedAt: ago(time.Hour)}, findings: found, repairable: true, written: true, since: ago(time.Hour),
		},
		"a finding that is not repairable has no time": {before: status.Status{DriftedAt: ago(time.Hour)}, findings: found, written: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.before
			a := &auditFixture{status: &s}
			require.NoError(t, a.run().recordFindings(t.Context(), demo, &test.before, test.findings, test.findings, test.repairable))
			require.Equal(t, test.written, len(a.calls) > 0)
			require.Equal(t, test.since, s.DriftedAt)
			if test.written {
				require.Equal(t, len(test.findings) == 0, s.Condition(status.InSync).Status == "True")
			}
		})
	}
	t.Run("more findings than the limit are counted", func(t *testing.T) {
		for n, want := range map[int]bool{maxFindings: false, maxFindings + 1: true} {
			a := &auditFixture{status: &status.Status{}}
			require.NoError(t, a.run().recordFindings(t.Context(), demo, &status.Status{}, make([]string, n), nil, false))
			require.Equal(t, want, a.status.Condition(status.InSync).Message[maxFindings-1:] == "\nand 1 more", n)
		}
	})
	t.Run("an unwanted stack in review is recorded, others are not", func(t *testing.T) {
		review := func(op plan.Operation) plan.Change { return plan.Change{Stack: names.Addons, Operation: op} }
		for name, test := range map[string]struct {
			change plan.Change
			is     string
			calls  []string
		}{
			"in review":              {review(plan.Delete), stack.InReview, []string{"write"}},
			"in review, and planned": {review(plan.Create), stack.InReview, nil},
			"not in review":          {review(plan.Delete), "CREATE_COMPLETE", nil},
		} {
			a := &auditFixture{status: &status.Status{}}
			r := a.run()
			r.stacks[demo] = map[string]stack.Deployed{names.Addons: {Status: test.is}}
			require.NoError(t, r.recordInReview(t.Context(), demo, plan.Plan{Changes: []plan.Change{test.change}}))
			require.Equal(t, test.calls, a.calls, name)
			require.Len(t, a.status.Stacks, len(test.calls), name)
		}
	})
}

func TestRepairableReasons(t *testing.T) {
	roll := func(at time.Time) plan.Change {
		return plan.Change{
			Stack: "pool-a", Operation: plan.Update, Reasons: []status.Reason{{Field: "spec.pools[a].rollAt", New: at.Format(time.RFC3339)}},
		}
	}
	mixed := roll(noon)
	mixed.Reasons = append(mixed.Reasons, status.Reason{Field: "tags.team", New: "a"})
	bare := plan.Change{Stack: names.Addons, Operation: plan.Update}
	for name, test := range map[string]struct {
		changes    []plan.Change
		findings   int
		repairable bool
	}{
		"no change": {nil, 0, false},
		"a tag":     {[]plan.Change{retag}, 1, true},
		"a tag, and a change that only another version of drover explains": {[]plan.Change{retag, renderedChange}, 2, false},
		"a late roll":                     {[]plan.Change{roll(noon.Add(-rollStartLimit - time.Second))}, 1, true},
		"a roll whose time has just come": {[]plan.Change{roll(noon.Add(-rollStartLimit))}, 0, true},
		"a roll with another change":      {[]plan.Change{mixed}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			findings, repairable := driftFindings(plan.Plan{Cluster: demo, Changes: test.changes}, noon)
			require.Len(t, findings, test.findings)
			require.Equal(t, test.repairable, repairable)
		})
	}
	require.False(t, rollJustDue(bare, noon), "a change without a reason is no roll")
	for field, repaired := range map[string]bool{
		"tags.team": true, "status.addons": true, "terminationProtection.network": true, "spec.network.outputs.VpcId": true,
		"pool-a.parameters.MaxSize": true,
		"spec.pools[a].rollAt":      true, "spec.network.cidr": false, "checksum.network": false,
	} {
		require.Equal(t, repaired, isRepairable(names.Addons, status.Reason{Field: field, Old: "", New: "x"}), field)
	}
	require.True(t, isRepairable(names.Addons, status.Reason{Field: "checksum.addons", Old: "", New: "b"}), "the tag was removed")
	require.False(t, isRepairable(names.Addons, status.Reason{Field: "checksum.addons", Old: "a", New: "b"}))
}

func TestFindingsOutsideThePlan(t *testing.T) {
	p := plan.Plan{Cluster: demo, Changes: []plan.Change{retag}}
	for name, test := range map[string]struct {
		stack    string
		deployed stack.Deployed
		found    bool
	}{
		"a stack without an owner":             {"other", stack.Deployed{}, true},
		"a stack that lost its tag is planned": {names.Addons, stack.Deployed{}, false},
		"a stack of the cluster":               {"pool-b", stack.Deployed{Tags: map[string]string{names.TagCluster: demo}}, false},
		"a stack that CloudFormation checked":  {"pool-b", stack.Deployed{Tags: map[string]string{names.TagCluster: demo}, Drifted: true}, true},
	} {
		require.Equal(t, test.found, len(unplannedStacks(p, map[string]stack.Deployed{test.stack: test.deployed})) > 0, name)
	}
	group := names.Group(demo, "a")
	for name, test := range map[string]struct {
		stack, state, version, launches, since string
		found                                  bool
	}{
		"an old launch template that made the same nodes": {
			stack: "CREATE_COMPLETE", state: pool.InService, version: "1", launches: "2", since: "1",
		},
		"a launch template that is older than such": {
			stack: "CREATE_COMPLETE", state: pool.InService, version: "1", launches: "3", since: "2", found: true,
		},
		"an old launch template": {
			stack: "CREATE_COMPLETE", state: pool.InService, version: "1", launches: "2", found: true,
		},
		"the present launch template":                 {stack: "CREATE_COMPLETE", state: pool.InService, version: "2", launches: "2"},
		"an old launch template, and terminating":     {stack: "CREATE_COMPLETE", state: pool.TerminatingWait, version: "1", launches: "2"},
		"an old launch template while its pool rolls": {stack: "UPDATE_ROLLBACK_FAILED", state: pool.InService, version: "1", launches: "2"},
		"the pool has no launch template":             {stack: "CREATE_COMPLETE", state: pool.InService, version: "1"},
	} {
		found := outdatedInstances(demo, map[string]stack.Deployed{
			"pool-a": {Status: test.stack, Outputs: map[string]string{render.NodesSince: test.since}},
		}, map[string]pool.Group{
			group: {Name: group, TemplateVersion: test.launches, Instances: []pool.Instance{
				{ID: "i-1", State: test.state, TemplateVersion: test.version},
			}},
		})
		require.Equal(t, test.found, len(found) > 0, name)
	}
}
