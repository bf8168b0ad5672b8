package deletion_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
)

// deletions lists what was deleted of a cluster, in order, from the logs of functions: stacks, and kinds of resources of Kubernetes.
func (l *life) deletions(cluster string) (order []string) {
	for line := range strings.Lines(l.Log()) {
		var entry struct {
			Msg, Stack, Operation, Cluster, Resource string
			Outcome                                  leftover.Outcome
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		name, ours := strings.CutPrefix(entry.Stack, names.Stack(cluster, ""))
		switch {
		case entry.Msg == "changing a stack" && entry.Operation == string(plan.Delete) && ours:
			order = append(order, name)
		case entry.Msg == "leftover handled" && entry.Cluster == cluster && entry.Outcome == leftover.Removed:
			order = append(order, entry.Resource[:strings.LastIndex(entry.Resource, " ")])
		}
	}
	return slices.Compact(order)
}

func TestDeletionRemovesResourcesOfKubernetes(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("other", lives.Unprotected)
		a.KubernetesMakes("other")
		before := a.AllResources()
		a.Cluster("demo", lives.Unprotected)
		volumes := a.KubernetesMakes("demo")
		a.PersistVolume("demo", volumes[0], "Delete")
		a.PersistVolume("demo", volumes[1], "Retain")
		kept := a.AllResources()
		for arn := range kept {
			if !strings.HasSuffix(arn, volumes[1]) {
				delete(kept, arn)
			}
		}
		maps.Copy(before, kept)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		a.RequireDeleted("demo", before)
		require.Equal(t, []string{
			"pool-a", "addons-on-nodes", "addons", "control-plane", "load balancer", "classic load balancer", "target group", "network interface",
			"volume", "security group", "network",
		}, a.deletions("demo"), "what Kubernetes made goes when nothing can make it again, and before the network")
		s := a.Status("demo")
		require.Equal(t, []string{"volume " + volumes[1]}, s.Deletion.Retained)
		require.Contains(t, s.Message, "retained: volume "+volumes[1])
		require.Len(t, s.Deletion.Removed, 8)
		require.Contains(t, s.Message, "with the 8 resources that Kubernetes created")
		require.Equal(t, status.Ready, a.Status("other").Phase)
		require.Len(t, a.Stacks("other"), 5)

		// A repeated deletion, or an execution by hand, changes nothing.
		mark := a.Calls.Mark()
		a.Converge("demo")
		a.Settle()
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Mutating && harness.CalledBy(call) != "admin" && call.Service != "states", "%s %s", call.Service, call.Action)
		}
		a.RequireDeleted("demo", before)

		// The name is free for another cluster.
		a.Cluster("demo", lives.Unprotected)
		require.Nil(t, a.Status("demo").Deletion)
	})
}

// die kills the functions at the numbered call of every odd attempt. The retry after that survives.
func die(number int, death harness.Death, functions ...string) func(harness.Call) harness.Death {
	return func(c harness.Call) harness.Death {
		if c.Number != number || c.Attempt%2 == 0 || !slices.Contains(functions, c.Function) {
			return harness.Lives
		}
		return death
	}
}

// Every function is killed before, and after, each of its calls in turn during a deletion.
func TestKilledFunctionsDuringADeletion(t *testing.T) {
	functions := []string{"admit", "plan", "change", "stackevent", "report", "prepare", "clean"}
	for death, name := range map[harness.Death]string{harness.Before: "before", harness.After: "after"} {
		died := map[string]bool{}
		for number := 1; number <= lives.MaxCalls; number++ {
			deaths := 0
			t.Run(fmt.Sprintf("%s call %d", name, number), func(t *testing.T) {
				run(t, func(a *life) {
					before := a.AllResources()
					a.Cluster("demo", lives.Unprotected)
					for _, volume := range a.KubernetesMakes("demo") {
						a.PersistVolume("demo", volume, "Delete")
					}
					decide := die(number, death, functions...)
					var mu sync.Mutex
					a.Functions.Kill(func(c harness.Call) harness.Death {
						dies := decide(c)
						if dies != harness.Lives {
							mu.Lock()
							defer mu.Unlock()
							died[c.Function] = true
							deaths++
						}
						return dies
					})
					a.Remove(names.ClusterSpec("demo"), "")
					a.Settle()
					a.Functions.Kill(nil)
					a.RequireDeleted("demo", before)
					require.Empty(t, a.Status("demo").Deletion.Retained)
				})
			})
			if deaths == 0 {
				require.Len(t, died, len(functions), "all of them died: %v", died)
				break
			}
			require.Less(t, number, lives.MaxCalls)
		}
	}
}

// Events of a deletion are lost or delivered twice. The sweep finds the lost ones.
func TestLostAndDoubledEventsOfADeletion(t *testing.T) {
	for name, fate := range map[string]harness.Fate{"lost": harness.Lost, "twice": harness.Twice} {
		t.Run(name, func(t *testing.T) {
			run(t, func(a *life) {
				before := a.AllResources()
				a.Cluster("demo", lives.Unprotected)
				a.Events.Decide(func(e harness.Event) harness.Fate {
					if e.Source == "aws.autoscaling" && fate == harness.Lost {
						return harness.Delivered // hooks have tests of their own
					}
					return fate
				})
				a.Remove(names.ClusterSpec("demo"), "")
				for range 40 {
					time.Sleep(5 * time.Minute)
					require.NoError(t, a.SweepNow())
					if a.Status("demo").Phase == status.Deleted {
						break
					}
				}
				a.Settle()
				a.RequireDeleted("demo", before)
			})
		})
	}
}

// CloudFormation cannot delete a stack at first. drover retries, and the status has the reason.
func TestStackDeletionIsRetried(t *testing.T) {
	for kind, stack := range map[string]string{
		"AWS::AutoScaling::AutoScalingGroup": "pool-a", "AWS::EKS::Addon": "addons-on-nodes", "AWS::EKS::Cluster": "control-plane",
		"AWS::EC2::VPC": "network",
	} {
		t.Run(stack, func(t *testing.T) {
			run(t, func(a *life) {
				before := a.AllResources()
				a.Cluster("demo", lives.Unprotected)
				var mu sync.Mutex
				refused := 0
				var seen status.Status // at the retry
				a.OnResource(func(step string, r resource.Request) error {
					mu.Lock()
					defer mu.Unlock()
					if step != "delete" || r.Type != kind || refused == 2 {
						return nil
					}
					if refused++; refused == 2 {
						seen = *a.Status("demo")
					}
					return &wire.Error{Code: "DependencyViolation", Message: "it is in use", Status: 400}
				})
				a.Remove(names.ClusterSpec("demo"), "")
				a.Settle()
				a.RequireDeleted("demo", before)
				require.Equal(t, status.Deleting, seen.Phase)
				i := slices.IndexFunc(seen.Stacks, func(s status.Stack) bool { return s.Name == stack })
				require.Contains(t, seen.Stacks[i].Reason, "it is in use")
			})
		})
	}
}

// A resource that cannot be deleted fails the execution, and the status names it. The next execution continues once the cause is fixed.
func TestFailedDeletionContinues(t *testing.T) {
	t.Run("a stack", func(t *testing.T) {
		run(t, func(a *life) {
			before := a.AllResources()
			a.Cluster("demo", lives.Unprotected)
			a.OnResource(func(step string, r resource.Request) error {
				if step == "delete" && r.Type == "AWS::EKS::Cluster" {
					return &wire.Error{Code: "ResourceInUseException", Message: "node groups are attached", Status: 409}
				}
				return nil
			})
			a.Remove(names.ClusterSpec("demo"), "")
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Failed, s.Phase)
			require.Contains(t, s.Message, "node groups are attached")
			require.Equal(t, map[string]string{"control-plane": "DELETE_FAILED", "network": "CREATE_COMPLETE"}, a.Stacks("demo"))
			a.OnResource(nil)
			a.Converge("demo")
			a.Settle()
			a.RequireDeleted("demo", before)
		})
	})
	t.Run("a load balancer with a protection of its own", func(t *testing.T) {
		run(t, func(a *life) {
			before := a.AllResources()
			a.Cluster("demo", lives.Unprotected)
			subnet, _ := a.SubnetOf("demo")
			arn, err := a.ELB.Create("mine", "network", subnet, nil, true, map[string]string{"elbv2.k8s.aws/cluster": "drover-demo"})
			require.NoError(t, err)
			a.Remove(names.ClusterSpec("demo"), "")
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.Failed, s.Phase)
			require.Equal(t, "LeftoversRemain", s.Condition(status.Converged).Reason)
			require.Contains(t, s.Message, "deletion protection is enabled")
			require.Equal(t, map[string]string{"network": "CREATE_COMPLETE"}, a.Stacks("demo"), "what it stands in is left alone")
			a.ELB.Unprotect(arn)
			a.Converge("demo")
			a.Settle()
			a.RequireDeleted("demo", before)
		})
	})
}

// The deletion of the control plane fails, then a user uploads an invalid spec. The status records the rejection, and
// the deletion is unaffected.
func TestInvalidUploadAfterAFailedDeletion(t *testing.T) {
	key := names.ClusterSpec("demo")
	holds := func(step string, r resource.Request) error {
		if step == "delete" && r.Type == "AWS::EKS::Cluster" {
			return &wire.Error{Code: "ResourceInUseException", Message: "node groups are attached", Status: 409}
		}
		return nil
	}
	fails := func(a *life) status.Status {
		a.Cluster("demo", lives.Unprotected)
		a.OnResource(holds)
		a.Remove(key, "")
		a.Settle()
		s := a.Status("demo")
		require.Equal(a.T, status.Failed, s.Phase)
		require.NotNil(a.T, s.RetryAt)
		return *s
	}
	unusable := func(a *life) (version string) {
		version = a.Upload(key, "kind: Cluster")
		a.Settle()
		return version
	}
	// rejected asserts that the status reports the upload as invalid and is otherwise unchanged.
	rejected := func(a *life, before status.Status, version string) {
		s := a.Status("demo")
		require.Equal(a.T, version, s.ObservedVersion)
		require.Equal(a.T, status.ReasonSpecInvalid, s.Condition(status.SpecAccepted).Reason)
		require.Equal(a.T, []any{before.Phase, before.Message, before.RetryAt}, []any{s.Phase, s.Message, s.RetryAt})
		require.Equal(a.T, before.Condition(status.Converged), s.Condition(status.Converged))
	}
	tests := map[string]func(a *life, before status.Status){
		"is removed again: the deletion continues each time": func(a *life, before status.Status) {
			for range 2 {
				rejected(a, before, unusable(a))
				executions := len(a.StepFunctions.Executions())
				a.Remove(key, "")
				a.Settle()
				require.Len(a.T, a.StepFunctions.Executions(), executions+1)
				before = *a.Status("demo")
				require.Equal(a.T, status.Failed, before.Phase)
				require.Equal(a.T, status.ReasonSpecAbsent, before.Condition(status.SpecAccepted).Reason)
			}
			a.OnResource(nil)
			rejected(a, before, unusable(a))
			a.Remove(key, "")
			a.Settle()
		},
		"is taken away again, while nothing can be started": func(a *life, before status.Status) {
			a.OnResource(nil)
			rejected(a, before, unusable(a))
			a.OnCall(func(call endpoint.Call) error {
				if call.Action == "StartExecution" {
					return faults.Throttled(call.Service)
				}
				return nil
			})
			a.Remove(key, "")
			a.Settle()
			a.OnCall(nil)
			require.Equal(a.T, status.Failed, a.Status("demo").Phase)
			time.Sleep(5 * time.Minute)
			require.NoError(a.T, a.SweepNow())
			a.Settle()
		},
		"the next retry finds it, and waits until it is deleted": func(a *life, before status.Status) {
			a.OnResource(nil)
			version := unusable(a)
			rejected(a, before, version)
			time.Sleep(20 * time.Minute)
			require.NoError(a.T, a.AuditNow())
			a.Settle()
			require.Equal(a.T, status.Stopped, a.Status("demo").Phase)
			require.Equal(a.T, version, a.Status("demo").PlannedVersion)
			a.Remove(key, "")
			a.Settle()
		},
		"is deleted again, after an older drover reported no usable spec": func(a *life, _ status.Status) {
			a.OnResource(nil)
			require.NoError(a.T, a.State().UpdateStatus(context.Background(), "demo", func(s *status.Status) {
				s.Phase, s.Message = status.Stopped, "no usable spec was uploaded yet"
			}))
			time.Sleep(15 * time.Minute)
			require.NoError(a.T, a.AuditNow())
			a.Settle()
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, func(a *life) {
				before := a.AllResources()
				test(a, fails(a))
				a.RequireDeleted("demo", before)
			})
		})
	}
}

// A user uploads the spec again during each step of the deletion. drover converges the remaining stacks and recreates the deleted ones.
func TestSpecIsRestoredDuringADeletion(t *testing.T) {
	for _, step := range []string{"pool-a", "addons-on-nodes", "addons", "control-plane", "clean", "network"} {
		for _, more := range []string{lives.Unprotected, ""} {
			t.Run(step+more, func(t *testing.T) {
				run(t, func(a *life) {
					a.Cluster("demo", lives.Unprotected)
					a.KubernetesMakes("demo")
					var mu sync.Mutex
					back := false
					a.OnCall(func(call endpoint.Call) error {
						cleaning := step == "clean" && call.Action == "DeleteTargetGroup"
						deleting := call.Action == "DeleteStack" && slices.Contains(a.deletions("demo"), step)
						mu.Lock()
						now := !back && (cleaning || deleting)
						back = back || now
						mu.Unlock()
						if now {
							a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", more))
						}
						return nil
					})
					a.Remove(names.ClusterSpec("demo"), "")
					a.Settle()
					require.True(t, back)
					a.OnCall(nil)
					a.RequireConverged("demo")
				})
			})
		}
	}
}

// A spec turns protection off and is deleted before that is deployed. The deployed protection applies.
func TestDeployedProtectionApplies(t *testing.T) {
	run(t, func(a *life) {
		a.Cluster("demo", "")
		all := a.AllResources()
		a.OnCall(func(call endpoint.Call) error {
			if call.Action == "ExecuteChangeSet" && strings.Contains(call.Caller, "change") {
				return &wire.Error{Code: "AccessDenied", Message: "not now", Status: 403}
			}
			return nil
		})
		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		a.Settle()
		a.OnCall(nil)
		require.Equal(t, status.Failed, a.Status("demo").Phase)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase)
		require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
		require.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(a.AllResources())))

		a.Cluster("demo", lives.Unprotected)
		a.Remove(names.ClusterSpec("demo"), "")
		a.Settle()
		require.Equal(t, status.Deleted, a.Status("demo").Phase)
	})
}

// The execution ends before it reports that deletion protection retains the cluster. drover still reports it, once.
func TestRetainedClusterIsReportedOnce(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateOldCluster("")
		end := lives.AddFault(t, bad, `kill machine=converge state="Report" count=1`)
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		end()
		l.SweepForAnHour()
		l.Audit()
		l.RequirePhase(status.Stopped)
		s := l.Status("demo")
		require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
		require.Contains(t, s.Message, "Upload the spec again to keep the cluster")
		require.Equal(t, 1, strings.Count(strings.Join(l.Notices(), "\n"), "is Stopped"))
		mark := l.Calls.Mark()
		l.SweepForAnHour()
		for _, call := range l.Calls.Since(mark) {
			require.False(t, call.Mutating, "%s %s", call.Action, call.Resource)
		}
	})
}
