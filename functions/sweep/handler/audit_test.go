package handler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/local/harness"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/wire"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// later has the sweep, and it alone, live that much later.
func later(a *harness.Account, by time.Duration) {
	a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(by) }
}

// audit runs the audit and what it starts.
func audit(t *testing.T, a *harness.Account) {
	t.Helper()
	require.NoError(t, a.AuditNow())
	a.Settle()
}

// deleted deletes a stack by hand.
func deleted(t *testing.T, a *harness.Account, stack string) {
	t.Helper()
	_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{StackName: names.Stack("demo", stack)})
	require.NoError(t, err)
	a.Settle()
}

// retagged changes the tags of a stack by hand.
func retagged(t *testing.T, a *harness.Account, stack string, change func(tags map[string]string)) {
	t.Helper()
	require.NoError(t, a.Retag(names.Stack("demo", stack), change))
	a.Settle()
}

func tags(a *harness.Account, stack string) map[string]string {
	found := map[string]string{}
	for _, s := range a.CloudFormation.Stacks() {
		if s.StackName == names.Stack("demo", stack) {
			for _, tag := range s.Tags {
				found[tag.Key] = tag.Value
			}
		}
	}
	return found
}

// converges is how many executions of the converge machine there were.
func converges(a *harness.Account) (n int) {
	for _, x := range a.States.Executions() {
		if x.MachineName == "drover-converge" {
			n++
		}
	}
	return n
}

func TestAnAuditThatFindsNothingChangesNothing(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before, mark := a.Status("demo"), a.Calls.Mark()
	audit(t, a)
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, call.Action)
	}
	require.Equal(t, before, a.Status("demo"))
}

// Of each cluster an audit reads the status. Specs are read when they have changed, releases once for all, rolls and upgrades of clusters
// that have any.
func TestWhatAnAuditReads(t *testing.T) {
	a := harness.Start(t)
	clusters := []string{"demo", "shop", "docs"}
	for _, cluster := range clusters {
		a.Cluster(cluster, "")
	}
	reads := func() (keys []string) {
		t.Helper()
		mark := a.Calls.Mark()
		require.NoError(t, a.AuditNow())
		for _, call := range a.Calls.Since(mark) {
			// What was uploaded within the last minute may be another by now: releases and channels are looked at in each sweep until then.
			young := strings.Contains(call.Resource, names.ReleaseStatuses) || strings.Contains(call.Resource, "/"+names.ReleaseSpecs)
			if call.Action == "GetObject" && harness.CalledBy(call) == "sweep" && !young {
				_, key, _ := strings.Cut(strings.TrimPrefix(call.Resource, "arn:aws:s3:::"), "/")
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	var statuses []string
	for _, cluster := range clusters {
		statuses = append(statuses, names.Status(cluster))
	}
	slices.Sort(statuses)
	reads() // what it has not read since the last of them was made
	require.Equal(t, statuses, reads())

	a.Upload(names.ClusterSpec("shop"), harness.Spec("shop", "  tags: {team: b}\n"))
	a.Settle()
	changed := append([]string{names.ClusterSpec("shop")}, statuses...)
	slices.Sort(changed)
	require.Equal(t, changed, reads())
	require.Equal(t, statuses, reads())
}

func TestWhatIsNoLongerAsItWasMadeIsRepaired(t *testing.T) {
	tests := map[string]struct {
		harm    func(t *testing.T, a *harness.Account)
		finding string
		healed  func(t *testing.T, a *harness.Account)
	}{
		"a pool's stack was deleted": {
			func(t *testing.T, a *harness.Account) { deleted(t, a, "pool-a") },
			"stack pool-a is missing",
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
			},
		},
		"the add-ons' stack was deleted": {
			func(t *testing.T, a *harness.Account) { deleted(t, a, "addons") },
			"stack addons is missing",
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["addons"])
			},
		},
		"a tag was changed": {
			func(t *testing.T, a *harness.Account) {
				retagged(t, a, "network", func(tags map[string]string) { tags["team"] = "thieves" })
			},
			`stack network: tags.network.team is "thieves" instead of "a"`,
			func(t *testing.T, a *harness.Account) { require.Equal(t, "a", tags(a, "network")["team"]) },
		},
		"all tags were removed": {
			func(t *testing.T, a *harness.Account) {
				retagged(t, a, "pool-a", func(tags map[string]string) { clear(tags); tags["x"] = "y" })
			},
			`stack pool-a: checksum.pool-a is ""`,
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "demo", tags(a, "pool-a")[names.TagCluster])
			},
		},
		"termination protection was turned off": {
			func(t *testing.T, a *harness.Account) {
				_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{StackName: "drover-demo-network"})
				require.NoError(t, err)
			},
			"terminationProtection.network",
			func(t *testing.T, a *harness.Account) {
				for _, s := range a.CloudFormation.Stacks() {
					require.Equal(t, s.StackName == "drover-demo-network" || s.StackName == "drover-demo-control-plane", s.EnableTerminationProtection, s.StackName)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "  tags: {team: a}\n")
			before := converges(a)
			test.harm(t, a)
			require.NoError(t, a.AuditNow())
			condition := a.Status("demo").Condition(status.InSync)
			require.NotNil(t, condition)
			require.Equal(t, status.ReasonDrifted, condition.Reason)
			require.Contains(t, condition.Message, test.finding)
			a.Settle()
			test.healed(t, a)
			require.Equal(t, before+1, converges(a))
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			// The next audit sees that it is over, and the one after it has nothing to say.
			audit(t, a)
			require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
			mark := a.Calls.Mark()
			audit(t, a)
			for _, call := range a.Calls.Since(mark) {
				require.False(t, call.Mutating, call.Action)
			}
			require.Equal(t, before+1, converges(a))
		})
	}
}

// A new drover renders something else from the same spec: that is for people to roll out.
func TestWhatOnlyANewDroverWouldMakeOtherwiseIsTold(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	retagged(t, a, "addons", func(tags map[string]string) { tags[names.TagChecksum] = "of what an older drover made" })
	before := converges(a)
	audit(t, a)
	condition := a.Status("demo").Condition(status.InSync)
	require.Contains(t, condition.Message, "stack addons differs from what its spec makes now (checksum.addons)")
	require.Equal(t, before, converges(a))
	// Nor is it done along with what may be repaired.
	deleted(t, a, "pool-a")
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "stack pool-a is missing")
}

func TestWhatNobodyKnowsIsTold(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	_, err := a.CloudFormation.CreateStack(t.Context(), a.Admin(), &cloudformation.CreateStackInput{
		StackName: "drover-demo-pool-old", TemplateBody: `{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}`,
	})
	require.NoError(t, err)
	a.Settle()
	before := converges(a)
	audit(t, a)
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "stack pool-old (CREATE_COMPLETE) is in no spec")
	require.Equal(t, before, converges(a))
}

// A change set by which a stack was to be created, and that nobody executed, leaves a stack in review.
func TestAStackInReviewThatNoSpecWantsIsRemoved(t *testing.T) {
	t.Run("by the plan that knows of it", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "")
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "ExecuteChangeSet" && strings.Contains(call.Resource, "pool-b") {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"))
		a.Settle()
		require.Equal(t, plan.InReview, a.Stacks("demo")["pool-b"])
		a.OnCall(nil)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.NotContains(t, a.Stacks("demo"), "pool-b")
	})
	t.Run("by the audit, when nobody does", func(t *testing.T) {
		a := harness.Start(t)
		a.Cluster("demo", "")
		for _, name := range []string{"drover-demo-pool-old", "drover-other-pool-a", "theirs"} {
			_, err := a.CloudFormation.CreateChangeSet(t.Context(), a.Admin(), &cloudformation.CreateChangeSetInput{
				StackName: name, ChangeSetName: "x", ChangeSetType: "CREATE", TemplateBody: `{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}`,
			})
			require.NoError(t, err)
		}
		audit(t, a)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		var left []string
		for _, stack := range a.CloudFormation.Stacks() {
			if stack.StackStatus == plan.InReview {
				left = append(left, stack.StackName)
			}
		}
		require.ElementsMatch(t, []string{"drover-other-pool-a", "theirs"}, left, "not those of a cluster that nobody knows, nor anybody else's")
		audit(t, a)
		require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
	})
}

// What repairing does not mend is not repaired by every audit.
func TestRepairsThatDoNotHelpBecomeRare(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  tags: {team: a}\n")
	before := converges(a)
	for n := range 17 { // four hours
		if tags(a, "network")["team"] == "a" {
			retagged(t, a, "network", func(tags map[string]string) { tags["team"] = "thieves" })
		}
		later(a, time.Duration(n)*15*time.Minute)
		require.NoError(t, a.AuditNow())
		a.Settle()
	}
	require.Equal(t, 6, converges(a)-before, "at once, after 15 and 30 minutes, 1, 2 and 4 hours")
}

// What is only told, for however long, does not put off what can be repaired.
func TestWhatIsToldForLongPutsOffNoRepair(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before := converges(a)
	a.Nodes.Decide(func(string, []kube.Health) ([]kube.Health, error) { return nil, errors.New("connection refused") })
	for n := range 4 {
		later(a, time.Duration(n)*15*time.Minute)
		audit(t, a)
	}
	require.Equal(t, "False", a.Status("demo").Condition(status.InSync).Status)
	deleted(t, a, "pool-a")
	later(a, 75*time.Minute) // five audits since the first finding: not one of those in which repairs that do not help are made again
	audit(t, a)
	require.Equal(t, before+1, converges(a))
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
	later(a, 90*time.Minute)
	audit(t, a)
	require.Nil(t, a.Status("demo").DriftedAt)
}

// Whoever takes the tags of a pool away that was rolled by hand takes the time of that with them. It is put back, and no node is replaced.
func TestTheTagsOfAPoolThatWasRolledAreRepaired(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Converge("demo", "a")
	a.Settle()
	was, nodes := tags(a, "pool-a"), a.Group("demo", "a").Instances
	require.NotEmpty(t, was[names.TagRollAt])
	retagged(t, a, "pool-a", func(tags map[string]string) { clear(tags); tags["x"] = "y" })
	audit(t, a)
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, `stack pool-a: checksum.pool-a is ""`)
	require.Equal(t, was[names.TagRollAt], tags(a, "pool-a")[names.TagRollAt])
	require.Equal(t, was[names.TagChecksum], tags(a, "pool-a")[names.TagChecksum])
	require.Equal(t, nodes, a.Group("demo", "a").Instances)
}

func TestAReleaseThatComesAtLast(t *testing.T) {
	upload := func(a *harness.Account) { a.Upload("releases/r1.yaml", harness.Release()) }
	t.Run("goes on by itself", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.ReasonReleaseUnusable, a.Status("demo").Condition(status.SpecAccepted).Reason)
		a.Upload("releases/another.yaml", strings.Replace(harness.Release(), "name: r1", "name: another", 1))
		a.Settle()
		require.Equal(t, 1, converges(a), "it waits for r1")
		upload(a)
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
	t.Run("though its event was lost", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		losing(a, "aws.s3")
		upload(a)
		audit(t, a)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
	t.Run("after one that was no good", func(t *testing.T) {
		a := harness.Start(t)
		a.Upload("releases/r1.yaml", "kind: Release")
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.ReasonReleaseUnusable, a.Status("demo").Condition(status.SpecAccepted).Reason)
		upload(a)
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	})
}

func TestTriesAgainAfterGrowingPauses(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	reason := "The maximum number of VPCs has been reached."
	a.OnResource(func(step string, r resource.Request) error {
		if step != "create" || r.Type != "AWS::EC2::VPC" {
			return nil
		}
		// As resource handlers tell it: each try has other ids.
		return &wire.Error{Code: "VpcLimitExceeded", Status: 400, Message: fmt.Sprintf("%s (Service: Ec2, Status Code: 400, Request ID: %s) (SDK Attempt Count: 1) (RequestToken: %s, HandlerErrorCode: ServiceLimitExceeded)",
			reason, uuid.NewString(), uuid.NewString())}
	})
	told := func() (phases []string) {
		for _, n := range a.Notices() {
			if phase, is := strings.CutPrefix(n, "drover: demo is "); is {
				phase, _, _ = strings.Cut(phase, "\n")
				phases = append(phases, phase)
			}
		}
		return phases
	}
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	first := []string{"Pending", "Converging", "Failed"}
	require.Equal(t, first, told())
	at := time.Duration(0)
	for n, pause := range []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		s := a.Status("demo")
		require.Equal(t, n+1, s.Failures)
		require.WithinDuration(t, time.Now().Add(pause), *s.RetryAt, time.Minute, "report's clock is real")
		before := converges(a)
		later(a, pause-time.Minute)
		audit(t, a)
		require.Equal(t, before, converges(a), "not yet")
		later(a, pause+time.Minute)
		audit(t, a)
		require.Equal(t, before+1, converges(a), "now")
		at += pause
	}
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Nil(t, s.RetryAt, "a person must act")
	later(a, 1000*time.Hour)
	before := converges(a)
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.Equal(t, first, told(), "tries that nobody asked for, and that end the same, are no news")
	a.Converge("demo")
	a.Settle()
	byHand := append(first, "Converging", "Failed")
	require.Equal(t, byHand, told(), "who asked for a try is told how it ended")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
	a.Settle()
	uploaded := append(byHand, "Pending", "Converging", "Failed")
	require.Equal(t, uploaded, told())
	reason = "The account is suspended."
	later(a, 16*time.Minute)
	audit(t, a)
	require.Equal(t, append(uploaded, "Failed"), told(), "another reason is")
	a.OnResource(nil)
	later(a, 2*time.Hour)
	audit(t, a)
	require.Equal(t, append(uploaded, "Failed", "Ready"), told())
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.Zero(t, a.Status("demo").Failures)
	require.Nil(t, a.Status("demo").ToldFailure)
}

// A change that was taken back would replace nodes, and take them back, with every try.
func TestAChangeThatWasTakenBackIsNotTriedAgainByItself(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.OnResource(failUpdateOf("AWS::EKS::Addon"))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"))
	a.Settle()
	require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", a.Stacks("demo")["addons"])
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Nil(t, s.RetryAt)
	require.Contains(t, s.Message, "drover does not try this again by itself")
	before := converges(a)
	later(a, 100*time.Hour)
	audit(t, a)
	require.Equal(t, before, converges(a))
}

func TestAThrottledClusterIsTriedAgain(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "CreateChangeSet" {
			return faults.Throttled("cloudformation")
		}
		return nil
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	require.Equal(t, "Throttled", a.Status("demo").Condition(status.Converged).Reason)
	a.OnCall(nil)
	later(a, 16*time.Minute)
	audit(t, a)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

func TestAnExecutionThatWasNeverSeen(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.Phase = status.Pending }))
	losing(a, "aws.s3")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	audit(t, a)
	require.Zero(t, converges(a), "it may still come")
	later(a, 11*time.Minute)
	audit(t, a)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// Somebody deleted the waiter: no event and no sweep would ever resume the step.
func TestAnExecutionThatWaitsForNothingIsReplaced(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.cloudformation")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	waiting(t, a, "network")
	later(a, 2*time.Hour)
	require.NoError(t, a.AuditNow())
	require.Equal(t, 1, converges(a), "it waits for something: that is the sweep's")
	w, err := a.State().Waiter(t.Context(), "drover-demo-network")
	require.NoError(t, err)
	require.NoError(t, a.State().DeleteWaiter(t.Context(), w))
	later(a, time.Minute)
	require.NoError(t, a.AuditNow())
	require.Equal(t, 1, converges(a), "it may be between two steps")
	a.Events.Decide(nil)
	later(a, 2*time.Hour)
	audit(t, a)
	require.Equal(t, "ABORTED", a.Execution(w.Execution).Status)
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

func TestADeletionThatWaitsForNothingGoesOn(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	losing(a, "aws.cloudformation")
	a.Remove("clusters/demo.yaml", "")
	a.Until("nobody heard that the pool is gone", func() bool {
		_, there := a.Stacks("demo")["pool-a"]
		return !there && a.Still()
	})
	w, err := a.State().Waiter(t.Context(), "drover-demo-pool-a")
	require.NoError(t, err)
	require.NoError(t, a.State().DeleteWaiter(t.Context(), w))
	a.Events.Decide(nil)
	later(a, 2*time.Hour)
	require.NoError(t, a.AuditNow())
	require.Equal(t, "RUNNING", a.Execution(w.Execution).Status, "tries of a deletion have their pauses")
	later(a, 4*time.Hour)
	audit(t, a)
	require.Equal(t, "ABORTED", a.Execution(w.Execution).Status)
	require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
	require.Empty(t, a.Stacks("demo"))
}

func TestNodesThatDoNotComeBackAreReplaced(t *testing.T) {
	three := strings.Replace(harness.Spec("demo", ""), "minSize: 1", "minSize: 3", 1)
	instances := func(a *harness.Account) (ids []string) {
		group, _, err := a.Groups().Describe(t.Context(), "drover-demo-pool-a")
		require.NoError(t, err)
		for _, i := range group.Instances {
			ids = append(ids, i.ID)
		}
		return ids
	}
	tests := map[string]struct {
		harm     func(n []kube.Health) []kube.Health
		replaced int
		finding  string
	}{
		"one that is not Ready for long": {func(n []kube.Health) []kube.Health {
			n[1].Ready, n[1].Since = false, time.Now().Add(-21*time.Minute)
			return n
		}, 1, "is not Ready since"},
		"one that is not Ready for a moment": {func(n []kube.Health) []kube.Health {
			n[1].Ready, n[1].Since = false, time.Now().Add(-19*time.Minute)
			return n
		}, 0, ""},
		"one that somebody cordoned": {func(n []kube.Health) []kube.Health {
			n[1].Ready, n[1].Cordoned, n[1].Since = false, true, time.Now().Add(-time.Hour)
			return n
		}, 0, ""},
		"one whose node was deleted": {func(n []kube.Health) []kube.Health { return n[1:] }, 1, "is in service without a node"},
		"two of three: the cluster is unwell": {func(n []kube.Health) []kube.Health {
			n[1].Ready, n[2].Ready = false, false
			return n
		}, 0, "2 of 3 nodes are not Ready: none is replaced"},
		"all of them are gone": {func([]kube.Health) []kube.Health { return nil }, 0, "3 of 3 nodes are not Ready"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Upload("releases/r1.yaml", harness.Release())
			a.Upload("clusters/demo.yaml", three)
			a.Settle()
			before := instances(a)
			require.Len(t, before, 3)
			a.Nodes.Decide(func(_ string, n []kube.Health) ([]kube.Health, error) { return test.harm(n), nil })
			mark := a.Calls.Mark()
			require.NoError(t, a.AuditNow())
			marked := 0
			for _, call := range a.Calls.Since(mark) {
				if call.Action == "SetInstanceHealth" {
					marked++
				}
			}
			require.Equal(t, test.replaced, marked)
			if test.finding != "" {
				require.Contains(t, a.Status("demo").Condition(status.InSync).Message, test.finding)
			}
			if test.replaced > 0 {
				a.Nodes.Decide(nil)
				a.Until("another is there", func() bool {
					after := instances(a)
					gone := 0
					for _, id := range before {
						if !strings.Contains(strings.Join(after, " "), id) {
							gone++
						}
					}
					return gone == 1 && len(after) == 3 && a.Idle()
				})
				a.Settle()
			}
		})
	}
}

func TestNodesThatCannotBeLookedAtAreTold(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Nodes.Decide(func(string, []kube.Health) ([]kube.Health, error) { return nil, errors.New("connection refused") })
	audit(t, a)
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "the nodes could not be looked at: connection refused")
}

func TestWhatAnAuditCannotDoForOneClusterHoldsUpNoOther(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/alpha.yaml", harness.Spec("alpha", ""))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	deleted(t, a, "pool-a")
	a.OnCall(func(call endpoint.Call) error {
		if strings.HasSuffix(call.Resource, "status/clusters/alpha.json") && harness.CalledBy(call) == "sweep" {
			return &wire.Error{Code: "AccessDenied", Message: "not this one", Status: 403}
		}
		return nil
	})
	require.ErrorContains(t, a.AuditNow(), "auditing alpha")
	a.Settle()
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
}

// Clusters that are paused or failed are nobody's to repair.
func TestPausedClustersAreLeftAlone(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  paused: true\n"))
	a.Settle()
	deleted(t, a, "pool-a")
	before := converges(a)
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.NotContains(t, a.Stacks("demo"), "pool-a")
}

func TestADeletionThatNobodyWasToldOf(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.DetailType == "Object Deleted" {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, status.Deleted, a.Status("demo").Phase, a.Status("demo").Message)
	require.Empty(t, a.Stacks("demo"))
}
