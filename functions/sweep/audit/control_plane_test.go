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
	for name, test := range map[string]struct {
		deployed string
		eks      eksAnswers
		err      error
		want     []string
	}{
		"with its stack": {"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.36", Access: openAccess}}, nil, nil},
		"whose endpoint was closed": {
			"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.36", Access: closedAccess}}, nil, []string{
				"the API endpoint admits 198.51.100.0/24 and its own network instead of 0.0.0.0/0 and its own network: it was changed outside drover",
			},
		},
		"that EKS moved": {
			"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.37", Access: openAccess}}, nil, []string{"EKS runs Kubernetes 1.37"},
		},
		"that was deleted":             {"1.36", eksAnswers{err: codedError("ResourceNotFoundException")}, nil, []string{"EKS has no cluster"}},
		"not when EKS does not answer": {"1.36", eksAnswers{err: errThrottled}, errThrottled, nil},
		"with its issues, each of them once": {
			"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.36", Access: openAccess, Issues: []string{"role", "key", "role"}}}, nil,
			[]string{"control plane: key", "control plane: role"},
		},
		"not when there is none": {"", eksAnswers{err: errThrottled}, nil, nil},
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
	is    preflight.ControlPlane
	err   error
	asked int
}

func (e *eksAnswers) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	e.asked++
	return e.is, e.err
}

// codedError is an error of AWS.
type codedError string

func (c codedError) Error() string { return string(c) }

func (c codedError) ErrorCode() string { return string(c) }
