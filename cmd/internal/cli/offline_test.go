package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/cmd/internal/clitest"
)

func TestValidate(t *testing.T) {
	good := filepath.Join("examples", "clusters", "demo.yaml")
	bad := clitest.Write(t, "bad.yaml", example(t, "clusters/demo.yaml", "name: demo", "name: other", "maxSize: 4", "maxSize: 1",
		"  tags:", "  tag:"))
	tests := map[string]struct {
		files          []string
		code           int
		stdout, stderr []string
	}{
		"valid specs and releases": {
			files:  []string{good, "examples/releases/1.36-1.yaml"},
			stdout: []string{"examples/clusters/demo.yaml: valid\n", "examples/releases/1.36-1.yaml: valid\n"},
		},
		"every error of an invalid spec, with file, line and field": {
			files: []string{bad}, code: 1,
			stderr: []string{bad + ":7:", "metadata.name", "spec.pools[0].m", "spec.tag:", "1 of 1 files cannot be used"},
		},
		"an invalid file does not hide a valid one": {
			files: []string{bad, good}, code: 1,
			stdout: []string{good + ": valid\n"}, stderr: []string{"1 of 2 files cannot be used"},
		},
		"folders": {
			files:  []string{"examples/clusters", "examples/releases"},
			stdout: []string{good + ": valid\n", "examples/releases/1.36-1.yaml: valid\n"},
		},
		"a folder without specs": {files: []string{"examples"}, code: 1, stderr: []string{"no .yaml file in examples", "1 of 1 files"}},
		"a missing file":         {files: []string{"nothing.yaml"}, code: 1, stderr: []string{"nothing.yaml: no such file"}},
		"a file over the limit": {
			files: []string{clitest.Write(t, "large.yaml", strings.Repeat("a: b\n", 500_000))}, code: 1,
			stderr: []string{"large.yaml is too large: more than 1048576 bytes"},
		},
		"no YAML":       {files: []string{clitest.Write(t, "x.yaml", "\x00\x01")}, code: 1, stderr: []string{"x.yaml:1"}},
		"no files":      {code: 1, stderr: []string{"drover: requires at least 1 arg"}},
		"an empty file": {files: []string{clitest.Write(t, "x.yaml", "")}, code: 1, stderr: []string{"x.yaml"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"validate"}, test.files...)...)
			require.Equal(t, test.code, r.Code, r.Stderr)
			for _, want := range test.stdout {
				require.Contains(t, r.Stdout, want)
			}
			for _, want := range test.stderr {
				require.Contains(t, r.Stderr, want)
			}
			for line := range strings.Lines(r.Stderr) {
				if test.code == 0 {
					require.Regexp(t, `warning: (spec\.controlPlane\.access: it is empty|the roles and policies of pods are not checked: )`, line)
				}
			}
		})
	}
}

// A file with a warning is valid, because the settings may be intentional.
func TestValidateWarns(t *testing.T) {
	file := clitest.Write(t, "minimal.yaml", example(t, "clusters/minimal.yaml", "maxSize: 3",
		"maxSize: 3\n      taints: [{key: dedicated, value: batch, effect: NoSchedule}]"))
	for name, test := range map[string]struct{ files, names string }{
		"only CoreDNS without the release":  {names: "coredns"},
		"all add-ons with the release":      {files: "examples/releases/1.36-1.yaml", names: "coredns, aws-ebs-csi-driver"},
		"only CoreDNS with another release": {files: "examples/releases/1.35-1.yaml", names: "coredns"},
		"only CoreDNS with a missing file":  {files: "nothing.yaml", names: "coredns"},
	} {
		t.Run(name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"validate", file}, strings.Fields(test.files)...)...)
			require.Contains(t, r.Stdout, file+": valid\n")
			require.Contains(t, r.Stderr, file+": warning: spec.pools: no pool can run the pods of "+test.names+", which")
		})
	}
}

func TestRender(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a", "b")
	r := droverIn(t, nil, "render", "examples/clusters/demo.yaml", "--out", out)
	require.Equal(t, 0, r.Code, r.Stderr)
	var files []string
	require.NoError(t, filepath.WalkDir(out, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
			require.Contains(t, r.Stdout, path+" (")
		}
		return err
	}))
	require.Len(t, files, 7) // six stacks, one pool's configuration
	for _, stack := range []string{"network", "control-plane", "addons", "pool-workers", "pool-spot", "addons-on-nodes"} {
		body, err := os.ReadFile(filepath.Join(out, "drover-demo-"+stack+".yaml"))
		require.NoError(t, err)
		var template map[string]any
		require.NoError(t, yaml.Unmarshal(body, &template))
		require.Contains(t, template, "Resources")
	}
	again := filepath.Join(t.TempDir(), "again")
	require.Equal(t, 0, droverIn(t, nil, "render", "examples/clusters/demo.yaml", "--out", again).Code)
	for _, file := range files {
		name, err := filepath.Rel(out, file)
		require.NoError(t, err)
		one, err := os.ReadFile(file)
		require.NoError(t, err)
		two, err := os.ReadFile(filepath.Join(again, name))
		require.NoError(t, err)
		require.Equal(t, string(one), string(two), "rendering is pure")
	}
}

func TestRenderErrors(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		stderr    string
	}{
		"the output folder": {[]string{"examples/clusters/demo.yaml"}, `required flag(s) "out" not set`},
		"the release": {
			[]string{clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml")), "--out", t.TempDir()}, "say where it is with --release FILE",
		},
		"the region":   {[]string{"examples/clusters/existing-network.yaml", "--out", t.TempDir()}, "say which --region it is for"},
		"a valid spec": {[]string{clitest.Write(t, "demo.yaml", "kind: Cluster"), "--out", t.TempDir()}, "demo.yaml:1"},
		"a spec":       {[]string{"--out", t.TempDir()}, "accepts 1 arg(s), received 0"},
		"a file with a release": {
			[]string{"examples/clusters/demo.yaml", "--release", "examples/clusters/demo.yaml", "--out", t.TempDir()}, `kind: `,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := droverIn(t, nil, append([]string{"render"}, test.arguments...)...)
			require.Equal(t, 1, r.Code)
			require.True(t, strings.HasPrefix(r.Stderr, "drover: "), r.Stderr)
			require.Contains(t, r.Stderr, test.stderr)
		})
	}
	r := droverIn(t, nil, "render", "examples/clusters/existing-network.yaml", "--region", "eu-west-1", "--out", t.TempDir())
	require.Equal(t, 0, r.Code, r.Stderr)
}

func TestCommandsWithoutConfiguration(t *testing.T) {
	for _, arguments := range [][]string{{"status"}, {"diff", "examples/clusters/demo.yaml"}, {"apply", "examples/clusters/demo.yaml"}} {
		t.Run(arguments[0], func(t *testing.T) {
			r := droverIn(t, nil, arguments...)
			require.Equal(t, 1, r.Code)
			require.Contains(t, r.Stderr, "AWS_REGION")
			r = droverIn(t, map[string]string{"AWS_REGION": "us-east-1"}, arguments...)
			require.Equal(t, 1, r.Code)
			require.Contains(t, r.Stderr, "who you are")
			require.Contains(t, r.Stderr, "credentials")
		})
	}
}

func TestUnknownCommands(t *testing.T) {
	r := droverIn(t, nil, "deploy")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, `unknown command "deploy"`)
	r = droverIn(t, nil, "status", "--wide")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "--wide")
	r = droverIn(t, nil)
	require.Equal(t, 0, r.Code)
	for _, command := range []string{"validate", "render", "diff", "apply", "status", "local"} {
		require.Contains(t, r.Stdout, command)
	}
}
