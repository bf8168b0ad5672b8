package admit_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// mutatingCalls returns the mutating calls since a mark, except those of the administrator.
func mutatingCalls(a *harness.Account, mark int) []string {
	var calls []string
	for _, call := range a.Calls.Since(mark) {
		if call.Mutating && harness.CalledBy(call) != "admin" {
			calls = append(calls, harness.CalledBy(call)+" "+call.Service+":"+call.Action+" "+call.Resource)
		}
	}
	return calls
}

// start starts an account whose objects versitygw stores: admit depends on their versions, events and conditional writes.
func start(t testing.TB) *harness.Account {
	return harness.StartWith(t, harness.Options{Files: true})
}

// An invalid spec changes only the status, which names the reason. The cluster keeps its last valid spec.
func TestBadSpecs(t *testing.T) {
	good := harness.Spec("demo", "")
	tests := map[string]struct {
		spec string
		want []string
	}{
		"not YAML": {"\x00\x01{{{", []string{"clusters/demo.yaml"}},
		"nothing":  {"", []string{"clusters/demo.yaml"}},
		"a YAML bomb": {
			"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]\n",
			[]string{"clusters/demo.yaml"},
		},
		"two megabytes": {good + "# " + strings.Repeat("x", 2<<20), []string{"clusters/demo.yaml", "bytes"}},
		"another kind": {
			strings.Replace(good, "kind: Cluster", "kind: Deployment", 1), []string{"clusters/demo.yaml:2", "kind", "Deployment"},
		},
		"another cluster's name": {harness.Spec("other", ""), []string{"clusters/demo.yaml:3", "metadata.name", "other"}},
		"an unknown field":       {good + "  natGateway: Single\n", []string{"clusters/demo.yaml:12", "spec.natGateway"}},
		"a wrong type": {
			strings.Replace(good, "minSize: 1", "minSize: many", 1), []string{"clusters/demo.yaml:11", "spec.pools[0].minSize"},
		},
		"more than one mistake": {
			strings.Replace(strings.Replace(good, "minSize: 1", "minSize: 9", 1), "10.0.0.0/16", "10.0.0.0/8", 1),
			[]string{"spec.pools[0]", "spec.network.cidr"},
		},
		"two documents": {good + "---\n" + good, []string{"clusters/demo.yaml"}},
	}
	a := start(t)
	version := a.Cluster("demo", "")
	before := a.Stacks("demo")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mark := a.Calls.Mark()
			bad := a.Upload("clusters/demo.yaml", test.spec)
			a.Settle()
			s := a.Status("demo")
			accepted := s.Condition(status.SpecAccepted)
			require.Equal(t, "False", accepted.Status)
			require.Equal(t, "SpecInvalid", accepted.Reason)
			for _, want := range test.want {
				require.Contains(t, accepted.Message, want)
			}
			require.Less(t, len(accepted.Message), 20<<10)
			require.Equal(t, status.Ready, s.Phase, "the cluster runs as before")
			require.Equal(t, "True", s.Condition(status.Converged).Status)
			require.Equal(t, version, s.PlannedVersion)
			require.Equal(t, bad, s.ObservedVersion)
			require.Equal(t, before, a.Stacks("demo"))
			require.Equal(t, []string{
				"admit events:PutEvents arn:aws:events:" + harness.Region + ":" + harness.ID + ":event-bus/drover", "admit sns:Publish " + a.Topic(),
				"admit s3:PutObject arn:aws:s3:::" + harness.StateBucket + "/status/clusters/demo.json",
			}, mutatingCalls(a, mark), "it notifies, then writes")
		})
	}
	t.Run("a valid one repairs the status", func(t *testing.T) {
		a.Upload("clusters/demo.yaml", good)
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, "True", s.Condition(status.SpecAccepted).Status)
		require.Empty(t, s.Condition(status.SpecAccepted).Message)
		require.Equal(t, status.Ready, s.Phase)
	})
}

func TestInvalidFirstSpecStopsTheCluster(t *testing.T) {
	a := start(t)
	a.Upload("clusters/demo.yaml", "kind: Cluster")
	a.Settle()
	require.Equal(t, status.Stopped, a.Status("demo").Phase)
	require.Empty(t, a.StepFunctions.Executions())
}

func TestKeysThatAreNoSpecs(t *testing.T) {
	a := start(t)
	for _, key := range []string{"clusters/", "clusters/a/b.yaml", "clusters/demo.yml", "clusters/.yaml", "clusters/../releases/x.yaml"} {
		mark := a.Calls.Mark()
		a.Events.Deliver(createdEvent(key))
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Mutating, "%s: %s", key, call.Action)
		}
	}
	// These keys have the form of a spec's, and their names are invalid. The status of each says so.
	for _, key := range []string{"clusters/a b+c%20&=?.yaml", "clusters/Ünïcode.yaml", "clusters/" + strings.Repeat("x", 200) + ".yaml"} {
		cluster, ok := names.ClusterOfKey(key)
		require.True(t, ok)
		a.Upload(key, harness.Spec("demo", ""))
		a.Settle()
		s := a.Status(cluster)
		require.Equal(t, status.Stopped, s.Phase, key)
		require.Contains(t, s.Condition(status.SpecAccepted).Message, "metadata.name", key)
	}
	require.Empty(t, a.StepFunctions.Executions())
}

// createdEvent is S3's event about a key.
func createdEvent(key string) harness.Event {
	detail, _ := json.Marshal(map[string]any{
		"bucket": map[string]string{"name": harness.SpecsBucket}, "object": map[string]string{"key": key},
	})
	return harness.Event{ID: "1", DetailType: "Object Created", Source: "aws.s3", Detail: detail}
}

func TestSameEventTwice(t *testing.T) {
	a := start(t)
	a.Events.Decide(func(harness.Event) harness.Fate { return harness.Twice })
	a.Cluster("demo", "")
	require.Len(t, converges(a), 1)
	mark := a.Calls.Mark()
	a.Events.Deliver(createdEvent("clusters/demo.yaml"))
	a.Settle()
	require.Len(t, converges(a), 1)
	require.Empty(t, mutatingCalls(a, mark))
}

// converges are the names of the converge executions so far.
func converges(a *harness.Account) []string {
	var found []string
	for _, x := range a.StepFunctions.Executions() {
		if x.MachineName == "drover-converge" {
			found = append(found, x.Name+" "+x.Status)
		}
	}
	return found
}

func TestOlderEventAfterANewerOne(t *testing.T) {
	a := start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Settle()
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.DetailType == "Object Created" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: one}\n"))
	version := a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
	held := a.Events.Held()
	require.Len(t, held, 2)
	a.Events.Deliver(held[1])
	a.Settle()
	mark := a.Calls.Mark()
	a.Events.Deliver(held[0])
	a.Settle()
	require.Empty(t, mutatingCalls(a, mark))
	require.Len(t, converges(a), 1)
	require.Equal(t, version, a.Status("demo").PlannedVersion)
}

// Two copies of admit run at once, and the slower one has read an older spec. The final status describes the newest one.
func TestSlowCopyWithAnOldSpec(t *testing.T) {
	executing := func(a *harness.Account) bool {
		return slices.ContainsFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" })
	}
	for name, test := range map[string]struct {
		spec  string
		quick func(a *harness.Account) bool
		phase status.Phase
	}{
		"admitted": {"", func(a *harness.Account) bool { return a.Status("demo").ObservedVersion != "" }, status.Ready},
		"made":     {"", func(a *harness.Account) bool { return a.Status("demo").Phase == status.Ready && !executing(a) }, status.Ready},
		"paused": {"  paused: true\n", func(a *harness.Account) bool {
			return a.Status("demo").Phase == status.Stopped && !executing(a)
		}, status.Stopped},
	} {
		t.Run("the newer one was "+name, func(t *testing.T) {
			a := start(t)
			slow := slowCopy(a)
			once := false
			a.OnCall(func(call endpoint.Call) error {
				if !once && readsStatus(call) {
					once = true // it has read the invalid spec: a valid one follows, with its own event
					a.Upload("clusters/demo.yaml", harness.Spec("demo", test.spec))
					a.Until("the good one was "+name, func() bool { return test.quick(a) })
				}
				return nil
			})
			a.Events.Deliver(slow)
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, status.ReasonValid, s.Condition(status.SpecAccepted).Reason)
			require.Equal(t, test.phase, s.Phase)
			require.Equal(t, s.PlannedVersion, s.ObservedVersion)
		})
	}
}

// The slow copy writes after the verdict of the newer spec, and before that execution ends. The execution that the slow copy starts leaves
// the cluster to it.
func TestSlowCopyDuringTheReportOfANewerSpec(t *testing.T) {
	for name, test := range map[string]struct {
		fails bool
		phase status.Phase
	}{
		"made":              {false, status.Ready},
		"that could not be": {true, status.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			slow := slowCopy(a)
			reported := make(chan struct{})
			var read, ended atomic.Bool // by the first of their kind: others have calls like theirs
			rejected := false
			if test.fails {
				a.OnResource(func(_ string, r resource.Request) error {
					if r.Type == "AWS::EC2::VPC" {
						return errors.New("no VPC is left")
					}
					return nil
				})
			}
			a.OnCall(func(call endpoint.Call) error {
				switch {
				case readsStatus(call) && read.CompareAndSwap(false, true):
					a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
					<-reported
				case harness.CalledBy(call) == "report" && call.Action == "PutObject" && strings.HasSuffix(call.Resource, names.Lease("demo")) &&
					ended.CompareAndSwap(false, true):
					close(reported)
					a.Until("the bad one is rejected and the execution after it has left", func() bool {
						converging := slices.DeleteFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
							return x.MachineName != "drover-converge"
						})
						rejected = len(converging) == 2 && converging[1].Status == "SUCCEEDED"
						return rejected
					})
				}
				return nil
			})
			a.Events.Deliver(slow)
			a.Settle()
			require.True(t, rejected)
			s := a.Status("demo")
			require.Equal(t, status.ReasonValid, s.Condition(status.SpecAccepted).Reason)
			require.Equal(t, test.phase, s.Phase)
			require.Equal(t, s.PlannedVersion, s.ObservedVersion)
		})
	}
}

// slowCopy returns the event of an invalid spec, not yet delivered.
func slowCopy(a *harness.Account) harness.Event {
	a.Upload("releases/r1.yaml", harness.Release())
	a.Settle()
	a.Events.Decide(func(harness.Event) harness.Fate { return harness.Held })
	a.Upload("clusters/demo.yaml", "not: a spec")
	defer a.Events.Decide(nil)
	return a.Events.Held()[0]
}

// readsStatus reports whether admit has read a spec and is about to write its status.
func readsStatus(call endpoint.Call) bool {
	return harness.CalledBy(call) == "admit" && call.Action == "GetObject" && strings.HasSuffix(call.Resource, names.Status("demo"))
}

// Deletion protection is on unless the spec disables it. Deleting the spec then only changes the status, once.
func TestDeletedSpecOfAProtectedCluster(t *testing.T) {
	a := start(t)
	version := a.Cluster("demo", "")
	before := a.Stacks("demo")
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "SpecAbsent", s.Condition(status.SpecAccepted).Reason)
	require.Equal(t, status.Stopped, s.Phase)
	require.Equal(t, status.ReasonDeletionProtected, s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "deletion protection is on (control-plane, network)")
	require.Equal(t, before, a.Stacks("demo"))

	executions := len(a.StepFunctions.Executions())
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Len(t, a.StepFunctions.Executions(), executions, "the status records it already")

	// The spec is uploaded again, and the cluster keeps its stacks.
	again := a.Cluster("demo", "")
	require.NotEqual(t, version, again)
	require.Equal(t, again, a.Status("demo").PlannedVersion)
	require.Len(t, a.Stacks("demo"), 5)
}

// An invalid spec is uploaded for a cluster without a spec and deleted again. The status is the same as before.
func TestInvalidUploadForAClusterWithoutASpec(t *testing.T) {
	for name, test := range map[string]struct {
		spec      string
		converged string
	}{
		"that is deleted":   {"  deletionProtection: false\n", status.ReasonDeleted},
		"that is protected": {"", status.ReasonDeletionProtected},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.Cluster("demo", test.spec)
			a.Remove("clusters/demo.yaml", "")
			a.Settle()
			before := a.Status("demo")
			require.Equal(t, test.converged, before.Condition(status.Converged).Reason)
			stacks := a.Stacks("demo")
			same := func(accepted string) {
				s := a.Status("demo")
				require.Equal(t, accepted, s.Condition(status.SpecAccepted).Reason)
				require.Equal(t, before.Phase, s.Phase)
				require.Equal(t, before.Message, s.Message)
				require.Equal(t, test.converged, s.Condition(status.Converged).Reason)
				require.Equal(t, stacks, a.Stacks("demo"))
			}
			for range 2 {
				version := a.Upload("clusters/demo.yaml", "kind: Cluster")
				a.Settle()
				same(status.ReasonSpecInvalid)
				require.Equal(t, version, a.Status("demo").ObservedVersion)
				a.Remove("clusters/demo.yaml", "")
				a.Settle()
				same(status.ReasonSpecAbsent)
				require.Empty(t, a.Status("demo").ObservedVersion)
			}
			// A valid spec is converged.
			a.Cluster("demo", test.spec)
		})
	}
}

// An older drover recorded a deleted cluster as Stopped. The next event of its spec corrects the phase to Deleted.
func TestStoppedPhaseOfADeletedClusterIsCorrected(t *testing.T) {
	a := start(t)
	a.Cluster("demo", "  deletionProtection: false\n")
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message = status.Stopped, "no usable spec was uploaded yet"
	}))
	a.Upload("clusters/demo.yaml", "kind: Cluster")
	a.Settle()
	a.Remove("clusters/demo.yaml", "")
	a.Settle()
	require.Equal(t, status.Deleted, a.Status("demo").Phase)
}

func TestDeletedSpecOfAnUnknownCluster(t *testing.T) {
	a := start(t)
	a.Remove("clusters/absent.yaml", "")
	a.Settle()
	require.Empty(t, a.StepFunctions.Executions())
	_, err := a.State().Status(t.Context(), "absent")
	require.ErrorIs(t, err, store.ErrNotFound)

	a.Upload("clusters/bad.yaml", "what is this")
	a.Settle()
	a.Remove("clusters/bad.yaml", "")
	a.Settle()
	require.Equal(t, status.Deleted, a.Status("bad").Phase)
	require.Empty(t, a.StepFunctions.Executions())
}

// Users revert an upload by deleting its version.
func TestOlderSpecIsRestored(t *testing.T) {
	a := start(t)
	first := a.Cluster("demo", "")
	second := a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: two}\n"))
	a.Settle()
	require.Equal(t, second, a.Status("demo").PlannedVersion)
	a.Remove("clusters/demo.yaml", second)
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, first, s.PlannedVersion)
	for _, stack := range a.CloudFormation.Stacks() {
		for _, tag := range stack.Tags {
			require.NotEqual(t, "version", tag.Key, stack.StackName)
		}
	}
	// A newer upload is converged and reverted the same way.
	third := a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {version: three}\n"))
	a.Settle()
	require.Equal(t, third, a.Status("demo").PlannedVersion)
	a.Remove("clusters/demo.yaml", third)
	a.Settle()
	require.Equal(t, first, a.Status("demo").PlannedVersion)
}

// An unreadable spec is uploaded while the cluster is being deleted. The deletion continues.
func TestInvalidSpecEndsNoDeletion(t *testing.T) {
	a := start(t)
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message = status.Deleting, "deleting pools"
	}))
	a.Upload("clusters/demo.yaml", "nonsense")
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Deleting, s.Phase)
	require.Equal(t, "False", s.Condition(status.SpecAccepted).Status)
}
