package api_test

// networkRejections are about networks.
var networkRejections = map[string]rejection{
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
			`demo.yaml:9: spec.network.cidr: Invalid value: "169.254.0.0/16": must not overlap with 169.254.0.0/16: hosts cannot have ` +
				`these addresses`,
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
			`demo.yaml:9: spec.network.cidr: Forbidden: drover does not change an existing network: remove this field, or remove existing`,
			`demo.yaml:10: spec.network.natGateways: Forbidden: drover does not change an existing network: remove this field, or remove existing`,
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
		`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "192.168.0.0/16": AWS does not add a range within ` +
			`192.168.0.0/16 to a VPC of 10.0.0.0/16`,
		`demo.yaml:10: spec.network.secondaryCIDRs[1]: Invalid value: "172.16.0.0/16": AWS does not add a range within ` +
			`172.16.0.0/12 to a VPC of 10.0.0.0/16`,
		`demo.yaml:10: spec.network.secondaryCIDRs[2]: Invalid value: "198.19.0.0/16": AWS does not add a range within ` +
			`198.19.0.0/16 to a VPC of 10.0.0.0/16`,
		`demo.yaml:10: spec.network.secondaryCIDRs[3]: Invalid value: "100.64.0.0/10": must be between /16 and /25`,
		`demo.yaml:10: spec.network.secondaryCIDRs[4]: Invalid value: "100.64.0.0/26": must be between /16 and /25`,
		`demo.yaml:10: spec.network.secondaryCIDRs[4]: Invalid value: "100.64.0.0/26": overlaps with 100.64.0.0/10`,
	}},
	"secondary ranges of the default VPC": {
		pairs{"10.0.0.0/16", "172.16.0.0/16", "    zones:", "    secondaryCIDRs: [172.31.0.0/16, bad]\n    zones:"}, []string{
			`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "172.31.0.0/16": AWS does not add a range within 172.31.0.0/16 to a VPC ` +
				`within 172.16.0.0/12`, `demo.yaml:10: spec.network.secondaryCIDRs[1]: Invalid value: "bad": must be an IPv4 range, such as ` +
				`"10.0.0.0/16"`,
		},
	},
	"secondary ranges AWS keeps": {
		pairs{"10.0.0.0/16", "10.1.0.0/16", "    zones:", "    secondaryCIDRs: [10.0.0.0/16]\n    zones:"}, []string{
			`demo.yaml:10: spec.network.secondaryCIDRs[0]: Invalid value: "10.0.0.0/16": AWS does not add a range within ` +
				`10.0.0.0/16 to a VPC within 10.0.0.0/15`,
		},
	},
}

// controlPlaneRejections are about control planes and add-ons.
var controlPlaneRejections = map[string]rejection{
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
	"no endpoint at all": {
		controlPlane("endpoint: {public: false, private: false}"), []string{
			`demo.yaml:11: spec.controlPlane.endpoint.private: Forbidden: the API would be unreachable: set public or private to true`,
		},
	},
	"nodes locked out by publicCIDRs": {
		controlPlane("endpoint: {private: false, publicCIDRs: [198.51.100.0/24]}"), []string{
			`demo.yaml:11: spec.controlPlane.endpoint.private: Forbidden: nodes and drover reach a public endpoint that is not open to ` +
				`everyone from the VPC: leave private on, or add 0.0.0.0/0 to publicCIDRs`,
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
				`is a role of drover, which already has access`,
		},
	},
	"reserved groups": {
		controlPlane("access: [{principalARN: 'arn:aws:iam::111122223333:role/a', groups: ['system:masters', 'drover:join', ok, ok]}]"),
		[]string{`demo.yaml:11: spec.controlPlane.access[0].groups[0]: Invalid value: "system:masters": must not start with "system:": ` +
			`EKS and drover reserve system:, eks:, aws:, amazon:, iam: and drover:`, `demo.yaml:11: ` +
			`spec.controlPlane.access[0].groups[1]: Invalid value: "drover:join": must not start with "drover:": ` +
			`EKS and drover reserve system:, eks:, aws:, amazon:, iam: and drover:`, `demo.yaml:11: ` +
			`spec.controlPlane.access[0].groups[3]: Duplicate value: "ok"`},
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
}
