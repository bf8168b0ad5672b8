package handler

// When a change of a pool changes the pace first, when it proceeds, and which changes may replace nodes.

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

var (
	errThrottled = errors.New("throttled")
	errLost      = &fault.LeaseLost{Cause: errors.New("taken over")}
)

func rolling() *render.Pace {
	return &render.Pace{Group: "g", Strategy: api.RollingUpdate, MaxUnavailable: "0", MaxSurge: "1", MinSize: 1, MaxSize: 5}
}

// accountWithPool returns an account whose change updates a pool's stack.
func accountWithPool(t *testing.T, desired ...int) *account {
	a := newAccount(t, plan.Change{
		Stack: "pool-a", StackName: "drover-demo-pool-a", Operation: plan.Update, TemplateKey: "templates/x", Pace: rolling(),
		Reasons: []status.Reason{{Field: "spec.pools[a].instanceTypes"}},
	})
	a.desired = desired
	return a
}

// draining lets an instance of the group be drained.
func (a *account) draining() {
	a.group.Instances = []pool.Instance{{ID: "i-1", State: pool.TerminatingWait}}
}

// deployedFor returns the pool's stack with the pace for a number of nodes.
func deployedFor(desired int) stack.Deployed {
	return stack.Deployed{
		Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagTemplate: "templates/w"}, Parameters: rolling().ForReplacement(desired),
	}
}

func TestPaceBeforeRoll(t *testing.T) {
	changed := []string{"pace", "register", "execute"}
	for name, test := range map[string]struct {
		given func(*account, *stack.Deployed)
		later bool
		err   error
		want  []string
	}{
		"is kept if it is deployed":      {func(p *account, _ *stack.Deployed) { p.desired = []int{2} }, false, nil, nil},
		"is changed first if it differs": {func(*account, *stack.Deployed) {}, true, nil, changed},
		"is kept if CloudFormation finds no change": {func(p *account, _ *stack.Deployed) {
			p.emptyPace = true
		}, false, nil, []string{"pace", "prepare", "pace"}},
		"is changed up to ten times": {func(_ *account, now *stack.Deployed) {
			now.Tags[names.TagPace] = "9 of token"
		}, true, nil, changed},
		"is not changed an eleventh time": {func(_ *account, now *stack.Deployed) {
			now.Tags[names.TagPace] = "10 of token"
		}, false, nil, []string{"prepare"}},
		"does not count what another change did": {func(_ *account, now *stack.Deployed) {
			now.Tags[names.TagPace] = "10 of another"
		}, true, nil, changed},
		"is not changed if the template is unknown": {func(_ *account, now *stack.Deployed) {
			delete(now.Tags, names.TagTemplate)
		}, false, nil, []string{"prepare"}},
		"is not changed if the template has no such parameters": {func(_ *account, now *stack.Deployed) {
			now.Parameters = nil
		}, false, nil, []string{"prepare"}},
		"follows an autoscaler up to three times": {
			func(p *account, now *stack.Deployed) {
				p.desired, now.Tags[names.TagPace] = []int{3, 4, 5, 3, 4}, "10 of token"
			}, false, nil,
			[]string{"prepare", "prepare", "prepare"},
		},
		"waits for drains": {func(p *account, _ *stack.Deployed) {
			p.draining()
			p.failing["drains"] = errThrottled
		}, false, errThrottled, []string{"drains"}},
		"is not changed without the lease": {func(p *account, _ *stack.Deployed) {
			p.failing["lease"] = errLost
		}, false, errLost, []string{"pace"}},
		"is not changed without a waiter": {func(p *account, _ *stack.Deployed) {
			p.failing["register"] = errThrottled
		}, false, errThrottled, []string{"pace", "register"}},
		"fails if the group cannot be read": {func(p *account, _ *stack.Deployed) {
			p.failing["group"] = errThrottled
		}, false, errThrottled, nil},
		"fails if it cannot be prepared": {func(p *account, _ *stack.Deployed) {
			p.failing["pace"] = errThrottled
		}, false, errThrottled, []string{"pace"}},
		"fails if the change cannot be prepared again": {func(p *account, _ *stack.Deployed) {
			p.emptyPace, p.failing["prepare"] = true, errThrottled
		}, false, errThrottled, []string{"pace", "prepare"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := accountWithPool(t, 3), deployedFor(2)
			test.given(p, &now)
			_, later, err := p.newCall().applyPace(t.Context(), now, rolling().ForReplacement(2), stack.ChangeSet{})
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, p.calls)
			if err == nil {
				require.Equal(t, test.later, later)
			}
		})
	}
	t.Run("is counted in a tag each time", func(t *testing.T) {
		for tag, note := range map[string]string{"": "1 of token", "3 of token": "4 of token", "3 of another": "1 of token"} {
			p, now := accountWithPool(t, 3), deployedFor(2)
			now.Tags[names.TagPace] = tag
			_, later, err := p.newCall().applyPace(t.Context(), now, rolling().ForReplacement(2), stack.ChangeSet{})
			require.NoError(t, err)
			require.True(t, later)
			require.Equal(t, note, p.sets[0].note)
		}
	})
	replacing := []stack.ResourceChange{{Type: "AWS::EC2::LaunchTemplate"}}
	for name, test := range map[string]struct {
		status, deployed string
		changes          []stack.ResourceChange
		want             string
	}{
		"replaces no nodes after a rollback that left another template": {"UPDATE_ROLLBACK_COMPLETE", "true", replacing, "false"},
		"may replace nodes if the stack is settled":                     {"UPDATE_COMPLETE", "true", replacing, "true"},
		"may replace nodes if the change does not":                      {"UPDATE_ROLLBACK_COMPLETE", "true", nil, "true"},
		"replaces no nodes after the rollback of a change in place":     {"UPDATE_ROLLBACK_COMPLETE", "false", replacing, "false"},
		"may replace nodes after a change in place":                     {"UPDATE_COMPLETE", "false", replacing, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			p, now := accountWithPool(t, 3), deployedFor(2)
			now.Status, now.Parameters[render.ReplaceNodes] = test.status, test.deployed
			_, later, err := p.newCall().applyPace(t.Context(), now, rolling().ForReplacement(2), stack.ChangeSet{Changes: test.changes})
			require.NoError(t, err)
			require.True(t, later)
			require.Equal(t, test.want, p.sets[0].parameters[render.ReplaceNodes])
		})
	}
}

func TestShrinkingPool(t *testing.T) {
	for name, test := range map[string]struct {
		pace         bool
		size, now    int
		desired      int
		reads, waits bool
	}{
		"waits for drains if it is full":            {pace: true, size: 2, now: 5, desired: 3, reads: true, waits: true},
		"does not wait if it has spare capacity":    {pace: true, size: 3, now: 5, desired: 3, reads: true},
		"reads no group if the size stays the same": {pace: true, size: 5, now: 5, desired: 6},
		"reads no group if the stack is no pool":    {size: 2, now: 5, desired: 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := accountWithPool(t, test.desired)
			p.draining()
			p.failing["drains"] = errThrottled
			c := p.newCall()
			if !test.pace {
				c.change.Pace = nil
			}
			size := func(n int) map[string]string { return map[string]string{render.MaxSize: fmt.Sprint(n)} }
			_, err := c.waitBeforeShrinking(t.Context(), stack.Deployed{Parameters: size(test.now)}, size(test.size))
			require.Equal(t, test.waits, errors.Is(err, errThrottled))
			require.Equal(t, test.reads, p.reads["group"] == 1)
		})
	}
	t.Run("executes nothing while it waits", func(t *testing.T) {
		p := accountWithPool(t, 3)
		p.draining()
		p.change.Pace.MaxSize, p.change.Pace.DrainSeconds = 2, 3600
		p.change.Parameters = []render.Parameter{{Name: render.MaxSize, Value: "2"}}
		p.stacks[p.change.StackName] = deployedFor(3)
		require.NoError(t, p.handle(t))
		require.Equal(t, []string{"prepare", "drains", "status", "resume"}, p.calls)
		require.Equal(t, "the pool shrinks when i-1 has been drained", p.status(t).Delay.Message)
	})
	t.Run("fails if the group cannot be read", func(t *testing.T) {
		p := accountWithPool(t, 3)
		p.failing["group"] = errThrottled
		_, err := p.newCall().waitBeforeShrinking(t.Context(), stack.Deployed{
			Parameters: map[string]string{render.MaxSize: "5"},
		}, map[string]string{render.MaxSize: "2"})
		require.ErrorIs(t, err, errThrottled)
	})
}

func TestMayReplaceNodes(t *testing.T) {
	change := func(kind string, properties ...string) stack.ResourceChange {
		c := stack.ResourceChange{Type: kind, Details: []stack.ChangeDetail{{}}}
		for _, property := range properties {
			c.Details = append(c.Details, stack.ChangeDetail{Property: property})
		}
		return c
	}
	for name, test := range map[string]struct {
		changes []stack.ResourceChange
		want    bool
	}{
		"none":              {nil, false},
		"a launch template": {[]stack.ResourceChange{change("AWS::IAM::Role"), change("AWS::EC2::LaunchTemplate")}, true},
		"instance types":    {[]stack.ResourceChange{change("AWS::AutoScaling::AutoScalingGroup", "MaxSize", "MixedInstancesPolicy")}, true},
		"subnets":           {[]stack.ResourceChange{change("AWS::AutoScaling::AutoScalingGroup", "VPCZoneIdentifier")}, true},
		"sizes":             {[]stack.ResourceChange{change("AWS::AutoScaling::AutoScalingGroup", "MaxSize", "MinSize")}, false},
		"another resource":  {[]stack.ResourceChange{change("AWS::IAM::Role", "VPCZoneIdentifier")}, false},
	} {
		require.Equal(t, test.want, mayReplaceNodes(test.changes), name)
	}
}

func TestMaxSizeOfDeployedPace(t *testing.T) {
	for name, test := range map[string]struct {
		status, tag string
		desired     int
		want        string
	}{
		"is the spec's if the stack is settled":    {"UPDATE_COMPLETE", "", 3, "5"},
		"is kept after a rollback":                 {"UPDATE_ROLLBACK_COMPLETE", "", 3, "9"},
		"is kept while the pace is changed":        {"UPDATE_COMPLETE", "1 of token", 3, "9"},
		"is kept while the group exceeds the spec": {"UPDATE_COMPLETE", "", 6, "9"},
		"grows with the group to the spec's":       {"UPDATE_COMPLETE", "", 5, "6"},
	} {
		now := deployedFor(3)
		now.Status, now.Tags[names.TagPace], now.Parameters[render.MaxSize] = test.status, test.tag, "9"
		require.Equal(t, test.want, replacementPace(rolling(), pool.Group{Desired: test.desired}, now, test.desired)[render.MaxSize], name)
	}
	c := accountWithPool(t).newCall()
	for want, room := range map[string]string{"8": "8", "3": "5"} {
		require.Equal(t, room, c.rollbackPace(pool.Group{Desired: 3}, deployedFor(3), map[string]string{render.MaxSize: want})[render.MaxSize])
	}
	for tag, times := range map[string]int{"": 0, "3 of token": 3, "3 of another": 0, "many of token": 0} {
		require.Equal(t, times, c.paceChanges(stack.Deployed{Tags: map[string]string{names.TagPace: tag}}), tag)
	}
}
