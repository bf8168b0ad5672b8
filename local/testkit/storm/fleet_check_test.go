package storm

// Each check of fleets finds the violation that it exists for.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	stacks "github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
)

// started is when the run of quietFleet is started.
const started = 35 * time.Minute

// quietFleet returns a canary and three clusters of production that a rollout moves to newer images, without faults.
func quietFleet() plot {
	p := plot{
		last: map[string]*wish{}, apps: map[string][]apiserver.App{}, fleet: &fleetPlot{rollouts: map[string]*wishedRollout{"next": {
			name: "next", release: release(firstMinor, 1), start: "Manual", onNewer: "Finish", onFailure: "Stop", budget: "Strict",
			concurrency: "1", failures: 1, settle: 5, soak: 10,
		}}},
	}
	for i := range 4 {
		w := &wish{
			name: fmt.Sprintf("c%d", i), minor: firstMinor, labels: fleetLabels(i, "prod"),
			pools: []wishedPool{{name: "a", min: 1, max: 3, timeout: time.Hour, onTimeout: "Wait", surge: 1}},
		}
		p.acts, p.last[w.name] = append(p.acts, act{cluster: w.name, what: "create", spec: w}), w
	}
	p.act(30*time.Minute, "upload next", func(w *world) { w.uploadRollout("next") })
	p.act(started, "start next", func(w *world) { w.decide(choice{rollout: "next", verb: api.VerbStart}) })
	return p
}

// eachMember returns sabotage that changes the members of records.
func eachMember(change func(before, after *rollout.MemberRun)) func(*plot) {
	return eachRun(func(before, after *rollout.Run) {
		for i := range after.Members {
			change(&before.Members[i], &after.Members[i])
		}
	})
}

// eachRun returns sabotage that changes the records of a run that has begun.
func eachRun(change func(before, after *rollout.Run)) func(*plot) {
	return func(p *plot) {
		p.fleet.sabotage.record = func(before, after *rollout.Record) {
			switch {
			case before == nil || before.Run == nil || after.Run == nil || before.Run.Number != after.Run.Number:
			case before.Run.Sequence < after.Run.Sequence:
				change(before.Run, after.Run)
			default:
				after.Run = before.Run
			}
		}
	}
}

// set returns sabotage that changes the members in a state.
func set(from rollout.State, to rollout.State, reason rollout.Reason) func(*plot) {
	return eachMember(func(before, after *rollout.MemberRun) {
		if after.State == from {
			after.State, after.Reason = to, reason
		}
	})
}

// forgetFailures makes each member of production fail, and takes it out of the run at the next record.
func forgetFailures(p *plot) {
	forgotten := map[string]bool{}
	eachRun(func(before, after *rollout.Run) {
		reason := rollout.ReasonBudget
		for i := 1; i < len(after.Members); i++ {
			switch m := &after.Members[i]; {
			case before.Members[i].State == rollout.Failed:
				m.State, m.Reason = rollout.Skipped, rollout.ReasonDeleted
				forgotten[m.Cluster] = true
			case m.State == rollout.Changing:
				m.State, m.Reason = rollout.Failed, rollout.ReasonUpgrade
			case atRisk(m.State):
				reason = rollout.ReasonSlots
			}
		}
		for i := range after.Members {
			if m := &after.Members[i]; m.State == rollout.Waiting && m.Reason != rollout.ReasonStage {
				m.Reason = reason
			}
		}
	})(p)
	p.fleet.sabotage.desired = func(a *rollout.DesiredState) {
		section := a.Sections["next"]
		section.Assignments = slices.DeleteFunc(section.Assignments, func(a rollout.Assignment) bool { return forgotten[a.Cluster] })
		a.Sections["next"] = section
	}
}

// retag changes the release in the tags of a control plane, as an operator does.
func (w *world) retag(cluster, release string) {
	control := w.Stack(cluster, names.ControlPlane)
	in := &stacks.UpdateStackInput{
		StackName: names.Stack(cluster, names.ControlPlane), UsePreviousTemplate: true,
		Capabilities: []string{"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"},
	}
	for parameter := range control.Parameters {
		in.Parameters = append(in.Parameters, stacks.Parameter{ParameterKey: parameter, UsePreviousValue: true})
	}
	for _, key := range slices.Sorted(maps.Keys(control.Tags)) {
		value := control.Tags[key]
		if key == names.TagRelease {
			value = release + "@" + strings.Repeat("a", 64)
		}
		in.Tags = append(in.Tags, stacks.Tag{Key: key, Value: value})
	}
	_, err := w.CloudFormation.UpdateStack(context.Background(), w.Admin(), in)
	require.NoError(w.t, err)
}

func TestEveryFleetCheckCanFail(t *testing.T) {
	tests := map[string]struct {
		invariant int
		change    func(*plot)
		says      string
	}{
		"a member starts beyond its budget": {1, eachMember(func(_, after *rollout.MemberRun) {
			if after.State == rollout.Waiting && (after.Reason == rollout.ReasonSlots || after.Reason == rollout.ReasonBudget) {
				after.State, after.Reason, after.Started = rollout.Started, "", after.Since
				after.Attempt++
			}
		}), "start with"},
		"members change without a start": {1, eachMember(func(_, after *rollout.MemberRun) {
			if after.State == rollout.Waiting && after.Cluster > "c1" {
				after.State, after.Reason = rollout.Changing, ""
			}
		}), "has 2 members at risk"},
		"failures are forgotten": {2, forgetFailures, "at most"},
		"a record is lost":       {3, eachRun(func(_, after *rollout.Run) { after.Sequence++ }), "follows"},
		"assignments are not those of the record": {3, func(p *plot) {
			p.fleet.sabotage.desired = func(a *rollout.DesiredState) {
				section := a.Sections["next"]
				section.Assignments = section.Assignments[:0:0]
				a.Sections["next"] = section
			}
		}, "are not those of the record"},
		"a stage passes while a member is at risk": {4, eachRun(func(_, after *rollout.Run) {
			if after.Members[0].State == rollout.Changing {
				after.Stages[0].Passed = after.Members[0].Since
			}
		}), "passes with"},
		"a member does not settle":                 {5, set(rollout.Settling, rollout.Good, ""), "was not well for 5m0s"},
		"a member is Good before its upgrade ends": {6, set(rollout.Changing, rollout.Good, ""), "no fact about this attempt shows it"},
		"another cluster joins":                    {7, eachRun(func(_, after *rollout.Run) { after.Members[0].Cluster = "c9" }), "is not c0"},
		"an answer is forgotten":                   {8, eachRun(func(_, after *rollout.Run) { clear(after.Answers) }), "was answered twice"},
		"a freeze is not read": {9, func(p *plot) {
			p.act(20*time.Minute, "freeze", func(w *world) { w.freeze("f0", "{}", false) })
			p.sortActs()
			p.calmFor = time.Hour
			p.fleet.sabotage.hides = func(key string) bool { return strings.HasPrefix(key, names.Freezes) }
		}, "did not read freezes/f0.yaml"},
		"a pause is not read": {9, func(p *plot) {
			p.act(started+10*time.Minute, "pause", func(w *world) { w.decide(choice{rollout: "next", verb: api.VerbPause}) })
			p.fleet.sabotage.hides = func(key string) bool { return key == names.Decision("next", "d1") }
		}, "did not read decisions/next/d1.yaml"},
		"work that has begun is forgotten": {10, set(rollout.Changing, rollout.Waiting, rollout.ReasonStage),
			"no fact shows that it was withdrawn"},
		"an upgrade begins without a run": {12, func(p *plot) {
			p.act(started-time.Minute, "upgrade", func(w *world) { w.Upgrade(events.Upgrade{Cluster: "c1", Release: release(firstMinor, 1)}) })
			p.sortActs()
		}, "neither a run nor a user requested it"},
		"a cluster moves without an upgrade": {12, func(p *plot) {
			p.act(30*time.Minute+time.Second, "edit the tags of the control plane", func(w *world) { w.retag("c1", release(firstMinor, 1)) })
			p.sortActs()
		}, "c1 has the release {Name:r34-1"},
		"two runs have a cluster": {13, func(p *plot) {
			other := *p.fleet.rollouts["next"]
			other.name, other.release = "other", release(firstMinor+1, 0)
			p.fleet.rollouts["other"] = &other
			p.act(30*time.Minute, "upload other", func(w *world) { w.uploadRollout("other") })
			p.act(started, "start other", func(w *world) { w.decide(choice{rollout: "other", verb: api.VerbStart}) })
			p.sortActs()
			p.fleet.sabotage.hides = func(key string) bool { return key == names.ActiveRuns }
		}, "is a member of runs of next and other"},
		"the limit of the cell is not read": {17, func(p *plot) {
			p.fleet.rollouts["next"].budget, p.fleet.rollouts["next"].concurrency = "Soft", "3"
			p.breakAtBegin = func(w *world) { w.Functions.Fleet.Limit = 1 }
			p.fleet.sabotage.report = func(r *rollout.Report) { r.Limit = 0 }
		}, "the cell allows 1"},
		"runs upgrade more clusters than the cell allows": {17, func(p *plot) {
			p.fleet.rollouts["next"].budget, p.fleet.rollouts["next"].concurrency = "Soft", "3"
			p.breakAtBegin = func(w *world) {
				instead(w, "fleet", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					w.Functions.Fleet.Limit = 3
					answer, err := next.Invoke(ctx, payload)
					w.Functions.Fleet.Limit = 2
					return answer, err
				})
			}
		}, "and the limit of the cell is 2"},
		"a cluster gets another release": {18, func(p *plot) {
			p.fleet.sabotage.desired = func(a *rollout.DesiredState) {
				for i := range a.Sections["next"].Assignments {
					a.Sections["next"].Assignments[i].To.Name = release(firstMinor+1, 0)
				}
			}
		}, "gets r35-0"},
		"a reason is not true": {20, eachMember(func(_, after *rollout.MemberRun) {
			if after.State == rollout.Waiting {
				after.Reason = rollout.ReasonBusy
			}
		}), "waits for Busy, which does not hold"},
		"a cluster is rolled back that the run did not change": {21, func(p *plot) {
			p.fleet.sabotage.desired = func(a *rollout.DesiredState) {
				for i := range a.Sections["next"].Assignments {
					a.Sections["next"].Assignments[i].Rollback = true
				}
			}
		}, "the run did not change it"},
		"a halted run returns a cluster that it did not change": {21, eachRun(func(before, after *rollout.Run) {
			if before.Members[0].State != rollout.Changing {
				return
			}
			after.Halt = &rollout.Halt{Stage: 2, Cause: rollout.HaltRejected, At: after.Started}
			after.Stages[1].Rollback = rollout.RollbackActive
			m := &after.Members[3]
			m.State, m.Reason, m.Rollback, m.Attempt, m.Started = rollout.Started, "", true, 1, after.Started
			for i := range after.Members {
				if m := &after.Members[i]; m.State == rollout.Waiting {
					m.Reason = rollout.ReasonHalted
				}
			}
		}), "is rolled back, and the run did not change it"},
		"a member outlasts its deadline": {22, eachMember(func(_, after *rollout.MemberRun) {
			if after.State == rollout.Changing {
				after.Started = after.Started.Add(-6 * time.Hour)
			}
		}), "is Changing after its deadline"},
		"a run does not end": {22, func(p *plot) {
			p.act(started+5*time.Minute, "nothing evaluates rollouts", func(w *world) {
				instead(w, "rollout", func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
			})
		}, "does not end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := quietFleet()
			test.change(&p)
			o := run(t, firstFleet, p, false)
			require.NotEmpty(t, o.Violations, story(o))
			require.Equal(t, f(test.invariant), o.Violations[0].Invariant, story(o))
			require.Contains(t, o.Violations[0].What, test.says, story(o))
		})
	}
	for _, invariant := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 17, 18, 20, 21, 22} {
		shown := false
		for _, test := range tests {
			shown = shown || test.invariant == invariant
		}
		require.True(t, shown, "which test breaks F%d?", invariant)
	}
}

// A fleet without faults and brakes moves to the release, and each check is made.
func TestQuietFleet(t *testing.T) {
	p := quietFleet()
	p.breakAtEnd = func(w *world) {
		for cluster := range p.last {
			require.Equal(w.t, release(firstMinor, 1), w.Status(cluster).Release)
		}
		require.Equal(w.t, rollout.Done, w.fleet.records["next"].Run.State)
	}
	o := run(t, firstFleet, p, false)
	require.Empty(t, o.Violations, story(o))
	var made []int
	for invariant := range o.Checks {
		made = append(made, invariant)
	}
	for _, invariant := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 17, 18, 20, 22} {
		require.True(t, slices.Contains(made, f(invariant)), "F%d was not checked", invariant)
	}
}

// Other functions of the account use all of Lambda's concurrency for an hour of a run. The run continues afterwards, and every cluster gets
// its release.
func TestFleetAtLambdaLimit(t *testing.T) {
	p := quietFleet()
	p.faultRules = []string{"lambda-limit after=45m for=1h"}
	p.calmFor = 90 * time.Minute
	p.breakAtEnd = func(w *world) {
		for cluster := range p.last {
			require.Equal(w.t, release(firstMinor, 1), w.Status(cluster).Release)
		}
		require.Equal(w.t, rollout.Done, w.fleet.records["next"].Run.State)
	}
	o := run(t, firstFleet, p, false)
	require.Empty(t, o.Violations, story(o))
	require.NotZero(t, o.Faults[faults.LambdaLimit], story(o))
}
