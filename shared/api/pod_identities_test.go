package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func withIdentities(identities ...string) pairs {
	return pairs{"  controlPlane: {}", "  podIdentities:\n    - " + strings.Join(identities, "\n    - ") + "\n  controlPlane: {}"}
}

const workloads = "arn:aws:iam::111122223333:role/workloads/"

func TestPodIdentitiesAreValidated(t *testing.T) {
	settings, err := api.ParseCellSettings(`{"workloadRoles": ["` + workloads + `*", "arn:aws:iam::111122223333:role/a*b*c"],
		"workloadPolicies": ["AmazonS3ReadOnlyAccess"], "workloadBoundary": "arn:aws:iam::111122223333:policy/workloads"}`)
	require.NoError(t, err)
	settings.Account = "111122223333"
	const at = "demo.yaml:12: spec.podIdentities[0]"
	const account = "namespace: shop, serviceAccount: checkout"
	const ask = " of cellSettings in cdk.json, and deploys drover"
	for name, c := range map[string]struct {
		settings api.CellSettings
		spec     []string
		want     []string
	}{
		"a role":    {settings, []string{"{" + account + ", roleARN: " + workloads + "team/checkout}"}, nil},
		"a pattern": {settings, []string{"{" + account + ", roleARN: arn:aws:iam::111122223333:role/a-1-b-2-c}"}, nil},
		"a target": {
			settings, []string{"{" + account + ", roleARN: " + workloads + "x, targetRoleARN: arn:aws:iam::444455556666:role/y}"}, nil,
		},
		"a policy":    {settings, []string{"{" + account + ", policies: [AmazonS3ReadOnlyAccess]}"}, nil},
		"two presets": {api.CellSettings{}, []string{"{preset: ClusterAutoscaler}", "{preset: LoadBalancerController}"}, nil},
		"nothing":     {settings, []string{"{" + account + "}"}, []string{at + ": Required value: state one of roleARN, policies, preset"}},
		"no account": {settings, []string{"{roleARN: " + workloads + "x}"}, []string{
			at + ".namespace: Required value: unless preset is given", at + ".serviceAccount: Required value: unless preset is given",
		}},
		"two of them": {settings, []string{"{" + account + ", roleARN: " + workloads + "x, preset: ClusterAutoscaler}"}, []string{
			at + ": Forbidden: has 2 of roleARN, policies, preset: a service account has one role; state one of them",
		}},
		"a target alone": {settings, []string{"{preset: ClusterAutoscaler, targetRoleARN: " + workloads + "x}"}, []string{
			at + ".targetRoleARN: Forbidden: EKS assumes it through roleARN: state roleARN, or remove this field",
		}},
		"twice": {settings, []string{
			"{preset: ClusterAutoscaler}", "{namespace: kube-system, serviceAccount: cluster-autoscaler, roleARN: " + workloads + "x}",
		}, []string{`demo.yaml:13: spec.podIdentities[1].serviceAccount: Duplicate value: "kube-system/cluster-autoscaler"`}},
		"no names": {settings, []string{`{namespace: "dev-*", serviceAccount: A, roleARN: x, policies: [], preset: Karpenter}`}, []string{
			at + ": Forbidden: has 3 of roleARN, policies, preset: a service account has one role; state one of them",
			at + `.namespace: Invalid value: "dev-*": must be the name of a namespace, such as "shop"`,
			at + `.serviceAccount: Invalid value: "A": must be the name of a service account: lower case letters, digits, '-' and '.', ` +
				`starting and ending with a letter or digit`,
			at + `.roleARN: Invalid value: "x": must be the ARN of an IAM role, such as "arn:aws:iam::111122223333:role/workloads/checkout"`,
			at + ".policies: Too few: 0: must have at least 1 item",
			at + `.preset: Unsupported value: "Karpenter": supported values: "ClusterAutoscaler", "LoadBalancerController"`,
		}},
		"a role of drover": {settings, []string{"{" + account + ", roleARN: arn:aws:iam::111122223333:role/drover/drover-x}"}, []string{
			at + `.roleARN: Invalid value: "arn:aws:iam::111122223333:role/drover/drover-x": is a role of drover: name a role of your own`,
		}},
		"another role": {settings, []string{"{" + account + ", roleARN: arn:aws:iam::111122223333:role/admin}"}, []string{
			at + `.roleARN: Invalid value: "arn:aws:iam::111122223333:role/admin": the cell allows the roles ` + workloads + `*, ` +
				`arn:aws:iam::111122223333:role/a*b*c: choose another role, or the platform team adds it to workloadRoles` + ask,
		}},
		"a role of another account": {settings, []string{"{" + account + ", roleARN: arn:aws:iam::444455556666:role/workloads/x}"}, []string{
			at + `.roleARN: Invalid value: "arn:aws:iam::444455556666:role/workloads/x": is a role of another account: name one of account ` +
				`111122223333, and the other in targetRoleARN`,
		}},
		"no roles": {api.CellSettings{}, []string{"{" + account + ", roleARN: " + workloads + "x}"}, []string{
			at + ".roleARN: Forbidden: the cell allows no role: the platform team adds roles to workloadRoles" + ask,
		}},
		"another policy": {settings, []string{"{" + account + ", policies: [AmazonS3ReadOnlyAccess, AdministratorAccess]}"}, []string{
			at + `.policies[1]: Invalid value: "AdministratorAccess": the cell allows the policies AmazonS3ReadOnlyAccess: choose another ` +
				`policy, or the platform team adds it to workloadPolicies` + ask,
		}},
		"no policies": {api.CellSettings{}, []string{"{" + account + ", policies: [AmazonS3ReadOnlyAccess]}"}, []string{
			at + ".policies: Forbidden: the cell allows no policy: the platform team sets workloadPolicies and workloadBoundary" + ask +
				"; or name a role in roleARN",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			with := options
			with.Cell = &c.settings
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, withIdentities(c.spec...)), with)
			require.Equal(t, strings.Join(c.want, "\n"), strings.Join(lines(errs), "\n"))
		})
	}
	t.Run("without settings they are not checked, and the cache knows that", func(t *testing.T) {
		spec := edit(t, good, withIdentities("{"+account+", roleARN: arn:aws:iam::111122223333:role/admin}"))
		readCluster(t, spec)
		with := options
		with.Cell = &settings
		_, errs := api.ReadCluster("demo.yaml", spec, with)
		require.Len(t, errs, 1)
	})
}

func TestPresetAccounts(t *testing.T) {
	spec := readCluster(t, edit(t, good, withIdentities("{preset: ClusterAutoscaler}", "{namespace: x, preset: LoadBalancerController}")))
	require.Empty(t, spec.Spec.PodIdentities[0].Namespace, "reading fills in no defaults")
	resolved, errs := api.Resolve(spec, &api.Release{
		Metadata: api.Metadata{Name: spec.Spec.Release.Name}, Spec: api.ReleaseSpec{KubernetesVersion: "1.36", TemplateVersion: "v1",
			Images: map[string]string{"amd64": "ami-0123456789abcdef0", "arm64": "ami-0123456789abcdef0"}},
	})
	require.Empty(t, errs)
	require.Equal(t, []api.PodIdentity{
		{Namespace: "kube-system", ServiceAccount: "cluster-autoscaler", Preset: api.PresetClusterAutoscaler},
		{Namespace: "x", ServiceAccount: "aws-load-balancer-controller", Preset: api.PresetLoadBalancerController},
	}, resolved.Spec.PodIdentities)
}
