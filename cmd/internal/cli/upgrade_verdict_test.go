package cli

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/status"
)

// An aborted execution cannot record the result of its upgrade. The status still has the phase Running.
func TestUpgradeVerdict(t *testing.T) {
	verdict := func(u *status.Upgrade, x *sfn.DescribeExecutionOutput) string {
		var out bytes.Buffer
		return upgradeVerdict(view.NewProgress(&out), "demo", x, u, u != nil).Error()
	}
	running := &status.Upgrade{Phase: "Running", Message: "control plane to 1.36"}
	require.Equal(t, "the execution of the upgrade ended as ABORTED. Within five minutes `drover status demo` shows what is done "+
		"and how to continue",
		verdict(running, &sfn.DescribeExecutionOutput{Status: types.ExecutionStatusAborted}))
	require.Contains(t, verdict(running, &sfn.DescribeExecutionOutput{Status: types.ExecutionStatusTimedOut}), "ended as TIMED_OUT")
	failed := &sfn.DescribeExecutionOutput{Status: types.ExecutionStatusFailed, Error: aws.String("UpgradeStopped"), Cause: aws.String("no")}
	require.Equal(t, "the upgrade is Stopped: no", verdict(&status.Upgrade{Phase: "Stopped", Message: "no"}, failed))
	require.Equal(t, "the upgrade ended as FAILED: UpgradeStopped: no", verdict(nil, failed))
}
