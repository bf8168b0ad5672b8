package handler

// What a task does for each status of its stack, and what its change set is made of.

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// updates returns an account whose change updates the add-ons' stack: one tag differs.
func updates(t *testing.T) *account {
	a := newAccount(t, plan.Change{
		Stack: "addons", StackName: "drover-demo-addons", Operation: plan.Update, TemplateKey: "templates/x", Tags: map[string]string{"a": "2"},
	})
	a.stacks[a.change.StackName] = stack.Deployed{Status: "UPDATE_COMPLETE", Tags: map[string]string{"a": "1"}}
	return a
}

// founds returns an account whose change creates the control plane's stack.
func founds(t *testing.T) *account {
	return newAccount(t, plan.Change{
		Stack: names.ControlPlane, StackName: controlPlane, Operation: plan.Create, TemplateKey: "templates/x",
		Reasons: []status.Reason{{Field: "stack", Old: "absent"}},
	})
}

func TestRequest(t *testing.T) {
	for name, test := range map[string]struct {
		given func(*account)
		want  string
	}{
		"fails when the plan has no change of the stack": {func(a *account) {
			a.change.Stack = "pool-b"
		}, "plan plans/x has no change of stack addons"},
		"fails when the lease cannot be read": {func(a *account) { a.failing["lease"] = errThrottled }, "throttled"},
		"fails when the stack cannot be read": {
			func(a *account) { a.failing["describe drover-demo-addons"] = errThrottled }, "throttled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			request := a.request()
			test.given(a)
			a.persist(t)
			_, err := a.handler().Handle(t.Context(), request)
			require.EqualError(t, err, test.want)
			require.Subset(t, []string{"delete waiter"}, a.calls)
		})
	}
	t.Run("fails when there is no such plan", func(t *testing.T) {
		a := updates(t)
		_, err := a.handler().Handle(t.Context(), a.request())
		require.ErrorContains(t, err, "plans/x")
		require.Empty(t, a.calls)
	})
}

func TestStackStatus(t *testing.T) {
	recreates := []string{"register", "delete"}
	executes := []string{"prepare", "register", "execute"}
	for name, test := range map[string]struct {
		operation plan.Operation
		status    string
		given     func(*account)
		calls     []string
		fault     string
	}{
		"waits while an operation is in flight":    {operation: plan.Update, status: "UPDATE_IN_PROGRESS", calls: []string{"register"}},
		"waits for the deletion that is in flight": {operation: plan.Delete, status: "DELETE_IN_PROGRESS", calls: []string{"register"}},
		"waits for an operation that planning saw": {
			operation: plan.Update, status: "UPDATE_IN_PROGRESS", given: moving, calls: []string{"register"},
		},
		"is superseded after an operation planning saw": {
			operation: plan.Update, status: "UPDATE_COMPLETE", given: moving, calls: []string{"delete waiter"}, fault: "Superseded",
		},
		"deletes a stack":                                {operation: plan.Delete, status: "UPDATE_COMPLETE", calls: recreates},
		"deletes a stack whose creation failed":          {operation: plan.Delete, status: "ROLLBACK_COMPLETE", calls: recreates},
		"deletes a stack that has only a change set":     {operation: plan.Delete, status: stack.InReview, calls: recreates},
		"has nothing to delete when the stack is absent": {operation: plan.Delete, calls: []string{"status", "resume", "delete waiter"}},
		"has nothing to delete when the stack is deleted": {
			operation: plan.Delete, status: "DELETE_COMPLETE", calls: []string{"status", "resume", "delete waiter"},
		},
		"recreates a stack whose creation failed": {operation: plan.Update, status: "ROLLBACK_COMPLETE", calls: recreates},
		"continues a failed rollback": {
			operation: plan.Update, status: "UPDATE_ROLLBACK_FAILED", calls: []string{"register", "continue rollback"},
		},
		"creates an absent stack":                {operation: plan.Create, calls: executes},
		"creates a stack that was deleted later": {operation: plan.Update, status: "DELETE_COMPLETE", calls: executes},
		"updates a stack":                        {operation: plan.Update, status: "UPDATE_COMPLETE", calls: executes},
		"updates a stack after a rollback":       {operation: plan.Update, status: "UPDATE_ROLLBACK_COMPLETE", calls: executes},
		"is superseded when the network was deleted later": {operation: plan.Update, status: "DELETE_COMPLETE", given: func(a *account) {
			a.change.Stack = names.Network
		}, calls: []string{"delete waiter"}, fault: "Superseded"},
		"is superseded when the control plane was deleted later": {operation: plan.Update, given: func(a *account) {
			a.change.Stack = names.ControlPlane
		}, calls: []string{"delete waiter"}, fault: "Superseded"},
		"updates an existing control plane": {operation: plan.Update, status: "UPDATE_COMPLETE", given: func(a *account) {
			a.change.Stack, a.exists = names.ControlPlane, true
		}, calls: executes},
		"is refused when an external change removed the tag": {operation: plan.Update, status: "UPDATE_COMPLETE", given: func(a *account) {
			a.change.ByTag = true
		}, calls: []string{"delete waiter"}, fault: "ChangeRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			a.change.Operation = test.operation
			a.deploy(test.status)
			if test.given != nil {
				test.given(a)
			}
			require.Equal(t, test.fault, nameOf(a.handle(t)))
			require.Equal(t, test.calls, a.calls)
		})
	}
}

// moving lets an operation on the stack be in flight during planning.
func moving(a *account) { a.change.InFlight = true }

// nameOf returns the name of a fault, or "" if there is no error.
func nameOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.NameOf(err)
}

func TestCreationOfControlPlane(t *testing.T) {
	t.Run("begins when there is no EKS cluster", func(t *testing.T) {
		a := founds(t)
		require.NoError(t, a.handle(t))
		require.Equal(t, "CREATE_IN_PROGRESS", a.stacks[controlPlane].Status)
	})
	t.Run("is superseded when the EKS cluster exists", func(t *testing.T) {
		a := founds(t)
		a.exists = true
		require.Equal(t, "Superseded", nameOf(a.handle(t)))
		require.Empty(t, a.sets)
	})
	t.Run("fails when EKS does not answer", func(t *testing.T) {
		a := founds(t)
		a.failing["exists"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Empty(t, a.sets)
	})
	t.Run("is no question for stacks that others do not need", func(t *testing.T) {
		a := updates(t)
		a.deploy("")
		a.exists = true
		require.NoError(t, a.handle(t))
		require.Zero(t, a.reads["exists"])
	})
}

func TestUpToDate(t *testing.T) {
	deployed := func(a *account) {
		a.change.Protected = true
		a.change.Parameters = []render.Parameter{{Name: "P", Value: "1"}}
		a.change.Tags[names.TagSpecVersion] = "new"
		a.stacks[a.change.StackName] = stack.Deployed{
			Status: "UPDATE_COMPLETE", TerminationProtection: true, Parameters: map[string]string{"P": "1"},
			Tags: map[string]string{"a": "2", names.TagSpecVersion: "old"},
		}
	}
	t.Run("resumes the task when only the spec's version differs", func(t *testing.T) {
		a := updates(t)
		deployed(a)
		require.NoError(t, a.handle(t))
		require.Empty(t, a.sets)
		require.Equal(t, []events.ChangeResult{{Stack: "addons", Status: "UPDATE_COMPLETE"}}, a.results)
		require.Empty(t, a.waiters())
	})
	for name, differs := range map[string]func(*account){
		"is false when a parameter differs": func(a *account) { a.change.Parameters[0].Value = "2" },
		"is false when a tag differs":       func(a *account) { a.change.Tags["a"] = "3" },
		"is false when protection differs":  func(a *account) { a.change.Protected = false },
		"is false after a rollback":         func(a *account) { a.deploy("UPDATE_ROLLBACK_COMPLETE") },
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			deployed(a)
			differs(a)
			require.NoError(t, a.handle(t))
			require.Len(t, a.sets, 1)
			require.Empty(t, a.results)
		})
	}
	for name, size := range map[string]string{"is true when a pool has its size": "5", "is false when a pool has another size": "6"} {
		t.Run(name, func(t *testing.T) {
			a := accountWithPool(t, 2)
			a.change.Tags = nil
			a.stacks[a.change.StackName] = deployedFor(2)
			a.stacks[a.change.StackName].Parameters[render.MaxSize] = size
			require.NoError(t, a.handle(t))
			require.Equal(t, size == "5", len(a.sets) == 0)
		})
	}
}

func TestParameters(t *testing.T) {
	from := func(name, output string) render.Parameter {
		return render.Parameter{Name: name, From: &render.OutputRef{Stack: names.Network, Output: output}}
	}
	parameters := []render.Parameter{{Name: "Fixed", Value: "f"}, from("Vpc", "VpcId"), from("Subnets", "SubnetIds")}
	outputs := map[string]string{"VpcId": "vpc-1", "SubnetIds": "a,b"}
	kept := map[string]string{"Fixed": "f", "Vpc": "vpc-0", "Subnets": "c"}
	for name, test := range map[string]struct {
		other    stack.Deployed
		deployed map[string]string
		want     map[string]string
		fault    string
	}{
		"are outputs of other stacks": {
			stack.Deployed{Status: "UPDATE_COMPLETE", Outputs: outputs}, kept, map[string]string{"Fixed": "f", "Vpc": "vpc-1", "Subnets": "a,b"}, "",
		},
		"stay when the other stack is absent": {stack.Deployed{}, kept, kept, ""},
		"stay when the other stack is deleted": {
			stack.Deployed{Status: "DELETE_COMPLETE", Outputs: outputs}, kept, kept, "",
		},
		"are lacking when the other stack is absent": {stack.Deployed{}, nil, nil, "StackFailed"},
		"are lacking when the other stack has no such output": {
			stack.Deployed{Status: "UPDATE_COMPLETE", Outputs: map[string]string{"VpcId": "vpc-1"}}, kept, nil, "StackFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			a.change.Parameters = parameters
			a.stacks[network] = test.other
			a.stacks[a.change.StackName] = stack.Deployed{Status: "UPDATE_COMPLETE", Parameters: test.deployed}
			require.Equal(t, test.fault, nameOf(a.handle(t)))
			if test.fault != "" {
				require.Empty(t, a.sets)
				return
			}
			require.Equal(t, test.want, a.sets[0].parameters)
		})
	}
	t.Run("are read once a stack", func(t *testing.T) {
		a := updates(t)
		a.change.Parameters = parameters
		a.stacks[network] = stack.Deployed{Status: "UPDATE_COMPLETE", Outputs: outputs}
		require.NoError(t, a.handle(t))
		require.Equal(t, 1, a.reads["describe "+network])
	})
	t.Run("are unknown when the other stack cannot be read", func(t *testing.T) {
		a := updates(t)
		a.change.Parameters, a.failing["describe "+network] = parameters, errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Empty(t, a.sets)
	})
}

func TestChangeSet(t *testing.T) {
	first := []render.Parameter{{Name: "Public", Value: "false", AtFirst: "true"}, {Name: "Size", Value: "1"}}
	t.Run("of a creation has the first values, and another follows", func(t *testing.T) {
		a := founds(t)
		a.change.Parameters, a.change.FirstKey = first, "templates/first"
		require.NoError(t, a.handle(t))
		set := a.sets[0]
		require.True(t, set.create)
		require.Equal(t, "https://state/templates/first", set.template)
		require.Equal(t, map[string]string{"Public": "true", "Size": "1"}, set.parameters)
		require.True(t, a.waiter(t).Again)
	})
	t.Run("of a creation may be the only one", func(t *testing.T) {
		a := founds(t)
		a.change.Parameters = first[1:]
		require.NoError(t, a.handle(t))
		require.Equal(t, "https://state/templates/x", a.sets[0].template)
		require.False(t, a.waiter(t).Again)
		require.Equal(t, a.sets[0].token, a.waiter(t).ClientRequestToken)
	})
	t.Run("after a creation has the values and a token of its own", func(t *testing.T) {
		a := founds(t)
		a.change.Parameters, a.change.FirstKey = first, "templates/first"
		a.deploy("CREATE_COMPLETE")
		require.NoError(t, a.handle(t))
		set := a.sets[0]
		require.False(t, set.create)
		require.Equal(t, "https://state/templates/x", set.template)
		require.Equal(t, map[string]string{"Public": "false", "Size": "1"}, set.parameters)
		require.Regexp(t, "^then-create-", set.token)
		require.False(t, a.waiter(t).Again)
	})
	t.Run("has another token when a parameter differs", func(t *testing.T) {
		tokens := map[string]bool{}
		for _, value := range []string{"1", "2"} {
			a := updates(t)
			a.specVersion = "v1"
			a.plan.SpecVersion = a.specs.Upload(names.ClusterSpec("demo"), spec)
			a.change.Parameters = []render.Parameter{{Name: "Size", Value: value}}
			require.NoError(t, a.handle(t))
			require.Regexp(t, "^update-[0-9a-f]{32}-[0-9a-f]{12}$", a.sets[0].token)
			tokens[a.sets[0].token] = true
		}
		require.Len(t, tokens, 2)
	})
	t.Run("is not executed when it would replace a stateful resource", func(t *testing.T) {
		a := updates(t)
		a.changes = []stack.ResourceChange{change(stack.ActionRemove, "AWS::EC2::VPC", "Vpc", "")}
		require.Equal(t, "ChangeRefused", nameOf(a.handle(t)))
		require.Equal(t, []string{"prepare", "delete waiter"}, a.calls)
	})
	t.Run("is not executed when it cannot be created", func(t *testing.T) {
		a := updates(t)
		a.failing["prepare"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Equal(t, []string{"prepare", "delete waiter"}, a.calls)
	})
	t.Run("is not executed when the waiter cannot be registered", func(t *testing.T) {
		a := updates(t)
		a.failing["register"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Equal(t, []string{"prepare", "register", "delete waiter"}, a.calls)
	})
	t.Run("is not created when the state bucket has no address", func(t *testing.T) {
		a := updates(t)
		c := a.newCall()
		c.TemplateBase = ":"
		_, err := c.prepare(t.Context(), stack.Deployed{}, nil, "token")
		require.Error(t, err)
		_, err = c.changePace(t.Context(), stack.Deployed{}, nil)
		require.Error(t, err)
		require.Empty(t, a.sets)
	})
	for name, test := range map[string]struct {
		status string
		kind   string
		reads  int
	}{
		"of a new pool does not depend on its group":        {"", "AWS::EC2::LaunchTemplate", 0},
		"that replaces no nodes does not depend on a group": {"UPDATE_COMPLETE", "AWS::IAM::Role", 0},
		"that replaces nodes depends on their group":        {"UPDATE_COMPLETE", "AWS::EC2::LaunchTemplate", 1},
		"depends on the group after a rollback":             {"UPDATE_ROLLBACK_COMPLETE", "AWS::IAM::Role", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := accountWithPool(t, 2)
			a.change.Tags = map[string]string{"a": "2"}
			a.changes = []stack.ResourceChange{{Action: stack.ActionModify, Type: test.kind}}
			if test.status != "" {
				a.stacks[a.change.StackName] = deployedFor(2)
				a.deploy(test.status)
			}
			require.NoError(t, a.handle(t))
			require.Equal(t, test.reads, a.reads["group"])
			require.Equal(t, []string{"prepare", "register", "execute"}, a.calls)
		})
	}
	t.Run("resumes the task when it is empty", func(t *testing.T) {
		a := updates(t)
		a.empty = 1
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"prepare", "status", "resume", "delete waiter"}, a.calls)
		require.Equal(t, []events.ChangeResult{{Stack: "addons", Status: "UPDATE_COMPLETE"}}, a.results)
	})
}

func TestTerminationProtection(t *testing.T) {
	for name, test := range map[string]struct {
		now, want bool
		empty     int
		calls     []string
		again     bool
	}{
		"stays":                            {now: true, want: true, calls: []string{"prepare", "register", "execute"}},
		"is switched on before the change": {want: true, calls: []string{"prepare", "protect true", "register", "execute"}},
		"is switched off after the change": {now: true, calls: []string{"prepare", "register", "execute"}, again: true},
		"is switched off when nothing else differs": {
			now: true, empty: 1, calls: []string{"prepare", "protect false", "status", "resume", "delete waiter"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			a.change.Protected, a.empty = test.want, test.empty
			a.stacks[a.change.StackName] = stack.Deployed{Status: "UPDATE_COMPLETE", TerminationProtection: test.now}
			require.NoError(t, a.handle(t))
			require.Equal(t, test.calls, a.calls)
			if test.empty == 0 {
				require.Equal(t, test.again, a.waiter(t).Again)
			}
		})
	}
	t.Run("stops the change when it cannot be switched", func(t *testing.T) {
		a := updates(t)
		a.change.Protected, a.failing["protect true"] = true, errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.NotContains(t, a.calls, "execute")
	})
}

func TestSettling(t *testing.T) {
	rolledBack := func(t *testing.T, empty int) *account {
		a := updates(t)
		a.empty = empty
		a.deploy("UPDATE_ROLLBACK_COMPLETE")
		return a
	}
	t.Run("changes a tag when a rollback left the desired state", func(t *testing.T) {
		a := rolledBack(t, 1)
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"prepare", "prepare", "register", "execute"}, a.calls)
		require.NotContains(t, a.sets[0].tags, names.TagSettled)
		require.Equal(t, a.token(), a.sets[1].tags[names.TagSettled])
		require.Equal(t, "settle-"+a.sets[0].token, a.sets[1].token)
		require.Equal(t, a.sets[1].token, a.waiter(t).ClientRequestToken)
	})
	t.Run("fails the task when even that changes nothing", func(t *testing.T) {
		a := rolledBack(t, 2)
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"prepare", "prepare", "status", "fail", "delete waiter"}, a.calls)
		require.Equal(t, "StackFailed", a.results[0].Error)
	})
	t.Run("fails when the tag cannot be changed", func(t *testing.T) {
		a := rolledBack(t, 1)
		a.before["prepare"] = func() { a.before["prepare"] = func() { a.failing["prepare"] = errThrottled } }
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Equal(t, []string{"prepare", "prepare", "delete waiter"}, a.calls)
	})
}

func TestDeletion(t *testing.T) {
	t.Run("has a token of its own each time", func(t *testing.T) {
		a := deletes(t, -1)
		require.NoError(t, a.handle(t))
		w := a.waiter(t)
		require.Regexp(t, "^delete-[0-9a-f]{40}$", w.ClientRequestToken)
		require.False(t, w.Again)
		c := a.newCall()
		c.in.TaskToken = "another"
		require.NoError(t, c.delete(t.Context(), stack.Deployed{}, false))
		require.NotEqual(t, w.ClientRequestToken, a.waiter(t).ClientRequestToken)
	})
}

func TestFailedCall(t *testing.T) {
	t.Run("waits when another operation started first", func(t *testing.T) {
		a := updates(t)
		a.failing["execute"] = errThrottled
		a.before["execute"] = func() { a.deploy("UPDATE_IN_PROGRESS") }
		require.NoError(t, a.handle(t))
		require.Equal(t, []string{"prepare", "register", "execute", "register"}, a.calls)
		w := a.waiter(t)
		require.Empty(t, w.ClientRequestToken)
		require.True(t, w.Again)
	})
	t.Run("fails when no operation is in flight", func(t *testing.T) {
		a := updates(t)
		a.failing["execute"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Equal(t, []string{"prepare", "register", "execute", "delete waiter"}, a.calls)
		require.Empty(t, a.waiters())
	})
	t.Run("fails when the stack cannot be read either", func(t *testing.T) {
		a := updates(t)
		a.failing["execute"] = errors.New("refused")
		a.before["execute"] = func() {
			a.deploy("UPDATE_IN_PROGRESS")
			a.failing["describe drover-demo-addons"] = errThrottled
		}
		require.ErrorIs(t, a.handle(t), a.failing["execute"])
		require.Empty(t, a.waiters())
	})
	t.Run("fails with its own error when the waiter cannot be deleted", func(t *testing.T) {
		a := updates(t)
		a.failing["execute"], a.failing["delete waiter"] = errors.New("refused"), errThrottled
		require.ErrorIs(t, a.handle(t), a.failing["execute"])
		require.Len(t, a.waiters(), 1)
	})
}

func TestWaitForOperation(t *testing.T) {
	waits := func(t *testing.T) *account {
		a := updates(t)
		*a.waited = 30
		a.deploy("UPDATE_IN_PROGRESS")
		return a
	}
	t.Run("registers a waiter for any operation", func(t *testing.T) {
		a := waits(t)
		require.NoError(t, a.handle(t))
		w := a.waiter(t)
		require.Empty(t, w.ClientRequestToken)
		require.True(t, w.Again)
		require.EqualValues(t, 30, w.WaitedSeconds)
		require.Nil(t, w.Repeats, "an older machine does not repeat")
		require.Empty(t, a.results)
	})
	t.Run("passes the repeats on", func(t *testing.T) {
		a, once := waits(t), int64(1)
		a.persist(t)
		in := a.request()
		in.Repeats = &once
		_, err := a.handler().Handle(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, &once, a.waiter(t).Repeats)
	})
	t.Run("resumes at once when the operation ended before", func(t *testing.T) {
		a := waits(t)
		a.before["register"] = func() { a.deploy("UPDATE_COMPLETE") }
		require.NoError(t, a.handle(t))
		require.Equal(t, []events.ChangeResult{{Stack: "addons", Status: "UPDATE_COMPLETE", Again: true, WaitedSeconds: 30}}, a.results)
		require.Empty(t, a.waiters())
	})
	t.Run("fails when the stack cannot be read again", func(t *testing.T) {
		a := waits(t)
		a.before["register"] = func() { a.failing["describe drover-demo-addons"] = errThrottled }
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Empty(t, a.results)
	})
	t.Run("has waited for nothing in a task that cannot wait", func(t *testing.T) {
		a := waits(t)
		a.waited = nil
		require.NoError(t, a.handle(t))
		require.Zero(t, a.waiter(t).WaitedSeconds)
	})
}
