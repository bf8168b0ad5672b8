package steps

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/doctor"
)

func TestJudgeFindings(t *testing.T) {
	ok := doctor.Finding{Check: doctor.VPCQuota, Level: doctor.OK}
	warns := doctor.Finding{Check: doctor.SpotQuota, Level: doctor.Warning}
	bootstrap := doctor.Finding{Check: doctor.Bootstrap, Level: doctor.Blocks}
	blocks := doctor.Finding{Check: doctor.LambdaConcurrency, Level: doctor.Blocks}
	failed := errors.New("exit status 2")
	log := (&runner.Log{}).Silent()
	require.NoError(t, judge(log, []doctor.Finding{ok, warns}, nil))
	require.NoError(t, judge(log, []doctor.Finding{ok, bootstrap}, failed), "the run bootstraps the CDK itself")
	require.ErrorContains(t, judge(log, []doctor.Finding{ok, bootstrap, blocks}, failed), "(LambdaConcurrency)")
	require.ErrorContains(t, judge(log, nil, nil), "made no check")
	require.ErrorIs(t, judge(log, []doctor.Finding{ok}, failed), failed, "the command failed for another reason")
}
