package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestValidateRejects(t *testing.T) {
	const stacks = `must not end in "-node" or "-pool" nor contain "-pool-": its stacks could have the names of another cluster's`
	cases := map[string]struct {
		edits pairs
		want  []string
	}{
		// Names.
		"a name that is not the file's": {
			pairs{"name: demo", "name: other"}, []string{`demo.yaml:4: metadata.name: Invalid value: "other": must be the name of the file, "demo"`},
		},
		"a name that is no DNS label": {
			pairs{"name: demo", "name: Demo_1"}, []string{
				`demo.yaml:4: metadata.name: Invalid value: "Demo_1": must be lower case letters, digits and '-', starting and ending with a ` +
					`letter or digit`, `demo.yaml:4: metadata.name: Invalid value: "Demo_1": must be the name of the file, "demo"`,
			},
		},
		"labels that Kubernetes would not take": {pairs{"name: demo", "name: demo\n  labels: {a/b/c: d, team: \"no spaces\", -x: y}"}, []string{
			`demo.yaml:5: metadata.labels[a/b/c]: Invalid value: "a/b/c": must be a label key, such as "example.com/team"`,
			`demo.yaml:5: metadata.labels[team]: Invalid value: "no spaces": must be letters, digits, '-', '_' and '.', starting and ending ` +
				`with a letter or digit, or empty`,
			`demo.yaml:5: metadata.labels[-x]: Invalid value: "-x": must be a label key, such as "example.com/team"`,
		}},
		"annotations too large": {
			pairs{"name: demo", "name: demo\n  annotations: {a: " + strings.Repeat("x", 256<<10) + "}"}, []string{
				`demo.yaml:5: metadata.annotations: Too long: may not be more than 262144 bytes`,
			},
		},
		"a release with a path": {
			pairs{`"1.36-1"`, `"../1.36-1"`}, []string{
				`demo.yaml:7: spec.release.name: Invalid value: "../1.36-1": must be lower case letters, digits, '-' and '.', starting and ` +
					`ending with a letter or digit`,
			},
		},
		"an unknown template set": {
			pairs{"  tags: {}", "  templateVersion: v9"}, []string{
				`demo.yaml:17: spec.templateVersion: Unsupported value: "v9": supported values: "v1", "v2"`,
			},
		},
		"a template set misspelt": {
			pairs{"  tags: {}", "  templateVersion: \"1\""}, []string{
				`demo.yaml:17: spec.templateVersion: Invalid value: "1": must be a template version, such as "v1"`,
				`demo.yaml:17: spec.templateVersion: Unsupported value: "1": supported values: "v1", "v2"`,
			},
		},
		"a patch version": {
			pairs{"  tags: {}", "  kubernetesVersion: 1.36.2"}, []string{
				`demo.yaml:17: spec.kubernetesVersion: Invalid value: "1.36.2": must be a minor version, such as "1.36"`,
			},
		},
		"a pool listed twice": {
			pairs{"  tags: {}", "    - {name: workers, instanceTypes: [m7i.large], minSize: 0, maxSize: 1}"}, []string{
				`demo.yaml:17: spec.pools[1].name: Duplicate value: "workers"`,
			},
		},
		"a pool that is no label": {
			pairs{"name: workers", "name: work.ers"}, []string{
				`demo.yaml:13: spec.pools[0].name: Invalid value: "work.ers": must be lower case letters, digits and '-', starting and ending ` +
					`with a letter or digit`,
			},
		},
		"a pool's name too long": {
			pairs{"name: workers", "name: " + strings.Repeat("w", 64)}, []string{
				`demo.yaml:13: spec.pools[0].name: Invalid value: "` + strings.Repeat("w", 64) + `": must be no more than 63 characters`,
			},
		},
		"a name with an injection": {
			pairs{"name: workers", `name: "w\" {{ .X }} ${AWS::Region}"`}, []string{
				`demo.yaml:13: spec.pools[0].name: Invalid value: "w\" {{ .X }} ${AWS::Region}": must be lower case letters, digits and '-', ` +
					`starting and ending with a letter or digit`,
			},
		},

		// Network.
		"no network at all": {
			pairs{"    cidr: 10.0.0.0/16\n", "", "    zones: [us-east-1a, us-east-1b]\n", "    natGateways: None\n"}, []string{
				`demo.yaml:8: spec.network.cidr: Required value: unless existing is given`,
				`demo.yaml:8: spec.network.zones: Required value: unless existing is given`,
			},
		},
		"a range that is none": {
			pairs{"10.0.0.0/16", "10.0.0.0"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "10.0.0.0": must be an IPv4 range, such as "10.0.0.0/16"`,
			},
		},
		"a range of IPv6": {
			pairs{"10.0.0.0/16", "fd00::/16"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "fd00::/16": must be an IPv4 range, such as "10.0.0.0/16"`,
			},
		},
		"a range with leading zeros": {
			pairs{"10.0.0.0/16", "10.00.0.0/16"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "10.00.0.0/16": must be an IPv4 range, such as "10.0.0.0/16"`,
			},
		},
		"a range that starts elsewhere": {
			pairs{"10.0.0.0/16", "10.0.1.0/16"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "10.0.1.0/16": must start at the first address of the range: 10.0.0.0/16`,
			},
		},
		"a range too large": {
			pairs{"10.0.0.0/16", "10.0.0.0/8"}, []string{`demo.yaml:9: spec.network.cidr: Invalid value: "10.0.0.0/8": must be between /16 and /24`},
		},
		"a range too small": {
			pairs{"10.0.0.0/16", "10.0.0.0/25"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "10.0.0.0/25": must be between /16 and /24`,
			},
		},
		"a range without hosts": {
			pairs{"10.0.0.0/16", "169.254.0.0/16"}, []string{
				`demo.yaml:9: spec.network.cidr: Invalid value: "169.254.0.0/16": must not overlap with 169.254.0.0/16, whose addresses no host ` +
					`can have`,
			},
		},
		"no room for the zones": {
			pairs{"10.0.0.0/16", "10.0.0.0/24", "us-east-1b", "us-east-1e"}, []string{
				`demo.yaml:10: spec.network.zones[1]: Invalid value: "us-east-1e": a VPC of /24 has room for zones a to d: use a larger cidr`,
			},
		},
		"one zone": {
			pairs{"us-east-1a, ", ""}, []string{`demo.yaml:10: spec.network.zones: Too few: 1: must have at least 2 items`},
		},
		"no zone": {
			pairs{"us-east-1a, us-east-1b", ""}, []string{`demo.yaml:10: spec.network.zones: Too few: 0: must have at least 2 items`},
		},
		"a zone twice": {
			pairs{"us-east-1b", "us-east-1a"}, []string{`demo.yaml:10: spec.network.zones[1]: Duplicate value: "us-east-1a"`},
		},
		"zones of two regions": {
			pairs{"us-east-1b", "us-east-2b"}, []string{
				`demo.yaml:10: spec.network.zones[1]: Invalid value: "us-east-2b": must be in the region of the first zone, us-east-1`,
			},
		},
		"a region, a local zone": {
			pairs{"us-east-1a, us-east-1b", "us-east-1, us-west-2-lax-1a"}, []string{
				`demo.yaml:10: spec.network.zones[0]: Invalid value: "us-east-1": must be an availability zone, such as "us-east-1a"`,
				`demo.yaml:10: spec.network.zones[1]: Invalid value: "us-west-2-lax-1a": must be an availability zone, such as "us-east-1a"`,
			},
		},
		"gateways misspelt": {
			pairs{"    zones:", "    natGateways: perZone\n    zones:"}, []string{
				`demo.yaml:10: spec.network.natGateways: Unsupported value: "perZone": supported values: "PerZone", "Single", "None"`,
			},
		},
		"an existing network and a cidr": {
			pairs{"    zones: [us-east-1a, us-east-1b]", "    natGateways: Single\n    existing: {vpcID: vpc-12345678, subnets: [subnet-12345678, " +
				"subnet-12345679]}"}, []string{
				`demo.yaml:9: spec.network.cidr: Forbidden: drover changes nothing in an existing network: leave it out, or leave out existing`,
				`demo.yaml:10: spec.network.natGateways: Forbidden: drover changes nothing in an existing network: leave it out, or leave out existing`,
			},
		},
		"an existing network misspelt": {
			pairs{"    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]", "    existing: {vpcID: vpc-1, subnets: [subnet-12345678]}"},
			[]string{`demo.yaml:9: spec.network.existing.vpcID: Invalid value: "vpc-1": must be a VPC id, such as "vpc-0123456789abcdef0"`,
				`demo.yaml:9: spec.network.existing.subnets: Too few: 1: must have at least 2 items`},
		},
		"a secondary range that overlaps": {
			pairs{"    zones:", "    secondaryCIDRs: [10.0.128.0/20]\n    zones:"}, []string{
				`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "10.0.128.0/20": overlaps with the cidr of the VPC, 10.0.0.0/16`,
			},
		},
		"secondary ranges that overlap": {
			pairs{"    zones:", "    secondaryCIDRs: [100.64.0.0/16, 100.64.128.0/20]\n    zones:"}, []string{
				`demo.yaml:10: spec.network.secondaryCIDRs[1]: Invalid value: "100.64.128.0/20": overlaps with 100.64.0.0/16`,
			},
		},
		"secondary ranges AWS refuses": {pairs{
			"    zones:", "    secondaryCIDRs: [192.168.0.0/16, 172.16.0.0/16, 198.19.0.0/16, 100.64.0.0/10, 100.64.0.0/26]\n    zones:",
		}, []string{
			`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "192.168.0.0/16": AWS adds no range of 192.168.0.0/16 to a VPC of ` +
				`10.0.0.0/16`,
			`demo.yaml:10: spec.network.secondaryCIDRs[1]: Invalid value: "172.16.0.0/16": AWS adds no range of 172.16.0.0/12 to a VPC of ` +
				`10.0.0.0/16`,
			`demo.yaml:10: spec.network.secondaryCIDRs[2]: Invalid value: "198.19.0.0/16": AWS adds no range of 198.19.0.0/16 to a VPC of ` +
				`10.0.0.0/16`,
			`demo.yaml:10: spec.network.secondaryCIDRs[3]: Invalid value: "100.64.0.0/10": must be between /16 and /25`,
			`demo.yaml:10: spec.network.secondaryCIDRs[4]: Invalid value: "100.64.0.0/26": must be between /16 and /25`,
			`demo.yaml:10: spec.network.secondaryCIDRs[4]: Invalid value: "100.64.0.0/26": overlaps with 100.64.0.0/10`,
		}},
		"secondary ranges of the default VPC": {
			pairs{"10.0.0.0/16", "172.16.0.0/16", "    zones:", "    secondaryCIDRs: [172.31.0.0/16, bad]\n    zones:"}, []string{
				`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "172.31.0.0/16": AWS adds no range of 172.31.0.0/16 to a VPC ` +
					`within 172.16.0.0/12`, `demo.yaml:10: spec.network.secondaryCIDRs[1]: Invalid value: "bad": must be an IPv4 range, such as ` +
					`"10.0.0.0/16"`,
			},
		},
		"secondary ranges AWS keeps": {
			pairs{"10.0.0.0/16", "10.1.0.0/16", "    zones:", "    secondaryCIDRs: [10.0.0.0/16]\n    zones:"}, []string{
				`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "10.0.0.0/16": AWS adds no range of 10.0.0.0/16 to a VPC within ` +
					`10.0.0.0/15`,
			},
		},

		// Control plane.
		"services in the VPC": {
			controlPlane("serviceCIDR: 10.0.16.0/20"), []string{
				`demo.yaml:11: spec.controlPlane.serviceCIDR: Invalid value: "10.0.16.0/20": overlaps with the network's 10.0.0.0/16: choose ` +
					`another range, such as 172.20.0.0/16`,
			},
		},
		"services by default in the VPC": {
			pairs{"10.0.0.0/16", "172.20.0.0/16"}, []string{
				`demo.yaml:11: spec.controlPlane.serviceCIDR: Invalid value: "172.20.0.0/16": the default range of services overlaps with the ` +
					`network's 172.20.0.0/16: set spec.controlPlane.serviceCIDR to another, such as 10.100.0.0/16`,
			},
		},
		"services of the wrong size": {
			controlPlane("serviceCIDR: 172.20.0.0/25"), []string{
				`demo.yaml:11: spec.controlPlane.serviceCIDR: Invalid value: "172.20.0.0/25": must be between /12 and /24`,
			},
		},
		"services with public addresses": {
			controlPlane("serviceCIDR: 100.64.0.0/16"), []string{
				`demo.yaml:11: spec.controlPlane.serviceCIDR: Invalid value: "100.64.0.0/16": must be within 10.0.0.0/8, 172.16.0.0/12 or ` +
					`192.168.0.0/16: choose another range, such as 172.20.0.0/16`,
			},
		},
		"no public endpoint": {
			controlPlane("endpoint: {public: false}"), []string{
				`demo.yaml:11: spec.controlPlane.endpoint.public: Forbidden: drover's functions reach the API through the public endpoint: ` +
					`limit it with publicCIDRs instead`,
			},
		},
		"no endpoint at all": {
			controlPlane("endpoint: {public: false, private: false}"), []string{
				`demo.yaml:11: spec.controlPlane.endpoint.public: Forbidden: drover's functions reach the API through the public endpoint: ` +
					`limit it with publicCIDRs instead`, `demo.yaml:11: spec.controlPlane.endpoint.private: Forbidden: the API would be reachable ` +
					`from nowhere`,
			},
		},
		"nodes locked out by publicCIDRs": {
			controlPlane("endpoint: {private: false, publicCIDRs: [198.51.100.0/24]}"), []string{
				`demo.yaml:11: spec.controlPlane.endpoint.private: Forbidden: nodes reach the public endpoint from the addresses of NAT ` +
					`gateways, which publicCIDRs cannot name before they exist`,
			},
		},
		"nodes locked out without NAT": {
			append(controlPlane("endpoint: {private: false}"), "    zones:", "    natGateways: None\n    zones:"), []string{
				`demo.yaml:12: spec.controlPlane.endpoint.private: Forbidden: without NAT gateways, nodes reach the API through the private ` +
					`endpoint only`,
			},
		},
		"no address may reach it": {
			controlPlane("endpoint: {publicCIDRs: []}"), []string{
				`demo.yaml:11: spec.controlPlane.endpoint.publicCIDRs: Too few: 0: must have at least 1 item`,
			},
		},
		"private addresses in publicCIDRs": {
			controlPlane("endpoint: {publicCIDRs: [10.0.0.0/8, 198.51.100.1]}"), []string{
				`demo.yaml:11: spec.controlPlane.endpoint.publicCIDRs[0]: Invalid value: "10.0.0.0/8": must be addresses of the internet: no ` +
					`request to the public endpoint comes from these; name those of your NAT gateways or your office, as a /32 or larger`,
				`demo.yaml:11: spec.controlPlane.endpoint.publicCIDRs[1]: Invalid value: "198.51.100.1": must be an IPv4 range, such as ` +
					`"10.0.0.0/16"`,
			},
		},
		"logs misspelt and twice": {
			controlPlane("logs: [audit, Audit, audit]"), []string{
				`demo.yaml:11: spec.controlPlane.logs[1]: Unsupported value: "Audit": supported values: "api", "audit", "authenticator", ` +
					`"controllerManager", "scheduler"`, `demo.yaml:11: spec.controlPlane.logs[2]: Duplicate value: "audit"`,
			},
		},
		"a key's alias": {
			controlPlane("encryptionKeyARN: 'arn:aws:kms:us-east-1:111122223333:alias/a'"), []string{
				`demo.yaml:11: spec.controlPlane.encryptionKeyARN: Invalid value: "arn:aws:kms:us-east-1:111122223333:alias/a": must be the ARN ` +
					`of a KMS key (not of an alias), such as "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"`,
			},
		},
		"a key of another region": {
			controlPlane("encryptionKeyARN: 'arn:aws:kms:us-west-2:111122223333:key/a'"), []string{
				`demo.yaml:11: spec.controlPlane.encryptionKeyARN: Invalid value: "arn:aws:kms:us-west-2:111122223333:key/a": must be in the ` +
					`region of the zones, us-east-1`,
			},
		},
		"support misspelt": {
			controlPlane("supportType: STANDARD"), []string{
				`demo.yaml:11: spec.controlPlane.supportType: Unsupported value: "STANDARD": supported values: "Standard", "Extended"`,
			},
		},
		"principals that EKS refuses": {controlPlane("access: [{principalARN: 'arn:aws:sts::111122223333:assumed-role/a/b'}, {principalARN: " +
			"'arn:aws:iam::111122223333:group/a'}, {principalARN: a}]"), []string{
			`demo.yaml:11: spec.controlPlane.access[0].principalARN: Invalid value: "arn:aws:sts::111122223333:assumed-role/a/b": must be ` +
				`the ARN of an IAM role or user, such as "arn:aws:iam::111122223333:role/admins"`,
			`demo.yaml:11: spec.controlPlane.access[1].principalARN: Invalid value: "arn:aws:iam::111122223333:group/a": must be the ARN of ` +
				`an IAM role or user, such as "arn:aws:iam::111122223333:role/admins"`,
			`demo.yaml:11: spec.controlPlane.access[2].principalARN: Invalid value: "a": must be the ARN of an IAM role or user, such as ` +
				`"arn:aws:iam::111122223333:role/admins"`,
		}},
		"a principal twice": {
			controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/a'}, {principalARN: 'arn:aws:iam::111122223333:role/a'}]"),
			[]string{`demo.yaml:11: spec.controlPlane.access[1].principalARN: Duplicate value: "arn:aws:iam::111122223333:role/a"`},
		},
		"a role of drover's": {
			controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/drover-us-east-1-join'}]"), []string{
				`demo.yaml:11: spec.controlPlane.access[0].principalARN: Invalid value: "arn:aws:iam::111122223333:role/drover-us-east-1-join": ` +
					`is a role of drover's own, which has its access already`,
			},
		},
		"reserved groups": {
			controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/a', groups: ['system:masters', 'drover:join', ok, ok]}]"),
			[]string{`demo.yaml:11: spec.controlPlane.access[0].groups[0]: Invalid value: "system:masters": must not start with "system:": ` +
				`EKS and drover keep system:, eks:, aws:, amazon:, iam: and drover: to themselves`, `demo.yaml:11: ` +
				`spec.controlPlane.access[0].groups[1]: Invalid value: "drover:join": must not start with "drover:": EKS and drover keep ` +
				`system:, eks:, aws:, amazon:, iam: and drover: to themselves`, `demo.yaml:11: spec.controlPlane.access[0].groups[3]: ` +
				`Duplicate value: "ok"`},
		},
		"policies by ARN": {
			controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/a', policies: [{name: " +
				"'arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy', namespaces: [A]}]}]"), []string{
				`demo.yaml:11: spec.controlPlane.access[0].policies[0].name: Invalid value: ` +
					`"arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy": must be the name of an EKS access policy, such as ` +
					`"AmazonEKSViewPolicy"`, `demo.yaml:11: spec.controlPlane.access[0].policies[0].namespaces[0]: Invalid value: "A": must be a ` +
					`namespace, or a pattern of them such as "dev-*"`,
			},
		},
		"an access policy twice": {
			controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/a', policies: [{name: AmazonEKSViewPolicy}, {name: " +
				"AmazonEKSViewPolicy}]}]"), []string{
				`demo.yaml:11: spec.controlPlane.access[0].policies[1].name: Duplicate value: "AmazonEKSViewPolicy"`,
			},
		},

		// Pools.
		"min above max": {
			pairs{"minSize: 1", "minSize: 4"}, []string{
				`demo.yaml:15: spec.pools[0].minSize: Invalid value: 4: must be less than or equal to maxSize, 3`,
			},
		},
		"sizes out of bounds": {
			pairs{"minSize: 1", "minSize: -1", "maxSize: 3", "maxSize: 0"}, []string{
				`demo.yaml:15: spec.pools[0].minSize: Invalid value: -1: must be greater than or equal to 0`,
				`demo.yaml:16: spec.pools[0].maxSize: Invalid value: 0: must be greater than or equal to 1`,
			},
		},
		"no instance type": {
			pairs{"[m7i.large]", "[]"}, []string{`demo.yaml:14: spec.pools[0].instanceTypes: Too few: 0: must have at least 1 item`},
		},
		"instance types misspelt": {
			pairs{"[m7i.large]", "[m7i, M7i.large, m7i.large, m7i.large, mac2.metal]"}, []string{
				`demo.yaml:14: spec.pools[0].instanceTypes[0]: Invalid value: "m7i": must be an instance type, such as "m7i.large"`,
				`demo.yaml:14: spec.pools[0].instanceTypes[1]: Invalid value: "M7i.large": must be an instance type, such as "m7i.large"`,
				`demo.yaml:14: spec.pools[0].instanceTypes[3]: Duplicate value: "m7i.large"`,
				`demo.yaml:14: spec.pools[0].instanceTypes[4]: Invalid value: "mac2.metal": EKS runs no nodes on macOS`,
			},
		},
		"Arm's types by default": {
			pairs{"[m7i.large]", "[m7g.large, is4gen.large, a1.large, g5g.xlarge]"}, []string{
				`demo.yaml:14: spec.pools[0].instanceTypes[0]: Invalid value: "m7g.large": is arm64, and the pool is amd64`,
				`demo.yaml:14: spec.pools[0].instanceTypes[1]: Invalid value: "is4gen.large": is arm64, and the pool is amd64`,
				`demo.yaml:14: spec.pools[0].instanceTypes[2]: Invalid value: "a1.large": is arm64, and the pool is amd64`,
				`demo.yaml:14: spec.pools[0].instanceTypes[3]: Invalid value: "g5g.xlarge": is arm64, and the pool is amd64`,
			},
		},
		"Intel's types in Arm's": {
			pool("architecture: arm64"), []string{
				`demo.yaml:14: spec.pools[0].instanceTypes[0]: Invalid value: "m7i.large": is amd64, and the pool is arm64`,
			},
		},
		"an architecture misspelt": {
			pool("architecture: x86_64"), []string{
				`demo.yaml:17: spec.pools[0].architecture: Unsupported value: "x86_64": supported values: "amd64", "arm64"`,
			},
		},
		"spot out of bounds": {
			pool("spot: {onDemandBase: 4, onDemandPercentage: 101}"), []string{
				`demo.yaml:17: spec.pools[0].spot.onDemandBase: Invalid value: 4: must be less than or equal to maxSize, 3`,
				`demo.yaml:17: spec.pools[0].spot.onDemandPercentage: Invalid value: 101: must be less than or equal to 100`,
			},
		},
		"an image that is none": {
			pool("imageID: al2023"), []string{
				`demo.yaml:17: spec.pools[0].imageID: Invalid value: "al2023": must be an AMI id, such as "ami-0123456789abcdef0"`,
			},
		},
		"a volume too small": {
			pool("rootVolume: {sizeGiB: 8, type: st1}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.sizeGiB: Invalid value: 8: must be greater than or equal to 20`,
				`demo.yaml:17: spec.pools[0].rootVolume.type: Unsupported value: "st1": supported values: "gp3", "gp2", "io1", "io2"`,
			},
		},
		"gp2 with what it lacks": {
			pool("rootVolume: {type: gp2, sizeGiB: 20000, iops: 3000, throughput: 125}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.sizeGiB: Invalid value: 20000: must be less than or equal to 16384 for gp2`,
				`demo.yaml:17: spec.pools[0].rootVolume.iops: Forbidden: the IOPS of gp2 follow from its size`,
				`demo.yaml:17: spec.pools[0].rootVolume.throughput: Forbidden: only for gp3`,
			},
		},
		"drains that end before they begin, or after the hook": {pool("drain: {timeout: 59s, podGracePeriod: 0s, loadBalancerWait: 61m}"),
			[]string{
				`demo.yaml:17: spec.pools[0].drain.timeout: Invalid value: "59s": must be between 1m and 47h`,
				`demo.yaml:17: spec.pools[0].drain.podGracePeriod: Invalid value: "0s": must be between 1s and 47h`,
				`demo.yaml:17: spec.pools[0].drain.loadBalancerWait: Invalid value: "61m": must be between 0s and 1h`}},
		"a drain that is over before load balancers know": {pool("drain: {timeout: 5m, onTimeout: Continue, loadBalancerWait: 10m}"), []string{
			`demo.yaml:17: spec.pools[0].drain.loadBalancerWait: Invalid value: "10m": must be less than the timeout (5m), after which ` +
				`onTimeout is Continue: no pod would be evicted before`}},
		"drains longer than a hook": {
			pool("drain: {timeout: 48h}"), []string{`demo.yaml:17: spec.pools[0].drain.timeout: Invalid value: "48h": must be between 1m and 47h`},
		},
		"an update that replaces nothing": {
			pool("update: {maxSurge: 0}"), []string{
				`demo.yaml:17: spec.pools[0].update.maxSurge: Invalid value: 0: cannot be 0 when maxUnavailable is 0: no node could be replaced`,
			},
		},
		"an update of nothing, in percents": {
			pool("update: {maxSurge: 0%, maxUnavailable: 0}"), []string{
				`demo.yaml:17: spec.pools[0].update.maxSurge: Invalid value: 0%: cannot be 0 when maxUnavailable is 0: no node could be replaced`,
			},
		},
		"amounts that are none": {pool("update: {maxSurge: \"2\", maxUnavailable: 101%}"), []string{
			`demo.yaml:17: spec.pools[0].update.maxSurge: Invalid value: "2": must be a number up to 9999 or a percentage up to 100%, such ` +
				`as 2 or "25%"`,
			`demo.yaml:17: spec.pools[0].update.maxUnavailable: Invalid value: "101%": must be a number up to 9999 or a percentage up to ` +
				`100%, such as 2 or "25%"`,
		}},
		"amounts that are none either": {pool("update: {maxSurge: 1.5, maxUnavailable: -1}"), []string{
			`demo.yaml:17: spec.pools[0].update.maxSurge: Invalid value: 1.5: must be a number up to 9999 or a percentage up to 100%, such ` +
				`as 2 or "25%"`,
			`demo.yaml:17: spec.pools[0].update.maxUnavailable: Invalid value: -1: must be a number up to 9999 or a percentage up to 100%, ` +
				`such as 2 or "25%"`,
		}},
		"an order that is none, a strategy misspelt": {pool("update: {order: -1, strategy: Rolling}"), []string{
			`demo.yaml:17: spec.pools[0].update.order: Invalid value: -1: must be greater than or equal to 0`,
			`demo.yaml:17: spec.pools[0].update.strategy: Unsupported value: "Rolling": supported values: "RollingUpdate", "InstanceRefresh"`,
		}},
		"a pause that CloudFormation does not wait for": {
			pool("update: {pauseTime: 31m}"), []string{
				`demo.yaml:17: spec.pools[0].update.pauseTime: Invalid value: "31m": must be at most 30m with the strategy RollingUpdate`,
			},
		},
		"a refresh that takes too much at once": {pool("update: {strategy: InstanceRefresh, maxSurge: 60%, maxUnavailable: 41%, " +
			"pauseTime: 7h}"), []string{
			`demo.yaml:17: spec.pools[0].update.maxSurge: Invalid value: 60%: maxSurge and maxUnavailable (41%) must not be more than 100% ` +
				`together with the strategy InstanceRefresh`,
			`demo.yaml:17: spec.pools[0].update.pauseTime: Invalid value: "7h": must be at most 6h with the strategy InstanceRefresh`,
		}},
		"times that there are not": {
			pool("rollAt: 2026-02-30T00:00:00Z"), []string{
				`demo.yaml:17: spec.pools[0].rollAt: Invalid value: "2026-02-30T00:00:00Z": must be a time that there is, after the year 2000`,
			},
		},
		"a date is no time": {
			pool("rollAt: 2026-02-28"), []string{
				`demo.yaml:17: spec.pools[0].rollAt: Invalid value: "2026-02-28": must be a time of RFC 3339 in whole seconds, such as ` +
					`"2026-11-20T22:00:00Z"`,
			},
		},
		"a readiness of sick nodes": {pool("readiness: {conditions: [DiskPressure, Ready, a b]}"), []string{
			`demo.yaml:17: spec.pools[0].readiness.conditions[0]: Invalid value: "DiskPressure": is True when something is wrong with a node`,
			`demo.yaml:17: spec.pools[0].readiness.conditions[1]: Invalid value: "Ready": is waited for anyway`,
			`demo.yaml:17: spec.pools[0].readiness.conditions[2]: Invalid value: "a b": must be a type of node conditions, such as ` +
				`"example.com/NetworkReady"`,
		}},
		"a readiness that never comes": {
			pool("labels: {a: b}", "readiness: {labels: {a: c}}"), []string{
				`demo.yaml:18: spec.pools[0].readiness.labels[a]: Invalid value: "c": no node would ever be ready: the pool's labels say "b"`,
			},
		},
		"a readiness that is too long": {
			pool("readiness: {conditions: [" + manyConditions(60) + "]}"), []string{
				`demo.yaml:17: spec.pools[0].readiness: Too long: may not be more than 700 bytes`,
			},
		},
		"what is no duration": {
			pool("drain: {timeout: \"60\"}"), []string{
				`demo.yaml:17: spec.pools[0].drain.timeout: Invalid value: "60": must be a duration, such as "90s" or "1h30m"`,
			},
		},
		"gp3 beyond its size": {
			pool("rootVolume: {iops: 25001, throughput: 2000}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.iops: Invalid value: 25001: must be between 3000 and 25000 for gp3 of 50 GiB`,
			},
		},
		"gp3 beyond its IOPS": {
			pool("rootVolume: {throughput: 751}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.throughput: Invalid value: 751: must be less than or equal to 750 with 3000 IOPS: a quarter`,
			},
		},
		"gp3 with few IOPS": {
			pool("rootVolume: {iops: 2999}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.iops: Invalid value: 2999: must be between 3000 and 25000 for gp3 of 50 GiB`,
			},
		},
		"io2 without IOPS": {
			pool("rootVolume: {type: io2}"), []string{`demo.yaml:17: spec.pools[0].rootVolume.iops: Required value: for io2`},
		},
		"io1 beyond its size": {
			pool("rootVolume: {type: io1, iops: 2501}"), []string{
				`demo.yaml:17: spec.pools[0].rootVolume.iops: Invalid value: 2501: must be between 100 and 2500 for io1 of 50 GiB`,
			},
		},
		"labels a kubelet may not set": {pool("labels: {node-role.kubernetes.io/worker: '', topology.kubernetes.io/zone: a, " +
			"node-restriction.kubernetes.io/x: a, k8s.io/a: b, drover.run/pool: a, node.kubernetes.io/ok: a, kubelet.kubernetes.io/ok: " +
			"a, team: a}"), []string{
			`demo.yaml:17: spec.pools[0].labels[node-role.kubernetes.io/worker]: Forbidden: a kubelet may set labels of kubernetes.io and ` +
				`k8s.io only under node.kubernetes.io/ and kubelet.kubernetes.io/`,
			`demo.yaml:17: spec.pools[0].labels[topology.kubernetes.io/zone]: Forbidden: the kubelet sets it`,
			`demo.yaml:17: spec.pools[0].labels[node-restriction.kubernetes.io/x]: Forbidden: a kubelet may set labels of kubernetes.io and ` +
				`k8s.io only under node.kubernetes.io/ and kubelet.kubernetes.io/`,
			`demo.yaml:17: spec.pools[0].labels[k8s.io/a]: Forbidden: a kubelet may set labels of kubernetes.io and k8s.io only under ` +
				`node.kubernetes.io/ and kubelet.kubernetes.io/`,
			`demo.yaml:17: spec.pools[0].labels[drover.run/pool]: Forbidden: drover.run/ is drover's own`,
		}},
		"taints misspelt and twice": {pool("taints: [{key: 'a b', effect: no}, {key: a, effect: NoExecute}, {key: a, value: x, effect: " +
			"NoExecute}, {key: a, effect: NoSchedule}]"), []string{
			`demo.yaml:17: spec.pools[0].taints[0].key: Invalid value: "a b": must be a label key, such as "example.com/team"`,
			`demo.yaml:17: spec.pools[0].taints[0].effect: Unsupported value: "no": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			`demo.yaml:17: spec.pools[0].taints[2]: Duplicate value: "a:NoExecute"`,
		}},
		"too many pods": {
			pool("maxPods: 1001"), []string{`demo.yaml:17: spec.pools[0].maxPods: Invalid value: 1001: must be less than or equal to 1000`},
		},
		"flags that are not the spec's": {pool("kubeletFlags: [-v=2, v=2, --node-labels=a=b, --config=/x, \"--x=2\\n--y\", --v=3, --v=4]"),
			[]string{
				`demo.yaml:17: spec.pools[0].kubeletFlags[0]: Invalid value: "-v=2": must be a flag of the kubelet in one word, such as "--v=2"`,
				`demo.yaml:17: spec.pools[0].kubeletFlags[1]: Invalid value: "v=2": must be a flag of the kubelet in one word, such as "--v=2"`,
				`demo.yaml:17: spec.pools[0].kubeletFlags[2]: Invalid value: "--node-labels=a=b": --node-labels is set by drover: use labels`,
				`demo.yaml:17: spec.pools[0].kubeletFlags[3]: Invalid value: "--config=/x": --config is set by the node's own configuration`,
				`demo.yaml:17: spec.pools[0].kubeletFlags[4]: Invalid value: "--x=2\n--y": must be a flag of the kubelet in one word, such as "--v=2"`,
				`demo.yaml:17: spec.pools[0].kubeletFlags[6]: Duplicate value: "--v"`,
			}},
		"files in impossible places": {pool("files: [{path: a, content: ''}, {path: /a/../b, content: ''}, {path: /c, content: ''}, {path: /c, " +
			"content: ''}, {path: /, content: ''}, {path: /d/, content: '', mode: '0999'}]"), []string{
			`demo.yaml:17: spec.pools[0].files[0].path: Invalid value: "a": must be an absolute path`,
			`demo.yaml:17: spec.pools[0].files[1].path: Invalid value: "/a/../b": must be the shortest form of the path of a file, without ` +
				`'.', '..' and double or trailing slashes`,
			`demo.yaml:17: spec.pools[0].files[3].path: Duplicate value: "/c"`,
			`demo.yaml:17: spec.pools[0].files[4].path: Invalid value: "/": must be an absolute path`,
			`demo.yaml:17: spec.pools[0].files[5].path: Invalid value: "/d/": must be the shortest form of the path of a file, without '.', ` +
				`'..' and double or trailing slashes`,
			`demo.yaml:17: spec.pools[0].files[5].mode: Invalid value: "0999": must be an octal mode, such as "0644"`,
		}},
		"empty commands": {
			pool(`commands: ["", " \n"]`), []string{
				`demo.yaml:17: spec.pools[0].commands[0]: Invalid value: (0 bytes): must be a command of bash, without NUL characters`,
				`demo.yaml:17: spec.pools[0].commands[1]: Invalid value: (2 bytes): must be a command of bash, without NUL characters`,
			},
		},

		// The rest.
		"an add-on twice": {
			pairs{"  tags: {}", "  addons: [{name: a, version: latest}, {name: a}]"}, []string{
				`demo.yaml:17: spec.addons[0].version: Invalid value: "latest": must be the version of an add-on, such as "v1.21.1-eksbuild.1"`,
				`demo.yaml:17: spec.addons[1].name: Duplicate value: "a"`,
			},
		},
		"reserved tags": {pairs{
			"  tags: {}", "  tags: {'aws:x': a, 'Drover:x': a, kubernetes.io/cluster/demo: owned, kubernetes.io/role/elb: a, " +
				"k8s.io/cluster-autoscaler/enabled: a, name: a, 'a#b': c, empty: '', Team: a, team: b}",
		}, []string{
			`demo.yaml:17: spec.tags[aws:x]: Invalid value: "aws:x": must not start with "aws:", which is reserved`,
			`demo.yaml:17: spec.tags[Drover:x]: Invalid value: "Drover:x": must not start with "drover:", which is reserved`,
			`demo.yaml:17: spec.tags[kubernetes.io/cluster/demo]: Invalid value: "kubernetes.io/cluster/demo": must not start with ` +
				`"kubernetes.io/cluster/", which is reserved`,
			`demo.yaml:17: spec.tags[kubernetes.io/role/elb]: Invalid value: "kubernetes.io/role/elb": must not start with ` +
				`"kubernetes.io/role/", which is reserved`,
			`demo.yaml:17: spec.tags[k8s.io/cluster-autoscaler/enabled]: Invalid value: "k8s.io/cluster-autoscaler/enabled": must not start ` +
				`with "k8s.io/cluster-autoscaler/", which is reserved`,
			`demo.yaml:17: spec.tags[name]: Invalid value: "name": is reserved: drover names what it makes`,
			`demo.yaml:17: spec.tags[a#b]: Invalid value: "a#b": must be letters, digits, spaces and _.:/=+-@`,
			`demo.yaml:17: spec.tags[empty]: Invalid value: "": must be letters, digits, spaces and _.:/=+-@, at least one (CloudFormation ` +
				`takes no empty tag)`,
			`demo.yaml:17: spec.tags[team]: Invalid value: "team": differs from "Team" by case only, which IAM does not tell apart`,
		}},
		"long tags": {pairs{"  tags: {}", "  tags: {" + strings.Repeat("k", 129) + ": v, k: " + strings.Repeat("ü", 257) + "}"}, []string{
			`demo.yaml:17: spec.tags[` + strings.Repeat("k", 110) + `…: Invalid value: "` + strings.Repeat("k", 120) +
				`…": must be no more than 128 characters`,
			`demo.yaml:17: spec.tags[k]: Invalid value: "` + strings.Repeat("ü", 120) + `…": must be no more than 256 characters`,
		}},
		"too many tags": {
			pairs{"  tags: {}", "  tags: {" + manyTags(41) + "}"}, []string{`demo.yaml:17: spec.tags: Too many: 41: must have at most 40 items`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, errs := api.ReadCluster("demo.yaml", edit(t, good, c.edits), options)
			require.Nil(t, cluster)
			require.Equal(t, c.want, lines(errs))
		})
	}
	for _, name := range []string{"a-node", "a-pool", "a-pool-b"} {
		t.Run("a name whose stacks could be another cluster's: "+name, func(t *testing.T) {
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, pairs{"name: demo", "name: " + name}), api.Options{})
			require.Equal(t, []string{`demo.yaml:4: metadata.name: Invalid value: "` + name + `": ` + stacks}, lines(errs))
		})
	}
}

func manyConditions(n int) string {
	var conditions []string
	for i := range n {
		conditions = append(conditions, fmt.Sprintf("example.com/%d", i))
	}
	return strings.Join(conditions, ", ")
}

func manyTags(n int) string {
	var tags []string
	for i := range n {
		tags = append(tags, "t"+strings.Repeat("x", i)+": v")
	}
	return strings.Join(tags, ", ")
}

func TestValidateAccepts(t *testing.T) {
	cases := map[string]pairs{
		"the good spec": {},
		"no pools": {
			"  pools:\n    - name: workers\n      instanceTypes: [m7i.large]\n      minSize: 1\n      maxSize: 3\n", "",
		},
		"the smallest VPC":           {"10.0.0.0/16", "10.0.0.0/24", "us-east-1b", "us-east-1d"},
		"regions of every kind":      {"us-east-1a, us-east-1b", "us-gov-west-1a, us-gov-west-1b"},
		"secondary ranges":           {"    zones:", "    secondaryCIDRs: [100.64.0.0/16, 10.5.0.0/16]\n    zones:"},
		"services outside the VPC":   controlPlane("serviceCIDR: 10.1.0.0/24"),
		"a large range of services":  controlPlane("serviceCIDR: 172.16.0.0/12"),
		"a public endpoint for some": controlPlane("endpoint: {publicCIDRs: [198.51.100.0/24, 203.0.113.7/32]}"),
		"a public endpoint only":     controlPlane("endpoint: {private: false}"),
		"users and roles with paths": controlPlane("access: [{principalARN: 'arn:aws-us-gov:iam::111122223333:user/a/b/c@example.com'}, " +
			"{principalARN: 'arn:aws-cn:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_0123456789abcdef'}]"),
		"instance types of many kinds": {
			"[m7i.large]", "[t3.nano, m7i-flex.large, u7i-12tb.224xlarge, x2iedn.metal, i7ie.metal-48xl, p5en.48xlarge, g6e.xlarge, " +
				"trn1n.32xlarge, m8azn.12xlarge]",
		},
		"Arm's types": append(pool("architecture: arm64"), "[m7i.large]",
			"[m8g.metal-24xl, c7gn.large, im4gn.large, hpc7g.4xlarge, x8g.large, i8ge.large]"),
		"names of uncertain kinds": append(pool("architecture: arm64"), "[m7i.large]", "[p6e-gb200.36xlarge]"),
		"volumes at their limits":  pool("rootVolume: {type: io2, sizeGiB: 65536, iops: 256000}"),
		"a drain at its limits": pool("drain: {timeout: 47h, onTimeout: Continue, podGracePeriod: 1s, unmanagedPods: Wait, " +
			"deleteEmptyDirData: false, loadBalancerWait: 0s}"),
		"updates at their limits": pool("update: {strategy: InstanceRefresh, maxSurge: 50%, maxUnavailable: 50%, pauseTime: " +
			"6h, order: 1000}"),
		"updates in numbers":           pool("update: {maxSurge: 0, maxUnavailable: 100%, pauseTime: 30m}"),
		"times in quotes and in zones": pool(`rollAt: "2026-11-20T22:00:00+01:00"`),
		"a readiness": pool("labels: {a: b}",
			"readiness: {labels: {a: b, c: ''}, conditions: [example.com/NetworkReady, Warm]}"),
		"the shortest drain": pool("drain: {timeout: 1m, onTimeout: Force}"),
		"gp3 at its limits":  pool("rootVolume: {sizeGiB: 160, iops: 80000, throughput: 2000}"),
		"labels and taints": pool("labels: {example.com/team: a_b.c, empty: ''}",
			"taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]"),
		"flags with any value": pool(`kubeletFlags: ["--v=2", --fail-swap-on, "--system-reserved=cpu=100m,memory=100Mi"]`),
		"content with anything in it": pool(`files: [{path: "/etc/a b/{{ c }}.conf", mode: "4755", content: "{{ .X }} ${AWS::Region} ` +
			`!Ref &a *b '\"\\\n\t\0"}]`),
		"an empty file":                pool("files: [{path: /a, content: ''}]"),
		"tags with spaces and umlauts": {"  tags: {}", "  tags: {'Kosten Stelle': 'Größe: 1/2 = +a-b_c@d'}"},
		"as many tags as there may be": {"  tags: {}", "  tags: {" + manyTags(40) + "}"},
	}
	for name, edits := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := readCluster(t, edit(t, good, edits))
			require.Nil(t, api.Validate(cluster, options))
		})
	}
}

func TestNamesFitAWS(t *testing.T) {
	cluster, pool := strings.Repeat("c", api.MaxClusterName), strings.Repeat("p", api.MaxPoolName)
	spec := edit(t, good, pairs{"name: demo", "name: " + cluster, "name: workers", "name: " + pool})
	_, errs := api.ReadCluster("a.yaml", spec, api.Options{})
	require.NoError(t, errs.Err())
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
	require.LessOrEqual(t, len("drover-"+cluster+"-pool-"+pool), 128)
	// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
	require.LessOrEqual(t, len("drover-"+cluster), 100)

	_, errs = api.ReadCluster("a.yaml", edit(t, good, pairs{"name: demo", "name: c" + cluster}), api.Options{})
	require.Equal(t, []string{`a.yaml:4: metadata.name: Invalid value: "c` + cluster + `": must be no more than 50 characters`}, lines(errs))
}

func TestReadReportsAllErrors(t *testing.T) {
	_, errs := api.ReadCluster("demo.yaml", edit(t, good, pairs{
		"name: demo", "name: Demo", "cidr: 10.0.0.0/16", "cidr: 10.0.0.0/33", "minSize: 1", "minSize: one", "maxSize: 3", "maxSize: 0\n   " +
			"   size: 3", "zones:", "zones: &z",
	}), options)
	require.Equal(t, []string{
		`demo.yaml:4: metadata.name: Invalid value: "Demo": must be lower case letters, digits and '-', starting and ending with a letter ` +
			`or digit`,
		`demo.yaml:4: metadata.name: Invalid value: "Demo": must be the name of the file, "demo"`,
		`demo.yaml:9: spec.network.cidr: Invalid value: "10.0.0.0/33": must be an IPv4 range, such as "10.0.0.0/16"`,
		`demo.yaml:10: spec.network.zones: Forbidden: anchors and aliases are not allowed: write the value out where it is used`,
		`demo.yaml:15: spec.pools[0].minSize: Invalid value: "one": must be a whole number`,
		`demo.yaml:16: spec.pools[0].maxSize: Invalid value: 0: must be greater than or equal to 1`,
		`demo.yaml:17: spec.pools[0].size: Forbidden: unknown field: the fields here are name, instanceTypes, architecture, minSize, ` +
			`maxSize, spot, imageID, rootVolume, labels, taints, maxPods, kubeletFlags, files, commands, drain, update, rollAt, readiness`,
	}, lines(errs))
}

func TestValidateRelease(t *testing.T) {
	cases := map[string]struct {
		edits pairs
		want  []string
	}{
		"a name that is not the file's": {pairs{`"1.36-1"`, `"1.36-2"`}, []string{`r.yaml:4: metadata.name: Invalid value: "1.36-2": must ` +
			`be the name of the file, "1.36-1"`}},
		"no images": {pairs{"    amd64: ami-0123456789abcdef0\n", "", "images:", "images: {}"}, []string{`r.yaml:7: ` +
			`spec.images: Too few: 0: must have at least 1 item`}},
		"images misspelt": {pairs{"amd64: ami-0123456789abcdef0", "x86_64: latest"}, []string{`r.yaml:8: ` +
			`spec.images[x86_64]: Invalid value: "x86_64": must be amd64 or arm64`, `r.yaml:8: spec.images[x86_64]: Invalid value: "latest": ` +
			`must be an AMI id, such as "ami-0123456789abcdef0"`}},
		"an add-on without a version": {pairs{"      version: v1.13.2-eksbuild.1\n", ""}, []string{`r.yaml:13: spec.addons[1].version: ` +
			`Required value: a release states the versions of its add-ons`}},
		"unknown templates": {pairs{"templateVersion: v1", "templateVersion: v3"}, []string{`r.yaml:15: spec.templateVersion: ` +
			`Unsupported value: "v3": supported values: "v1", "v2"`}},
		"nothing": {pairs{goodRelease[strings.Index(goodRelease, "spec:"):], "spec: {}\n"}, []string{`r.yaml:5: ` +
			`spec.kubernetesVersion: Required value`, `r.yaml:5: spec.images: Required value`, `r.yaml:5: spec.templateVersion: Required value`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			release, errs := api.ReadRelease("r.yaml", edit(t, goodRelease, c.edits), api.Options{Name: "1.36-1",
				TemplateVersions: options.TemplateVersions})
			require.Nil(t, release)
			require.Equal(t, c.want, lines(errs))
			if decoded, errs := api.DecodeRelease("r.yaml", edit(t, goodRelease, c.edits)); errs == nil {
				require.Len(t, api.ValidateRelease(decoded, api.Options{Name: "1.36-1", TemplateVersions: options.TemplateVersions}), len(c.want))
			}
		})
	}
}

func TestValidateVersions(t *testing.T) {
	offered := []string{"1.37", "1.36", "1.9", "1.35"}
	cases := map[string]struct {
		want, current, from string
		errors              []string
	}{
		"a new cluster":                       {"1.36", "", "", nil},
		"the same version":                    {"1.36", "1.36", "", nil},
		"the same version, no longer offered": {"1.30", "1.30", "", nil},
		"the next version":                    {"1.37", "1.36", "", nil},
		"a version that EKS does not offer": {"1.38", "1.37", "", []string{`spec.kubernetesVersion: Unsupported value: "1.38": ` +
			`supported values: "1.9", "1.35", "1.36", "1.37"`}},
		"a new cluster of no version of EKS": {"1.2", "", "", []string{`spec.kubernetesVersion: Unsupported value: "1.2": supported ` +
			`values: "1.9", "1.35", "1.36", "1.37"`}},
		"a downgrade": {"1.35", "1.36", "", []string{`spec.kubernetesVersion: Forbidden: the cluster runs ` +
			`1.36, and Kubernetes is not downgraded: ` + "`drover upgrade demo --rollback` takes an upgrade back"}},
		"a downgrade, compared by number": {"1.9", "1.35", "", []string{`spec.kubernetesVersion: Forbidden: the cluster runs 1.35, ` +
			`and Kubernetes is not downgraded: ` + "`drover upgrade demo --rollback` takes an upgrade back"}},
		"two versions at once": {"1.37", "1.35", "", []string{`spec.kubernetesVersion: Forbidden: the cluster runs ` +
			`1.35, and moves one minor version at a time: the next step is 1.36`}},
		"two at once, and one that is not there": {"1.39", "1.37", "", []string{`spec.kubernetesVersion: Unsupported value: "1.39": ` +
			`supported values: "1.9", "1.35", "1.36", "1.37"`, `spec.kubernetesVersion: Forbidden: the cluster runs 1.37, and moves one ` +
			`minor version at a time: the next step is 1.38`}},
		"two at once, which the release allows": {"1.37", "1.35", "1.35", nil},
		"two at once, and it allows one": {"1.37", "1.35", "1.36", []string{`spec.kubernetesVersion: Forbidden: the cluster runs ` +
			`1.35, and the release may be reached from 1.36 on: upgrade to a release of 1.36 first`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := readCluster(t, []byte(good))
			cluster.Spec.KubernetesVersion = c.want
			require.Equal(t, c.errors, lines(api.ValidateVersions(cluster, offered, c.current, c.from)))
		})
	}
}

func TestErrorsInFindsPositions(t *testing.T) {
	spec := edit(t, good, pairs{"  tags: {}", "  kubernetesVersion: \"1.30\""})
	cluster := readCluster(t, spec)
	errs := api.ValidateVersions(cluster, []string{"1.36"}, "", "").In("demo.yaml", spec)
	require.Equal(t, []string{`demo.yaml:17: spec.kubernetesVersion: Unsupported value: "1.30": supported values: "1.36"`}, lines(errs))

	// A version that the spec does not state is its release's.
	cluster.Spec.KubernetesVersion = "1.35"
	errs = api.ValidateVersions(cluster, []string{"1.36"}, "1.36", "").In("demo.yaml", []byte(good))
	require.Equal(t, []string{
		`demo.yaml:7: spec.release.name: Forbidden: the release's Kubernetes version: Unsupported value: "1.35": supported values: "1.36"`,
		`demo.yaml:7: spec.release.name: Forbidden: the release's Kubernetes version: the cluster runs 1.36, and Kubernetes is not ` +
			`downgraded: ` + "`drover upgrade demo --rollback` takes an upgrade back",
	}, lines(errs))

	cluster.Spec.Pools[0].Labels = map[string]string{"k8s.io/a": "b"} // not in the file: the error gets the pool's position
	require.Equal(t, 13, api.Validate(cluster, options).In("demo.yaml", spec)[0].Line)
}
