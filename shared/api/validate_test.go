package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// rejection is an edit of a valid spec, with the errors.
type rejection struct {
	edits pairs
	want  []string
}

// ambiguousName is the error of a name whose stacks could be those of another cluster.
const ambiguousName = `must not end in "-node" or "-pool" nor contain "-pool-": its stacks could have the names of another cluster's`

func TestValidateRejects(t *testing.T) {
	for _, cases := range []map[string]rejection{nameRejections, networkRejections, controlPlaneRejections, poolRejections, proxyRejections,
		otherRejections,
	} {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				cluster, errs := api.ReadCluster("demo.yaml", edit(t, good, c.edits), options)
				require.Nil(t, cluster)
				require.Equal(t, c.want, lines(errs))
			})
		}
	}
	for _, name := range []string{"a-node", "a-pool", "a-pool-b"} {
		t.Run("a name whose stacks could be another cluster's: "+name, func(t *testing.T) {
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, pairs{"name: demo", "name: " + name}), api.Options{})
			require.Equal(t, []string{`demo.yaml:4: metadata.name: Invalid value: "` + name + `": ` + ambiguousName}, lines(errs))
		})
	}
}

// nameRejections are about the metadata and the release.
var nameRejections = map[string]rejection{
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
}

// otherRejections are about tags and the rest.
var otherRejections = map[string]rejection{
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
		`demo.yaml:17: spec.tags[name]: Invalid value: "name": is reserved: drover sets this tag`,
		`demo.yaml:17: spec.tags[a#b]: Invalid value: "a#b": must be letters, digits, spaces and _.:/=+-@`,
		`demo.yaml:17: spec.tags[empty]: Invalid value: "": must be letters, digits, spaces and _.:/=+-@, at least one (CloudFormation ` +
			`does not accept empty tags)`,
		`demo.yaml:17: spec.tags[team]: Invalid value: "team": differs from "Team" by case only, which IAM does not distinguish`,
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
		"a private endpoint":         controlPlane("endpoint: {public: false}"),
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
			`maxSize, zones, subnets, securityGroups, spot, image, imageID, rootVolume, volumes, localStorage, labels, tags, taints, ` +
			`maxPods, metadataHopLimit, detailedMonitoring, ` +
			`kubelet, kubeletFlags, proxy, caBundle, files, commands, drain, update, rollAt, readiness`,
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
			`spec.images[x86_64]: Invalid value: "x86_64": must be a kind of image, such as "amd64", "arm64-nvidia", "amd64-neuron" or ` +
			`"bottlerocket-arm64-fips"`, `r.yaml:8: spec.images[x86_64]: Invalid value: "latest": ` +
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
			`1.36, and Kubernetes is not downgraded: ` + "`drover upgrade demo --rollback` rolls an upgrade back"}},
		"a downgrade, compared by number": {"1.9", "1.35", "", []string{`spec.kubernetesVersion: Forbidden: the cluster runs 1.35, ` +
			`and Kubernetes is not downgraded: ` + "`drover upgrade demo --rollback` rolls an upgrade back"}},
		"two versions at once": {"1.37", "1.35", "", []string{`spec.kubernetesVersion: Forbidden: the cluster runs ` +
			`1.35, and moves one minor version at a time: the next step is 1.36`}},
		"two at once, and one that is not there": {"1.39", "1.37", "", []string{`spec.kubernetesVersion: Unsupported value: "1.39": ` +
			`supported values: "1.9", "1.35", "1.36", "1.37"`, `spec.kubernetesVersion: Forbidden: the cluster runs 1.37, and moves one ` +
			`minor version at a time: the next step is 1.38`}},
		"two at once, which the release allows": {"1.37", "1.35", "1.35", nil},
		"two at once, and it allows one": {"1.37", "1.35", "1.36", []string{`spec.kubernetesVersion: Forbidden: the cluster runs ` +
			`1.35, and the release supports upgrades from 1.36 or later: upgrade to a release of 1.36 first`}},
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
			`downgraded: ` + "`drover upgrade demo --rollback` rolls an upgrade back",
	}, lines(errs))

	cluster.Spec.Pools[0].Labels = map[string]string{"k8s.io/a": "b"} // not in the file: the error gets the pool's position
	require.Equal(t, 13, api.Validate(cluster, options).In("demo.yaml", spec)[0].Line)
}
