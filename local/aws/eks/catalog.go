package eks

// The catalog of add-ons: names, versions, compatibility, and workloads.

import (
	"context"
	"slices"

	"github.com/drover-run/drover/local/aws/iam"
)

// catalogAddon is an add-on of the catalog.
type catalogAddon struct {
	name, kind, namespace string
	versions              []addonVersion // newest first
	workloads             []workload
	// providesNetwork reports whether nodes are NotReady without the add-on.
	providesNetwork bool
	needsPermission bool
}

// addonVersion fits a range of Kubernetes minor versions.
type addonVersion struct{ version, from, to string }

// catalog is a part of AWS's catalog. https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
var catalog = []catalogAddon{
	{
		name: "vpc-cni", kind: "networking", namespace: "kube-system", providesNetwork: true, needsPermission: true,
		versions: []addonVersion{
			{"v1.21.1-eksbuild.1", "1.31", "1.37"}, {"v1.20.4-eksbuild.2", "1.31", "1.36"}, {"v1.20.0-eksbuild.1", "1.31", "1.34"},
		},
		workloads: []workload{{
			kind: daemonSet, name: "aws-node", images: []string{"amazon-k8s-cni", "amazon/aws-network-policy-agent"}, hostNetwork: true,
			cpuMilli: 25, priority: "system-node-critical",
		}},
	},
	{
		// Each version fits its own minor and the next three, as AWS lists them: https://github.com/awsdocs/amazon-eks-user-guide/issues/790
		name: "kube-proxy", kind: "networking", namespace: "kube-system",
		versions: []addonVersion{
			{"v1.37.0-eksbuild.1", "1.37", "1.40"},
			{"v1.36.1-eksbuild.2", "1.36", "1.39"}, {"v1.36.0-eksbuild.1", "1.36", "1.39"},
			{"v1.35.3-eksbuild.2", "1.35", "1.38"}, {"v1.34.5-eksbuild.2", "1.34", "1.37"}, {"v1.33.8-eksbuild.2", "1.33", "1.36"},
			{"v1.32.11-eksbuild.2", "1.32", "1.35"}, {"v1.31.14-eksbuild.2", "1.31", "1.34"},
		},
		workloads: []workload{{
			kind: daemonSet, name: "kube-proxy", images: []string{"eks/kube-proxy"}, hostNetwork: true, cpuMilli: 100,
			priority: "system-node-critical",
			labels:   map[string]any{"k8s-app": "kube-proxy"},
		}},
	},
	{
		name: "coredns", kind: "networking", namespace: "kube-system",
		versions: []addonVersion{
			{"v1.14.0-eksbuild.1", "1.36", "1.37"}, {"v1.13.2-eksbuild.1", "1.34", "1.37"}, {"v1.12.4-eksbuild.1", "1.33", "1.36"},
			{"v1.11.4-eksbuild.24", "1.31", "1.33"},
		},
		workloads: []workload{{
			kind: deployment, name: "coredns", replicas: 2, images: []string{"eks/coredns"}, cpuMilli: 100, memoryMiB: 70,
			priority: "system-cluster-critical",
			labels:   map[string]any{"k8s-app": "kube-dns"}, budget: true, dnsService: true,
		}},
	},
	{
		name: "eks-pod-identity-agent", kind: "security", namespace: "kube-system",
		versions: []addonVersion{{"v1.3.10-eksbuild.1", "1.31", "1.37"}, {"v1.3.9-eksbuild.3", "1.31", "1.36"}},
		workloads: []workload{
			{kind: daemonSet, name: "eks-pod-identity-agent", images: []string{
				"eks/eks-pod-identity-agent",
			}, hostNetwork: true, priority: "system-node-critical"},
		},
	},
	{
		name: "aws-ebs-csi-driver", kind: "storage", namespace: "kube-system", needsPermission: true,
		versions: []addonVersion{{"v1.55.0-eksbuild.1", "1.31", "1.37"}, {"v1.54.0-eksbuild.1", "1.31", "1.36"}},
		workloads: []workload{
			{kind: deployment, name: "ebs-csi-controller", replicas: 2, images: []string{
				"eks/aws-ebs-csi-driver", "eks/csi-provisioner", "eks/csi-attacher", "eks/csi-resizer",
			}, cpuMilli: 10, memoryMiB: 40, priority: "system-cluster-critical", budget: true},
			{kind: daemonSet, name: "ebs-csi-node", images: []string{
				"eks/aws-ebs-csi-driver", "eks/csi-node-driver-registrar",
			}, cpuMilli: 10, memoryMiB: 40, priority: "system-node-critical"},
		},
	},
	{
		name: "aws-efs-csi-driver", kind: "storage", namespace: "kube-system", needsPermission: true,
		versions: []addonVersion{{"v2.1.15-eksbuild.1", "1.31", "1.37"}},
		workloads: []workload{
			{kind: deployment, name: "efs-csi-controller", replicas: 2, images: []string{"eks/aws-efs-csi-driver"}, budget: true},
		},
	},
	{
		name: "external-dns", kind: "networking", namespace: "external-dns", needsPermission: true,
		versions:  []addonVersion{{"v0.20.0-eksbuild.1", "1.31", "1.37"}},
		workloads: []workload{{kind: deployment, name: "external-dns", replicas: 1, images: []string{"eks/external-dns"}}},
	},
	{
		name: "metrics-server", kind: "observability", namespace: "kube-system",
		versions: []addonVersion{{"v0.8.1-eksbuild.1", "1.31", "1.37"}, {"v0.8.0-eksbuild.3", "1.31", "1.36"}},
		workloads: []workload{
			{kind: deployment, name: "metrics-server", replicas: 2, images: []string{
				"eks/metrics-server",
			}, cpuMilli: 100, memoryMiB: 200, priority: "system-cluster-critical", budget: true},
		},
	},
	{
		name: "snapshot-controller", kind: "storage", namespace: "kube-system",
		versions: []addonVersion{{"v8.4.0-eksbuild.1", "1.31", "1.37"}, {"v8.3.0-eksbuild.1", "1.31", "1.36"}},
		workloads: []workload{
			{kind: deployment, name: "snapshot-controller", replicas: 2, images: []string{"eks/snapshot-controller"}, budget: true},
		},
	},
}

func findCatalogAddon(name string) (catalogAddon, error) {
	i := slices.IndexFunc(catalog, func(a catalogAddon) bool { return a.name == name })
	if i < 0 {
		return catalogAddon{}, invalid("Addon %s specified is not supported", name)
	}
	return catalog[i], nil
}

func (v addonVersion) fits(minor string) bool {
	n := minorNumber(minor)
	return n >= minorNumber(v.from) && n <= minorNumber(v.to)
}

// newestFor returns the default version for a Kubernetes minor, or an empty string if none fits.
func (a catalogAddon) newestFor(minor string) string {
	for _, v := range a.versions {
		if v.fits(minor) {
			return v.version
		}
	}
	return ""
}

// check returns an error unless a version of the add-on exists and fits a minor.
func (a catalogAddon) check(version, minor string) error {
	for _, v := range a.versions {
		if v.version == version {
			if v.fits(minor) {
				return nil
			}
			return invalid("Addon version %s of %s is not supported for Kubernetes version %s", version, a.name, minor)
		}
	}
	return invalid("Addon version specified is not supported: %s has no version %q", a.name, version)
}

// DescribeAddonVersionsInput of the API.
type DescribeAddonVersionsInput struct {
	AddonName, KubernetesVersion string
	Owners, Publishers, Types    []string
	Page
}

// DescribeAddonVersionsOutput of the API.
type DescribeAddonVersionsOutput struct {
	Addons    []AddonInfo `json:"addons"`
	NextToken *string     `json:"nextToken"`
}

// AddonInfo is an add-on of the catalog.
type AddonInfo struct {
	AddonName        string         `json:"addonName"`
	Type             string         `json:"type"`
	Owner            string         `json:"owner"`
	Publisher        string         `json:"publisher"`
	DefaultNamespace string         `json:"defaultNamespace"`
	AddonVersions    []AddonVersion `json:"addonVersions"`
}

// AddonVersion of an add-on.
type AddonVersion struct {
	AddonVersion           string          `json:"addonVersion"`
	Architecture           []string        `json:"architecture"`
	ComputeTypes           []string        `json:"computeTypes"`
	Compatibilities        []Compatibility `json:"compatibilities"`
	RequiresConfiguration  bool            `json:"requiresConfiguration"`
	RequiresIAMPermissions bool            `json:"requiresIamPermissions"`
}

// Compatibility with one Kubernetes version.
type Compatibility struct {
	ClusterVersion   string   `json:"clusterVersion"`
	PlatformVersions []string `json:"platformVersions"`
	DefaultVersion   bool     `json:"defaultVersion"`
}

// DescribeAddonVersions returns the catalog.
func (s *Service) DescribeAddonVersions(_ context.Context, caller iam.Caller,
	in DescribeAddonVersionsInput) (*DescribeAddonVersionsOutput, error) {
	if err := caller.Authorize("eks:DescribeAddonVersions", "*", nil); err != nil {
		return nil, err
	}
	allows := func(wanted []string, value string) bool { return len(wanted) == 0 || slices.Contains(wanted, value) }
	out := &DescribeAddonVersionsOutput{Addons: []AddonInfo{}}
	for _, a := range catalog {
		if in.AddonName != "" && in.AddonName != a.name || !allows(in.Types, a.kind) || !allows(in.Owners, "aws") ||
			!allows(in.Publishers, "eks") {
			continue
		}
		info := AddonInfo{AddonName: a.name, Type: a.kind, Owner: "aws", Publisher: "eks", DefaultNamespace: a.namespace}
		for _, v := range a.versions {
			listed := AddonVersion{
				AddonVersion: v.version, Architecture: []string{"amd64", "arm64"}, ComputeTypes: []string{"ec2", "hybrid"},
				RequiresIAMPermissions: a.needsPermission,
			}
			for _, k := range calendar {
				if v.fits(k.minor) && (in.KubernetesVersion == "" || in.KubernetesVersion == k.minor) {
					listed.Compatibilities = append(listed.Compatibilities, Compatibility{k.minor, []string{"*"}, a.newestFor(k.minor) == v.version})
				}
			}
			if len(listed.Compatibilities) > 0 {
				info.AddonVersions = append(info.AddonVersions, listed)
			}
		}
		if len(info.AddonVersions) > 0 {
			out.Addons = append(out.Addons, info)
		}
	}
	return out, nil
}
