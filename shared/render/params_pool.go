package render

// A pool's stack: its launch template and Auto Scaling group.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// poolParams are the parameters of pool.yaml.tmpl.
type poolParams struct {
	Description, GroupName, ImageID string
	// Image is the family and variant of the image, unless they are the defaults.
	Image     string
	Volume    api.RootVolume
	Encrypted bool
	// DataDisk reports whether Volume is the disk /dev/xvdb: the operating system has a small one of its own.
	DataDisk bool
	Volumes  []volume
	// SecurityGroups are those in addition to the cluster's, sorted.
	SecurityGroups []string
	// DiskKeys are the KMS keys of the disks.
	DiskKeys []string
	// LocalStorage is how the disks of instances are used, and the instance types that have some. It is empty if they are not used.
	LocalStorage       []string
	MetadataHopLimit   int
	DetailedMonitoring bool
	// ZonalShift is nil if the spec does not state it.
	ZonalShift *zonalShift
	// ResourceTags are the tags of instances and their volumes and interfaces. GroupTags are those of the group alone.
	ResourceTags []tag
	GroupTags    []groupTag
	// InstanceTags are the tags of instances: ResourceTags, and the time of their last roll.
	InstanceTags  []tag
	RollAt        string
	UserData      []part
	InstanceTypes []string
	MinSize       string
	// Signals is how many nodes must join before the stack is created.
	Signals int
	// Refresh makes Auto Scaling replace the instances, with a pause of WarmUp seconds. Otherwise CloudFormation replaces them.
	Refresh bool
	WarmUp  int
	// Spot reports whether some instances are spot instances.
	Spot                             bool
	OnDemandBase, OnDemandPercentage int
	// Metadata is in the events of the launch hook, DrainMetadata in those of the terminate hook: see events.HookMetadata.
	Metadata, DrainMetadata map[string]any
}

// volume is a further disk.
type volume struct {
	api.Volume
	Encrypted bool
}

type tag struct{ Key, Value string }

// groupTag is a tag of an Auto Scaling group that its instances do not inherit.
type groupTag tag

// newPoolParams computes the values of a pool's template.
func newPoolParams(cluster *api.Cluster, pool *api.Pool, userData []part, rollAt time.Time) (*poolParams, error) {
	group := names.Group(cluster.Metadata.Name, pool.Name)
	p := &poolParams{
		Description:        fmt.Sprintf("drover: pool %s of cluster %s", pool.Name, cluster.Metadata.Name),
		GroupName:          group,
		ImageID:            pool.ImageID,
		Image:              pool.ImageOutput(),
		Volume:             pool.RootVolume,
		Encrypted:          isEnabled(pool.RootVolume.Encrypted),
		DataDisk:           pool.Image.Family == api.Bottlerocket,
		MetadataHopLimit:   pool.MetadataHopLimit,
		DetailedMonitoring: pool.DetailedMonitoring,
		SecurityGroups:     slices.Sorted(slices.Values(pool.SecurityGroups)),
		ZonalShift:         newZonalShift(cluster.Spec.ControlPlane.ZonalShift),
		DiskKeys:           pool.DiskKeys(),
		UserData:           userData,
		InstanceTypes:      pool.InstanceTypes,
		MinSize:            strconv.Itoa(pool.MinSize),
		Signals:            pool.MinSize,
		Refresh:            pool.Update.Strategy == api.InstanceRefresh,
		OnDemandPercentage: 100,
	}
	for _, v := range pool.Volumes {
		p.Volumes = append(p.Volumes, volume{v, isEnabled(v.Encrypted)})
	}
	if pool.LocalStorage != "" {
		p.LocalStorage = append([]string{string(pool.LocalStorage)}, pool.InstanceTypes...)
	}
	policy, err := drainPolicy(&pool.Drain)
	if err != nil {
		return nil, fmt.Errorf("spec.pools[%s].drain: %w", pool.Name, err)
	}
	p.DrainMetadata = map[string]any{"cluster": cluster.Metadata.Name, "pool": pool.Name, "drain": policy}
	pause, err := seconds(pool.Update.PauseTime)
	if err != nil {
		return nil, fmt.Errorf("spec.pools[%s].update.pauseTime: %w", pool.Name, err)
	}
	if p.Refresh {
		p.WarmUp, pause = int(pause), 0 // Auto Scaling pauses
	}
	p.Metadata = launchMetadata(cluster, pool, pause)
	if body, err := appendJSON(nil, p.Metadata, jsonEscapes); err == nil && len(body) > maxMetadata {
		return nil, fmt.Errorf("spec.pools[%s].readiness: the launch hook's metadata has %d characters, more than %d", pool.Name,
			len(body), maxMetadata)
	}
	if pool.Spot != nil {
		p.OnDemandBase, p.OnDemandPercentage = pool.Spot.OnDemandBase, pool.Spot.OnDemandPercentage
		p.Spot = pool.Spot.OnDemandPercentage < 100
	}
	tags := stackTags(cluster, names.PoolStack(pool.Name))
	tags["Name"] = group
	p.ResourceTags = sortedTags(tags)
	if !rollAt.IsZero() {
		p.RollAt = rollAt.UTC().Format(time.RFC3339)
		tags[names.TagRollAt] = p.RollAt
	}
	p.InstanceTags = sortedTags(tags)
	p.GroupTags = autoscalerTags(cluster, pool, len(p.ResourceTags)+maxStackTags)
	return p, nil
}

// maxStackTags counts the tags that only a pool's stack has and that the group inherits: spec version, checksum, template, roll time,
// pace and settled.
const maxStackTags = 6

// newPace returns how fast the pool's nodes are replaced.
func newPace(group string, pool *api.Pool) *Pace {
	u := pool.Update
	drain, _ := seconds(pool.Drain.Timeout) // newPoolParams checked it
	return &Pace{
		Group: group, Strategy: u.Strategy, MaxUnavailable: u.MaxUnavailable, MaxSurge: u.MaxSurge, MinSize: pool.MinSize, MaxSize: pool.MaxSize,
		DrainSeconds: drain,
	}
}

// maxMetadata is the maximum length of a hook's metadata. AWS allows 1023 characters; the rest is a reserve.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHookSpecification.html
const maxMetadata = 1000

// launchMetadata returns what join needs of the pool: an events.HookMetadata.
func launchMetadata(cluster *api.Cluster, pool *api.Pool, pause int64) map[string]any {
	update := map[string]any{"strategy": string(pool.Update.Strategy)}
	if pause > 0 {
		update["pauseSeconds"] = pause
	}
	metadata := map[string]any{"cluster": cluster.Metadata.Name, "pool": pool.Name, "update": update}
	readiness := map[string]any{}
	if len(pool.Readiness.Labels) > 0 {
		labels := map[string]any{}
		for key, value := range pool.Readiness.Labels {
			labels[key] = value
		}
		readiness["labels"] = labels
	}
	if len(pool.Readiness.Conditions) > 0 {
		var conditions []any
		for _, condition := range pool.Readiness.Conditions {
			conditions = append(conditions, condition)
		}
		readiness["conditions"] = conditions
	}
	if len(readiness) > 0 {
		metadata["readiness"] = readiness
	}
	return metadata
}

// seconds parses a duration. An empty one is 0.
func seconds(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	duration, err := time.ParseDuration(text)
	return int64(duration / time.Second), err
}

// drainPolicy returns how a pool's nodes are drained, in the JSON of events.DrainPolicy: times are in seconds, and absent ones are left
// out. It is deployed with the pool, in the terminate hook. So a drain uses the policy of the deployed pool, not of a pending spec, and
// reads it from the event. It is a map, because events.DrainPolicy would also leave out a loadBalancerWait of 0s, and would order the
// fields in another way. Either would change the templates of deployed pools.
func drainPolicy(d *api.Drain) (map[string]any, error) {
	policy := map[string]any{
		"onTimeout": string(d.OnTimeout), "unmanagedPods": string(d.UnmanagedPods), "deleteEmptyDirData": isEnabled(d.DeleteEmptyDirData),
	}
	for name, text := range map[string]string{
		"timeout": d.Timeout, "podGracePeriod": d.PodGracePeriod, "loadBalancerWait": d.LoadBalancerWait,
	} {
		if text == "" {
			continue
		}
		duration, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		policy[name] = int64(duration / time.Second)
	}
	return policy, nil
}

// Limits of an Auto Scaling group's tags.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
const (
	maxTags   = 50
	maxTagKey = 128
)

// autoscalerTags let the cluster autoscaler find the group, and predict the nodes of an empty one.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
func autoscalerTags(cluster *api.Cluster, pool *api.Pool, others int) []groupTag {
	const prefix = "k8s.io/cluster-autoscaler/"
	tags := []groupTag{{prefix + "enabled", "true"}, {prefix + eksName(cluster), "owned"}}
	hints := map[string]string{}
	for key, value := range nodeLabels(pool) {
		hints[prefix+"node-template/label/"+key] = value
	}
	for _, taint := range pool.Taints {
		hints[prefix+"node-template/taint/"+taint.Key] = taint.Value + ":" + taint.Effect
	}
	for _, hint := range sortedTags(hints) {
		// These are only hints, so those that AWS would reject are left out.
		if len(hint.Key) <= maxTagKey && len(tags)+others < maxTags {
			tags = append(tags, groupTag(hint))
		}
	}
	return tags
}

// nodeLabels returns the labels of a pool's nodes.
func nodeLabels(pool *api.Pool) map[string]string {
	labels := maps.Clone(pool.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.LabelPool] = pool.Name
	return labels
}

func sortedTags(m map[string]string) []tag {
	list := make([]tag, 0, len(m))
	for key, value := range m {
		list = append(list, tag{key, value})
	}
	slices.SortFunc(list, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return list
}
