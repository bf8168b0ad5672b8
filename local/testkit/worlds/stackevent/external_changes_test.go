package stackevent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func row(s *status.Status, stack string) status.Stack {
	i := slices.IndexFunc(s.Stacks, func(o status.Stack) bool { return o.Name == stack })
	if i < 0 {
		return status.Stack{}
	}
	return s.Stacks[i]
}

func TestStackDeletedOutside(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	_, err := a.CloudFormation.DeleteStack(t.Context(), a.Admin(), &cloudformation.DeleteStackInput{
		StackName: names.Stack("demo", names.NodeAddons),
	})
	require.NoError(t, err)
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "DELETE_COMPLETE", row(s, names.NodeAddons).Status)
	require.Equal(t, status.Ready, s.Phase)
	in := s.Condition(status.InSync)
	require.NotNil(t, in, "at once, before any sweep")
	require.Equal(t, []string{"False", status.ReasonDrifted, "stack addons-on-nodes is missing"}, []string{in.Status, in.Reason, in.Message})
	notices := func() (n int) {
		for _, notice := range a.Notices() {
			if strings.Contains(notice, "stack addons-on-nodes is missing") {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, notices())

	require.NoError(t, a.SweepNow(), "the next sweep audits the cluster, which repairs it")
	a.Settle()
	s = a.Status("demo")
	require.Equal(t, "CREATE_COMPLETE", row(s, names.NodeAddons).Status)
	require.Equal(t, "True", s.Condition(status.InSync).Status)
	require.Equal(t, status.Ready, s.Phase)
	require.Equal(t, 1, notices(), "the audit found the same")
	dues, err := a.State().List(t.Context(), names.Dues)
	require.NoError(t, err)
	require.Empty(t, dues)
}

// The next sweep compares a cluster with its spec after an external update of a stack. The cluster is in sync again if it matches.
func TestStackUpdatedOutside(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	require.NoError(t, a.Retag(names.Stack("demo", names.Addons), func(tags map[string]string) { tags["owner"] = "external" }))
	a.Settle()
	require.Contains(t, a.Status("demo").Condition(status.InSync).Message,
		"stack addons: an operation outside drover ended with UPDATE_COMPLETE")
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Equal(t, "True", a.Status("demo").Condition(status.InSync).Status, a.Status("demo").Condition(status.InSync).Message)
}

// The status of a stack is updated while the stack changes.
func TestStackThatChanges(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" && !strings.Contains(string(e.Detail), "_IN_PROGRESS") {
			return harness.Held
		}
		return harness.Delivered
	})
	time.Sleep(1100 * time.Millisecond) // events carry whole seconds
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	a.Until("the network's last event is held", func() bool { return len(a.Events.Held()) > 0 && a.Idle() })
	require.Contains(t, row(a.Status("demo"), names.Network).Status, "_IN_PROGRESS")
	require.False(t, row(a.Status("demo"), names.Network).External)
}
