package stepfunctions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
)

// nesting returns the policy that AWS documents for a role that waits for executions, less one action.
// https://docs.aws.amazon.com/step-functions/latest/dg/stepfunctions-iam.html
func nesting(without string) string {
	var statements []string
	for resource, actions := range map[string][]string{
		"arn:aws:states:eu-central-1:111122223333:stateMachine:child": {"states:StartExecution"},
		"arn:aws:states:eu-central-1:111122223333:execution:child:*": {
			"states:DescribeExecution", "states:StopExecution",
		},
		"arn:aws:events:eu-central-1:111122223333:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule": {
			"events:PutTargets", "events:PutRule", "events:DescribeRule",
		},
	} {
		for _, action := range actions {
			if action != without {
				statements = append(statements, fmt.Sprintf(`{"Effect":"Allow","Action":%q,"Resource":%q}`, action, resource))
			}
		}
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

const childARN = "arn:aws:states:eu-central-1:111122223333:stateMachine:child"

func nestedMachine(more string) string {
	return `"A":{"Type":"Task","Resource":"arn:aws:states:::states:startExecution.sync:2","Arguments":{"StateMachineArn":"` + childARN +
		`","Name":"c","Input":{"a":1}}` + more + `,"End":true}`
}

func TestNestedExecution(t *testing.T) {
	for name, test := range map[string]struct {
		child string
		// Of result and cause the test compares the part given here. fault is the error's name.
		result       map[string]any
		fault, cause string
	}{
		"its output is JSON": {`"A":{"Type":"Pass","Output":{"ok":true},"End":true}`, map[string]any{
			"Status": "SUCCEEDED", "Input": map[string]any{"a": 1.0}, "Output": map[string]any{"ok": true}, "Name": "c", "StateMachineArn": childARN,
			"ExecutionArn": "arn:aws:states:eu-central-1:111122223333:execution:child:c", "OutputDetails": map[string]any{"Included": true},
		}, "", ""},
		"its failure is the task's, with its description": {`"A":{"Type":"Fail","Error":"StackFailed","Cause":"no"}`, nil, "States.TaskFailed",
			`"Cause":"no","Error":"StackFailed","ExecutionArn":"arn:aws:states:eu-central-1:111122223333:execution:child:c","Input":"{\"a\":1}"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.NoError(t, w.identities.PutRolePolicy("machine", "p", nesting("")))
			w.create(t, "child", test.child)
			x := w.run(t, w.create(t, "parent", nestedMachine("")), `{}`)
			if test.fault != "" {
				require.Equal(t, test.fault, *x.Error)
				require.Contains(t, *x.Cause, test.cause)
				require.Contains(t, *x.Cause, `"Status":"FAILED"`)
			} else {
				require.Equal(t, types.ExecutionStatusSucceeded, x.Status, "%v %v", x.Error, x.Cause)
				var got map[string]any
				require.NoError(t, json.Unmarshal([]byte(*x.Output), &got))
				for k, v := range test.result {
					require.Equal(t, v, got[k], k)
				}
			}
			h, err := w.client.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: x.ExecutionArn})
			require.NoError(t, err)
			require.Equal(t, types.HistoryEventTypeTaskSubmitted, h.Events[4].Type)
			submitted := h.Events[4].TaskSubmittedEventDetails
			require.Equal(t, "startExecution.sync:2", *submitted.Resource)
			require.Contains(t, *submitted.Output, `{"ExecutionArn":"arn:aws:states:eu-central-1:111122223333:execution:child:c"`)
		})
	}
}

func TestNestedExecutionPermissions(t *testing.T) {
	for without, fault := range map[string]string{
		"states:StartExecution":    "StepFunctions.AWSStepFunctionsException",
		"states:DescribeExecution": "StepFunctions.AWSStepFunctionsException",
		"events:PutRule":           "",
		"events:PutTargets":        "",
		"events:DescribeRule":      "",
	} {
		t.Run("without "+without, func(t *testing.T) {
			w := newWorld(t)
			require.NoError(t, w.identities.PutRolePolicy("machine", "p", nesting(without)))
			w.create(t, "child", `"A":{"Type":"Succeed"}`)
			if fault != "" {
				x := w.run(t, w.create(t, "parent", nestedMachine("")), `{}`)
				require.Equal(t, fault, *x.Error)
				require.Contains(t, *x.Cause, "not authorized to perform: "+without)
				return
			}
			_, err := w.client.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
				Name: aws.String("parent"), RoleArn: aws.String(w.role),
				Definition: aws.String(`{"QueryLanguage":"JSONata","StartAt":"A","States":{` + nestedMachine("") + `}}`),
			})
			require.ErrorContains(t, err, "AccessDeniedException: '"+w.role+"' is not authorized to create managed-rule.")
		})
	}
}

func TestNestedExecutionStartFails(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.identities.PutRolePolicy("machine", "p", nesting("")))
	parent := w.create(t, "parent", nestedMachine(""))
	require.Equal(t, "StepFunctions.StateMachineDoesNotExistException", *w.run(t, parent, `{}`).Error)
	w.create(t, "child", `"A":{"Type":"Succeed"}`)
	require.Equal(t, types.ExecutionStatusSucceeded, w.run(t, parent, `{}`).Status)
	require.Equal(t, "StepFunctions.ExecutionAlreadyExistsException", *w.run(t, parent, `{}`).Error, "a name that is used up")
}

// A child execution whose parent no longer waits is stopped if the role allows it.
func TestNestedExecutionIsAbandoned(t *testing.T) {
	for name, test := range map[string]struct {
		// task adds fields to the task, machine to the machine. stop stops the parent.
		task, machine, without string
		stop                   bool
		parent, child          string
		after                  time.Duration
	}{
		"the task's time is over": {task: `,"TimeoutSeconds":60`, parent: "FAILED States.Timeout", child: "ABORTED", after: time.Minute},
		"the parent's time is over": {
			machine: `"TimeoutSeconds":90,`, parent: "TIMED_OUT States.Timeout", child: "ABORTED", after: 90 * time.Second,
		},
		"the parent is stopped": {stop: true, parent: "ABORTED Operator", child: "ABORTED", after: 10 * time.Second},
		"continues without permission to stop it": {
			without: "states:StopExecution", stop: true, parent: "ABORTED Operator", child: "RUNNING", after: 10 * time.Second,
		},
		"ends by itself before the parent's timeout": {
			task: `,"TimeoutSeconds":7200`, parent: "SUCCEEDED ", child: "SUCCEEDED", after: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				identities := iam.New(account, region, nil)
				role, err := identities.CreateRole(iam.Role{Name: "machine", TrustDocument: trust})
				require.NoError(t, err)
				require.NoError(t, identities.PutRolePolicy("machine", "p", nesting(test.without)))
				s := New(Config{Account: account, Region: region, Roles: identities})
				defer s.Close()
				admin, _ := identities.Admin()
				for machine, definition := range map[string]string{
					"child":  `{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Wait","Seconds":3600,"End":true}}}`,
					"parent": `{"QueryLanguage":"JSONata",` + test.machine + `"StartAt":"A","States":{` + nestedMachine(test.task) + `}}`,
				} {
					_, err := s.create(admin, spec{name: machine, role: identities.RoleARN(role), definition: definition})
					require.NoError(t, err)
				}
				began := time.Now()
				arn, err := s.Start(t.Context(), admin, s.machineARN("parent"), "p", "")
				require.NoError(t, err)
				if test.stop {
					time.Sleep(10 * time.Second)
					s.Stop(arn, "Operator", "enough")
				}
				s.mu.Lock()
				ended := s.executions[arn].ended
				s.mu.Unlock()
				<-ended
				require.Equal(t, test.after, time.Since(began))
				synctest.Wait()
				all := s.Executions()
				require.Equal(t, test.parent, all[0].Status+" "+all[0].Error)
				require.Equal(t, test.child, all[1].Status)
				if test.child == "ABORTED" {
					require.Equal(t, "The Task state in AWS Step Functions execution ["+arn+"] which was managing this resource was aborted", all[1].Cause)
				}
			})
		})
	}
}
