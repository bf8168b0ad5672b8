package events

import (
	"encoding/json"
	"time"
)

// Sweep is the input of the sweep function, from schedules and rules.
type Sweep struct {
	// ScheduledTime is the time of the schedule, in RFC 3339. It is absent in inputs from rules.
	ScheduledTime string `json:"scheduledTime,omitempty"`
	// Audit compares every cluster with its spec. Without it, sweep only handles missed events.
	Audit bool `json:"audit,omitempty"`
	// Look are clusters of rollouts whose upgrades have just ended. Then sweep only observes these. The function fleet requests that.
	Look []string `json:"look,omitempty"`
	// Ended is an execution of drover-converge that ended without success. Then sweep handles only that.
	Ended *ExecutionStatus `json:"ended,omitempty"`
}

// ExecutionStatus is the detail of the event "Step Functions Execution Status Change".
// https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
type ExecutionStatus struct {
	ExecutionARN    string `json:"executionArn"`
	StateMachineARN string `json:"stateMachineArn"`
	Name            string `json:"name"`
	// Status is RUNNING, SUCCEEDED, FAILED, TIMED_OUT or ABORTED.
	Status string `json:"status"`
	// StartDate and StopDate are in milliseconds since 1970. StopDate is absent while the execution runs.
	StartDate int64 `json:"startDate"`
	StopDate  int64 `json:"stopDate,omitempty"`
	// Input is JSON. It is absent if it is too large for an event.
	Input string `json:"input,omitempty"`
	// Error of an execution that failed, or with which it was aborted.
	Error string `json:"error,omitempty"`
}

// The statuses of executions that ended without success.
const (
	ExecutionAborted  = "ABORTED"
	ExecutionFailed   = "FAILED"
	ExecutionTimedOut = "TIMED_OUT"
)

// Cluster returns the cluster that an execution of drover-converge converges; "" if its input does not name one.
func (s ExecutionStatus) Cluster() string {
	var in Converge
	if json.Unmarshal([]byte(s.Input), &in) != nil {
		return ""
	}
	return in.Cluster
}

// Stopped returns when the execution ended.
func (s ExecutionStatus) Stopped() time.Time { return time.UnixMilli(s.StopDate).UTC() }
