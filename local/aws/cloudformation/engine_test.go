package cloudformation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/wire"
)

func TestCreateMakesResourcesInOrderAndAtOnceWhereItCan(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		began := time.Now()
		st := a.create("s", things(`A: {Seconds: 60}`, `B: {Seconds: 60}`, `C: {Needs: [!Ref A, !GetAtt B.Arn], Seconds: 60}`)+
			"Outputs: {Id: {Value: !Ref C, Description: d}, Address: {Value: !GetAtt C.Endpoint.Address}}\n")
		require.Equal(t, createComplete, st.StackStatus)
		require.Equal(t, 2, a.shelf.most)
		require.Less(t, time.Since(began), 3*time.Minute)
		require.Equal(t, "create C", a.shelf.order()[2])
		require.Equal(t, []any{a.physicalID("s", "A"), "arn:thing/" + a.physicalID("s", "B")}, a.shelf.requests["C"].Properties["Needs"])
		id := a.physicalID("s", "C")
		require.Equal(t, []Output{{OutputKey: "Address", OutputValue: id + ".local"}, {OutputKey: "Id", OutputValue: id, Description: "d"}},
			st.Outputs)
		trail := a.trail("s")
		require.Equal(t, "s CREATE_IN_PROGRESS: User Initiated", trail[0])
		require.Equal(t, "s CREATE_COMPLETE", trail[len(trail)-1])
		require.Equal(t, []string{createInProgress, createInProgress, createComplete}, a.statuses("s", "A"))
		require.Equal(t, initiated, a.reason("s", "A", createInProgress))
	})
}

// A stack and a call report an unsupported feature with the same error code.
func TestUnsupportedFeaturesHaveOneErrorCode(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		message := a.handlerMessage(&stack{id: "s"}, &stackResource{logicalID: "A"}, wire.Unsupported("eks", "Kubernetes 1.37"))
		require.Regexp(t,
			`^Resource handler returned message: "the local account's eks does not support Kubernetes 1\.37" `+
				`\(RequestToken: \S+, HandlerErrorCode: UnsupportedByLocalAccount\)$`, message)
	})
}

func TestFailedCreationIsRolledBack(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.create("s", things(`A: {}`, `B: {Fail: create, Needs: !Ref A, Seconds: 1}`, `C: {Seconds: 600}`, `D: {Needs: !Ref C}`))
		require.Equal(t, rollbackComplete, st.StackStatus)
		require.Empty(t, a.shelf.ids())
		require.Regexp(t,
			`^Resource handler returned message: "The shelf is "full"" \(RequestToken: [0-9a-f-]{36}, HandlerErrorCode: ServiceLimitExceeded\)$`,
			a.reason("s", "B", createFailed))
		require.Equal(t, creationCancelled, a.reason("s", "C", createFailed))
		require.Equal(t, "The following resource(s) failed to create: [B, C]. Rollback requested by user.",
			a.reason("s", "s", rollbackInProgress))
		require.Empty(t, a.statuses("s", "D"), "what never started has no events")
		order := a.shelf.order()
		require.Less(t, slices.Index(order, "delete B"), slices.Index(order, "delete A"), "those that need others go first")
		out, err := a.DescribeStackResources(a.ctx, a.admin, &DescribeStackResourcesInput{StackName: "s"})
		require.NoError(t, err)
		for _, r := range out.StackResources {
			require.Equal(t, deleteComplete, r.ResourceStatus)
		}
		_, err = a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {}`)})
		a.requireRefused(err, "ValidationError", "Stack:"+st.StackId+" is in ROLLBACK_COMPLETE state and can not be updated.")
		require.Equal(t, deleteComplete, a.delete(&DeleteStackInput{StackName: "s"}).StackStatus)
		require.Equal(t, createComplete, a.create("s", things(`A: {}`)).StackStatus, "and the next spec starts over")
	})
}

func TestOnFailure(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		in   CreateStackInput
		want string
		left int
	}{
		"nothing":                            {CreateStackInput{OnFailure: "DO_NOTHING"}, createFailed, 2},
		"nothing by DisableRollback":         {CreateStackInput{DisableRollback: &yes}, createFailed, 2},
		"delete":                             {CreateStackInput{OnFailure: "DELETE"}, deleteComplete, 1},
		"rollback keeps what is retained":    {CreateStackInput{OnFailure: "ROLLBACK"}, rollbackComplete, 1},
		"rollback with RetainExceptOnCreate": {CreateStackInput{RetainExceptOnCreate: true}, rollbackComplete, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				in := test.in
				in.StackName = "s"
				in.TemplateBody = things(`A: {}`) + "    DeletionPolicy: Retain\n" + things(`B: {Fail: create, Needs: !Ref A}`)[len("Resources:\n"):]
				out, err := a.CreateStack(a.ctx, a.admin, &in)
				require.NoError(t, err)
				require.Equal(t, test.want, a.wait(out.StackId).StackStatus)
				require.Len(t, a.shelf.ids(), test.left)
			})
		})
	}
}

func TestRollbackThatFails(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.create("s", things(`A: {Fail: delete}`, `B: {Fail: create, Needs: !Ref A}`))
		require.Equal(t, rollbackFailed, st.StackStatus)
		require.Equal(t, "The following resource(s) failed to delete: [A]. ", st.StackStatusReason)
	})
}

func TestPanicFailsTheResource(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {Fail: panic}`), OnFailure: "DO_NOTHING"})
		require.Equal(t, createFailed, st.StackStatus)
		require.Contains(t, a.reason("s", "A", createFailed), "internal failure of the handler of AWS::Test::Thing: the shelf broke")
	})
}

func TestCreationTimesOut(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {Seconds: 600}`), TimeoutInMinutes: 5})
		require.Equal(t, rollbackComplete, st.StackStatus)
		require.Contains(t, a.reason("s", "s", rollbackInProgress), "Stack creation time exceeded the specified timeout.")
	})
}

func TestUpdateChangesReplacesAddsAndRemoves(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`Same: {Size: 1}`, `Changed: {Size: 1}`, `Replaced: {Name: any1}`, `Gone: {Size: 1}`,
			`User: {Needs: !Ref Replaced}`))
		same, changed, replaced := a.physicalID("s", "Same"), a.physicalID("s", "Changed"), a.physicalID("s", "Replaced")
		a.shelf.reset()
		st := a.update("s", things(`Same: {Size: "1"}`, `Changed: {Size: 2}`, `Replaced: {Name: any2}`, `Added: {Size: 1}`,
			`User: {Needs: !Ref Replaced}`))
		require.Equal(t, updateComplete, st.StackStatus)
		require.False(t, a.shelf.requests["Changed"].Rollback)
		require.Equal(t, same, a.physicalID("s", "Same"))
		require.Equal(t, changed, a.physicalID("s", "Changed"))
		require.NotEqual(t, replaced, a.physicalID("s", "Replaced"))
		require.Equal(t, a.physicalID("s", "Replaced"), a.shelf.requests["User"].Properties["Needs"])
		require.Equal(t, map[string]any{"Size": 1.0}, a.shelf.requests["Changed"].Old)
		require.Len(t, a.shelf.ids(), 5)
		require.NotContains(t, a.shelf.ids(), replaced)
		require.NotContains(t, a.shelf.order(), "update Same")
		order := a.shelf.order()
		require.Less(t, slices.Index(order, "update User"), slices.Index(order, "delete Replaced"), "the old one goes in cleanup")
		require.Equal(t, []string{createInProgress, createComplete, updateInProgress, updateCleanup, updateComplete}, a.statuses("s", "s"))
		require.Contains(t, a.trail("s"), "Replaced UPDATE_IN_PROGRESS: Requested update requires the creation of a new physical resource; "+
			"hence creating one.")
	})
}

func TestPoliciesKeepReplacedAndRemovedResources(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		kept := "    UpdateReplacePolicy: Retain\n    DeletionPolicy: Retain\n"
		a.create("s", things(`A: {Name: any1}`)+kept+things(`B: {}`)[len("Resources:\n"):])
		a.update("s", things(`A: {Name: any2}`)+kept+things(`B: {}`)[len("Resources:\n"):])
		require.Len(t, a.shelf.ids(), 3)
		a.update("s", things(`B: {}`))
		require.Len(t, a.shelf.ids(), 3)
		require.Equal(t, deleteSkipped, last(a.statuses("s", "A")))
	})
}

func last[T any](list []T) T { return list[len(list)-1] }

func TestFailedUpdateIsRolledBack(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`Changed: {Size: 1}`, `Replaced: {Name: any1}`, `Failing: {Size: 1, Needs: [!Ref Changed, !Ref Replaced]}`,
			`Slow: {Size: 1}`, `Gone: {}`)+
			"Outputs: {Id: {Value: !Ref Replaced}}\n")
		before := a.wait("s")
		changed, replaced := a.physicalID("s", "Changed"), a.physicalID("s", "Replaced")
		st := a.updateWith(&UpdateStackInput{
			StackName: "s", Tags: []Tag{{"spec", "2"}},
			TemplateBody: things(`Changed: {Size: 2}`, `Replaced: {Name: any2}`,
				`Failing: {Size: 2, Fail: update, Needs: [!Ref Changed, !Ref Replaced]}`, `Slow: {Size: 2, Seconds: 600}`, `New: {}`),
		})
		require.Equal(t, updateRollbackComplete, st.StackStatus)
		require.Equal(t, "The following resource(s) failed to update: [Failing, Slow]. ", a.reason("s", "s", updateRollbackInProgress))
		require.Equal(t, updateCancelled, a.reason("s", "Slow", updateFailed))
		require.Equal(t, before.Outputs, st.Outputs)
		require.Empty(t, st.Tags, "parameters, tags and template are the old ones again")
		require.Equal(t, replaced, a.physicalID("s", "Replaced"))
		require.Len(t, a.shelf.ids(), 5, "what the update created is deleted, what it would have removed stays")
		require.Equal(t, map[string]any{"Size": 1.0}, a.shelf.things[changed])
		require.Equal(t, map[string]any{"Size": 1.0, "Needs": []any{changed, replaced}}, a.shelf.things[a.physicalID("s", "Failing")])
		require.Equal(t, map[string]any{"Size": 1.0}, a.shelf.things[a.physicalID("s", "Slow")])
		require.Equal(t, []string{updateInProgress, updateRollbackInProgress, updateRollbackCleanup, updateRollbackComplete},
			a.statuses("s", "s")[2:])
		require.Equal(t, updateComplete, last(a.statuses("s", "Failing")))
		_, err := a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", UsePreviousTemplate: true})
		a.requireRefused(err, "ValidationError", "No updates are to be performed.")
		require.Equal(t, updateComplete, a.update("s", things(`Changed: {Size: 3}`)).StackStatus)
	})
}

func TestUpdateWithAFailedAdditionIsRolledBack(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Size: 1}`, `B: {Name: any1}`))
		st := a.update("s", things(`A: {Size: 2}`, `B: {Name: any2, Fail: create, Needs: !Ref A}`, `C: {Fail: create, Needs: !Ref A}`))
		require.Equal(t, updateRollbackComplete, st.StackStatus)
		require.Len(t, a.shelf.ids(), 2)
		require.Regexp(t, `The following resource\(s\) failed to create: \[C\]`, a.reason("s", "s", updateRollbackInProgress))
		require.Equal(t, updateComplete, a.update("s", things(`A: {Size: 3}`, `B: {Name: any3}`)).StackStatus)
	})
}

func TestFailedRollbackContinues(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Fail: update}`, `B: {Size: 1, Needs: !Ref A}`, `C: {Size: 1, Seconds: 30}`))
		st := a.update("s", things(`A: {Size: 2}`, `B: {Size: 2, Fail: update, Seconds: 60, Needs: !Ref A}`, `C: {Size: 2, Seconds: 30}`))
		require.Equal(t, updateRollbackFailed, st.StackStatus)
		require.Equal(t, map[string]any{"Size": 1.0, "Seconds": 30.0}, a.shelf.things[a.physicalID("s", "C")], "one that fails holds up no other")
		require.Equal(t, "The following resource(s) failed to update: [A]. ", st.StackStatusReason)
		require.True(t, a.shelf.requests["C"].Rollback, "the provider receives that the operation is a rollback")
		_, err := a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {}`)})
		a.requireRefused(err, "ValidationError", "is in UPDATE_ROLLBACK_FAILED state and can not be updated.")
		_, err = a.ContinueUpdateRollback(a.ctx, a.admin, &ContinueUpdateRollbackInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, updateRollbackFailed, a.wait("s").StackStatus)
		_, err = a.ContinueUpdateRollback(a.ctx, a.admin, &ContinueUpdateRollbackInput{StackName: "s", ResourcesToSkip: []string{"X"}})
		a.requireRefused(err, "ValidationError", "not in the UPDATE_FAILED state: [X]")
		_, err = a.ContinueUpdateRollback(a.ctx, a.admin, &ContinueUpdateRollbackInput{StackName: "s", ResourcesToSkip: []string{"A"}})
		require.NoError(t, err)
		require.Equal(t, updateRollbackComplete, a.wait("s").StackStatus)
		require.Equal(t, map[string]any{"Size": 1.0, "Needs": a.physicalID("s", "A")}, a.shelf.things[a.physicalID("s", "B")])
		_, err = a.ContinueUpdateRollback(a.ctx, a.admin, &ContinueUpdateRollbackInput{StackName: "s"})
		a.requireRefused(err, "ValidationError", "can not continue rolling back")
	})
}

func TestUpdateWithoutRollback(t *testing.T) {
	for name, finish := range map[string]func(a *account) string{
		"on": func(a *account) string {
			return a.updateWith(&UpdateStackInput{
				StackName: "s", DisableRollback: true, TemplateBody: things(`A: {Name: any3}`, `B: {Size: 3}`),
			}).StackStatus
		},
		"back": func(a *account) string {
			_, err := a.RollbackStack(a.ctx, a.admin, &RollbackStackInput{StackName: "s"})
			require.NoError(a.t, err)
			return a.wait("s").StackStatus
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("s", things(`A: {Name: any1}`, `B: {Size: 1}`))
				first := a.physicalID("s", "A")
				st := a.updateWith(&UpdateStackInput{
					StackName: "s", DisableRollback: true, TemplateBody: things(`A: {Name: any2}`, `B: {Size: 2, Fail: update, Needs: !Ref A}`, `C: {}`),
				})
				require.Equal(t, updateFailed, st.StackStatus)
				require.Len(t, a.shelf.ids(), 4)
				// AWS refuses an update that would be rolled back.
				_, err := a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {Name: any3}`)})
				a.requireRefused(err, "ValidationError", "non-terminal [UPDATE_FAILED] state")
				a.changes(&CreateChangeSetInput{StackName: "s", ChangeSetName: "c", TemplateBody: things(`A: {Name: any3}`)})
				_, err = a.ExecuteChangeSet(a.ctx, a.admin, &ExecuteChangeSetInput{StackName: "s", ChangeSetName: "c"})
				a.requireRefused(err, "ValidationError", "disable-rollback parameter with execute-change-set API")
				if finish(a) == updateComplete {
					require.NotEqual(t, first, a.physicalID("s", "A"))
				} else {
					require.Equal(t, first, a.physicalID("s", "A"))
				}
				require.Len(t, a.shelf.ids(), 2)
			})
		})
	}
}

func TestUpdateIsCancelled(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Size: 1}`))
		_, err := a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {Size: 2, Seconds: 600}`)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{StackName: "s", TemplateBody: things(`A: {Size: 3}`)})
		a.requireRefused(err, "ValidationError", "is in UPDATE_IN_PROGRESS state and can not be updated.")
		_, err = a.DeleteStack(a.ctx, a.admin, &DeleteStackInput{StackName: "s"})
		a.requireRefused(err, "ValidationError", "Stack [s] cannot be deleted while in status UPDATE_IN_PROGRESS")
		_, err = a.CancelUpdateStack(a.ctx, a.admin, &CancelUpdateStackInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, updateRollbackComplete, a.wait("s").StackStatus)
		require.Equal(t, userInitiated, a.reason("s", "s", updateRollbackInProgress))
		_, err = a.CancelUpdateStack(a.ctx, a.admin, &CancelUpdateStackInput{StackName: "s"})
		a.requireRefused(err, "ValidationError", "CancelUpdateStack cannot be called from current stack status")
	})
}

func TestDeleteInterruptsCreation(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		out, err := a.CreateStack(a.ctx, a.admin, &CreateStackInput{StackName: "s", TemplateBody: things(`A: {}`, `B: {Seconds: 600}`)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = a.DeleteStack(a.ctx, a.admin, &DeleteStackInput{StackName: "s"})
		require.NoError(t, err)
		require.Equal(t, deleteComplete, a.wait(out.StackId).StackStatus)
		require.Empty(t, a.shelf.ids())
	})
}

func TestDeleteThatFailsCanRetain(t *testing.T) {
	for name, in := range map[string]DeleteStackInput{
		"by name":  {RetainResources: []string{"B"}},
		"by force": {DeletionMode: "FORCE_DELETE_STACK"},
	} {
		t.Run(name, func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) {
				a.create("s", things(`A: {}`, `B: {Fail: delete, Needs: !Ref A}`, `C: {}`))
				in := in
				in.StackName = "s"
				_, err := a.DeleteStack(a.ctx, a.admin, &in)
				a.requireRefused(err, "ValidationError", "DELETE_FAILED state")
				st := a.delete(&DeleteStackInput{StackName: "s"})
				require.Equal(t, deleteFailed, st.StackStatus)
				require.Equal(t, "The following resource(s) failed to delete: [B]. ", st.StackStatusReason)
				require.Len(t, a.shelf.ids(), 2, "resources that others need stay, and all others are deleted")
				require.Equal(t, deleteComplete, a.delete(&in).StackStatus)
				require.Len(t, a.shelf.ids(), 1)
			})
		})
	}
}

func TestSignalsReachTheProvider(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		_, err := a.CreateStack(a.ctx, a.admin, &CreateStackInput{StackName: "s", TemplateBody: things(`A: {Signals: 2}`, `B: {Needs: !Ref A}`)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		signal := func(logicalID, id, status string) error {
			_, err := a.SignalResource(a.ctx, a.admin, &SignalResourceInput{
				StackName: "s", LogicalResourceId: logicalID, UniqueId: id, Status: status,
			})
			return err
		}
		require.NoError(t, signal("A", "i-1", "SUCCESS"))
		require.NoError(t, signal("A", "i-1", "SUCCESS"), "the same signal counts once")
		synctest.Wait()
		require.Equal(t, createInProgress, a.describeNow("s").StackStatus)
		a.requireRefused(signal("B", "i-1", "SUCCESS"), "ValidationError", "Resource B does not exist for stack s")
		a.requireRefused(signal("A", "", "SUCCESS"), "ValidationError", "uniqueId")
		a.requireRefused(signal("A", "i-1", "MAYBE"), "ValidationError", "enum value set")
		require.NoError(t, signal("A", "i-2", "SUCCESS"))
		st := a.wait("s")
		require.Equal(t, createComplete, st.StackStatus)
		require.Contains(t, a.trail("s"), "A CREATE_IN_PROGRESS: Received SUCCESS signal with UniqueId i-2")
		a.requireRefused(signal("A", "i-3", "SUCCESS"), "ValidationError",
			"Stack "+st.StackId+" is in CREATE_COMPLETE state and cannot be signaled")
	})
}

// describeNow describes a stack without waiting for it.
func (a *account) describeNow(name string) Stack {
	a.t.Helper()
	out, err := a.DescribeStacks(a.ctx, a.admin, &StackPageInput{StackName: name})
	require.NoError(a.t, err)
	return out.Stacks[0]
}

func TestReplacingSomethingOfAFixedNameFails(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Name: fixed, Home: x}`))
		st := a.update("s", things(`A: {Name: fixed, Home: y}`))
		require.Equal(t, updateRollbackComplete, st.StackStatus)
		require.Contains(t, a.reason("s", "A", updateFailed), "fixed already exists")
		require.Equal(t, updateComplete, last(a.statuses("s", "A")))
		require.Equal(t, []string{"fixed"}, a.shelf.ids())
	})
}

func TestEventsReachEventBridgeInOrder(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		st := a.createWith(&CreateStackInput{StackName: "s", TemplateBody: things(`A: {Name: a}`), ClientRequestToken: "create-1"})
		synctest.Wait()
		event := func(status, reason string) string {
			return "aws.cloudformation|CloudFormation Stack Status Change|[" + st.StackId + "]|map[client-request-token:create-1 stack-id:" +
				st.StackId + " status-details:map[status:" + status + " status-reason:" + reason + "]]"
		}
		require.Equal(t, event(createInProgress, userInitiated), a.bus.events[0])
		require.Equal(t, event(createComplete, ""), last(a.bus.events))
		require.Equal(t, "aws.cloudformation|CloudFormation Resource Status Change|["+st.StackId+
			"]|map[client-request-token:create-1 logical-resource-id:A physical-resource-id:a resource-type:AWS::Test::Thing stack-id:"+st.StackId+
			" status-details:map[status:CREATE_COMPLETE status-reason:]]", a.bus.events[3])
	})
}

// A stack sends an event for each status, also for those in progress.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stacks-event-bridge.html
func TestStackStatusEvents(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.create("s", things(`A: {Name: a}`))
		a.update("s", things(`A: {Name: a, Size: 2}`))
		_, err := a.DeleteStack(a.ctx, a.admin, &DeleteStackInput{StackName: "s"})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		var got []string
		for _, event := range a.bus.events {
			if _, after, ok := strings.Cut(event, "CloudFormation Stack Status Change|"); ok {
				_, after, _ = strings.Cut(after, "status-details:map[status:")
				status, _, _ := strings.Cut(after, " ")
				got = append(got, status)
			}
		}
		require.Equal(t, []string{
			createInProgress, createComplete, updateInProgress, updateCleanup, updateComplete, deleteInProgress, deleteComplete,
		}, got)
	})
}

func TestCloseStopsEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		_, err := a.CreateStack(a.ctx, a.admin, &CreateStackInput{StackName: "s", TemplateBody: things(`A: {Seconds: 600}`)})
		require.NoError(t, err)
		_, err = a.CreateChangeSet(a.ctx, a.admin, &CreateChangeSetInput{
			StackName: "t", ChangeSetName: "c", ChangeSetType: "CREATE", TemplateBody: things(`A: {}`),
		})
		require.NoError(t, err)
		began := time.Now()
		a.Close()
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, createInProgress, a.describeNow("s").StackStatus, "it is not rolled back: no caller requested it")
	})
}
