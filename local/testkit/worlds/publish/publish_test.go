package publish_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// mutatingCalls returns the mutating calls of drover since a mark.
func mutatingCalls(a *harness.Account, mark int) []string {
	var calls []string
	for _, call := range a.Calls.Since(mark) {
		if call.Mutating && harness.CalledBy(call) != "admin" {
			calls = append(calls, harness.CalledBy(call)+" "+call.Service+":"+call.Action+" "+call.Resource)
		}
	}
	return calls
}

func verdict(t *testing.T, a *harness.Account, release string) status.ReleaseStatus {
	t.Helper()
	r, err := a.State().ReleaseStatus(t.Context(), release)
	require.NoError(t, err)
	require.Equal(t, release, r.Metadata.Name)
	return r.Status
}

// The images and add-ons of a release must exist in EC2 and EKS.
func TestReleasesThatAreNotWhole(t *testing.T) {
	good := harness.Release()
	for name, test := range map[string]struct {
		edits []string
		// checks that block, each with a part of what it says.
		blocks map[string]string
	}{
		"nothing wrong": {nil, nil},
		"a version that EKS has not": {
			[]string{`"1.36"`, `"1.38"`}, map[string]string{
				"VersionOffered": "EKS does not offer Kubernetes 1.38", "AddonsCompatible": "for Kubernetes 1.38",
			},
		},
		"an image that is not there": {
			[]string{ec2.ImageID("1.36", "amd64"), "ami-0123456789abcdef0"}, map[string]string{
				"Images": "ami-0123456789abcdef0 for amd64 does not exist",
			},
		},
		"images the wrong way round": {
			[]string{"amd64: " + ec2.ImageID("1.36", "amd64"), "amd64: " + ec2.ImageID("1.36", "arm64")}, map[string]string{
				"Images": "is for arm64, not for amd64",
			},
		},
		"an image of a newer Kubernetes": {
			[]string{ec2.ImageID("1.36", "amd64"), ec2.ImageID("1.37", "amd64")}, map[string]string{
				"Images": "has a kubelet newer than Kubernetes 1.36",
			},
		},
		"an add-on that EKS has not": {
			[]string{"name: coredns", "name: corednsx"}, map[string]string{"AddonsCompatible": "EKS has no add-on corednsx"},
		},
		"an add-on of another Kubernetes": {
			[]string{"coredns, version: v1.13.2-eksbuild.1", "coredns, version: v1.11.4-eksbuild.24"}, map[string]string{
				"AddonsCompatible": "coredns v1.11.4-eksbuild.24 is not a version that EKS offers for Kubernetes 1.36",
			},
		},
		"an unknown field": {
			[]string{"  images:", "  image: x\n  images:"}, map[string]string{
				"FileValid": "releases/r1.yaml:6: spec.image: Forbidden: unknown field",
			},
		},
		"a template version that drover lacks": {[]string{"templateVersion: v1", "templateVersion: v9"}, map[string]string{"FileValid": "v9"}},
		"two megabytes": {
			[]string{"templateVersion: v1", "templateVersion: v1 # " + strings.Repeat("x", 2<<20)}, map[string]string{"FileValid": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.Start(t)
			release := good
			for i := 0; i < len(test.edits); i += 2 {
				require.Contains(t, release, test.edits[i])
				release = strings.Replace(release, test.edits[i], test.edits[i+1], 1)
			}
			version := a.Upload("releases/r1.yaml", release)
			a.Settle()
			v := verdict(t, a, "r1")
			require.Equal(t, version, v.Version)
			require.Equal(t, test.blocks == nil, v.Usable)
			found := map[string]bool{}
			for _, c := range v.Checks {
				require.NotEmpty(t, c.Next)
				if c.Blocks {
					require.Contains(t, test.blocks, c.Name, c.Message)
					require.Contains(t, c.Message, test.blocks[c.Name])
					found[c.Name] = true
				}
			}
			require.Len(t, found, len(test.blocks))

			mark := a.Calls.Mark()
			a.Upload("releases/r1.yaml", release)
			a.Settle()
			for _, call := range mutatingCalls(a, mark) {
				require.Contains(t, call, "status/releases/r1.json", "the same content changes no verdict")
			}
		})
	}
}

const channels = `apiVersion: drover.run/v1alpha1
kind: Channels
metadata: {name: channels}
spec: {stable: r1, nodes: {"1.36": r1}}
`

func TestChannelsNameReleasesThatAreThere(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/channels.yaml", channels)
	a.Settle()
	v := verdict(t, a, "channels")
	require.False(t, v.Usable)
	require.Len(t, v.Checks, 1)
	require.Equal(t, "ReleasesExist", v.Checks[0].Name)
	require.Equal(t, "spec.nodes[1.36]: there is no releases/r1.yaml\nspec.stable: there is no releases/r1.yaml", v.Checks[0].Message)

	// The release may follow the channels.
	a.Upload("releases/r1.yaml", harness.Release())
	a.Settle()
	require.True(t, verdict(t, a, "channels").Usable)

	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.37", "r1"))
	a.Settle()
	v = verdict(t, a, "channels")
	require.Equal(t, "spec.nodes[1.36]: releases/r1.yaml is for Kubernetes 1.37", v.Checks[0].Message)

	a.Upload("releases/r1.yaml", "nonsense")
	a.Settle()
	v = verdict(t, a, "channels")
	require.Contains(t, v.Checks[0].Message, "spec.stable: releases/r1.yaml cannot be used")

	a.Upload("releases/channels.yaml", strings.Replace(channels, "stable", "steady", 1))
	a.Settle()
	v = verdict(t, a, "channels")
	require.Equal(t, "FileValid", v.Checks[0].Name)
	require.Contains(t, v.Checks[0].Message, "releases/channels.yaml:4: spec.steady")

	a.Remove("releases/channels.yaml", "")
	a.Settle()
	v = verdict(t, a, "channels")
	require.Empty(t, v.Version)
	require.Contains(t, v.Message, "it was deleted")
}

// A release that the channels do not name leaves their verdict unchanged. The channels are read, and their verdict is not.
func TestReleaseWithoutAChannel(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/channels.yaml", channels)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Settle()
	require.True(t, verdict(t, a, "channels").Usable)
	looked := func(release string) (looked bool) {
		mark := a.Calls.Mark()
		a.Upload("releases/"+release+".yaml", harness.ReleaseOf("1.36", release))
		a.Settle()
		require.True(t, verdict(t, a, release).Usable)
		for _, call := range a.Calls.Since(mark) {
			looked = looked || harness.CalledBy(call) == "publish" && strings.HasSuffix(call.Resource, "status/releases/channels.json")
		}
		return looked
	}
	require.False(t, looked("r2"))
	require.True(t, looked("r1"))
}

// Clusters are pinned to the content of a release. They do not change when the release is edited or deleted, and still converge.
func TestEditingOrDeletingAReleaseChangesNoCluster(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	before := a.Stacks("demo")
	for what, change := range map[string]func(){
		"other add-ons": func() {
			a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), "v1.13.2-eksbuild.1", "v1.14.0-eksbuild.1", 1))
		},
		"another version": func() { a.Upload("releases/r1.yaml", harness.ReleaseOf("1.37", "r1")) },
		"nonsense":        func() { a.Upload("releases/r1.yaml", "nonsense") },
		"nothing":         func() { a.Remove("releases/r1.yaml", "") },
	} {
		t.Run(what, func(t *testing.T) {
			mark := a.Calls.Mark()
			change()
			a.Settle()
			for _, call := range mutatingCalls(a, mark) {
				require.NotContains(t, call, "cloudformation:")
				require.NotContains(t, call, "autoscaling:")
				require.NotContains(t, call, "eks:")
			}
			require.Equal(t, before, a.Stacks("demo"))
			require.Equal(t, status.Ready, a.Status("demo").Phase)
			a.Converge("demo")
			a.Settle()
			require.Equal(t, status.Ready, a.Status("demo").Phase)
			require.Equal(t, before, a.Stacks("demo"))
		})
	}
}

// A verdict is notified once, when it changes.
func TestVerdictsAreTold(t *testing.T) {
	a := harness.Start(t)
	calls := func(change func()) []string {
		mark := a.Calls.Mark()
		change()
		a.Settle()
		var by []string
		for _, call := range mutatingCalls(a, mark) {
			if strings.HasPrefix(call, "publish ") {
				by = append(by, strings.Fields(call)[1])
			}
		}
		return by
	}
	upload := func(body string) func() { return func() { a.Upload("releases/r1.yaml", body) } }
	require.Equal(t, []string{"events:PutEvents", "sns:Publish", "s3:PutObject"}, calls(upload(harness.Release())))
	require.Equal(t, []string{"s3:PutObject"}, calls(upload(harness.Release())), "of the same content only the version is new")
	require.Equal(t, []string{"events:PutEvents", "sns:Publish", "s3:PutObject"}, calls(upload("nonsense")))
	require.Equal(t, []string{"s3:PutObject"}, calls(func() { a.Remove("releases/r1.yaml", "") }))
	require.Empty(t, calls(func() { a.Remove("releases/unheard-of.yaml", "") }))
}

func TestKeysThatAreNoReleases(t *testing.T) {
	a := harness.Start(t)
	for _, key := range []string{"releases/a/b.yaml", "releases/r1.yml", "releases/.yaml"} {
		a.Upload(key, harness.Release())
		a.Settle()
	}
	entries, err := a.State().List(t.Context(), "status/releases/")
	require.NoError(t, err)
	require.Empty(t, entries)
}
