package faults

// Cluster, stack and pool of a moment, from the names in calls and events.

import (
	"encoding/json"
	"strings"

	"github.com/drover-run/drover/shared/names"
)

// About returns the moment with the cluster, stack and pool of a name: the name of a stack or group, its ARN, or a key
// of drover's buckets, with or without the bucket's ARN. Any other name is ignored.
func (m Moment) About(name string) Moment {
	if stack := names.StackOfARN(name); stack != "" {
		name = stack
	}
	if _, object, ok := strings.Cut(name, ":::"); ok { // arn:aws:s3:::bucket/key
		if _, name, ok = strings.Cut(object, "/"); !ok {
			return m
		}
	}
	for _, prefix := range []string{names.Statuses, names.ClusterSpecs, names.Leases} {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			key = strings.TrimSuffix(strings.TrimSuffix(key, ".json"), ".yaml")
			m.Cluster = key
			return m
		}
	}
	if stack, ok := strings.CutPrefix(name, names.Waiters); ok {
		name = strings.TrimSuffix(stack, ".json")
	}
	// The first dash that a stack's name follows: validation prevents two stacks with the same name.
	rest, ok := strings.CutPrefix(name, names.Prefix)
	for i := 0; ok && i < len(rest); i++ {
		if rest[i] == '-' && names.IsStack(rest[i+1:]) {
			m.Cluster, m.Stack = rest[:i], name
			if pool, ok := strings.CutPrefix(rest[i+1:], names.PoolPrefix); ok {
				m.Pool = pool
			}
			return m
		}
	}
	return m
}

// In returns the moment with what a document names: an event's detail, or an execution's input.
func (m Moment) In(document []byte) Moment {
	var content struct {
		Cluster string               `json:"cluster"`
		Stack   string               `json:"stack-id"`
		Group   string               `json:"AutoScalingGroupName"`
		Object  struct{ Key string } `json:"object"`
		Detail  json.RawMessage      `json:"detail"`
	}
	if json.Unmarshal(document, &content) != nil {
		return m
	}
	if len(content.Detail) > 0 {
		m = m.In(content.Detail)
	}
	for _, name := range []string{content.Object.Key, content.Group, content.Stack} {
		m = m.About(name)
	}
	if content.Cluster != "" {
		m.Cluster = content.Cluster
	}
	return m
}
