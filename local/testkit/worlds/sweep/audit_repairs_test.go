package sweep_test

// What the audit repairs, and what it only reports.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestDriftIsRepaired(t *testing.T) {
	tests := map[string]struct {
		harm    func(t *testing.T, a *harness.Account)
		finding string
		healed  func(t *testing.T, a *harness.Account)
	}{
		"a pool's stack was deleted": {
			func(t *testing.T, a *harness.Account) { deleteStack(t, a, "pool-a") },
			"stack pool-a is missing",
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
			},
		},
		"the add-ons' stack was deleted": {
			func(t *testing.T, a *harness.Account) { deleteStack(t, a, "addons") },
			"stack addons is missing",
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["addons"])
			},
		},
		"a tag was changed": {
			func(t *testing.T, a *harness.Account) {
				retagStack(t, a, "network", func(tags map[string]string) { tags["team"] = "thieves" })
			},
			`stack network: tags.network.team is "thieves" instead of "a"`,
			func(t *testing.T, a *harness.Account) { require.Equal(t, "a", tags(a, "network")["team"]) },
		},
		"all tags were removed": {
			func(t *testing.T, a *harness.Account) {
				retagStack(t, a, "pool-a", func(tags map[string]string) { clear(tags); tags["x"] = "y" })
			},
			`stack pool-a: checksum.pool-a is ""`,
			func(t *testing.T, a *harness.Account) {
				require.Equal(t, "demo", tags(a, "pool-a")[names.TagCluster])
			},
		},
		"termination protection was turned off": {
			func(t *testing.T, a *harness.Account) {
				_, err := a.CloudFormation.UpdateTerminationProtection(t.Context(), a.Admin(), &cloudformation.UpdateTerminationProtectionInput{
					StackName: "drover-demo-network",
				})
				require.NoError(t, err)
			},
			"terminationProtection.network",
			func(t *testing.T, a *harness.Account) {
				for _, s := range a.CloudFormation.Stacks() {
					require.Equal(t, s.StackName == "drover-demo-network" || s.StackName == "drover-demo-control-plane", s.EnableTerminationProtection,
						s.StackName)
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
			require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status, "converging found nothing left to change")
			// The next audit clears the finding, and the one after it writes nothing.
			require.NotNil(t, a.Status("demo").DriftedAt)
			audit(t, a)
			require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
			require.Nil(t, a.Status("demo").DriftedAt)
			mark := a.Calls.Mark()
			audit(t, a)
			for _, call := range a.Calls.Since(mark) {
				require.False(t, call.Mutating, call.Action)
			}
			require.Equal(t, before+1, converges(a))
		})
	}
}

// A newer drover renders another template from the same spec. Users roll that out.
func TestTemplateOfANewerDroverIsReported(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	retagStack(t, a, "addons", func(tags map[string]string) { tags[names.TagChecksum] = "of what an older drover made" })
	before := converges(a)
	audit(t, a)
	condition := a.Status("demo").Condition(status.InSync)
	require.Contains(t, condition.Message, "stack addons differs from what drover renders now (checksum.addons)")
	require.Equal(t, before, converges(a))
	// A repair does not include it either.
	deleteStack(t, a, "pool-a")
	audit(t, a)
	require.Equal(t, before, converges(a))
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message,
		"stack pool-a is missing: run drover converge demo to create it")
}

func TestUnknownStateIsReported(t *testing.T) {
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

// A change set that creates a stack and is never executed leaves the stack in review.
func TestUnwantedStackInReviewIsRemoved(t *testing.T) {
	t.Run("by the next plan", func(t *testing.T) {
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
		require.Equal(t, stack.InReview, a.Stacks("demo")["pool-b"])
		a.OnCall(nil)
		a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.NotContains(t, a.Stacks("demo"), "pool-b")
	})
	t.Run("by the audit, without a new spec", func(t *testing.T) {
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
		for _, made := range a.CloudFormation.Stacks() {
			if made.StackStatus == stack.InReview {
				left = append(left, made.StackName)
			}
		}
		require.ElementsMatch(t, []string{"drover-other-pool-a", "theirs"}, left, "stacks of unknown clusters and of other owners stay")
		audit(t, a)
		require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
	})
}

// The audit repeats a repair that does not help only after growing pauses.
func TestRepairsThatDoNotHelpBecomeRare(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  tags: {team: a}\n")
	before := converges(a)
	for n := range 17 { // four hours
		if tags(a, "network")["team"] == "a" {
			retagStack(t, a, "network", func(tags map[string]string) { tags["team"] = "thieves" })
		}
		later(a, time.Duration(n)*15*time.Minute)
		require.NoError(t, a.AuditNow())
		a.Settle()
	}
	require.Equal(t, 6, converges(a)-before, "at once, after 15 and 30 minutes, 1, 2 and 4 hours")
}

func TestNextAuditStartsAFailedRepair(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	deleteStack(t, a, "pool-a")
	before := converges(a)
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "StartExecution" {
			return &wire.Error{Code: "AccessDeniedException", Message: "not now", Status: 400}
		}
		return nil
	})
	for n := range 3 { // at once, after 15 and 30 minutes
		later(a, time.Duration(n)*15*time.Minute)
		require.ErrorContains(t, a.AuditNow(), "starting to converge demo")
	}
	a.OnCall(nil)
	later(a, 45*time.Minute)
	audit(t, a)
	require.Equal(t, before+1, converges(a), "a repair that did not start is not one that did not help")
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])

	deleteStack(t, a, "pool-a") // before any audit has seen it: that repair did not help
	audit(t, a)
	require.Equal(t, before+1, converges(a), "the repair of half an hour was made")
	later(a, time.Hour)
	audit(t, a)
	require.Equal(t, before+2, converges(a))
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
}

// A finding that the audit only reports does not delay the repair of another one.
func TestOldFindingDelaysNoRepair(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before := converges(a)
	a.Nodes.Decide(func(string, []pool.NodeHealth) ([]pool.NodeHealth, error) {
		return nil, errors.New("connection refused")
	})
	for n := range 4 {
		later(a, time.Duration(n)*15*time.Minute)
		audit(t, a)
	}
	require.Equal(t, "False", a.Status("demo").Condition(status.InSync).Status)
	deleteStack(t, a, "pool-a")
	later(a, 75*time.Minute) // five audits since the first finding: between two repeats of a repair that does not help
	audit(t, a)
	require.Equal(t, before+1, converges(a))
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
	later(a, 90*time.Minute)
	audit(t, a)
	require.Nil(t, a.Status("demo").DriftedAt)
}

// The tags of a pool hold the time of its last roll. Restoring them replaces no node.
func TestTagsOfARolledPoolAreRepaired(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Converge("demo", "a")
	a.Settle()
	was, nodes := tags(a, "pool-a"), a.Group("demo", "a").Instances
	require.NotEmpty(t, was[names.TagRollAt])
	retagStack(t, a, "pool-a", func(tags map[string]string) { clear(tags); tags["x"] = "y" })
	require.NoError(t, a.AuditNow())
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, `stack pool-a: checksum.pool-a is ""`)
	a.Settle()
	require.Equal(t, was[names.TagRollAt], tags(a, "pool-a")[names.TagRollAt])
	require.Equal(t, was[names.TagChecksum], tags(a, "pool-a")[names.TagChecksum])
	require.Equal(t, nodes, a.Group("demo", "a").Instances)
}

// drover's role may change only resources with the cluster's tag. A change of a network or control plane without the tag would fail half
// way, and so would its rollback.
func TestNetworkOrControlPlaneWithoutTagIsReported(t *testing.T) {
	for _, stack := range []string{names.Network, names.ControlPlane} {
		for how, harm := range map[string]func(tags map[string]string){
			"that tag alone": func(tags map[string]string) { delete(tags, names.TagCluster) },
			"all tags":       func(tags map[string]string) { clear(tags); tags["x"] = "y" },
		} {
			t.Run(stack+", "+how, func(t *testing.T) {
				a := harness.Start(t)
				a.Cluster("demo", "")
				pin := tags(a, names.ControlPlane)[names.TagRelease]
				retagStack(t, a, stack, harm)
				deleteStack(t, a, "pool-a") // which alone would be repaired
				before := converges(a)
				untouched := func(message string) {
					t.Helper()
					require.Contains(t, message, "tag drover:cluster of stack drover-demo-"+stack+": absent → demo")
					require.Contains(t, message, "aws cloudformation update-stack --stack-name drover-demo-"+stack+" --use-previous-template")
					require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")[stack])
					require.Empty(t, tags(a, stack)[names.TagCluster])
				}
				audit(t, a)
				s := a.Status("demo")
				require.Equal(t, status.Ready, s.Phase, s.Message)
				untouched(s.Condition(status.InSync).Message)
				require.Contains(t, s.Condition(status.InSync).Message, "stack pool-a is missing")
				require.Equal(t, before, converges(a), "a plan is all or nothing")

				a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
				a.Settle()
				s = a.Status("demo")
				require.Equal(t, status.Stopped, s.Phase)
				require.Equal(t, status.ReasonChangeRefused, s.Condition(status.Converged).Reason)
				untouched(s.Message)
				require.NotContains(t, a.Stacks("demo"), "pool-a")
				audit(t, a)
				untouched(a.Status("demo").Condition(status.InSync).Message)

				putBack(t, a, s.Message)
				a.Converge("demo")
				a.Settle()
				s = a.Status("demo")
				require.Equal(t, status.Ready, s.Phase, s.Message)
				require.Equal(t, "b", tags(a, stack)["team"])
				require.Equal(t, pin, tags(a, names.ControlPlane)[names.TagRelease])
			})
		}
	}
}

// putBack runs the command in a message.
func putBack(t *testing.T, a *harness.Account, message string) {
	t.Helper()
	words := strings.Fields(message[strings.Index(message, "aws cloudformation update-stack"):])
	in := &cloudformation.UpdateStackInput{
		StackName: words[4], UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_NAMED_IAM"}, RoleARN: a.Administrator(),
	}
	for _, word := range words {
		if key, ok := strings.CutPrefix(word, "Key="); ok {
			key, value, _ := strings.Cut(key, ",Value=")
			in.Tags = append(in.Tags, cloudformation.Tag{Key: key, Value: value})
		}
		if key, ok := strings.CutPrefix(word, "ParameterKey="); ok {
			in.Parameters = append(in.Parameters, cloudformation.Parameter{
				ParameterKey: strings.TrimSuffix(key, ",UsePreviousValue=true"), UsePreviousValue: true,
			})
		}
	}
	_, err := a.CloudFormation.UpdateStack(t.Context(), a.Admin(), in)
	require.NoError(t, err)
	a.Settle()
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")[strings.TrimPrefix(in.StackName, "drover-demo-")])
}

// drover's role holds other stacks, and a control plane without a key of its own, by their names. Another value of the tag denies it
// nothing either.
func TestStackWithAccessByNameIsRepairedWithoutTag(t *testing.T) {
	tests := map[string]struct {
		stack string
		harm  func(tags map[string]string)
	}{
		"add-ons":                 {names.Addons, func(tags map[string]string) { delete(tags, names.TagCluster) }},
		"add-ons on nodes":        {names.NodeAddons, func(tags map[string]string) { delete(tags, names.TagCluster) }},
		"a pool":                  {"pool-a", func(tags map[string]string) { delete(tags, names.TagCluster) }},
		"a network of another's":  {names.Network, func(tags map[string]string) { tags[names.TagCluster] = "other" }},
		"another's control plane": {names.ControlPlane, func(tags map[string]string) { tags[names.TagCluster] = "other" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			retagStack(t, a, test.stack, test.harm)
			audit(t, a)
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, "demo", tags(a, test.stack)[names.TagCluster])
		})
	}
}

// A converge reads stacks, so it clears findings about stacks. It does not read nodes, so findings about nodes stay until the next audit.
func TestConvergeKeepsFindingsAboutNodes(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Nodes.Decide(func(string, []pool.NodeHealth) ([]pool.NodeHealth, error) {
		return nil, errors.New("connection refused")
	})
	deleteStack(t, a, "pool-a")
	require.NoError(t, a.AuditNow())
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message, "stack pool-a is missing")
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-a"])
	require.Equal(t, "False", s.Condition(status.InSync).Status)
	require.Equal(t, "drover could not check the nodes: connection refused", s.Condition(status.InSync).Message)
	a.Nodes.Decide(nil)
	audit(t, a)
	require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status)
}
