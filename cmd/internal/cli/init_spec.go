package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/shared/api"
)

// starter is what the spec of drover init says. VPC and Subnets are of an existing network. CIDR and Zones are of a new one.
type starter struct {
	Name, Release    string
	CIDR             string
	Zones            []string
	VPC              string
	Subnets          []string
	Access           string
	Architecture     api.Architecture
	InstanceTypes    []string
	MinSize, MaxSize int
}

// yaml returns the spec. Values are written as JSON, which is YAML too: so an answer is always one value.
func (s *starter) yaml() []byte {
	var b bytes.Buffer
	line := func(format string, values ...any) {
		for i, value := range values {
			values[i] = flow(value)
		}
		fmt.Fprintf(&b, format+"\n", values...)
	}
	line("# docs/reference/cluster.md has every field and its default.")
	line("apiVersion: drover.run/v1alpha1\nkind: Cluster\nmetadata:\n  name: %s", s.Name)
	line("  # Rollouts and freezes select clusters by their labels.\n  # labels: {stage: lab}")
	line("spec:\n  release:\n    # Kubernetes version, images and add-ons. To upgrade, name a later release.\n    name: %s", s.Release)
	if s.VPC != "" {
		line("  network:\n    existing:\n      # drover does not change the VPC. Nodes need a route to EKS and to the registries.")
		line("      vpcID: %s\n      subnets: %s", s.VPC, s.Subnets)
	} else {
		line("  network:\n    # These cannot change later. Peered networks need other addresses.\n    cidr: %s\n    zones: %s", s.CIDR, s.Zones)
		line("    # How nodes reach the internet: a NAT gateway in each zone. A Single one is cheaper, and fails with its zone.")
		line("    natGateways: PerZone")
	}
	if s.Access != "" {
		line("  controlPlane:\n    access:\n      # Who administers the cluster. drover kubeconfig then makes kubectl work.")
		line("      - principalARN: %s\n        policies: [{name: AmazonEKSClusterAdminPolicy}]", s.Access)
	}
	line("  pools:\n    - name: workers\n      architecture: %s\n      instanceTypes: %s", string(s.Architecture), s.InstanceTypes)
	line("      minSize: %s\n      maxSize: %s", s.MinSize, s.MaxSize)
	line("      # How long pods may take to leave a node before it is replaced, within their disruption budgets.")
	line("      drain: {timeout: 30m}")
	return b.Bytes()
}

// flow returns a value as JSON.
func flow(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // texts and numbers
		panic(err)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
