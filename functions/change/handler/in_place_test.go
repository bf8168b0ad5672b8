package handler

// Changes that leave the nodes of a pool as they are.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// accountInPlace returns an account whose change gives a pool other tags. Its nodes have versions 2 and 3 of the launch template.
func accountInPlace(t *testing.T) *account {
	a := newAccount(t, plan.Change{
		Stack: "pool-a", StackName: "drover-demo-pool-a", Operation: plan.Update, TemplateKey: "templates/x", Pace: rolling(),
		Nodes: &render.Fingerprint{Data: "d"}, Reasons: []status.Reason{{Field: "spec.tags.a"}}, Tags: map[string]string{"a": "b"},
		Parameters: []render.Parameter{{Name: render.SubnetIDs, Value: "subnet-1,subnet-2"}},
	})
	now := deployedFor(2)
	now.Parameters[render.MaxSize], now.Parameters[render.SubnetIDs] = "5", "subnet-1"
	now.Outputs = map[string]string{
		render.Nodes: a.change.Nodes.Sum(nil), render.NodesSince: "2", render.LaunchTemplateVersion: "3",
	}
	a.stacks[a.change.StackName] = now
	a.changes = []stack.ResourceChange{{Type: "AWS::EC2::LaunchTemplate"}}
	a.desired = []int{2}
	a.group = pool.Group{TemplateVersion: "3", Instances: []pool.Instance{
		{ID: "i-1", State: pool.InService, TemplateVersion: "2"}, {ID: "i-2", State: pool.InService, TemplateVersion: "3"},
	}}
	return a
}

func TestChangeInPlace(t *testing.T) {
	off := map[string]string{render.ReplaceNodes: "false", render.NodesSince: "2"}
	first := []string{"prepare", "pace", "register", "execute"} // the policy is switched off
	then := []string{"prepare", "register", "execute"}
	for name, test := range map[string]struct {
		given func(a *account, now *stack.Deployed)
		want  []string
		// policy is ReplaceNodes of the change, and since its NodesSince.
		policy, since string
	}{
		"switches the update policy off first": {nil, first, "", ""},
		"follows once the policy is off": {func(_ *account, now *stack.Deployed) {
			now.Parameters[render.ReplaceNodes] = "false"
		}, then, "false", "2"},
		"needs no policy off if it touches no nodes": {func(a *account, _ *stack.Deployed) {
			a.changes = []stack.ResourceChange{{Type: "AWS::IAM::Role"}}
		}, then, "true", "2"},
		"has no policy if the deployed template is unknown": {func(_ *account, now *stack.Deployed) {
			delete(now.Tags, names.TagTemplate)
		}, []string{"prepare", "prepare", "register", "execute"}, "false", "2"},
		"is repeated after its rollback": {func(_ *account, now *stack.Deployed) {
			now.Status, now.Parameters[render.ReplaceNodes] = "UPDATE_ROLLBACK_COMPLETE", "false"
		}, then, "false", "2"},
		"switches the policy off again after the rollback of that": {func(_ *account, now *stack.Deployed) {
			now.Status = "UPDATE_ROLLBACK_COMPLETE"
		}, first, "", ""},
		"is a roll with another fingerprint": {func(a *account, now *stack.Deployed) {
			a.change.Nodes.Data = "e"
		}, then, "true", ""},
		"is a roll if a subnet is removed": {func(_ *account, now *stack.Deployed) {
			now.Parameters[render.SubnetIDs] = "subnet-1,subnet-3"
		}, then, "true", "2"},
		"is a roll if an older drover deployed the pool": {func(_ *account, now *stack.Deployed) {
			now.Outputs = nil
		}, then, "true", ""},
		"is a roll after a rollback that left a later template": {func(a *account, now *stack.Deployed) {
			now.Status, a.group.TemplateVersion = "UPDATE_ROLLBACK_COMPLETE", "4"
		}, then, "true", "2"},
		"is a roll after a rollback that left a later node": {func(a *account, now *stack.Deployed) {
			now.Status, a.group.Instances[0].TemplateVersion = "UPDATE_ROLLBACK_COMPLETE", "4"
		}, then, "true", "2"},
		"is a roll after a rollback that left an older node": {func(a *account, now *stack.Deployed) {
			now.Status, a.group.Instances[0].TemplateVersion = "UPDATE_ROLLBACK_COMPLETE", "1"
		}, then, "true", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			a := accountInPlace(t)
			now := a.stacks[a.change.StackName]
			if test.given != nil {
				test.given(a, &now)
			}
			a.stacks[a.change.StackName] = now
			require.NoError(t, a.handle(t))
			require.Equal(t, test.want, a.calls)
			last := a.sets[len(a.sets)-1]
			if test.policy == "" {
				require.Equal(t, off, last.parameters)
				return
			}
			require.Equal(t, test.policy, last.parameters[render.ReplaceNodes])
			require.Equal(t, test.since, last.parameters[render.NodesSince])
		})
	}
	t.Run("fails if the group cannot be read", func(t *testing.T) {
		a := accountInPlace(t)
		a.deploy("UPDATE_ROLLBACK_COMPLETE")
		a.failing["group"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
	})
	t.Run("waits for drains before it shrinks the pool", func(t *testing.T) {
		a := accountInPlace(t)
		a.draining()
		a.change.Pace.MaxSize, a.change.Pace.DrainSeconds, a.desired = 2, 3600, []int{3}
		require.NoError(t, a.handle(t))
		require.NotContains(t, a.calls, "execute")
		require.Contains(t, a.status(t).Delay.Message, "the pool shrinks when i-1")
	})
}
