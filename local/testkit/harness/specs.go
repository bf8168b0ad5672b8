package harness

// Specs for tests: a small cluster and its release.

import (
	"fmt"

	"github.com/drover-run/drover/local/aws/ec2"
)

// Release returns a release that clusters of Spec use. Upload it to releases/r1.yaml.
func Release() string { return ReleaseOf("1.36", "r1") }

// ReleaseOf returns a release of a Kubernetes minor version such as 1.36.
func ReleaseOf(version, name string) string {
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  kubernetesVersion: "%s"
  images: {amd64: %s, arm64: %s, amd64-nvidia: %s, bottlerocket-amd64: %s}
  addons:
    - {name: vpc-cni, version: v1.21.1-eksbuild.1}
    - {name: coredns, version: v1.13.2-eksbuild.1}
  templateVersion: v1
`, name, version, ec2.ImageID(version, "amd64"), ec2.ImageID(version, "arm64"), ec2.ImageID(version, "amd64-nvidia"),
		ec2.ImageID(version, "bottlerocket-amd64"))
}

// Spec returns a cluster with one pool. more is added to its spec, indented by two.
func Spec(name, more string) string {
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  release: {name: r1}
  network:
    cidr: 10.0.0.0/16
    zones: [%[2]sa, %[2]sb]
    natGateways: Single
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}
%[3]s`, name, Region, more)
}
