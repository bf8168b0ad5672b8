package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestAuditOfAConvergingCluster(t *testing.T) {
	in := func(is, message string) *status.Condition {
		return &status.Condition{Type: status.InSync, Status: is, Message: message}
	}
	repair := plan.Plan{Changes: []plan.Change{{Stack: names.ControlPlane, Operation: plan.Update, RepairKey: "k"}}}
	for name, test := range map[string]struct {
		control stack.Deployed
		preview plan.Preview
		eks     eksAnswers
		before  *status.Condition
		calls   []string
		after   string
	}{
		"is about its endpoint": {
			preview: plan.Preview{Access: &openAccess}, eks: eksAnswers{answer: preflight.ControlPlane{Access: closedAccess}},
			calls: []string{"compare", "write"}, after: "False",
		},
		"is recorded once": {
			preview: plan.Preview{Access: &openAccess}, eks: eksAnswers{answer: preflight.ControlPlane{Access: closedAccess}},
			before: in("False", "the API endpoint admits …: "+accessChanged), calls: []string{"compare"}, after: "False",
		},
		"ends when the endpoint is open again": {
			preview: plan.Preview{Access: &openAccess}, eks: eksAnswers{answer: preflight.ControlPlane{Access: openAccess}},
			before: in("False", "the API endpoint admits …: "+accessChanged), calls: []string{"compare", "write"}, after: "True",
		},
		"keeps other findings": {
			preview: plan.Preview{Access: &openAccess}, eks: eksAnswers{answer: preflight.ControlPlane{Access: openAccess}},
			before: in("False", "another"), calls: []string{"compare"}, after: "False",
		},
		"waits for the control plane": {control: stack.Deployed{Status: stack.UpdateInProgress}},
		"knows no access while the plan changes the control plane": {
			eks: eksAnswers{answer: preflight.ControlPlane{Access: closedAccess}}, calls: []string{"compare"},
		},
		"without an EKS cluster": {
			preview: plan.Preview{Access: &openAccess}, eks: eksAnswers{err: codedError("ResourceNotFoundException")}, calls: []string{"compare"},
		},
		"plans again without a relay": {
			preview: plan.Preview{Plan: repair}, calls: []string{"compare", "supersede drover-demo-pool-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{
				preview: test.preview,
				waiters: map[string]store.Waiter{
					"drover-demo-pool-a":        {StackName: "drover-demo-pool-a"},
					"drover-demo-control-plane": {StackName: "drover-demo-control-plane"},
				},
				status: &status.Status{
					Phase: status.Converging, UpdatedAt: noon, Plan: []status.Change{{Stack: names.ControlPlane}, {Stack: "pool-a"}, {Stack: "pool-b"}},
				},
			}
			if test.before != nil {
				a.status.Set(*test.before, noon)
			}
			r := a.run()
			r.EKS, r.Supersede = &test.eks, a
			test.control.Outputs = map[string]string{stack.OutputEndpoint: "https://api"}
			if test.control.Status == "" {
				test.control.Status = stack.UpdateComplete
			}
			r.stacks = map[string]map[string]stack.Deployed{demo: {names.ControlPlane: test.control, "pool-a": {Status: stack.UpdateInProgress}}}
			require.NoError(t, r.startDue(t.Context(), demo, a.status))
			require.Equal(t, test.calls, a.calls)
			after := ""
			if c := a.status.Condition(status.InSync); c != nil {
				after = c.Status
			}
			require.Equal(t, test.after, after)
		})
	}
}
