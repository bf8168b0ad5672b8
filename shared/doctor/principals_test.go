package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestPrincipalsExist(t *testing.T) {
	const (
		role    = "arn:aws:iam::111122223333:role/admins"
		user    = "arn:aws:iam::111122223333:user/ann"
		foreign = "arn:aws:iam::444455556666:role/admins"
	)
	for name, test := range map[string]struct {
		access []string
		exist  map[string]string
		want   Finding
	}{
		"no entries": {nil, nil, Finding{PrincipalsExist, OK, "the principals of access entries exist", ""}},
		"all exist": {
			[]string{role, user}, map[string]string{
				role: role, user: user,
			}, Finding{PrincipalsExist, OK, "the principals of access entries exist", ""},
		},
		"a role does not exist": {
			[]string{user, role}, map[string]string{user: user}, Finding{PrincipalsExist, Blocks, "demo: " + role + " does not exist",
				"create it, or remove spec.controlPlane.access[1]; `aws iam get-role --role-name admins` shows whether it exists"},
		},
		"a user does not exist": {
			[]string{user}, nil, Finding{PrincipalsExist, Blocks, "demo: " + user + " does not exist",
				"create it, or remove spec.controlPlane.access[0]; `aws iam get-user --user-name ann` shows whether it exists"},
		},
		"a role has a path": {
			[]string{role}, map[string]string{role: "arn:aws:iam::111122223333:role/team/admins"}, Finding{PrincipalsExist, Blocks,
				"demo: " + role + " has another path: it is arn:aws:iam::111122223333:role/team/admins",
				"set spec.controlPlane.access[0].principalARN to arn:aws:iam::111122223333:role/team/admins"},
		},
		"a role of another account is not looked up": {
			[]string{foreign}, nil, Finding{PrincipalsExist, OK,
				"the principals of access entries exist; not checked, because they are in other accounts: 1", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Principals = test.exist
			c := demo(func(s *api.ClusterSpec) {
				for _, principal := range test.access {
					s.ControlPlane.Access = append(s.ControlPlane.Access, api.AccessEntry{PrincipalARN: principal})
				}
			})
			require.Equal(t, []Finding{test.want}, of(Examine(f, []Cluster{c}), PrincipalsExist))
		})
	}
}
