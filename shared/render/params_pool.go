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
	Volume                          api.RootVolume
	Encrypted                       bool
	// ResourceTags are those of instances and what comes with them, GroupTags those of the group alone.
	ResourceTags []tag
	GroupTags    []groupTag
	// InstanceTags are those of instances: ResourceTags, and when they were last replaced on demand.
	InstanceTags  []tag
	RollAt        string
	UserData      []part
	InstanceTypes []string
	MinSize       string
	// Signals is how many nodes must have joined before the pool counts as created.
	Signals int
	// Refresh has Auto Scaling replace the instances, with WarmUp seconds between; otherwise CloudFormation does.
	Refresh bool
	WarmUp  int
	// Spot is true when some instances are spot instances.
	Spot                             bool
	OnDemandBase, OnDemandPercentage int
	// Metadata is what the launch hook's events carry, and DrainMetadata the terminate hook's: events.Pool.
	Metadata, DrainMetadata map[string]any
}

type tag struct{ Key, Value string }

// groupTag is a tag of an Auto Scaling group that its instances do not inherit.
type groupTag tag

// LabelPool is the label by which nodes are known as those of a pool.
const LabelPool = "drover.run/pool"

func newPoolParams(cluster *api.Cluster, pool *api.Pool, userData []part, rollAt time.Time) (*poolParams, error) {
	group := names.Group(cluster.Metadata.Name, pool.Name)
	p := &poolParams{
		Description:        fmt.Sprintf("drover: pool %s of cluster %s", pool.Name, cluster.Metadata.Name),
		GroupName:          group,
		ImageID:            pool.ImageID,
		Volume:             pool.RootVolume,
		Encrypted:          enabled(pool.RootVolume.Encrypted),
		UserData:           userData,
		InstanceTypes:      pool.InstanceTypes,
		MinSize:            strconv.Itoa(pool.MinSize),
		Signals:            pool.MinSize,
		Refresh:            pool.Update.Strategy == api.InstanceRefresh,
		OnDemandPercentage: 100,
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
		p.WarmUp, pause = int(pause), 0 // Auto Scaling pauses itself
	}
	p.Metadata = launchMetadata(cluster, pool, pause)
	if body, err := appendJSON(nil, p.Metadata); err == nil && len(body) > maxMetadata {
		return nil, fmt.Errorf("spec.pools[%s].readiness: the launch hook's metadata has %d characters, more than %d", pool.Name,
			len(body), maxMetadata)
	}
	if pool.Spot != nil {
		p.OnDemandBase, p.OnDemandPercentage = pool.Spot.OnDemandBase, pool.Spot.OnDemandPercentage
		p.Spot = pool.Spot.OnDemandPercentage < 100
	}
	tags := stackTags(cluster, names.PoolStack(pool.Name))
	tags["Name"] = group
	p.ResourceTags = sorted(tags)
	if !rollAt.IsZero() {
		p.RollAt = rollAt.UTC().Format(time.RFC3339)
		tags[names.TagRollAt] = p.RollAt
	}
	p.InstanceTags = sorted(tags)
	p.GroupTags = autoscalerTags(cluster, pool, len(p.ResourceTags)+stackTagsAtMost)
	return p, nil
}

// stackTagsAtMost are the tags that only a pool's stack has and that reach the group too: spec version, checksum, template, when it
// was rolled, its pace, and that it settled.
const stackTagsAtMost = 6

// newPace is how fast the pool's nodes are replaced.
func newPace(group string, pool *api.Pool) *Pace {
	u := pool.Update
	drain, _ := seconds(pool.Drain.Timeout) // it was read before
	return &Pace{
		Group: group, Strategy: u.Strategy, MaxUnavailable: u.MaxUnavailable, MaxSurge: u.MaxSurge, MinSize: pool.MinSize, MaxSize: pool.MaxSize,
		DrainSeconds: drain,
	}
}

// maxMetadata is the greatest length of a hook's metadata, of 1023 characters and with room to grow.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHookSpecification.html
const maxMetadata = 1000

// launchMetadata is what join-node must know of the pool: an events.Pool.
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

// seconds of a duration that may not be stated.
func seconds(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	duration, err := time.ParseDuration(text)
	return int64(duration / time.Second), err
}

// drainPolicy is how a pool's nodes are drained. It is deployed with the pool, in the terminate hook: a drain goes by what the
// pool is, not by a spec that is not deployed yet, and needs no other place to find it.
// It is a drain.Policy: times are in seconds, and those that are not stated are left out.
func drainPolicy(d *api.Drain) (map[string]any, error) {
	policy := map[string]any{
		"onTimeout": string(d.OnTimeout), "unmanagedPods": string(d.UnmanagedPods), "deleteEmptyDirData": enabled(d.DeleteEmptyDirData),
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

// autoscalerTags let the cluster autoscaler find the group, and know the nodes of one that has none.
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
	for _, hint := range sorted(hints) {
		// Only hints, so those that AWS would refuse are left out rather than the pool.
		if len(hint.Key) <= maxTagKey && len(tags)+others < maxTags {
			tags = append(tags, groupTag(hint))
		}
	}
	return tags
}

// nodeLabels are the labels of a pool's nodes.
func nodeLabels(pool *api.Pool) map[string]string {
	labels := maps.Clone(pool.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelPool] = pool.Name
	return labels
}

func sorted(m map[string]string) []tag {
	list := make([]tag, 0, len(m))
	for key, value := range m {
		list = append(list, tag{key, value})
	}
	slices.SortFunc(list, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return list
}
