// Package collect gathers the facts for the checks of package preflight, through interfaces to AWS and Kubernetes. It changes nothing.
// The upgrade function and the command line use it.
package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// ErrForbidden means that the caller may not read the cluster's API. It says nothing about the cluster itself.
var ErrForbidden = errors.New("reading the cluster's API: access denied")

// Kubernetes surveys a cluster through its own API: a subset of survey.Clusters. It may return ErrForbidden.
type Kubernetes interface {
	Survey(ctx context.Context, cluster string) (preflight.Survey, error)
}

// EKS describes the cluster and the catalog: a subset of eks.Reader.
type EKS interface {
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
	Addons(ctx context.Context, eksCluster string) ([]preflight.Addon, error)
	Insights(ctx context.Context, eksCluster string, rollback bool, versions []string) (insights []preflight.Insight, refreshed time.Time,
		err error)
	Catalog(ctx context.Context) ([]preflight.Version, error)
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
	// Clusters returns the number of the account's clusters in the region.
	Clusters(ctx context.Context) (int, error)
}

// Groups are the Auto Scaling groups of pools: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, name string) (pool.Group, bool, error)
	LaunchFailure(ctx context.Context, name string) (why string, at time.Time, err error)
}

// Alarms describes alarms: a subset of cloudwatch.Alarms.
type Alarms interface {
	Describe(ctx context.Context, names []string) ([]preflight.Alarm, error)
}

// Capacity describes what EC2 has: a subset of ec2.Capacity.
type Capacity interface {
	Subnets(ctx context.Context, ids []string) (map[string]preflight.Subnet, error)
	Images(ctx context.Context, ids []string) (map[string]preflight.Image, error)
	InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error)
	// Started returns the image of each instance.
	Started(ctx context.Context, instances []string) (map[string]string, error)
	// Running returns the vCPUs of the account's instances in the region, by the code of their quota.
	Running(ctx context.Context) (map[string]int, error)
	// Volumes returns the GiB of its volumes of some types, by the code of their quota.
	Volumes(ctx context.Context, types []string) (map[string]int, error)
}

// Quotas returns the account's quotas: a subset of servicequotas.Quotas.
type Quotas interface {
	// Limit returns a quota of EC2, Storage one of EBS in GiB, Clusters one of EKS.
	Limit(ctx context.Context, code string) (preflight.Quota, bool, error)
	Storage(ctx context.Context, code string) (preflight.Quota, bool, error)
	Clusters(ctx context.Context, code string) (preflight.Quota, bool, error)
}

// Gatherer of facts.
type Gatherer struct {
	Kubernetes Kubernetes
	EKS        EKS
	Groups     Groups
	Alarms     Alarms
	Capacity   Capacity
	Quotas     Quotas
	Now        func() time.Time
}

// Before gathers the facts for preflight.Before. It returns an error if AWS does not answer. If the cluster's API does not answer, that
// is one of the facts.
func (g *Gatherer) Before(ctx context.Context, plan *preflight.Plan) (*preflight.Facts, error) {
	f, err := g.After(ctx, plan)
	if err != nil {
		return nil, err
	}
	if f.Insights, f.InsightsRefreshed, err = g.insights(ctx, plan); err != nil {
		return nil, err
	}
	if f.Catalog, err = g.EKS.Catalog(ctx); err != nil {
		return nil, err
	}
	var addons []string
	for _, a := range f.Addons {
		addons = append(addons, a.Name)
	}
	for _, a := range plan.After.Spec.Addons {
		addons = append(addons, a.Name)
	}
	if f.Compat, err = g.EKS.Compat(ctx, unique(addons)); err != nil {
		return nil, err
	}
	if err := g.room(ctx, plan, f); err != nil {
		return nil, err
	}
	return f, nil
}

// insights returns the insights for the control plane's next versions. Those of a rollback have no version.
func (g *Gatherer) insights(ctx context.Context, plan *preflight.Plan) (insights []preflight.Insight, refreshed time.Time, err error) {
	versions := plan.Versions()
	switch {
	case len(versions) == 0:
		return nil, refreshed, nil // the control plane is not upgraded
	case plan.Rollback:
		versions = nil
	}
	return g.EKS.Insights(ctx, names.EKSCluster(plan.Cluster), plan.Rollback, versions)
}

// After gathers the facts for preflight.After, which needs fewer.
func (g *Gatherer) After(ctx context.Context, plan *preflight.Plan) (*preflight.Facts, error) {
	f := &preflight.Facts{ReadAt: g.Now()}
	eksCluster := names.EKSCluster(plan.Cluster)
	var err error
	if f.ControlPlane, err = g.EKS.ControlPlane(ctx, eksCluster); err != nil {
		return nil, err
	}
	if f.Addons, err = g.EKS.Addons(ctx, eksCluster); err != nil {
		return nil, err
	}
	if f.Alarms, err = g.Alarms.Describe(ctx, plan.Alarms); err != nil {
		return nil, err
	}
	if f.Groups, err = g.groups(ctx, plan); err != nil {
		return nil, err
	}
	var instances []string
	for _, group := range f.Groups {
		instances = append(instances, group.Instances...)
	}
	if f.ImageOfInstance, err = g.Capacity.Started(ctx, unique(instances)); err != nil {
		return nil, err
	}
	var images []string
	for _, pool := range plan.After.Spec.Pools {
		images = append(images, pool.ImageID)
	}
	if f.Images, err = g.Capacity.Images(ctx, unique(images)); err != nil {
		return nil, err
	}
	f.Survey, err = g.Kubernetes.Survey(ctx, plan.Cluster)
	var unreachable *fault.ClusterUnreachable
	if errors.As(err, &unreachable) {
		f.Survey, f.Unreachable = preflight.Survey{}, err.Error()
		return f, nil
	}
	if errors.Is(err, ErrForbidden) {
		f.Survey, f.Forbidden = preflight.Survey{}, true
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", plan.Cluster, err)
	}
	return f, nil
}

// groups returns the groups of the pools after the upgrade.
func (g *Gatherer) groups(ctx context.Context, plan *preflight.Plan) (map[string]preflight.Group, error) {
	groups := map[string]preflight.Group{}
	for _, pool := range plan.After.Spec.Pools {
		name := names.Group(plan.Cluster, pool.Name)
		group, found, err := g.Groups.Describe(ctx, name)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		failure, at, err := g.Groups.LaunchFailure(ctx, name)
		if err != nil {
			return nil, err
		}
		out := preflight.Group{
			Name: name, Desired: group.Desired, Suspended: group.Suspended, Subnets: group.Subnets, Failure: failure, FailedAt: at,
		}
		for _, instance := range group.Instances {
			if !instance.IsInService() {
				continue
			}
			out.Instances = append(out.Instances, instance.ID)
			switch {
			case !group.IsCurrent(instance, plan.NodesSince[pool.Name]):
				out.Outdated = append(out.Outdated, instance.ID)
			default:
				out.InService++
			}
		}
		groups[pool.Name] = out
	}
	return groups, nil
}

// room adds the facts about room for new nodes, the control plane's new interfaces and another cluster.
func (g *Gatherer) room(ctx context.Context, plan *preflight.Plan, f *preflight.Facts) error {
	subnets := slices.Clone(f.ControlPlane.Subnets)
	for _, group := range f.Groups {
		subnets = append(subnets, group.Subnets...)
	}
	var types []string
	for _, pool := range plan.After.Spec.Pools {
		types = append(types, pool.InstanceTypes...)
	}
	var err error
	if f.Subnets, err = g.Capacity.Subnets(ctx, unique(subnets)); err != nil {
		return err
	}
	if f.InstanceTypes, err = g.Capacity.InstanceTypes(ctx, unique(types)); err != nil {
		return err
	}
	return g.quotas(ctx, plan, f)
}

// quotas adds the quotas that apply to new nodes, their volumes and another cluster.
func (g *Gatherer) quotas(ctx context.Context, plan *preflight.Plan, f *preflight.Facts) error {
	f.Quotas = map[string]preflight.Quota{}
	clusters, err := g.EKS.Clusters(ctx)
	if err != nil {
		return err
	}
	const code = preflight.ClusterQuotaCode
	if err := limits(ctx, f, map[string]int{code: 1}, map[string]int{code: clusters}, g.Quotas.Clusters); err != nil {
		return err
	}
	if needed := preflight.QuotasNeeded(f, plan); len(needed) > 0 {
		running, err := g.Capacity.Running(ctx)
		if err != nil {
			return err
		}
		if err := limits(ctx, f, needed, running, g.Quotas.Limit); err != nil {
			return err
		}
	}
	needed := preflight.VolumesNeeded(f, plan)
	if len(needed) == 0 {
		return nil
	}
	var types []string
	for _, pool := range plan.After.Spec.Pools {
		types = append(types, pool.RootVolume.Type)
	}
	volumes, err := g.Capacity.Volumes(ctx, unique(types))
	if err != nil {
		return err
	}
	return limits(ctx, f, needed, volumes, g.Quotas.Storage)
}

// limits adds the needed quotas, with their usage.
func limits(ctx context.Context, f *preflight.Facts, needed, used map[string]int,
	limit func(context.Context, string) (preflight.Quota, bool, error)) error {
	for code := range needed {
		quota, found, err := limit(ctx, code)
		if err != nil {
			return err
		}
		if found {
			quota.Used = used[code]
			f.Quotas[code] = quota
		}
	}
	return nil
}

// unique returns the sorted distinct values, without empty ones.
func unique(all []string) []string {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
