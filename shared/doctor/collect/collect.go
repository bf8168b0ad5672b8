// Package collect reads the facts for the checks of package doctor, through interfaces to AWS. It changes nothing. The plan function uses
// it before the first creation of a cluster, and the command line for `drover doctor`.
package collect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// Quotas returns the account's quotas: a subset of servicequotas.Quotas.
type Quotas interface {
	// Value returns a quota that Service Quotas has in a region.
	Value(ctx context.Context, region, service, code string) (value int, found bool, err error)
}

// Networks counts the parts of networks in the region: a subset of ec2.Networks.
type Networks interface {
	VPCs(ctx context.Context) (int, error)
	InternetGateways(ctx context.Context) (int, error)
	Addresses(ctx context.Context) (int, error)
	// NATGateways returns their number by zone.
	NATGateways(ctx context.Context) (map[string]int, error)
	// Zones returns the ids of the region's zones by name.
	Zones(ctx context.Context) (map[string]string, error)
	// Subnets returns the subnets of VPCs by id.
	Subnets(ctx context.Context, vpcs []string) (map[string]doctor.Subnet, error)
	// PublicSubnets returns which of these subnets have a route to an internet gateway.
	PublicSubnets(ctx context.Context, subnets map[string]doctor.Subnet) (map[string]bool, error)
}

// Identities are those of the account: a subset of iam.Identities.
type Identities interface {
	// Roles counts the roles and returns their quota, or 0 if it is unknown.
	Roles(ctx context.Context) (used, quota int, err error)
	// OIDCProviders counts the OIDC providers.
	OIDCProviders(ctx context.Context) (int, error)
	// Find returns the ARN of the role or user that has the name of a principal, or "".
	Find(ctx context.Context, principalARN string) (arn string, err error)
}

// Parameters are those of SSM: a subset of ssm.Parameters.
type Parameters interface {
	// Value returns a parameter, or "" if it does not exist.
	Value(ctx context.Context, name string) (string, error)
}

// Functions has the limits of Lambda: a subset of lambda.Functions.
type Functions interface {
	Exists(ctx context.Context, function string) (bool, error)
	Concurrency(ctx context.Context) (limit, unreserved int, err error)
}

// Capacity describes instances: a subset of ec2.Capacity.
type Capacity interface {
	InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error)
	Images(ctx context.Context, ids []string) (map[string]preflight.Image, error)
	// Running returns the vCPUs of the account's instances in the region, by the code of their quota.
	Running(ctx context.Context) (map[string]int, error)
}

// EKS counts clusters, and lists versions: a subset of eks.Reader.
type EKS interface {
	Clusters(ctx context.Context) (int, error)
	Catalog(ctx context.Context) ([]preflight.Version, error)
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
}

// Collector reads facts about an account and region.
type Collector struct {
	// Account and Region are examined.
	Account, Region string
	// Now is the clock, for images that are deprecated.
	Now func() time.Time

	Quotas     Quotas
	Networks   Networks
	Capacity   Capacity
	EKS        EKS
	Identities Identities
	Functions  Functions
	// Parameters is nil in drover's functions: they do not check what concerns the deployment of drover. For a cluster, that is only a
	// warning.
	Parameters Parameters
	// Lenient makes a call that the caller may not make a warning. Otherwise it is an error, as any other failed call: drover's functions may
	// make all of them.
	Lenient bool
}

// Examine checks whether the account can take a cluster that does not exist yet. The cluster is resolved.
func (c *Collector) Examine(ctx context.Context, cluster *api.Cluster) ([]doctor.Finding, error) {
	return c.ExamineAll(ctx, []doctor.Cluster{{Resolved: cluster}})
}

// ExamineAll checks whether the account can take clusters that do not exist yet.
func (c *Collector) ExamineAll(ctx context.Context, clusters []doctor.Cluster) ([]doctor.Finding, error) {
	f, err := c.facts(ctx, clusters)
	if err != nil {
		return nil, err
	}
	return doctor.Examine(f, clusters), nil
}

// facts reads only what the clusters need, in a fixed order.
func (c *Collector) facts(ctx context.Context, clusters []doctor.Cluster) (*doctor.Facts, error) {
	f := &doctor.Facts{Account: c.Account, Region: c.Region, Limits: map[string]int{}, Used: map[string]int{}, Unreadable: map[string]string{}}
	var types []string
	for _, cluster := range clusters {
		for _, pool := range cluster.Resolved.Spec.Pools {
			types = append(types, pool.InstanceTypes...)
		}
	}
	if len(types) > 0 {
		slices.Sort(types)
		var err error
		f.InstanceTypes, err = c.Capacity.InstanceTypes(ctx, slices.Compact(types))
		if err := c.unless(f, err, doctor.InstanceTypesExist, doctor.OnDemandQuota, doctor.SpotQuota); err != nil {
			return nil, err
		}
	}
	if err := c.quotas(ctx, f, clusters); err != nil {
		return nil, err
	}
	var err error
	f.Concurrency, f.Unreserved, err = c.Functions.Concurrency(ctx)
	if err := c.unless(f, err, doctor.LambdaConcurrency); err != nil {
		return nil, err
	}
	if err := c.unless(f, c.zones(ctx, f, clusters), doctor.ZonesAccepted); err != nil {
		return nil, err
	}
	if err := c.readOffered(ctx, f, clusters); err != nil {
		return nil, err
	}
	if err := c.unless(f, c.principals(ctx, f, clusters), doctor.PrincipalsExist); err != nil || c.Parameters == nil {
		return f, err
	}
	if len(f.Subnets) > 0 {
		var err error
		f.PublicSubnets, err = c.Networks.PublicSubnets(ctx, f.Subnets)
		if err := c.unless(f, err, doctor.NetworkTags); err != nil {
			return nil, err
		}
	}
	f.Deployment = &doctor.Deployment{LinkedRoles: map[string]bool{}}
	if err := c.unless(f, c.bootstrap(ctx, f.Deployment), doctor.Bootstrap); err != nil {
		return nil, err
	}
	return f, c.unless(f, c.linkedRoles(ctx, f.Deployment, clusters), doctor.ServiceLinkedRoles)
}

// bootstrap reads the version of the CDK's bootstrap stack, and whether drover is deployed.
func (c *Collector) bootstrap(ctx context.Context, d *doctor.Deployment) error {
	version, err := c.Parameters.Value(ctx, doctor.BootstrapParameter)
	if err != nil {
		return err
	}
	d.Bootstrap, _ = strconv.Atoi(version) // 0 for text that is no version
	d.Deployed, err = c.Functions.Exists(ctx, names.Function("plan"))
	return err
}

// linkedRoles finds the service-linked roles that clusters use.
func (c *Collector) linkedRoles(ctx context.Context, d *doctor.Deployment, clusters []doctor.Cluster) error {
	for _, role := range doctor.LinkedRoles(clusters) {
		found, err := c.Identities.Find(ctx, "arn:aws:iam::"+c.Account+":role/aws-service-role/"+role.Service+"/"+role.Name)
		if err != nil {
			return err
		}
		d.LinkedRoles[role.Name] = found != ""
	}
	return nil
}

// readOffered reads the versions and images that the clusters name.
func (c *Collector) readOffered(ctx context.Context, f *doctor.Facts, clusters []doctor.Cluster) (err error) {
	if len(clusters) == 0 {
		return nil
	}
	var addons, images []string
	for _, cluster := range clusters {
		for _, addon := range cluster.Resolved.Spec.Addons {
			addons = append(addons, addon.Name)
		}
		for _, pool := range cluster.Resolved.Spec.Pools {
			images = append(images, pool.ImageID)
		}
	}
	f.Offered.ReadAt = c.Now()
	f.Offered.Catalog, err = c.EKS.Catalog(ctx)
	if err := c.unless(f, err, doctor.VersionOffered); err != nil {
		return err
	}
	f.Offered.Compat, err = c.EKS.Compat(ctx, addons)
	if err := c.unless(f, err, doctor.AddonsCompatible); err != nil {
		return err
	}
	if len(images) == 0 {
		return nil
	}
	slices.Sort(images)
	f.Offered.Images, err = c.Capacity.Images(ctx, slices.Compact(images))
	return c.unless(f, err, doctor.Images)
}

// principals finds the roles and users of the account that access entries name.
func (c *Collector) principals(ctx context.Context, f *doctor.Facts, clusters []doctor.Cluster) (err error) {
	f.Principals = map[string]string{}
	ours, _ := doctor.Principals(c.Account, clusters)
	slices.Sort(ours)
	for _, principal := range slices.Compact(ours) {
		if f.Principals[principal], err = c.Identities.Find(ctx, principal); err != nil {
			return err
		}
	}
	return nil
}

// quotas reads the quotas that the clusters take from, and their usage.
func (c *Collector) quotas(ctx context.Context, f *doctor.Facts, clusters []doctor.Cluster) error {
	limits, usage := map[string]bool{}, map[string]bool{} // what was read: codes of quotas, and checks
	for _, need := range doctor.Needs(clusters, f.InstanceTypes) {
		if _, unreadable := f.Unreadable[need.Check]; unreadable {
			continue
		}
		if need.Quota == doctor.Roles { // IAM itself has the quota, in every region
			used, quota, err := c.Identities.Roles(ctx)
			if err := c.unless(f, err, need.Check); err != nil {
				return err
			}
			if quota > 0 {
				f.Used[need.Key()], f.Limits[need.Code] = used, quota
			}
			continue
		}
		if region := need.Region(c.Region); !limits[need.Code] && region != "" {
			value, found, err := c.Quotas.Value(ctx, region, need.Service, need.Code)
			if err := c.unless(f, err, need.Check); err != nil {
				return err
			}
			if found {
				f.Limits[need.Code] = value
			}
			limits[need.Code] = true
		}
		if !usage[need.Check] {
			used, err := c.readUsage(ctx, need.Check)
			if err := c.unless(f, err, need.Check); err != nil {
				return err
			}
			maps.Copy(f.Used, used)
			usage[need.Check] = true
		}
	}
	return nil
}

// zones reads the zones of the region, and the subnets of existing networks.
func (c *Collector) zones(ctx context.Context, f *doctor.Facts, clusters []doctor.Cluster) (err error) {
	if len(clusters) == 0 {
		return nil
	}
	var vpcs []string
	for _, cluster := range clusters {
		if existing := cluster.Resolved.Spec.Network.Existing; existing != nil {
			vpcs = append(vpcs, existing.VPCID)
		}
	}
	if f.Zones, err = c.Networks.Zones(ctx); err != nil || len(vpcs) == 0 {
		return err
	}
	slices.Sort(vpcs)
	f.Subnets, err = c.Networks.Subnets(ctx, slices.Compact(vpcs))
	return err
}

// readUsage returns the usage of the quotas of a check, by Quota.Key.
func (c *Collector) readUsage(ctx context.Context, check string) (map[string]int, error) {
	one := func(q doctor.Quota, count func(context.Context) (int, error)) (map[string]int, error) {
		used, err := count(ctx)
		return map[string]int{q.Key(): used}, err
	}
	switch check {
	case doctor.VPCQuota:
		return one(doctor.VPCs, c.Networks.VPCs)
	case doctor.GatewayQuota:
		return one(doctor.InternetGateways, c.Networks.InternetGateways)
	case doctor.AddressQuota:
		return one(doctor.Addresses, c.Networks.Addresses)
	case doctor.ClusterQuota:
		return one(doctor.EKSClusters, c.EKS.Clusters)
	case doctor.ProviderQuota:
		return one(doctor.OIDCProviders, c.Identities.OIDCProviders)
	case doctor.NATGatewayQuota:
		zones, err := c.Networks.NATGateways(ctx)
		used := map[string]int{}
		for zone, n := range zones {
			used[doctor.NATGatewaysIn(zone).Key()] = n
		}
		return used, err
	default: // on-demand and spot instances have different codes
		return c.Capacity.Running(ctx)
	}
}

// unless returns an error, unless it means that the caller may not make a call and that is a fact for some checks.
func (c *Collector) unless(f *doctor.Facts, err error, checks ...string) error {
	var refused interface{ ErrorMessage() string }
	if err == nil || !c.Lenient || !fault.Denied(err) || !errors.As(err, &refused) {
		return err
	}
	for _, check := range checks {
		f.Unreadable[check] = refused.ErrorMessage() // without the request id, so that it repeats
	}
	return nil
}
