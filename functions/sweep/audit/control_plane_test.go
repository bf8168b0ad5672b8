package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
)

// openAccess and closed are accesses to an endpoint.
var openAccess, closedAccess = api.Endpoint{}.Access(), api.Endpoint{PublicCIDRs: []string{"198.51.100.0/24"}}.Access()

func TestAuditComparesTheControlPlane(t *testing.T) {
	endpointMessage := "the API endpoint admits 198.51.100.0/24 and its own network instead of 0.0.0.0/0 and its own network: " +
		"it was changed outside drover"
	for name, test := range map[string]struct {
		deployed string
		eks      eksAnswers
		err      error
		want     []string
	}{
		"as its stack": {deployed: "1.36", eks: eksAnswers{answer: preflight.ControlPlane{Version: "1.36", Access: openAccess}}},
		"endpoint closed": {
			deployed: "1.36", eks: eksAnswers{answer: preflight.ControlPlane{Version: "1.36", Access: closedAccess}},
			want: []string{endpointMessage},
		},
		"upgraded by EKS": {
			deployed: "1.36", eks: eksAnswers{answer: preflight.ControlPlane{Version: "1.37", Access: openAccess}},
			want: []string{"EKS runs Kubernetes 1.37"},
		},
		"deleted": {
			deployed: "1.36", eks: eksAnswers{err: codedError("ResourceNotFoundException")}, want: []string{"EKS has no cluster"},
		},
		"EKS does not answer": {deployed: "1.36", eks: eksAnswers{err: errThrottled}, err: errThrottled},
		"issues, each of them once": {
			deployed: "1.36",
			eks:      eksAnswers{answer: preflight.ControlPlane{Version: "1.36", Access: openAccess, Issues: []string{"role", "key", "role"}}},
			want:     []string{"control plane: key", "control plane: role"},
		},
		"no control plane": {eks: eksAnswers{err: errThrottled}},
	} {
		t.Run(name, func(t *testing.T) {
			r := (&auditFixture{}).run()
			r.EKS = &test.eks
			outputs := map[string]string{"KubernetesVersion": test.deployed}
			r.stacks = map[string]map[string]stack.Deployed{demo: {names.ControlPlane: {Status: "UPDATE_COMPLETE", Outputs: outputs}}}
			findings, err := r.controlPlaneDrift(t.Context(), demo, &openAccess)
			require.ErrorIs(t, err, test.err)
			require.Len(t, findings, len(test.want))
			for i, want := range test.want {
				require.Contains(t, findings[i], want)
			}
			without, err := r.controlPlaneDrift(t.Context(), demo, nil)
			require.ErrorIs(t, err, test.err)
			require.NotContains(t, strings.Join(without, "\n"), "endpoint", "the plan changes the control plane")
		})
	}
}

// eksAnswers is what EKS says of a control plane.
type eksAnswers struct {
	answer preflight.ControlPlane
	err    error
}

func (e *eksAnswers) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	return e.answer, e.err
}

// codedError is an error of AWS.
type codedError string

func (c codedError) Error() string { return string(c) }

func (c codedError) ErrorCode() string { return string(c) }
