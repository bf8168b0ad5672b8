package faults

// Which cluster, stack and pool a moment is about, from the names that calls and events carry.

import (
	"encoding/json"
	"strings"

	"github.com/drover-run/drover/shared/names"
)

// About says what a moment is about by a name: of a stack or group, its ARN, or a key of drover's buckets (with or without the
// bucket's ARN before it). A name that is none of these is no harm.
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
	// The first dash after which a stack's name follows: validation keeps any two stacks from being called alike.
	rest, ok := strings.CutPrefix(name, names.Prefix)
	for i := 0; ok && i < len(rest); i++ {
		if rest[i] == '-' && names.IsStack(rest[i+1:]) {
			m.Cluster, m.Stack = rest[:i], name
			if pool, is := strings.CutPrefix(rest[i+1:], names.PoolPrefix); is {
				m.Pool = pool
			}
			return m
		}
	}
	return m
}

// In says what a moment is about by a document: an event's detail, an execution's input.
func (m Moment) In(document []byte) Moment {
	var said struct {
		Cluster string               `json:"cluster"`
		Stack   string               `json:"stack-id"`
		Group   string               `json:"AutoScalingGroupName"`
		Object  struct{ Key string } `json:"object"`
		Detail  json.RawMessage      `json:"detail"`
	}
	if json.Unmarshal(document, &said) != nil {
		return m
	}
	if len(said.Detail) > 0 {
		m = m.In(said.Detail)
	}
	for _, name := range []string{said.Object.Key, said.Group, said.Stack} {
		m = m.About(name)
	}
	if said.Cluster != "" {
		m.Cluster = said.Cluster
	}
	return m
}
