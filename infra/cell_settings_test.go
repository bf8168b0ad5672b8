package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// testCellSettings are settings as cdk.json has them.
var testCellSettings = map[string]any{
	"workloadRoles":    []any{"arn:aws:iam::111122223333:role/workloads/*", "arn:aws:iam::111122223333:role/capability-*"},
	"workloadPolicies": []any{"AmazonS3ReadOnlyAccess"},
	"workloadBoundary": "arn:aws:iam::111122223333:policy/workloads",
	"identityCenter":   "arn:aws:sso:::instance/ssoins-0123456789abcdef",
}

// workloadsPolicy is the policy that the settings add to CloudFormation's role.
const workloadsPolicy = "drover-eu-central-1-cloudformation-workloads"

func TestCellSettings(t *testing.T) {
	with, err := synthesize(t.TempDir(), map[string]any{api.CellSettingsContext: testCellSettings})
	require.NoError(t, err)
	const settings = `{"workloadRoles":["arn:aws:iam::111122223333:role/workloads/*","arn:aws:iam::111122223333:role/capability-*"],` +
		`"workloadPolicies":["AmazonS3ReadOnlyAccess"],"workloadBoundary":"arn:aws:iam::111122223333:policy/workloads",` +
		`"identityCenter":"arn:aws:sso:::instance/ssoins-0123456789abcdef"}`
	t.Run("add only one policy and one variable", func(t *testing.T) {
		require.NotContains(t, identities(t).Policies, workloadsPolicy, "no settings")
		got := map[string]bool{}
		for id, r := range with.Resources {
			without, exists := synthesizedStacks.Resources[id]
			if !exists {
				require.Equal(t, "AWS::IAM::ManagedPolicy", r.Type)
				require.Equal(t, workloadsPolicy, with.resolve(r.Properties["ManagedPolicyName"]))
				continue
			}
			if variables, isFunction := r.Properties["Environment"].(map[string]any); isFunction {
				environment := variables["Variables"].(map[string]any)
				if environment["DROVER_CELL_SETTINGS"] != nil {
					got[with.physical(r)] = true
					require.Equal(t, settings, environment["DROVER_CELL_SETTINGS"])
				}
				delete(environment, "DROVER_CELL_SETTINGS")
			}
			if with.physical(r) == "drover-eu-central-1-cloudformation" {
				policies := r.Properties["ManagedPolicyArns"].([]any)
				r.Properties["ManagedPolicyArns"] = policies[:len(policies)-1]
			}
			require.Equal(t, without, r, id)
		}
		require.Len(t, with.Resources, len(synthesizedStacks.Resources)+1)
		require.Equal(t, map[string]bool{
			"drover-admit": true, "drover-plan": true, "drover-publish": true, "drover-sweep": true, "drover-upgrade": true,
		}, got)
	})
	t.Run("fit into a policy", func(t *testing.T) {
		long := api.CellSettings{
			WorkloadBoundary: "arn:aws:iam::111122223333:policy/workloads", IdentityCenter: "arn:aws:sso:::instance/ssoins-0123456789abcdef",
		}
		for len(long.String()) < 1900 {
			long.WorkloadRoles = append(long.WorkloadRoles, "arn:aws-us-gov:iam::111122223333:role/workloads/team-"+strings.Repeat("x", 20))
		}
		size := 0
		for _, g := range workloadGrants(long) {
			const keys = "Effect Allow Action Resource Condition StringEquals iam:PassedToService"
			for _, text := range append(append(g.actions, g.resources...), keys) {
				size += len(text) + 8
			}
		}
		require.Less(t, size, 6144)
	})
	added := with.resourceNamed(t, "AWS::IAM::ManagedPolicy", "ManagedPolicyName", workloadsPolicy)
	body, err := json.MarshalIndent(added["PolicyDocument"], "", " ")
	require.NoError(t, err)
	body = append(body, '\n')
	path := filepath.Join("testdata", "workloads.json")
	if *update {
		require.NoError(t, os.WriteFile(path, body, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(body)), "run make golden and review the difference")

	t.Run("limit what pods get", func(t *testing.T) {
		definitions := identities(t)
		definitions.Policies[workloadsPolicy] = body
		role := definitions.Roles["drover-eu-central-1-cloudformation"]
		role.Managed = append(role.Managed, workloadsPolicy)
		definitions.Roles["drover-eu-central-1-cloudformation"] = role
		s := iam.New(testAccount, testRegion, &clock.Clock{})
		require.NoError(t, s.Load(definitions))
		caller, _, err := s.AssumeRoleAs("arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation", "test",
			"cloudformation.amazonaws.com")
		require.NoError(t, err)
		const (
			roles   = "arn:aws:iam::111122223333:role/"
			own     = roles + "drover/drover-demo-identities-1"
			managed = "arn:aws:iam::aws:policy/"

			clusterARN    = "arn:aws:eks:eu-central-1:111122223333:cluster/"
			capabilityARN = "arn:aws:eks:eu-central-1:111122223333:capability/"
		)
		to := func(service string) map[string]string { return map[string]string{"iam:PassedToService": service} }
		bounded := func(boundary, policy string) map[string]string {
			keys := map[string]string{"iam:PermissionsBoundary": "arn:aws:iam::111122223333:policy/" + boundary}
			if policy != "" {
				keys["iam:PolicyARN"] = managed + policy
			}
			return keys
		}
		decides(t, caller, map[string]decision{
			"passes a role to pods":           {"iam:PassRole", roles + "workloads/checkout", to("pods.eks.amazonaws.com"), true},
			"passes a role to a capability":   {"iam:PassRole", roles + "capability-gitops", to("capabilities.eks.amazonaws.com"), true},
			"makes a capability":              {"eks:CreateCapability", clusterARN + "drover-demo", nil, true},
			"makes no capability of others":   {"eks:CreateCapability", clusterARN + "demo", nil, false},
			"deletes no capability of others": {"eks:DeleteCapability", capabilityARN + "demo/argocd/gitops/1", nil, false},
			"deletes a capability":            {"eks:DeleteCapability", capabilityARN + "drover-demo/argocd/gitops/1", nil, true},
			"makes an application":            {"sso:CreateApplication", "arn:aws:sso:::instance/ssoins-0123456789abcdef", nil, true},
			"makes none in other instances":   {"sso:CreateApplication", "arn:aws:sso:::instance/ssoins-1123456789abcdef", nil, false},
			"deletes no application there": {
				"sso:DeleteApplication", "arn:aws:sso::111122223333:application/ssoins-1123456789abcdef/apl-1", nil, false,
			},
			"passes it to no instance":        {"iam:PassRole", roles + "workloads/checkout", to("ec2.amazonaws.com"), false},
			"passes it to no function":        {"iam:PassRole", roles + "workloads/checkout", to("lambda.amazonaws.com"), false},
			"passes no other role":            {"iam:PassRole", roles + "admin", to("pods.eks.amazonaws.com"), false},
			"reads a role":                    {"iam:GetRole", roles + "workloads/checkout", nil, true},
			"reads no other role":             {"iam:GetRole", roles + "admin", nil, false},
			"changes no role of others":       {"iam:PutRolePolicy", roles + "workloads/checkout", bounded("workloads", ""), false},
			"makes a role for pods":           {"iam:CreateRole", own, bounded("workloads", ""), true},
			"makes none elsewhere":            {"iam:CreateRole", roles + "workloads/x", bounded("workloads", ""), false},
			"attaches a policy":               {"iam:AttachRolePolicy", own, bounded("workloads", "AmazonS3ReadOnlyAccess"), true},
			"attaches no other policy":        {"iam:AttachRolePolicy", own, bounded("workloads", "AdministratorAccess"), false},
			"attaches none of clusters":       {"iam:AttachRolePolicy", own, bounded("workloads", "AmazonEKSClusterPolicy"), false},
			"not to a role of a cluster":      {"iam:AttachRolePolicy", own, bounded(names.Boundary(testRegion), "AmazonS3ReadOnlyAccess"), false},
			"writes no policy into that role": {"iam:PutRolePolicy", own, bounded("workloads", ""), false},
			"detaches a policy":               {"iam:DetachRolePolicy", own, bounded("workloads", "AmazonS3ReadOnlyAccess"), true},
			"detaches none from other roles":  {"iam:DetachRolePolicy", roles + "workloads/x", nil, false},
			"gives no role that boundary":     {"iam:PutRolePermissionsBoundary", own, bounded("workloads", ""), false},
		})
		without, _, err := account(t).AssumeRoleAs("arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation", "test",
			"cloudformation.amazonaws.com")
		require.NoError(t, err)
		decides(t, without, map[string]decision{
			"without settings, detaches a policy":   {"iam:DetachRolePolicy", own, bounded("workloads", "AmazonS3ReadOnlyAccess"), true},
			"without settings, passes no role":      {"iam:PassRole", roles + "workloads/checkout", to("pods.eks.amazonaws.com"), false},
			"without settings, makes no role":       {"iam:CreateRole", own, bounded("workloads", ""), false},
			"without settings, attaches no policy":  {"iam:AttachRolePolicy", own, bounded("workloads", "AmazonS3ReadOnlyAccess"), false},
			"without settings, reads no other role": {"iam:GetRole", roles + "workloads/checkout", nil, false},
		})
	})
}

func TestFindCellSettings(t *testing.T) {
	for name, context := range map[string]any{
		"no object":              7.0,
		"an unknown setting":     map[string]any{"workloadrole": []any{}},
		"another type":           map[string]any{"workloadRoles": "arn:aws:iam::111122223333:role/workloads/*"},
		"no ARN":                 map[string]any{"workloadRoles": []any{"workloads/*"}},
		"every role":             map[string]any{"workloadRoles": []any{"arn:aws:iam::111122223333:role/*"}},
		"roles of clusters":      map[string]any{"workloadRoles": []any{"arn:aws:iam::111122223333:role/drover/*"}},
		"some of drover's":       map[string]any{"workloadRoles": []any{"arn:aws:iam::111122223333:role/dr*"}},
		"a variable":             map[string]any{"workloadRoles": []any{"arn:aws:iam::111122223333:role/${aws:username}"}},
		"policies alone":         map[string]any{"workloadPolicies": []any{"AmazonS3ReadOnlyAccess"}},
		"a policy's ARN":         `{"workloadPolicies": ["arn:aws:iam::aws:policy/x"], "workloadBoundary": "arn:aws:iam::111122223333:policy/x"}`,
		"an instance's name":     map[string]any{"workloadRoles": []any{"arn:aws:iam::111122223333:role/a*"}, "identityCenter": "ssoins-1"},
		"an instance alone":      map[string]any{"identityCenter": "arn:aws:sso:::instance/ssoins-0123456789abcdef"},
		"a boundary's name":      `{"workloadBoundary": "workloads"}`,
		"more than one object":   `{} {}`,
		"more than what fits":    map[string]any{"workloadRoles": longRoles()},
		"a text that is no JSON": "workloads",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := findCellSettings(context)
			require.ErrorContains(t, err, api.CellSettingsContext)
		})
	}
	for _, context := range []any{nil, "", testCellSettings, `{"workloadRoles": ["arn:aws:iam::111122223333:role/workloads/*"]}`} {
		_, err := findCellSettings(context)
		require.NoError(t, err)
	}
}

// longRoles are more roles than settings have room for.
func longRoles() (roles []any) {
	for _, letter := range "wxyz" {
		roles = append(roles, "arn:aws:iam::111122223333:role/"+strings.Repeat(string(letter), 512))
	}
	return roles
}
