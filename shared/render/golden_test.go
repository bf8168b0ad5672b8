package render

// Every template with every option, as rendered. `make golden` refreshes the files; review the diff.

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/templates"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldens change a small cluster by one option each. One has every option.
var goldens = map[string]func(*api.Cluster, *api.Release, *Cell){
	"small":        func(*api.Cluster, *api.Release, *Cell) {},
	"full":         func(c *api.Cluster, _ *api.Release, _ *Cell) { *c = *fullCluster() },
	"six-zones":    func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Network.Zones = zonesOf("us-east-1", "fedcba") },
	"smallest-vpc": func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Network.CIDR = "10.1.2.0/24" },
	"secondary-range": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.Network.SecondaryCIDRs = []string{"100.64.0.0/16"}
	},
	"nat-single": func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Network.NATGateways = api.NATSingle },
	"nat-none":   func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Network.NATGateways = api.NATNone },
	"existing-network": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.Network = existingNetwork()
		c.Spec.ControlPlane.Subnets = []string{"subnet-0123456789abcdef2", "subnet-0123456789abcdef1"}
		other := c.Spec.Pools[0]
		other.Name, other.Subnets = "other", []string{"subnet-0123456789abcdef2", "subnet-0123456789abcdef0"}
		c.Spec.Pools = append(c.Spec.Pools, other)
	},
	"no-protection":    func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.DeletionProtection = new(bool) },
	"private-endpoint": func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.ControlPlane.Endpoint.Public = new(bool) },
	"no-logs":          func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.ControlPlane.Logs = []string{} },
	"no-pools":         func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Pools = nil },
	"no-addons":        func(_ *api.Cluster, r *api.Release, _ *Cell) { r.Spec.Addons = nil },
	"cni-without-identity": func(_ *api.Cluster, r *api.Release, _ *Cell) {
		r.Spec.Addons = []api.Addon{{Name: "vpc-cni", Version: "v1.21.1-eksbuild.1"}}
	},
	"addon-identities": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.Addons = []api.Addon{
			{Name: "vpc-cni", PodIdentities: []api.AddonIdentity{
				{ServiceAccount: "aws-node", RoleARN: "arn:aws:iam::111122223333:role/workloads/cni"},
			}},
			{Name: "aws-ebs-csi-driver", PodIdentities: []api.AddonIdentity{}},
			{Name: "aws-efs-csi-driver", Version: "v2.1.0-eksbuild.1", PodIdentities: []api.AddonIdentity{
				{ServiceAccount: "efs-csi-node-sa", Policies: []string{"AmazonEFSCSIDriverPolicy"}},
				{ServiceAccount: "efs-csi-controller-sa", Policies: []string{"AmazonEFSCSIDriverPolicy"}},
			}},
			{Name: "amazon-cloudwatch-observability", Version: "v4.0.0-eksbuild.1", PodIdentities: []api.AddonIdentity{
				{ServiceAccount: "cloudwatch-agent", Policies: []string{"CloudWatchAgentServerPolicy", "AWSXrayWriteOnlyAccess"}},
			}},
		}
	},
	"pod-identities": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.PodIdentities = []api.PodIdentity{
			{Namespace: "shop", ServiceAccount: "checkout", RoleARN: "arn:aws:iam::111122223333:role/workloads/checkout"},
		}
	},
	"capabilities": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.Capabilities = []api.Capability{
			{Name: "gitops", Type: api.CapabilityArgoCD, RoleARN: "arn:aws:iam::111122223333:role/capability-gitops", ArgoCD: &api.ArgoCD{
				IdentityCenterARN: "arn:aws:sso:::instance/ssoins-0123456789abcdef",
			}},
			{Name: "graphs", Type: api.CapabilityKRO, RoleARN: "arn:aws:iam::111122223333:role/capability-graphs"},
		}
	},
	"spot-only": func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Pools[0].Spot = &api.Spot{} },
	"one-node":  func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Pools[0].MinSize, c.Spec.Pools[0].MaxSize = 1, 1 },
	"plain-volume": func(c *api.Cluster, _ *api.Release, _ *Cell) {
		c.Spec.Pools[0].RootVolume = api.RootVolume{SizeGiB: 20, Type: "io2", IOPS: 1000, Encrypted: new(bool)}
	},
	"commands-only": func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Pools[0].Commands = []string{"swapoff --all"} },
	"many-flags":    func(c *api.Cluster, _ *api.Release, _ *Cell) { c.Spec.Pools[0].KubeletFlags = longFlags() },
	"images":        everyImage,
	"china": func(c *api.Cluster, _ *api.Release, cell *Cell) {
		*cell = Cell{Partition: "aws-cn", Region: "cn-north-1", Account: "111122223333", StateBucket: "drover-state-111122223333-cn-north-1"}
		c.Spec.Network.Zones, c.Spec.Network.NATGateways = zonesOf("cn-north-1", "ab"), api.NATNone
	},
}

// everyImage has a pool for each kind of image.
func everyImage(c *api.Cluster, r *api.Release, _ *Cell) {
	c.Spec.Pools = nil
	for i, kind := range api.ImageKinds() {
		r.Spec.Images[kind.Key] = fmt.Sprintf("ami-%017d", i+1)
		c.Spec.Pools = append(c.Spec.Pools, api.Pool{
			Name: kind.Key, InstanceTypes: []string{map[api.Architecture]string{api.AMD64: "m7i.large", api.ARM64: "m7g.large"}[kind.Architecture]},
			Architecture: kind.Architecture, MaxSize: 3, Image: api.Image{Family: kind.Family, Variant: kind.Variant},
		})
	}
}

func zonesOf(region, letters string) []string {
	var list []string
	for _, letter := range letters {
		list = append(list, region+string(letter))
	}
	return list
}

func existingNetwork() api.Network {
	return api.Network{Existing: &api.ExistingNetwork{
		VPCID: "vpc-0123456789abcdef0", Subnets: []string{"subnet-0123456789abcdef0", "subnet-0123456789abcdef1"},
	}}
}

// longFlags has more flags than user data has room for.
func longFlags() []string {
	var flags []string
	for _, letter := range "abcdefghijklmno" {
		flags = append(flags, "--"+string(letter)+"="+strings.Repeat(string(letter), 1000))
	}
	return flags
}

func TestGolden(t *testing.T) {
	const root = "testdata/golden"
	if *update {
		require.NoError(t, os.RemoveAll(root))
	}
	for _, version := range templates.Versions() {
		for name, change := range goldens {
			t.Run(version+"/"+name, func(t *testing.T) {
				in := goldenInput(t, change)
				in.Resolved.Spec.TemplateVersion = version
				dir := filepath.Join(root, version, name)
				got := files(t, render(t, in))
				if *update {
					require.NoError(t, os.MkdirAll(dir, 0o755))
					for file, body := range got {
						require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(body), 0o644))
					}
				}
				want := map[string]string{}
				entries, err := os.ReadDir(dir)
				require.NoError(t, err, "run make golden and review the diff")
				for _, entry := range entries {
					body, err := os.ReadFile(filepath.Join(dir, entry.Name()))
					require.NoError(t, err)
					want[entry.Name()] = string(body)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("rendered files differ from %s (-golden +rendered):\n%s", dir, diff)
				}
			})
		}
	}
}

func goldenInput(t testing.TB, change func(*api.Cluster, *api.Release, *Cell)) Cluster {
	cluster, release, cell := smallCluster(), testRelease(), testCell()
	change(cluster, release, &cell)
	resolved, errs := api.Resolve(cluster, release)
	require.Empty(t, errs)
	return Cluster{Cell: cell, Resolved: resolved, Relay: testRelay, WorkloadBoundary: testWorkloadBoundary}
}

// files returns the output as files: templates, node configurations by checksum, and the rest of each stack.
func files(t testing.TB, out *Output) map[string]string {
	files := map[string]string{}
	type along struct {
		StackName    string
		Parameters   []Parameter
		Tags         map[string]string
		Protected    bool
		Capabilities []string
	}
	var stacks []along
	for _, stack := range out.Stacks {
		files[stack.Name+".yaml"] = string(stack.Template)
		stacks = append(stacks, along{stack.StackName, stack.Parameters, stack.Tags, stack.Protected, stack.Capabilities})
	}
	for key, body := range maps.All(out.UserData) {
		files[strings.ReplaceAll(key, "/", "-")[:21]+".sh"] = string(body)
	}
	body, err := json.MarshalIndent(stacks, "", "  ")
	require.NoError(t, err)
	files["stacks.json"] = string(body) + "\n"
	return files
}
