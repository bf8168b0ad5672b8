package render_test

// A second template version: v1 with optional tokens of the metadata service and another description of the network. Clusters of v1 do
// not change until their spec requests it.

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/templates"
)

// twoVersions are the shipped v1, and a v2 derived from it.
func twoVersions(t *testing.T) fs.FS {
	t.Helper()
	const hops, title = "HttpTokens: required", "Description: "
	edited := map[string]int{}
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(templates.FS(), "v1", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(templates.FS(), path)
		if err != nil {
			return err
		}
		files[path] = &fstest.MapFile{Data: body}
		if strings.HasSuffix(path, "/network.yaml.tmpl") {
			edited[title] = bytes.Count(body, []byte(title))
			body = append([]byte("# The second version.\n"), body...)
		}
		edited[hops] += bytes.Count(body, []byte(hops))
		files["v2"+strings.TrimPrefix(path, "v1")] = &fstest.MapFile{
			Data: bytes.ReplaceAll(body, []byte(hops), []byte("HttpTokens: optional")),
		}
		return nil
	}))
	require.Positive(t, edited[title])
	require.Positive(t, edited[hops], "v2 would equal v1")
	return files
}

// resolvedExample returns an example with a template version.
func resolvedExample(t *testing.T, version string) render.Cluster {
	t.Helper()
	options := api.Options{TemplateVersions: []string{"v1", "v2"}}
	body, err := os.ReadFile("../../examples/clusters/demo.yaml")
	require.NoError(t, err)
	cluster, errs := api.ReadCluster("demo.yaml", body, options)
	require.Empty(t, errs)
	body, err = os.ReadFile("../../examples/releases/" + cluster.Spec.Release.Name + ".yaml")
	require.NoError(t, err)
	release, errs := api.ReadRelease("release.yaml", body, options)
	require.Empty(t, errs)
	cluster.Spec.TemplateVersion = version
	out, errs := api.Resolve(cluster, release)
	require.Empty(t, errs)
	return render.Cluster{
		Cell: render.Cell{
			Partition: "aws", Region: "us-east-1", Account: "111122223333", StateBucket: names.StateBucket("111122223333", "us-east-1"),
		}, Resolved: out, Relay: render.UnknownRelay,
	}
}

func TestTemplateVersionChangesOnRequest(t *testing.T) {
	files := twoVersions(t)
	shipped, err := render.Render(resolvedExample(t, ""))
	require.NoError(t, err)
	for name, version := range map[string]string{"that its release gives": "", "that its spec states": "v1"} {
		stays, err := render.RenderFrom(files, resolvedExample(t, version), "v1", "v2")
		require.NoError(t, err)
		require.Equal(t, shipped, stays, "byte for byte, with the version %s", name)
	}

	before, after := resolvedExample(t, "v1"), resolvedExample(t, "v2")
	moved, err := render.RenderFrom(files, after, "v1", "v2")
	require.NoError(t, err)
	in := plan.Input{
		Cluster: "demo", New: after.Resolved, Old: map[string]*api.Cluster{}, Desired: moved.Stacks, Deployed: map[string]stack.Deployed{},
	}
	for _, shippedStack := range shipped.Stacks {
		tags := map[string]string{names.TagRelease: ""}
		if shippedStack.Name != names.ControlPlane {
			tags = map[string]string{}
		}
		for key, value := range shippedStack.Tags {
			tags[key] = value
		}
		parameters := map[string]string{}
		for _, p := range shippedStack.Parameters {
			parameters[p.Name] = p.Value
		}
		in.Old[shippedStack.Name] = before.Resolved
		tags[names.TagChecksum] = plan.Checksum(shippedStack, tags)
		in.Deployed[shippedStack.Name] = stack.Deployed{
			Status: "CREATE_COMPLETE", Tags: tags, Parameters: parameters, TerminationProtection: shippedStack.Protected,
		}
	}
	p := plan.Compute(in)
	require.Empty(t, p.Refused)
	changed := map[string]bool{}
	for _, change := range p.Changes {
		changed[change.Stack] = true
		require.Equal(t, plan.Update, change.Operation)
		require.Equal(t, []status.Reason{{Field: "spec.templateVersion", Old: "v1", New: "v2"}}, change.Reasons, change.Stack)
	}
	for _, stack := range shipped.Stacks {
		want := stack.Name == names.Network || strings.HasPrefix(stack.Name, names.PoolPrefix)
		require.Equal(t, want, changed[stack.Name], stack.Name)
	}

	// The last step changed the template version, and failed before this pool. Its template is byte-identical.
	kept := resolvedExample(t, "v2")
	kept.Templates = map[string]string{}
	for _, pool := range kept.Resolved.Spec.Pools {
		kept.Templates[pool.Name] = "v1"
	}
	held, err := render.RenderFrom(files, kept, "v1", "v2")
	require.NoError(t, err)
	for i, stack := range held.Stacks {
		want := shipped.Stacks[i]
		if stack.Name == names.Network {
			want = moved.Stacks[i]
		}
		require.Equal(t, want, stack, stack.Name)
		if strings.HasPrefix(stack.Name, names.PoolPrefix) {
			require.Equal(t, "v1", render.TemplateVersion(stack.Tags))
			require.Equal(t, "v2", render.TemplateVersion(moved.Stacks[i].Tags))
		}
	}
	kept.Templates["deleted"] = "v9"
	_, err = render.RenderFrom(files, kept, "v1", "v2")
	require.ErrorContains(t, err, `"v9" is not one of v1, v2`)

	_, err = render.Render(after)
	require.ErrorContains(t, err, `"v2" is not one of v1`, "v2 is not shipped")
}
