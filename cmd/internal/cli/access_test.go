package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/shared/api"
)

func TestPrincipalOf(t *testing.T) {
	for name, test := range map[string]struct {
		caller, role, denied string
		want                 string
		hint                 string
	}{
		"a user with its path": {caller: "arn:aws:iam::111122223333:user/people/anna", want: "arn:aws:iam::111122223333:user/people/anna"},
		"the role of a session, with its path from IAM": {
			caller: "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Admin_0123456789abcdef/anna@example.com",
			role:   "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_0123456789abcdef",
			want:   "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_0123456789abcdef",
		},
		"the role by its name, if access to IAM is denied": {
			caller: "arn:aws-cn:sts::111122223333:assumed-role/ops/anna", denied: "not authorized to perform: iam:GetRole",
			want: "arn:aws-cn:iam::111122223333:role/ops", hint: "If the role has a path, EKS needs it in the ARN, as in role/PATH/ops",
		},
		"no principal for the root user": {caller: "arn:aws:iam::111122223333:root", hint: "neither the root user nor federated ones"},
		"no principal for a federated user": {
			caller: "arn:aws:sts::111122223333:federated-user/anna", hint: "neither the root user nor federated ones",
		},
	} {
		t.Run(name, func(t *testing.T) {
			caller, err := arn.Parse(test.caller)
			require.NoError(t, err)
			principal, hint := PrincipalOf(caller, func(role string) (string, error) {
				require.Equal(t, strings.Split(caller.Resource, "/")[1], role)
				if test.denied != "" {
					return "", errors.New(test.denied)
				}
				return test.role, nil
			})
			require.Equal(t, test.want, principal)
			require.Contains(t, hint, test.hint)
			require.Contains(t, hint, test.denied)
			if test.hint == "" {
				require.Empty(t, hint)
			}
			if principal != "" {
				requireAccess(t, example(t, "clusters/minimal.yaml", "\nspec:\n", "\n"+AccessEntry(principal)), principal)
			}
		})
	}
}

// requireAccess fails unless the spec gives the principal read access.
func requireAccess(t *testing.T, spec, principal string) {
	t.Helper()
	cluster, errs := api.DecodeCluster("demo.yaml", []byte(spec))
	require.Empty(t, errs, spec)
	require.Equal(t, []api.AccessEntry{
		{PrincipalARN: principal, Policies: []api.AccessPolicy{{Name: viewPolicy}}},
	}, cluster.Spec.ControlPlane.Access)
}

// The access entry that `make up` prints is valid in the demo's spec.
func TestAccessLine(t *testing.T) {
	principal := "arn:aws:iam::000000000000:user/admin"
	spec := example(t, "clusters/demo.yaml") + AccessLine(principal) + "\n"
	requireAccess(t, spec, principal)
	r := droverIn(t, nil, "validate", clitest.Write(t, "demo.yaml", spec))
	require.Equal(t, 0, r.Code, r.Stderr)
}

func TestExitCodes(t *testing.T) {
	require.Equal(t, 1, exitCode(errPrinted))
	require.Equal(t, 1, exitCode(errors.New("it blocks")))
	require.Equal(t, 2, exitCode(fmt.Errorf("so: %w", &accessDenied{"not seen"})))
}
