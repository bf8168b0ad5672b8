package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/doctor"
)

// instanceType of all nodes: two vCPUs, because some new accounts may run only five.
const instanceType = "t3.medium"

// poolName is the pool of each cluster.
const poolName = "workers"

// spec is a cluster of the run.
type spec struct {
	name, release, cidr string
	// private reports whether the cluster's endpoint is reachable only from its network.
	private bool
}

// yaml is the smallest spec: one node, and one NAT gateway.
func (t *Target) yaml(s spec, principal string) string {
	endpoint := ""
	if s.private {
		endpoint = "\n    endpoint: {public: false, private: true}"
	}
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata:
  name: %s
spec:
  release: {name: %q}
  network:
    cidr: %s
    zones: [%s]
    natGateways: Single
  controlPlane:%s
    access:
      - principalARN: %s
        policies: [{name: AmazonEKSClusterAdminPolicy}]
  pools:
    - name: %s
      instanceTypes: [%s]
      minSize: 1
      maxSize: 2
      drain: {timeout: 10m}
  tags: {%s: %s}
  deletionProtection: false
`, s.name, s.release, s.cidr, strings.Join(t.zones, ", "), endpoint, principal, poolName, instanceType, tagKey, t.Suffix)
}

// smallest is the first cluster of the run, and privateOne the second.
func (t *Target) smallest() spec {
	return spec{name: t.cluster(), release: t.older.name, cidr: "10.64.0.0/16"}
}

func (t *Target) privateOne() spec {
	return spec{name: t.cluster() + "-p", release: t.older.name, cidr: "10.65.0.0/16", private: true}
}

// writeSpec writes the spec of a cluster to a file.
func (t *Target) writeSpec(ctx context.Context, s spec) (file string, err error) {
	principal, err := t.principal(ctx)
	if err != nil {
		return "", err
	}
	if err := t.findZones(ctx); err != nil {
		return "", err
	}
	return t.write(s.name, t.yaml(s, principal))
}

// findZones chooses the zones of the run, once.
func (t *Target) findZones(ctx context.Context) (err error) {
	if t.zones == nil {
		t.zones, err = t.chooseZones(ctx)
	}
	return err
}

// create uploads the spec of a cluster, and waits until drover reports it as Ready.
func (t *Target) create(ctx context.Context, log *runner.Log, s spec) error {
	file, err := t.writeSpec(ctx, s)
	if err != nil {
		return err
	}
	t.Meter.Start(s.name, time.Now(), controlPlanePrice, natPrice, addressPrice, nodePrice)
	if _, err := t.drover(ctx, log, "apply", file, "--watch"); err != nil {
		return err
	}
	return t.requirePhase(ctx, log, s.name, "Ready")
}

// status is a part of what drover status prints.
type status struct {
	Status struct {
		Phase, Message, KubernetesVersion, Release string
	}
}

// status reads the status of a cluster.
func (t *Target) status(ctx context.Context, log *runner.Log, cluster string) (s status, err error) {
	out, err := t.drover(ctx, log.Silent(), "status", cluster, "-o", "json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("reading the status of %s: %w", cluster, err)
	}
	return s, nil
}

// requirePhase fails unless a cluster is in a phase.
func (t *Target) requirePhase(ctx context.Context, log *runner.Log, cluster, phase string) error {
	s, err := t.status(ctx, log, cluster)
	if err != nil {
		return err
	}
	if s.Status.Phase != phase {
		return fmt.Errorf("cluster %s is %s, not %s", cluster, s.Status.Phase, phase)
	}
	log.Found("cluster %s is %s with Kubernetes %s, release %s", cluster, s.Status.Phase, s.Status.KubernetesVersion, s.Status.Release)
	return nil
}

// chooseZones returns two zones that EKS accepts and that offer the instance type.
func (t *Target) chooseZones(ctx context.Context) ([]string, error) {
	client := ec2.NewFromConfig(t.cfg)
	offers, err := client.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone,
		Filters:      []types.Filter{{Name: aws.String("instance-type"), Values: []string{instanceType}}},
	})
	if err != nil {
		return nil, fmt.Errorf("listing the zones with %s: %w", instanceType, err)
	}
	out, err := client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{
			{Name: aws.String("state"), Values: []string{"available"}}, {Name: aws.String("zone-type"), Values: []string{"availability-zone"}},
			{Name: aws.String("opt-in-status"), Values: []string{"opt-in-not-required"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("listing the zones: %w", err)
	}
	var zones []string
	for _, zone := range out.AvailabilityZones {
		offered := slices.ContainsFunc(offers.InstanceTypeOfferings, func(o types.InstanceTypeOffering) bool {
			return aws.ToString(o.Location) == aws.ToString(zone.ZoneName)
		})
		if offered && !doctor.RefusedZone(aws.ToString(zone.ZoneId)) {
			zones = append(zones, aws.ToString(zone.ZoneName))
		}
	}
	slices.Sort(zones)
	if len(zones) < 2 {
		return nil, fmt.Errorf("region %s has fewer than two zones with %s that EKS accepts: choose another region", t.Region, instanceType)
	}
	return zones[:2], nil
}
