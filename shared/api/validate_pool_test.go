package api_test

import (
	"fmt"
	"strings"
)

// poolRejections are about pools.
var poolRejections = map[string]rejection{
	"zones that the network does not have": {
		pool("zones: [us-east-1a, us-east-1c, us-east-1a, us-east]"), []string{
			`demo.yaml:17: spec.pools[0].zones[1]: Invalid value: "us-east-1c": is none of spec.network.zones (us-east-1a, us-east-1b): add it ` +
				`there, or use one of them`,
			`demo.yaml:17: spec.pools[0].zones[2]: Duplicate value: "us-east-1a"`,
			`demo.yaml:17: spec.pools[0].zones[3]: Invalid value: "us-east": must be an availability zone, such as "us-east-1a"`,
		},
	},
	"no zone": {pool("zones: []"), []string{`demo.yaml:17: spec.pools[0].zones: Too few: 0: must have at least 1 item`}},
	"zones in an existing network": {
		append(pool("zones: [us-east-1a]"), "    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]",
			"    existing: {vpcID: vpc-0123456789abcdef0, subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}"), []string{
			`demo.yaml:16: spec.pools[0].zones: Forbidden: spec.network.existing has subnets, and no zones: remove this field`,
		},
	},
	"subnets and security groups that are wrong": {
		append(pool("subnets: [subnet-1, subnet-0123456789abcdef0, subnet-0123456789abcdef0]", "securityGroups: [sg-1, sg-0123456789abcdef0, "+
			"sg-0123456789abcdef1, sg-0123456789abcdef2, sg-0123456789abcdef3, sg-0123456789abcdef0]"),
			"    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]",
			"    existing: {vpcID: vpc-0123456789abcdef0, subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}"), []string{
			`demo.yaml:16: spec.pools[0].subnets[0]: Invalid value: "subnet-1": must be a subnet id, such as "subnet-0123456789abcdef0"`,
			`demo.yaml:16: spec.pools[0].subnets[2]: Duplicate value: "subnet-0123456789abcdef0"`,
			`demo.yaml:17: spec.pools[0].securityGroups: Too many: 6: must have at most 4 items`,
			`demo.yaml:17: spec.pools[0].securityGroups[0]: Invalid value: "sg-1": must be a security group id, such as "sg-0123456789abcdef0"`,
			`demo.yaml:17: spec.pools[0].securityGroups[5]: Duplicate value: "sg-0123456789abcdef0"`,
		},
	},
	"subnets in a network that drover creates": {
		pool("subnets: [subnet-0123456789abcdef0]"), []string{
			`demo.yaml:17: spec.pools[0].subnets: Forbidden: drover creates the subnets of this network: use zones, or spec.network.existing`,
		},
	},
	"no subnet": {
		append(pool("subnets: []"), "    cidr: 10.0.0.0/16\n    zones: [us-east-1a, us-east-1b]",
			"    existing: {vpcID: vpc-0123456789abcdef0, subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]}"), []string{
			`demo.yaml:16: spec.pools[0].subnets: Too few: 0: must have at least 1 item`,
		},
	},
	"keys of disks that are wrong": {
		pool("rootVolume: {encrypted: false, kmsKeyARN: \"arn:aws:kms:us-east-1:111122223333:key/a\"}", "volumes:",
			"  - {device: /dev/xvdb, sizeGiB: 10, kmsKeyARN: \"arn:aws:kms:eu-west-1:111122223333:key/a\"}",
			"  - {device: /dev/xvdc, sizeGiB: 10, kmsKeyARN: alias/disks}",
			"  - {device: /dev/xvdd, sizeGiB: 10, encrypted: false, kmsKeyARN: \"arn:aws:kms:us-east-1:111122223333:key/a\"}"), []string{
			`demo.yaml:17: spec.pools[0].rootVolume.kmsKeyARN: Forbidden: the disk is not encrypted: remove this field, or set encrypted to true`,
			`demo.yaml:19: spec.pools[0].volumes[0].kmsKeyARN: Invalid value: "arn:aws:kms:eu-west-1:111122223333:key/a": must be in the region ` +
				`of the zones, us-east-1`,
			`demo.yaml:20: spec.pools[0].volumes[1].kmsKeyARN: Invalid value: "alias/disks": must be the ARN of a KMS key (not of an alias), ` +
				`such as "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"`,
			`demo.yaml:21: spec.pools[0].volumes[2].kmsKeyARN: Forbidden: the disk is not encrypted: remove this field, or set encrypted to true`,
		},
	},
	"local storage that does not exist": {
		pool("localStorage: RAID5"), []string{
			`demo.yaml:17: spec.pools[0].localStorage: Unsupported value: "RAID5": supported values: "RAID0", "RAID10", "Mount"`,
		},
	},
	"local storage of Bottlerocket": {
		pool("localStorage: RAID0", "image: {family: Bottlerocket}"), []string{
			`demo.yaml:17: spec.pools[0].localStorage: Forbidden: Bottlerocket does not have it: use a bootstrap command in ` +
				`image.settings.bootstrap-commands that runs apiclient ephemeral-storage`,
		},
	},
	"tags of a pool that are wrong": {
		pool(`tags: {"aws:x": a, Name: b, "a#b": c, ok: "", team: d, TEAM: e}`), []string{
			`demo.yaml:17: spec.pools[0].tags[aws:x]: Invalid value: "aws:x": must not start with "aws:", which is reserved`,
			`demo.yaml:17: spec.pools[0].tags[Name]: Invalid value: "Name": is reserved: drover sets this tag`,
			`demo.yaml:17: spec.pools[0].tags[a#b]: Invalid value: "a#b": must be letters, digits, spaces and _.:/=+-@`,
			`demo.yaml:17: spec.pools[0].tags[ok]: Invalid value: "": must be letters, digits, spaces and _.:/=+-@, at least one ` +
				`(CloudFormation does not accept empty tags)`,
			`demo.yaml:17: spec.pools[0].tags[team]: Invalid value: "team": differs from "TEAM" by case only, which IAM does not distinguish`,
		},
	},
	"tags of a pool that differ from the cluster's by case": {
		append(pool("tags: {Team: a, team: b}"), "  tags: {}", "  tags: {team: c}"), []string{
			`demo.yaml:17: spec.pools[0].tags[Team]: Invalid value: "Team": differs from "team" of spec.tags by case only, which IAM does not ` +
				`distinguish: write both alike`,
			`demo.yaml:17: spec.pools[0].tags[team]: Invalid value: "team": differs from "Team" by case only, which IAM does not distinguish`,
		},
	},
	"more tags with the cluster's than AWS has room for": {
		append(pool("tags: {"+numbered("a", 21)+"}"), "  tags: {}", "  tags: {"+numbered("b", 20)+"}"), []string{
			`demo.yaml:17: spec.pools[0].tags: Invalid value: 21: the resources of the pool would have 41 tags with those of spec.tags, and AWS ` +
				`has room for 40 in addition to drover's: remove some of either`,
		},
	},
	"more tags than AWS has room for": {
		pool("tags: {" + numbered("a", 41) + "}"), []string{`demo.yaml:17: spec.pools[0].tags: Too many: 41: must have at most 40 items`},
	},
	"fields of the kubelet that are not the user's": {
		pool(`kubelet: {maxPods: 5, authentication: {}, registerWithTaints: [], kind: x, "a b": 1, cpuCFSQuota: ~}`), []string{
			`demo.yaml:17: spec.pools[0].kubelet.maxPods: Forbidden: drover sets it: use maxPods of the pool`,
			`demo.yaml:17: spec.pools[0].kubelet.authentication: Forbidden: nodeadm sets it, so that the API server can reach the kubelet: ` +
				`remove it`,
			`demo.yaml:17: spec.pools[0].kubelet.registerWithTaints: Forbidden: drover sets the taints: use taints of the pool`,
			`demo.yaml:17: spec.pools[0].kubelet.kind: Forbidden: nodeadm sets it: remove it`,
			`demo.yaml:17: spec.pools[0].kubelet.a b: Invalid value: "a b": must be a field of KubeletConfiguration, such as evictionHard`,
			`demo.yaml:17: spec.pools[0].kubelet.cpuCFSQuota: Required value: state a value, or remove the field`,
		},
	},
	"a kubelet that is no object": {
		pool("kubelet: [a]"), []string{`demo.yaml:17: spec.pools[0].kubelet: Invalid value: a list: must be an object`},
	},
	"volumes that EC2 does not attach": {
		pool("volumes: [{device: /dev/xvda, sizeGiB: 1}, {device: /dev/xvdb}, {device: /dev/sdb, sizeGiB: 70000}, {device: /dev/xvdb, " +
			"sizeGiB: 8, type: io1}, {device: /dev/xvdc, snapshotID: vol-1}]"), []string{
			`demo.yaml:17: spec.pools[0].volumes[0].device: Invalid value: "/dev/xvda": must be the name of a device, from "/dev/xvdb" to ` +
				`"/dev/xvdz"; the root disk is "/dev/xvda"`,
			`demo.yaml:17: spec.pools[0].volumes[1].sizeGiB: Required value: without a snapshot, whose size would be the default`,
			`demo.yaml:17: spec.pools[0].volumes[2].device: Invalid value: "/dev/sdb": is the same device as /dev/xvdb: choose another letter`,
			`demo.yaml:17: spec.pools[0].volumes[2].sizeGiB: Invalid value: 70000: must be less than or equal to 65536`,
			`demo.yaml:17: spec.pools[0].volumes[2].sizeGiB: Invalid value: 70000: must be less than or equal to 65536 for gp3`,
			`demo.yaml:17: spec.pools[0].volumes[3].iops: Required value: for io1`,
			`demo.yaml:17: spec.pools[0].volumes[3].device: Duplicate value: "/dev/xvdb"`,
			`demo.yaml:17: spec.pools[0].volumes[4].snapshotID: Invalid value: "vol-1": must be a snapshot id, such as "snap-0123456789abcdef0"`,
		},
	},
	"IOPS of volumes out of bounds": {
		pool("volumes: [{device: /dev/xvdb, sizeGiB: 8, iops: 5000}, {device: /dev/xvdc, snapshotID: snap-01234567, iops: 80001}]"), []string{
			`demo.yaml:17: spec.pools[0].volumes[0].iops: Invalid value: 5000: must be between 3000 and 4000 for gp3 of 8 GiB`,
			`demo.yaml:17: spec.pools[0].volumes[1].iops: Invalid value: 80001: must be between 3000 and 80000 for gp3 of 65536 GiB`,
		},
	},
	"volumes that are too small for their type": {
		pool("volumes: [{device: /dev/xvdb, sizeGiB: 3, type: io2, iops: 100}]"), []string{
			`demo.yaml:17: spec.pools[0].volumes[0].sizeGiB: Invalid value: 3: must be greater than or equal to 4 for io2`,
		},
	},
	"more volumes than an instance takes": {
		pool("volumes: [" + disks(11) + "]"), []string{`demo.yaml:17: spec.pools[0].volumes: Too many: 11: must have at most 10 items`},
	},
	"hop limits out of bounds": {
		pool("metadataHopLimit: 3"), []string{`demo.yaml:17: spec.pools[0].metadataHopLimit: Invalid value: 3: must be less than or equal to 2`},
	},
	"no hop": {
		pool("metadataHopLimit: 0"), []string{
			`demo.yaml:17: spec.pools[0].metadataHopLimit: Invalid value: 0: must be greater than or equal to 1`,
		},
	},
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
			`demo.yaml:14: spec.pools[0].instanceTypes[4]: Invalid value: "mac2.metal": EKS does not support macOS nodes`,
		},
	},
	"Arm's types by default": {
		pairs{"[m7i.large]", "[m7g.large, is4gen.large, a1.large, g5g.xlarge]"}, []string{
			`demo.yaml:14: spec.pools[0].instanceTypes[0]: Invalid value: "m7g.large": its architecture is arm64, but the pool's is amd64`,
			`demo.yaml:14: spec.pools[0].instanceTypes[1]: Invalid value: "is4gen.large": its architecture is arm64, but the pool's is amd64`,
			`demo.yaml:14: spec.pools[0].instanceTypes[2]: Invalid value: "a1.large": its architecture is arm64, but the pool's is amd64`,
			`demo.yaml:14: spec.pools[0].instanceTypes[3]: Invalid value: "g5g.xlarge": its architecture is arm64, but the pool's is amd64`,
		},
	},
	"Intel's types in Arm's": {
		pool("architecture: arm64"), []string{
			`demo.yaml:14: spec.pools[0].instanceTypes[0]: Invalid value: "m7i.large": its architecture is amd64, but the pool's is arm64`,
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
			`demo.yaml:17: spec.pools[0].rootVolume.iops: Forbidden: the size of a gp2 volume determines its IOPS: remove this field`,
			`demo.yaml:17: spec.pools[0].rootVolume.throughput: Forbidden: only gp3 volumes have this field: remove it`,
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
	"times that do not exist": {
		pool("rollAt: 2026-02-30T00:00:00Z"), []string{
			`demo.yaml:17: spec.pools[0].rollAt: Invalid value: "2026-02-30T00:00:00Z": must be an existing time after the year 2000`,
		},
	},
	"a date is no time": {
		pool("rollAt: 2026-02-28"), []string{
			`demo.yaml:17: spec.pools[0].rollAt: Invalid value: "2026-02-28": must be a time of RFC 3339 in whole seconds, such as ` +
				`"2026-11-20T22:00:00Z"`,
		},
	},
	"a readiness of sick nodes": {pool("readiness: {conditions: [DiskPressure, Ready, a b]}"), []string{
		`demo.yaml:17: spec.pools[0].readiness.conditions[0]: Invalid value: "DiskPressure": is True when a node has a problem: ` +
			`use a condition that is True when it is healthy`,
		`demo.yaml:17: spec.pools[0].readiness.conditions[1]: Invalid value: "Ready": is redundant: drover always waits for Ready`,
		`demo.yaml:17: spec.pools[0].readiness.conditions[2]: Invalid value: "a b": must be a type of node conditions, such as ` +
			`"example.com/NetworkReady"`,
	}},
	"a readiness that never comes": {
		pool("labels: {a: b}", "readiness: {labels: {a: c}}"), []string{
			`demo.yaml:18: spec.pools[0].readiness.labels[a]: Invalid value: "c": no node would become ready: the pool's labels have the value "b"`,
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
			`demo.yaml:17: spec.pools[0].rootVolume.throughput: Invalid value: 751: must be less than or equal to 750 with 3000 IOPS, ` +
				`which is a quarter of the IOPS`,
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
		`demo.yaml:17: spec.pools[0].labels[topology.kubernetes.io/zone]: Forbidden: the kubelet sets this label: remove it`,
		`demo.yaml:17: spec.pools[0].labels[node-restriction.kubernetes.io/x]: Forbidden: a kubelet may set labels of kubernetes.io and ` +
			`k8s.io only under node.kubernetes.io/ and kubelet.kubernetes.io/`,
		`demo.yaml:17: spec.pools[0].labels[k8s.io/a]: Forbidden: a kubelet may set labels of kubernetes.io and k8s.io only under ` +
			`node.kubernetes.io/ and kubelet.kubernetes.io/`,
		`demo.yaml:17: spec.pools[0].labels[drover.run/pool]: Forbidden: drover reserves labels of drover.run/: choose another prefix`,
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
}

func manyConditions(n int) string {
	var conditions []string
	for i := range n {
		conditions = append(conditions, fmt.Sprintf("example.com/%d", i))
	}
	return strings.Join(conditions, ", ")
}

// numbered returns n tags.
func numbered(prefix string, n int) string {
	var tags []string
	for i := range n {
		tags = append(tags, fmt.Sprintf("%s%d: x", prefix, i))
	}
	return strings.Join(tags, ", ")
}

// disks returns n volumes.
func disks(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{device: /dev/xvd%c, sizeGiB: 8}", 'b'+i))
	}
	return strings.Join(list, ", ")
}
