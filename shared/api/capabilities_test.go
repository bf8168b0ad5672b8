package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestCapabilitiesAreValidated(t *testing.T) {
	const (
		role     = "arn:aws:iam::111122223333:role/"
		instance = "arn:aws:sso:::instance/ssoins-0123456789abcdef"
		group    = "1234567890-01234567-89ab-cdef-0123-456789abcdef"
		at       = "demo.yaml:12: spec.capabilities[0]"
		ask      = " of cellSettings in cdk.json, and deploys drover"
		argo     = "argoCD: {identityCenterARN: \"" + instance + "\"}"
		gitops   = "name: gitops, type: ArgoCD, roleARN: " + role + "capability-gitops"
	)
	settings, err := api.ParseCellSettings(`{"workloadRoles": ["` + role + `capability-*", "` + role + `workloads/*"], "identityCenter": "` +
		instance + `"}`)
	require.NoError(t, err)
	settings.Account = "111122223333"
	onlyRoles := settings
	onlyRoles.IdentityCenter = ""
	for name, c := range map[string]struct {
		settings api.CellSettings
		spec     []string
		want     []string
	}{
		"of each type": {settings, []string{
			"{" + gitops + ", argoCD: {identityCenterARN: \"" + instance + "\", namespace: gitops, admins: [" + group + "]}}",
			"{name: controllers, type: ACK, roleARN: " + role + "capability-1}", "{name: kro_1, type: KRO, roleARN: " + role + "capability-1}",
		}, nil},
		"two of a type": {settings, []string{
			"{name: a, type: KRO, roleARN: " + role + "capability-1}", "{name: b, type: KRO, roleARN: " + role + "capability-1}",
		}, []string{`demo.yaml:13: spec.capabilities[1].type: Invalid value: "KRO": EKS allows one capability of each type: remove this one ` +
			`or the other`}},
		"a name twice": {settings, []string{
			"{name: a, type: KRO, roleARN: " + role + "capability-1}", "{name: a, type: ACK, roleARN: " + role + "capability-1}",
		}, []string{`demo.yaml:13: spec.capabilities[1].name: Duplicate value: "a"`}},
		"Argo CD without its configuration": {settings, []string{"{" + gitops + "}"}, []string{
			at + ".argoCD: Required value: its users are those of IAM Identity Center: state at least identityCenterARN",
		}},
		"another type with it": {settings, []string{"{name: a, type: KRO, roleARN: " + role + "capability-1, " + argo + "}"}, []string{
			at + ".argoCD: Forbidden: only the type ArgoCD has it: remove this field",
		}},
		"a path": {settings, []string{"{name: a, type: KRO, roleARN: " + role + "workloads/team/graphs}"}, []string{
			at + `.roleARN: Invalid value: "` + role + `workloads/team/graphs": has a path, and CloudFormation accepts no path in the role of a ` +
				`capability: name a role without one, such as ` + role + `graphs`,
		}},
		"another account": {settings, []string{"{name: a, type: KRO, roleARN: arn:aws:iam::444455556666:role/capability-1}"}, []string{
			at + `.roleARN: Invalid value: "arn:aws:iam::444455556666:role/capability-1": is a role of another account, and EKS accepts roles ` +
				`of the cluster's account only: name one of account 111122223333`,
		}},
		"another role": {settings, []string{"{name: a, type: KRO, roleARN: " + role + "admin}"}, []string{
			at + `.roleARN: Invalid value: "` + role + `admin": the cell allows the roles ` + role + `capability-*, ` + role + `workloads/*: ` +
				`choose another role, or the platform team adds it to workloadRoles` + ask,
		}},
		"no roles": {api.CellSettings{}, []string{"{name: a, type: KRO, roleARN: " + role + "capability-1}"}, []string{
			at + ".roleARN: Forbidden: the cell allows no role: the platform team adds roles to workloadRoles" + ask,
		}},
		"no instance": {onlyRoles, []string{"{" + gitops + ", " + argo + "}"}, []string{
			at + ".argoCD.identityCenterARN: Forbidden: the cell allows no instance of IAM Identity Center: the platform team sets identityCenter" +
				ask,
		}},
		"another instance": {settings, []string{"{" + gitops + ", " + strings.Replace(argo, "ssoins-0", "ssoins-1", 1) + "}"}, []string{
			at + `.argoCD.identityCenterARN: Invalid value: "arn:aws:sso:::instance/ssoins-1123456789abcdef": the cell allows the instance ` +
				instance + `: name it, or the platform team changes identityCenter` + ask,
		}},
		"no values": {settings, []string{`{name: "a b", type: Flux, roleARN: x}`}, []string{
			at + `.name: Invalid value: "a b": must be letters, digits, '-' and '_', starting with a letter or digit`,
			at + `.type: Unsupported value: "Flux": supported values: "ArgoCD", "ACK", "KRO"`,
			at + `.roleARN: Invalid value: "x": must be the ARN of an IAM role, such as "arn:aws:iam::111122223333:role/workloads/checkout"`,
		}},
		"wrong values of Argo CD": {settings, []string{
			"{" + gitops + ", argoCD: {identityCenterARN: ssoins-1, namespace: A, admins: [me]}}",
		}, []string{
			at + `.argoCD.identityCenterARN: Invalid value: "ssoins-1": must be the ARN of an instance of IAM Identity Center, such as "` +
				instance + `"`,
			at + `.argoCD.namespace: Invalid value: "A": must be the name of a namespace, such as "shop"`,
			at + `.argoCD.admins[0]: Invalid value: "me": must be the ID of a group of IAM Identity Center, such as "` + group + `"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			with := options
			with.Cell = &c.settings
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, withCapabilities(c.spec...)), with)
			require.Equal(t, strings.Join(c.want, "\n"), strings.Join(lines(errs), "\n"))
		})
	}
}

func withCapabilities(capabilities ...string) pairs {
	return pairs{"  controlPlane: {}", "  capabilities:\n    - " + strings.Join(capabilities, "\n    - ") + "\n  controlPlane: {}"}
}
