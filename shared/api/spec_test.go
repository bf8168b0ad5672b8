package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// good is a valid spec. Tests derive invalid ones from it.
const good = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata:
  name: demo
spec:
  release:
    name: "1.36-1"
  network:
    cidr: 10.0.0.0/16
    zones: [us-east-1a, us-east-1b]
  controlPlane: {}
  pools:
    - name: workers
      instanceTypes: [m7i.large]
      minSize: 1
      maxSize: 3
  tags: {}
`

const goodRelease = `apiVersion: drover.run/v1alpha1
kind: Release
metadata:
  name: "1.36-1"
spec:
  kubernetesVersion: "1.36"
  images:
    amd64: ami-0123456789abcdef0
  addons:
    - name: vpc-cni
      version: v1.21.1-eksbuild.1
      configuration: {env: {WARM_IP_TARGET: "2"}}
    - name: coredns
      version: v1.13.2-eksbuild.1
  templateVersion: v1
`

// pairs are texts and their replacements, in turn.
type pairs []string

func edit(t *testing.T, spec string, edits pairs) []byte {
	t.Helper()
	for i := 0; i < len(edits); i += 2 {
		require.Equal(t, 1, strings.Count(spec, edits[i]), "%q must be in the spec once", edits[i])
		spec = strings.Replace(spec, edits[i], edits[i+1], 1)
	}
	return []byte(spec)
}

// pool adds fields to the pool of the good spec.
func pool(fields ...string) pairs {
	return pairs{"      maxSize: 3\n", "      maxSize: 3\n      " + strings.Join(fields, "\n      ") + "\n"}
}

func controlPlane(fields string) pairs {
	return pairs{"  controlPlane: {}", "  controlPlane: {" + fields + "}"}
}

var options = api.Options{Name: "demo", TemplateVersions: []string{"v1", "v2"}}

func readCluster(t *testing.T, spec []byte) *api.Cluster {
	t.Helper()
	c, errs := api.ReadCluster("demo.yaml", spec, options)
	require.NoError(t, errs.Err())
	return c
}

func readRelease(t *testing.T, spec []byte) *api.Release {
	t.Helper()
	r, errs := api.ReadRelease("release.yaml", spec, api.Options{})
	require.NoError(t, errs.Err())
	return r
}

// lines returns the messages of errors, one each.
func lines(errs api.Errors) []string {
	if len(errs) == 0 {
		return nil
	}
	return strings.Split(errs.Error(), "\n")
}
