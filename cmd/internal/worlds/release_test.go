package worlds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/shared/api"
)

// Releases are made from the catalogs of the account's EKS, EC2 and SSM, and checked there before their upload.
func TestRelease(t *testing.T) {
	needAccount(t)
	const name = "1.36-20261115"
	mark := cloud.Calls.Mark()
	made := ok(t, "release", "new", "--kubernetes", "1.36", "--name", name)
	require.Equal(t, made, ok(t, "release", "new", "--kubernetes", "1.36", "--name", name), "the same bytes")
	require.Regexp(t, `(?m)^    amd64: ami-[0-9a-f]{17} # amazon-eks-node-al2023-x86_64-standard-1\.36-v\d{8}$`, made)
	require.Regexp(t, `(?m)^    arm64: ami-[0-9a-f]{17} # amazon-eks-node-al2023-arm64-standard-1\.36-v\d{8}$`, made)
	file := clitest.Write(t, name+".yaml", made)
	require.Equal(t, file+": valid\n", ok(t, "validate", file))
	require.Equal(t, "release "+name+" can be used in us-east-1\n", ok(t, "release", "check", file))
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating && call.Caller == cloud.Principal(), "%s %s", call.Service, call.Action)
	}

	t.Run("new: the name has the date", func(t *testing.T) {
		require.Regexp(t, `\n  name: "1\.36-20\d{6}"\n`, ok(t, "release", "new", "--kubernetes", "1.36"))
	})
	t.Run("new: every kind of image, for a region", func(t *testing.T) {
		var kinds []string
		for _, kind := range api.ImageKinds() {
			kinds = append(kinds, kind.Key)
		}
		file := clitest.Write(t, name+".yaml", ok(t, "release", "new", "--kubernetes", "1.36", "--name", name, "--images",
			strings.Join(kinds, ","), "--regions", "us-east-1"))
		require.Equal(t, "release "+name+" can be used in us-east-1\n", ok(t, "release", "check", file))
	})
	t.Run("new --from keeps the add-ons of a file", func(t *testing.T) {
		const addons = "  addons:\n    - {name: coredns, version: v1.12.4-eksbuild.1, configuration: {replicaCount: 3}}\n"
		from := clitest.Write(t, "1.35-9.yaml", "apiVersion: drover.run/v1alpha1\nkind: Release\nmetadata: {name: 1.35-9}\nspec:\n"+
			"  kubernetesVersion: \"1.35\"\n  images: {amd64: ami-0123456789abcdef0}\n  templateVersion: v1\n"+addons)
		out := ok(t, "release", "new", "--kubernetes", "1.36", "--from", from, "--images", "amd64")
		require.Contains(t, out, "  addons:\n    - name: \"coredns\"\n      version: \"v1.14.0-eksbuild.1\"\n"+
			"      configuration: {\"replicaCount\":3}\n  templateVersion: \"v1\"\n")
		require.NotContains(t, out, "arm64")
	})
	t.Run("new fails by name", func(t *testing.T) {
		require.Contains(t, fails(t, "release", "new", "--kubernetes", "1.99"), "the parameter "+
			"/aws/service/eks/optimized-ami/1.99/amazon-linux-2023/x86_64/standard/recommended/image_id does not exist")
		require.Contains(t, fails(t, "release", "new", "--kubernetes", "1.36", "--images", "mips"),
			`--images has "mips": must be one of amd64, arm64, amd64-nvidia, `)
		require.Contains(t, fails(t, "release", "new"), `required flag(s) "kubernetes" not set`)
		require.Contains(t, fails(t, "release", "new", "--kubernetes", "1.36", "--from", "1.36-404"),
			"there is no release 1.36-404 in the account")
	})
	t.Run("new --apply uploads, and replaces no other release", func(t *testing.T) {
		out := ok(t, "release", "new", "--kubernetes", "1.36", "--name", name, "--apply")
		require.Contains(t, out, "uploaded release "+name)
		require.Regexp(t, "release "+name+" can be used\n|its verdict is pending", out)
		require.Contains(t, ok(t, "release", "new", "--kubernetes", "1.36", "--name", name, "--apply"), "uploaded release "+name)
		require.Contains(t, fails(t, "release", "new", "--kubernetes", "1.36", "--name", name, "--images", "amd64", "--apply"),
			"release "+name+" exists with other content: choose another name with --name")
		require.Contains(t, ok(t, "release", "new", "--kubernetes", "1.37", "--from", name),
			"kube-proxy\"\n      version: \"v1.37.0-eksbuild.1\"")
	})
	t.Run("init writes a spec of what the account has", initialize)
	t.Run("check finds what does not exist", func(t *testing.T) {
		bad := clitest.Write(t, "1.36-9.yaml", example(t, "releases/1.36-1.yaml", "1.36-1", "1.36-9", "ami-00000000000013601",
			"ami-0123456789abcdef0"))
		out := finds(t, "release", "check", bad)
		require.Contains(t, out, "Images blocks: ")
		require.Contains(t, out, "ami-0123456789abcdef0 for amd64 does not exist")
		require.Contains(t, finds(t, "release", "check", clitest.Write(t, "1.36-9.yaml", example(t, "releases/1.36-1.yaml", "1.36-1", "1.36-9",
			"ami-00000000000013601", "ami-00000000000999901"))), "ami-00000000000999901 for amd64 is an id of the local account, and no image of "+
			"AWS: run `drover release new` for a release with images of AWS")
		require.Contains(t, out, "\nrelease 1.36-9 cannot be used in us-east-1\n")
		require.Contains(t, fails(t, "release", "check", "examples/clusters/demo.yaml"), "Release")
	})
}

// A first spec takes the release that was uploaded last, and zones that EKS accepts. It validates, and can be planned.
func initialize(t *testing.T) {
	ok(t, "apply", "examples/releases/1.36-1.yaml", "--watch")
	file := filepath.Join(t.TempDir(), "first.yaml")
	mark := cloud.Calls.Mark()
	require.Contains(t, ok(t, "init", "first", "--out", file), "wrote "+file+". Next:")
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating && call.Caller == cloud.Principal(), "%s %s", call.Service, call.Action)
	}
	require.Equal(t, file+": valid\n", ok(t, "validate", file))
	require.Contains(t, finds(t, "diff", file), "first would be created at release 1.36-1 (Kubernetes 1.36)")
	spec, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(spec), `zones: ["us-east-1a","us-east-1b","us-east-1c"]`)
	require.Contains(t, string(spec), `principalARN: "`+cloud.Principal()+`"`)

	require.Contains(t, ok(t, "init", "first", "--out", "-", "--instance-types", "m7g.large"), `architecture: "arm64"`)
	require.Contains(t, fails(t, "init"), "the name of the cluster is missing: drover init CLUSTER")
	require.Contains(t, fails(t, "init", "first", "--out", "-", "--subnets", "subnet-0a1b2c3d4e5f60711"), "--subnets needs --vpc")
	require.Contains(t, fails(t, "init", "first", "--out", "-", "--vpc", "vpc-0a1b2c3d4e5f60718"),
		"VPC vpc-0a1b2c3d4e5f60718 has 0 private subnets in zones that EKS accepts, and a cluster needs two, in two zones: "+
			"name subnets with --subnets")
}
