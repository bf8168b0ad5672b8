package change_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// failing fails a step of resources of one kind, in stacks whose name has a suffix.
func failing(a *harness.Account, step, kind, stack string, err error) {
	a.OnResource(func(s string, r resource.Request) error {
		if s == step && r.Type == kind && strings.HasSuffix(r.StackName, stack) {
			return err
		}
		return nil
	})
}

var errQuota = &wire.Error{Code: "AddressLimitExceeded", Message: "The maximum number of addresses has been reached.", Status: 400}

// clean requires that no waiter, no lease and no stack in review is left.
func clean(t *testing.T, a *harness.Account, cluster string) {
	t.Helper()
	waiters, err := a.State().List(t.Context(), names.Waiters)
	require.NoError(t, err)
	require.Empty(t, waiters)
	lease, err := a.State().Lease(t.Context(), cluster)
	require.NoError(t, err)
	require.Empty(t, lease.Execution)
	require.NotContains(t, a.Stacks(cluster), "REVIEW_IN_PROGRESS")
}

// statuses returns all statuses of every stack that ever had a name, oldest first.
func statuses(t *testing.T, a *harness.Account, stack string) []string {
	t.Helper()
	all, err := a.CloudFormation.ListStacks(t.Context(), a.Admin(), &cloudformation.ListStacksInput{})
	require.NoError(t, err)
	var found []string
	for _, summary := range all.StackSummaries {
		if summary.StackName != stack {
			continue
		}
		var one []string
		events, err := a.CloudFormation.DescribeStackEvents(t.Context(), a.Admin(), &cloudformation.StackPageInput{StackName: summary.StackId})
		require.NoError(t, err)
		for _, event := range events.StackEvents {
			if event.PhysicalResourceId == summary.StackId {
				one = append([]string{event.ResourceStatus}, one...)
			}
		}
		found = append(one, found...)
	}
	return found
}

func TestStackCannotBeCreated(t *testing.T) {
	a := harness.Start(t)
	failing(a, "create", "AWS::EC2::EIP", "network", errQuota)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, "StackFailed", s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "stack drover-demo-network is ROLLBACK_COMPLETE: NatAddress")
	require.Contains(t, s.Message, errQuota.Message)
	network := s.Stacks[0]
	require.Contains(t, network.Resource, "NatAddress")
	require.Contains(t, network.Reason, errQuota.Message)
	require.Equal(t, map[string]string{"network": "ROLLBACK_COMPLETE"}, a.Stacks("demo"))
	require.Contains(t, a.Verdicts()[0], errQuota.Message)
	clean(t, a, "demo")

	// The next spec recreates the stack.
	a.OnResource(nil)
	a.Cluster("demo", "  tags: {try: two}\n")
	require.Equal(t, []string{
		"REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE",
		"REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE",
	}, statuses(t, a, "drover-demo-network"))
	require.Empty(t, a.Status("demo").Stacks[0].Reason)
	clean(t, a, "demo")
}

func TestRolledBackUpdateIsAFailure(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	failing(a, "create", "AWS::EKS::AccessEntry", "control-plane", &wire.Error{
		Code: "InvalidParameterException", Message: "no such principal", Status: 400,
	})
	more := "  controlPlane:\n    access:\n      - {principalARN: \"arn:aws:iam::111122223333:role/absent\", groups: [x]}\n"
	a.Upload("clusters/demo.yaml", harness.Spec("demo", more))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "drover-demo-control-plane is UPDATE_ROLLBACK_COMPLETE: Access")
	require.Contains(t, s.Message, "no such principal")
	clean(t, a, "demo")
	// Reverting the change repairs the stack.
	a.OnResource(nil)
	a.Cluster("demo", "")
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["control-plane"])
}

// Deleting the spec version that failed reverts it. The stack already matches the previous version, so CloudFormation finds no change.
func TestFailedUpdateIsReverted(t *testing.T) {
	a := harness.Start(t)
	first := a.Cluster("demo", "")
	var once sync.Once
	a.OnResource(func(step string, r resource.Request) (err error) {
		if step == "update" && r.Type == "AWS::EKS::Addon" {
			once.Do(func() { err = errQuota })
		}
		return err
	})
	second := a.Upload("clusters/demo.yaml", harness.Spec("demo", "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.2}]\n"))
	a.Settle()
	require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", a.Stacks("demo")["addons"], a.Status("demo").Message)
	a.OnResource(nil)
	a.Remove("clusters/demo.yaml", second)
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, first, s.PlannedVersion)
	require.Equal(t, "UPDATE_COMPLETE", a.Stacks("demo")["addons"])
	clean(t, a, "demo")
	// Another converge changes nothing.
	x := a.Converge("demo")
	a.Settle()
	require.Equal(t, "SUCCEEDED", a.Execution(x).Status)
	require.Equal(t, s, a.Status("demo"))
}

// drover retries a change set after a transient failure, and does not retry one that CloudFormation rejects.
func TestFailedChangeSet(t *testing.T) {
	tests := map[string]struct {
		says   string
		times  int32
		phase  status.Phase
		reason string
		again  bool
	}{
		"for a moment": {says: "Rate exceeded", times: 1, phase: status.Ready, reason: "UpToDate"},
		"for long":     {says: "Internal Failure", times: 1000, phase: status.Failed, reason: "Transient", again: true},
		"permanently": {
			says: "Template error: Fn::Select cannot select nonexistent value at index 3", times: 1, phase: status.Failed,
			reason: "ChangeRefused",
		},
		"by its wording": {
			says: "Value 'internal-failures' at 'tags' failed to satisfy constraint", times: 1, phase: status.Failed, reason: "ChangeRefused",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			var times atomic.Int32
			a.OnChangeSet(func(stackName string) string {
				if stackName == "drover-demo-network" && times.Add(1) <= test.times {
					return test.says
				}
				return ""
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
			if test.again { // the execution backs off and would retry
				a.Until("the change has failed", func() bool { return a.Status("demo").Phase == status.Failed && a.Idle() })
				a.StepFunctions.StopAll("Stopped", "by an operator")
			}
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, test.phase, s.Phase, s.Message)
			require.Equal(t, test.reason, s.Condition(status.Converged).Reason)
			require.Equal(t, test.again, s.RetryAt != nil)
			if test.phase == status.Failed {
				require.Contains(t, s.Message, test.says)
			}
			a.OnChangeSet(nil)
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		})
	}
}

// A pool with another name is another pool. Only the stack of the old one is deleted.
func TestRenamedPool(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	mark := a.Calls.Mark()
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "{name: a,", "{name: b,", 1))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Contains(t, a.Stacks("demo"), "pool-b")
	require.NotContains(t, a.Stacks("demo"), "pool-a")
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "DeleteStack" {
			require.Contains(t, call.Resource, "drover-demo-pool-a")
		}
	}
}

// The spec version of the network is deleted, so planning cannot compare with it. The change set shows the replacement.
func TestReplacementInTheChangeSetOnly(t *testing.T) {
	a := harness.Start(t)
	first := a.Cluster("demo", "")
	before := a.Stacks("demo")
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", "  paused: true\n"), "10.0.0.0/16", "10.9.0.0/16", 1))
	a.Settle()
	a.Remove("clusters/demo.yaml", first)
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "10.0.0.0/16", "10.9.0.0/16", 1))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "Vpc (AWS::EC2::VPC) would be replaced because of CidrBlock")
	require.Equal(t, before, a.Stacks("demo"))
	clean(t, a, "demo")
	a.Cluster("demo", "") // reverting the spec is the remedy
}

func TestFailedPoolDelaysNoOther(t *testing.T) {
	a := harness.Start(t)
	failing(a, "create", "AWS::AutoScaling::AutoScalingGroup", "pool-a", errQuota)
	a.Upload("releases/r1.yaml", harness.Release())
	two := strings.Replace(harness.Spec("demo", ""), "  pools:\n", "  pools:\n    - {name: b, instanceTypes: [m7i.large], minSize: "+
		"1, maxSize: 2}\n", 1)
	a.Upload("clusters/demo.yaml", two)
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Contains(t, s.Message, "drover-demo-pool-a is ROLLBACK_COMPLETE: Group: ")
	require.NotContains(t, s.Message, "pool-b")
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["pool-b"])
	require.Equal(t, "CREATE_COMPLETE", a.Stacks("demo")["addons-on-nodes"])
	a.OnResource(nil)
	// A manual converge of the same spec is enough.
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	require.Equal(t, []string{"REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"}, statuses(t, a, "drover-demo-pool-b"))
	clean(t, a, "demo")
}

// The status names the first cause of a stack that can neither be created nor deleted, and the number of retries is limited.
func TestFailedCreationCannotBeRemoved(t *testing.T) {
	a := harness.Start(t)
	a.OnResource(func(step string, r resource.Request) error {
		switch {
		case r.Type == "AWS::EC2::NatGateway" && step == "create":
			return errQuota
		case r.Type == "AWS::EC2::Subnet" && step == "delete":
			return &wire.Error{Code: "DependencyViolation", Message: "another account's interface is in it", Status: 400}
		}
		return nil
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: false\n"))
	a.Settle()
	require.Contains(t, a.Status("demo").Message, "is ROLLBACK_FAILED: NatGateway")
	require.Contains(t, a.Status("demo").Message, errQuota.Message, "the first cause, not its consequence")
	a.Converge("demo")
	a.Settle()
	require.Contains(t, a.Status("demo").Message, "is DELETE_FAILED")
	require.Contains(t, a.Status("demo").Message, "another account's interface is in it")
	require.Contains(t, a.Status("demo").Message, "not deleted: ")
	require.Contains(t, a.Status("demo").Message, "next: remove what blocks them")
	require.NotNil(t, a.Status("demo").RetryAt, "report limits the retries")
	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	clean(t, a, "demo")
}

// A retry must be able to delete a control plane whose creation failed late, although its spec has deletion protection: EKS does not
// delete a protected cluster.
func TestLateFailureOfAProtectedControlPlane(t *testing.T) {
	a := harness.Start(t)
	failing(a, "create", "AWS::IAM::OIDCProvider", "control-plane", errQuota)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  controlPlane: {oidcProvider: true}\n  deletionProtection: true\n"))
	a.Settle()
	require.Contains(t, a.Status("demo").Message, "is ROLLBACK_COMPLETE: OidcProvider")
	clean(t, a, "demo")
	a.OnResource(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.True(t, a.Protected("drover-demo"), "the new cluster is protected")
	clean(t, a, "demo")
}

func TestProtectionIsOnAsSoonAsAClusterIsThere(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "  deletionProtection: true\n")
	require.True(t, a.Protected("drover-demo"))
	require.Equal(t, []string{
		"REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE",
		"UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE",
	}, statuses(t, a, "drover-demo-control-plane"))
	for _, stack := range a.CloudFormation.Stacks() {
		held := strings.HasSuffix(stack.StackName, "network") || strings.HasSuffix(stack.StackName, "control-plane")
		require.Equal(t, held, stack.EnableTerminationProtection, stack.StackName)
	}
	a.Cluster("demo", "  deletionProtection: false\n")
	require.False(t, a.Protected("drover-demo"))
	for _, stack := range a.CloudFormation.Stacks() {
		require.False(t, stack.EnableTerminationProtection, stack.StackName)
	}
	a.Cluster("demo", "  deletionProtection: true\n")
	require.True(t, a.Protected("drover-demo"))
}

func TestProtectionIsSetAfterAnAbortedExecution(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" && strings.Contains(string(e.Detail), "control-plane") {
			return harness.Lost
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  deletionProtection: true\n"))
	a.Until("it is there", func() bool { return a.Idle() && a.Stacks("demo")["control-plane"] == "CREATE_COMPLETE" })
	require.False(t, a.Protected("drover-demo"))
	a.StepFunctions.StopAll("Aborted", "by an operator")
	a.Settle()
	a.Events.Decide(nil)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	require.True(t, a.Protected("drover-demo"))
}

// drover waits for an external update of its stack, whenever that begins.
func TestExternalUpdateIsAwaited(t *testing.T) {
	moments := map[string]struct{ action, suffix string }{
		"before the stack is read":               {"CreateChangeSet", ""},
		"while the change set is made":           {"DescribeChangeSet", ""},
		"just before the change set is executed": {"ExecuteChangeSet", ""},
		"before drover has read anything":        {"GetObject", "leases/demo.json"},
		"just before the waiter is stored":       {"PutObject", "waiters/drover-demo-network.json"},
	}
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			resting := make(chan struct{})
			rest := sync.OnceFunc(func() { close(resting) })
			t.Cleanup(rest)
			a.OnResource(func(step string, r resource.Request) error {
				if r.Tags["by"] == "another owner" {
					<-resting
				}
				return nil
			})
			var once sync.Once
			a.OnCall(func(call endpoint.Call) error {
				if harness.CalledBy(call) == "change" && call.Action == moment.action && strings.HasSuffix(call.Resource, moment.suffix) {
					once.Do(func() { updateBesides(t, a, "drover-demo-network") })
				}
				return nil
			})
			a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
			a.Until("drover waits", func() bool {
				_, err := a.State().Waiter(t.Context(), "drover-demo-network")
				return err == nil && a.Running() == 0
			})
			require.Equal(t, "UPDATE_IN_PROGRESS", a.Stacks("demo")["network"])
			rest()
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
			require.Equal(t, "b", tagsOf(a, "drover-demo-network")["team"])
			clean(t, a, "demo")
		})
	}
}

func tagsOf(a *harness.Account, stackName string) map[string]string {
	tags := map[string]string{}
	for _, stack := range a.CloudFormation.Stacks() {
		if stack.StackName == stackName {
			for _, tag := range stack.Tags {
				tags[tag.Key] = tag.Value
			}
		}
	}
	return tags
}

// updateBesides updates the tags of a stack as an operator.
func updateBesides(t *testing.T, a *harness.Account, stackName string) {
	for _, stack := range a.CloudFormation.Stacks() {
		if stack.StackName != stackName {
			continue
		}
		_, err := a.CloudFormation.UpdateStack(t.Context(), a.Admin(), &cloudformation.UpdateStackInput{
			StackName: stackName, UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"},
			Parameters: previous(stack.Parameters), Tags: append(stack.Tags, cloudformation.Tag{Key: "by", Value: "another owner"}),
			ClientRequestToken: "external",
		})
		require.NoError(t, err)
	}
}

func previous(parameters []cloudformation.Parameter) []cloudformation.Parameter {
	for i := range parameters {
		parameters[i] = cloudformation.Parameter{ParameterKey: parameters[i].ParameterKey, UsePreviousValue: true}
	}
	return parameters
}

func TestOmittedPoolIsRemoved(t *testing.T) {
	a := harness.Start(t)
	two := strings.Replace(harness.Spec("demo", ""), "  pools:\n", "  pools:\n    - {name: b, instanceTypes: [m7i.large], minSize: "+
		"1, maxSize: 2}\n", 1)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", two)
	a.Settle()
	require.Contains(t, a.Stacks("demo"), "pool-b")
	a.Cluster("demo", "")
	require.NotContains(t, a.Stacks("demo"), "pool-b")
	clean(t, a, "demo")
}
