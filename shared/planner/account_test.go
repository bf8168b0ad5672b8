package planner

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// judgedAccount is an account with findings.
type judgedAccount struct {
	found []doctor.Finding
	err   error
	asked int
}

func (j *judgedAccount) Examine(context.Context, *api.Cluster) ([]doctor.Finding, error) {
	j.asked++
	return j.found, j.err
}

func TestAccountBeforeTheFirstCreation(t *testing.T) {
	blocking := []doctor.Finding{
		{Check: doctor.ClusterQuota, Level: doctor.OK, Message: "1 of 100 EKS clusters are used"},
		{Check: doctor.OnDemandQuota, Level: doctor.Warning, Message: "few", Fix: "ask"},
		{Check: doctor.VPCQuota, Level: doctor.Blocks, Message: "5 of 5 VPCs are used", Fix: "raise it"},
	}
	creates := plan.Plan{Changes: []plan.Change{{Stack: names.Network, Operation: plan.Create}}}
	examine := func(t *testing.T, account *judgedAccount, changes plan.Plan, stacks map[string]string) error {
		t.Helper()
		o := Outcome{Plan: changes, work: work{cluster: "demo", deployed: map[string]stack.Deployed{}}}
		for name, status := range stacks {
			o.work.deployed[name] = stack.Deployed{Name: name, Status: status}
		}
		return (&Planner{Account: account}).examineAccount(t.Context(), &o)
	}
	for name, stacks := range map[string]map[string]string{
		"blocks the creation of the first stack":             nil,
		"blocks it again after the creation was rolled back": {names.Network: stack.RollbackComplete},
		"blocks it when only a change set exists":            {names.Network: stack.InReview},
	} {
		t.Run(name, func(t *testing.T) {
			var stopped *Stop
			require.ErrorAs(t, examine(t, &judgedAccount{found: blocking}, creates, stacks), &stopped)
			require.Equal(t, status.ReasonAccountNotReady, stopped.Reason)
			require.Contains(t, stopped.Message, "\nVPCQuota: 5 of 5 VPCs are used: raise it\n")
			require.NotContains(t, stopped.Message, "few", "a warning does not block")
		})
	}
	for name, test := range map[string]struct {
		changes plan.Plan
		stacks  map[string]string
	}{
		"is not read when a stack exists":             {creates, map[string]string{names.Network: stack.CreateComplete}},
		"is not read when a stack is being created":   {creates, map[string]string{names.Network: stack.CreateInProgress}},
		"is not read when a stack could not go":       {creates, map[string]string{names.Network: stack.DeleteFailed}},
		"is not read when nothing would be changed":   {plan.Plan{}, nil},
		"is not read when a rollback left resources":  {creates, map[string]string{names.Network: stack.RollbackFailed}},
		"is not read when one stack of two was built": {creates, map[string]string{"a": stack.UpdateComplete, "b": stack.RollbackComplete}},
	} {
		t.Run(name, func(t *testing.T) {
			account := &judgedAccount{found: blocking}
			require.NoError(t, examine(t, account, test.changes, test.stacks))
			require.Zero(t, account.asked)
		})
	}
	t.Run("that has room lets the creation begin", func(t *testing.T) {
		account := &judgedAccount{found: blocking[:2]}
		require.NoError(t, examine(t, account, creates, nil))
		require.Equal(t, 1, account.asked)
	})
	t.Run("that cannot be read fails the plan", func(t *testing.T) {
		account := &judgedAccount{err: errors.New("throttled")}
		require.ErrorIs(t, examine(t, account, creates, nil), account.err)
	})
}
