package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestControlPlaneSettings(t *testing.T) {
	const at = "f.yaml:9: spec.controlPlane."
	for name, test := range map[string]struct {
		controlPlane string
		want         []string
	}{
		"all settings": {`{tier: tier-xl, zonalShift: false, logRetentionDays: 1, settings: {eventTTL: 1h, nodePorts: 10260-32767, ` +
			`hpaSyncPeriod: 10s, terminatedPodThreshold: 1, scoring: {type: LeastAllocated, weights: {nvidia.com/gpu: 100}}}}`, nil},
		"an unknown tier": {`{tier: xl}`, []string{
			at + `tier: Unsupported value: "xl": supported values: "standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl", "tier-ultra"`,
		}},
		"a duration in two units": {`{settings: {eventTTL: 1h30m}}`, []string{
			at + `settings.eventTTL: Invalid value: "1h30m": must be a duration in one unit, such as "30m"`,
		}},
		"no range": {`{settings: {nodePorts: "30000"}}`, []string{
			at + `settings.nodePorts: Invalid value: "30000": must be a range of ports, such as "30000-32767"`,
		}},
		"a range that ends before it begins": {`{settings: {nodePorts: 31000-30000}}`, []string{
			at + `settings.nodePorts: Invalid value: "31000-30000": must not end before it begins`,
		}},
		"ports beyond 65535": {`{settings: {nodePorts: 31000-70000}}`, []string{
			at + `settings.nodePorts: Invalid value: "31000-70000": must end at 65535 or before`,
		}},
		"a sync period without a tier": {`{settings: {hpaSyncPeriod: 10s}}`, []string{
			at + `settings.hpaSyncPeriod: Forbidden: EKS has it for provisioned control planes only: set tier to one above standard, or remove ` +
				`this field`,
		}},
		"a sync period of standard": {`{tier: standard, settings: {hpaSyncPeriod: 15s}}`, []string{
			at + `settings.hpaSyncPeriod: Forbidden: EKS has it for provisioned control planes only: set tier to one above standard, or remove ` +
				`this field`,
		}},
		"no type of scoring": {`{settings: {scoring: {weights: {cpu: 1}}}}`, []string{at + `settings.scoring.type: Required value`}},
		"a weight beyond 100": {`{settings: {scoring: {type: MostAllocated, weights: {cpu: 101}}}}`, []string{
			at + `settings.scoring.weights[cpu]: Invalid value: 101: must be less than or equal to 100`,
		}},
		"a retention that CloudWatch lacks": {`{logRetentionDays: 100}`, []string{
			at + `logRetentionDays: Invalid value: 100: CloudWatch Logs does not have this retention: use 90 or 120`,
		}},
		"a retention beyond ten years": {`{logRetentionDays: 3654}`, []string{
			at + `logRetentionDays: Invalid value: 3654: must be less than or equal to 3653`,
		}},
		"a provider": {`{securityGroups: [sg-0123456789abcdef0], identityProvider: {issuerURL: "https://login.example.com/a", clientID: k8s, ` +
			`usernameClaim: email, groupsClaim: groups, groupsPrefix: "a:", requiredClaims: {org: a}}}`, nil},
		"a provider without TLS": {`{identityProvider: {issuerURL: "http://a", clientID: k8s}}`, []string{
			at + `identityProvider.issuerURL: Invalid value: "http://a": must be the https URL of an issuer, such as "https://login.example.com"`,
		}},
		"reserved prefixes": {`{identityProvider: {issuerURL: "https://a", clientID: k8s, usernamePrefix: "system:", groupsPrefix: "drover:"}}`,
			[]string{
				at + `identityProvider.usernamePrefix: Invalid value: "system:": must not start with "system:": EKS and drover reserve system:, ` +
					`eks:, aws:, amazon:, iam: and drover:`,
				at + `identityProvider.groupsPrefix: Invalid value: "drover:": must not start with "drover:": EKS and drover reserve system:, ` +
					`eks:, aws:, amazon:, iam: and drover:`,
			}},
		"groups without a prefix": {`{identityProvider: {issuerURL: "https://a", clientID: k8s, groupsClaim: groups}}`, []string{
			at + `identityProvider.groupsPrefix: Required value: groupsClaim needs it: the provider could otherwise give any group, such as ` +
				`drover's`,
		}},
		"subnets without an existing network": {`{subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}`, []string{
			at + `subnets: Forbidden: the network of the cluster has its subnets: remove this field, or use network.existing`,
		}},
		"six groups": {`{securityGroups: [sg-01234560, sg-01234561, sg-01234562, sg-01234563, sg-01234564, sg-01234565]}`, []string{
			at + `securityGroups: Too many: 6: must have at most 5 items`,
		}},
		"a key of another region": {`{logKeyARN: "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"}`, []string{
			at + `logKeyARN: Invalid value: "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab": ` +
				`must be in the region of the zones, us-east-1`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := ReadCluster("f.yaml", []byte(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: r}
  network:
    cidr: 10.0.0.0/16
    zones: [us-east-1a, us-east-1b]
  controlPlane: `+test.controlPlane+"\n"), Options{})
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			require.Equal(t, test.want, texts)
		})
	}
	t.Run("needs 1.31", func(t *testing.T) {
		c := &Cluster{Spec: ClusterSpec{KubernetesVersion: "1.30", ControlPlane: ControlPlane{Settings: ControlPlaneSettings{EventTTL: "30m"}}}}
		errs := validateControlPlane(nil, &c.Spec)
		require.Len(t, errs, 1)
		require.EqualError(t, errs[0], "settings: Forbidden: EKS has settings for Kubernetes 1.31 or newer, and the cluster has 1.30: "+
			"remove them, or upgrade first")
	})
}
