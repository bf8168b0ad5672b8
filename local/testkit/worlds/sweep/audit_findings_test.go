package sweep_test

// What the audit finds, reports, and leaves to operators.

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	auditing "github.com/drover-run/drover/functions/sweep/audit"
	sweeping "github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// otherStacks modifies the stacks that the audit lists.
type otherStacks struct {
	sweeping.Stacks
	see func(all map[string]stack.Deployed)
}

func (o otherStacks) All(ctx context.Context) (map[string]stack.Deployed, error) {
	all, err := o.Stacks.All(ctx)
	if err == nil {
		o.see(all)
	}
	return all, err
}

// otherGroups modifies the groups that the audit lists.
type otherGroups struct {
	sweeping.Groups
	see func(*pool.Group)
}

func (o otherGroups) All(ctx context.Context) ([]pool.Group, error) {
	all, err := o.Groups.All(ctx)
	for i := range all {
		o.see(&all[i])
	}
	return all, err
}

// otherEKS modifies the control plane that the audit reads.
type otherEKS struct {
	auditing.EKS
	see func(*preflight.ControlPlane)
}

func (o otherEKS) ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error) {
	c, err := o.EKS.ControlPlane(ctx, eksCluster)
	o.see(&c)
	return c, err
}

func TestWorkForOperatorsIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		stack func(*stack.Deployed)
		group func(*pool.Group)
		eks   func(*preflight.ControlPlane)
		says  string
	}{
		"EKS has issues with the control plane": {
			eks: func(c *preflight.ControlPlane) {
				c.Issues = []string{"KmsKeyDisabled: The key is disabled", "Ec2SubnetNotFound: The subnet was deleted"}
			},
			says: "EKS reports an issue with the control plane: Ec2SubnetNotFound: The subnet was deleted\n" +
				"EKS reports an issue with the control plane: KmsKeyDisabled: The key is disabled",
		},
		"CloudFormation's drift detection found a change": {
			stack: func(d *stack.Deployed) { d.Drifted = true },
			says:  "CloudFormation's drift detection found changed resources in stack pool-a",
		},
		"instances of an older launch template": {
			group: func(g *pool.Group) { g.Instances[0].TemplateVersion = "0" },
			says:  "pool a has instances of an older launch template: i-",
		},
		"an instance of an older one is on its way out": {
			group: func(g *pool.Group) {
				g.Instances = append(g.Instances, pool.Instance{ID: "i-old", State: pool.TerminatingWait, TemplateVersion: "0"})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			a.Cluster("demo", "")
			a.Functions.Sweep.Stacks = otherStacks{a.Functions.Sweep.Stacks, func(all map[string]stack.Deployed) {
				if pool := all[names.Stack("demo", "pool-a")]; c.stack != nil {
					c.stack(&pool)
					all[names.Stack("demo", "pool-a")] = pool
				}
			}}
			a.Functions.Sweep.Groups = otherGroups{a.Functions.Sweep.Groups, func(g *pool.Group) {
				if c.group != nil {
					c.group(g)
				}
			}}
			a.Functions.Sweep.EKS = otherEKS{a.Functions.Sweep.EKS, func(p *preflight.ControlPlane) {
				if c.eks != nil {
					c.eks(p)
				}
			}}
			before := converges(a)
			audit(t, a)
			require.Equal(t, before, converges(a), "it repairs nothing")
			require.Equal(t, status.Ready, a.Status("demo").Phase)
			synced := a.Status("demo").Condition(status.InSync)
			if c.says == "" {
				require.True(t, synced == nil || synced.Status == "True", "%v", synced)
				return
			}
			require.NotNil(t, synced)
			require.Equal(t, "False", synced.Status)
			require.Equal(t, status.ReasonDrifted, synced.Reason)
			require.Contains(t, synced.Message, c.says)
			mark := a.Calls.Mark()
			audit(t, a)
			for _, call := range a.Calls.Since(mark) {
				require.False(t, call.Mutating, "recorded once: %s %s", call.Action, call.Resource)
			}
		})
	}
}
