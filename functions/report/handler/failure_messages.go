package handler

// The description of failures: what failed, where, and where its log is.

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// failures describes each failure in one line.
func failures(in events.ReportRequest) []string {
	var lines []string
	if in.Error != "" {
		lines = append(lines, describeCause(in.Error, in.Cause)+where(in.Error, in.Failed))
	}
	for _, result := range in.Results {
		if result.Error != "" {
			state := &events.FailedState{State: result.State, Function: "change", Stack: result.Stack}
			lines = append(lines, describeCause(result.Error, result.Cause)+where(result.Error, state))
		}
	}
	if in.Plan == nil && len(lines) == 0 {
		lines = append(lines, "planning ended without a result")
	}
	return lines
}

// reason returns the name of the first fault.
func reason(in events.ReportRequest) string {
	if in.Error != "" {
		return in.Error
	}
	for _, result := range in.Results {
		if result.Error != "" {
			return result.Error
		}
	}
	return fault.Name(&fault.Internal{})
}

// describeCause returns the name and the cause of a failure. The text is a ChangeResult if a stack failed, the error object of Lambda if a
// function failed, and plain text otherwise.
func describeCause(name, text string) string {
	var object struct {
		Cause        string `json:"cause"`
		ErrorMessage string `json:"errorMessage"`
	}
	if json.Unmarshal([]byte(text), &object) == nil {
		switch {
		case object.Cause != "":
			text = object.Cause
		case object.ErrorMessage != "":
			text = object.ErrorMessage
		}
	}
	if text == "" {
		return name
	}
	return name + ": " + text
}

// where names the failed state and function, and the log group of the function. It is empty for a fault of an AWS resource, whose message
// names the resource.
func where(name string, at *events.FailedState) string {
	about := []string{
		fault.Name(&fault.StackFailed{}), fault.Name(&fault.ChangeRefused{}), fault.Name(&fault.LeaseLost{}), fault.Name(&fault.Superseded{}),
		fault.Name(&fault.LeftoversRemain{}),
	}
	if at == nil || at.State == "" || slices.Contains(about, name) {
		return ""
	}
	stack := ""
	if at.Stack != "" {
		stack = " of stack " + at.Stack
	}
	return fmt.Sprintf(" (step %q%s, function %s, log group %s)", at.State, stack, names.Function(at.Function),
		names.FunctionLogs(at.Function))
}
