// Package upgrade_test has tests of whole upgrades: their steps, failures, rollbacks and reports.
package upgrade_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
)

// life is lives.Life with the steps of this package.
type life struct{ *lives.Life }

// runWithFaults runs a life in virtual time, with an engine to which the test adds faults.
func runWithFaults(t *testing.T, test func(l *life, bad *faults.Engine)) {
	lives.RunWithFaults(t, func(l *lives.Life, bad *faults.Engine) { test(&life{l}, bad) })
}

// alarm sets the state of the alarm.
func (l *life) alarm(state cloudwatchtypes.StateValue) {
	l.T.Helper()
	_, err := l.CloudWatchClient().SetAlarmState(l.T.Context(), &cloudwatchapi.SetAlarmStateInput{
		AlarmName: aws.String("shop-is-down"), StateValue: state, StateReason: aws.String("a test says so"),
	})
	require.NoError(l.T, err)
}

// verdict returns the result of an execution.
func (l *life) verdict(arn string) string {
	x := l.Execution(arn)
	var answer events.UpgradeResult
	if json.Unmarshal([]byte(x.Output), &answer) == nil && answer.Outcome == events.UpgradeRefused {
		return fmt.Sprintf("%s %s: %s", x.Status, answer.Outcome, answer.Message)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", x.Status, x.Error, x.Cause))
}

// over waits until an execution has ended.
func (l *life) over(arn string) {
	l.T.Helper()
	l.Until("it is over", func() bool { return l.Execution(arn).Status != "RUNNING" })
}
