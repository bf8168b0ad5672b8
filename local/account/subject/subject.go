// Package subject finds the cluster, the stack and the pool that a name belongs to, by drover's naming. The fault engine
// takes it as a function, because the engine does not know drover. It is pure.
package subject

import (
	"strings"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
)

// Of returns the subject of a name: the name of a stack, group or relay, its ARN, or a key of drover's buckets, with or without
// the ARN of the bucket. found is false for any other name.
func Of(name string) (of faults.Subject, found bool) {
	if stack := names.StackOfARN(name); stack != "" {
		name = stack
	}
	if _, function, ok := strings.Cut(name, ":function:"); ok {
		name = function
	}
	if _, object, ok := strings.Cut(name, ":::"); ok { // arn:aws:s3:::bucket/key
		if _, name, ok = strings.Cut(object, "/"); !ok {
			return faults.Subject{}, false
		}
	}
	for _, prefix := range []string{names.Statuses, names.ClusterSpecs, names.Leases} {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			return faults.Subject{Cluster: strings.TrimSuffix(strings.TrimSuffix(key, ".json"), ".yaml")}, true
		}
	}
	if stack, ok := strings.CutPrefix(name, names.Waiters); ok {
		name = strings.TrimSuffix(stack, ".json")
	}
	// The first dash that a stack's name follows: validation prevents two stacks with the same name.
	rest, ok := strings.CutPrefix(name, names.Prefix)
	for i := 0; ok && i < len(rest); i++ {
		if rest[i] == '-' && names.IsStack(rest[i+1:]) {
			pool, _ := strings.CutPrefix(rest[i+1:], names.PoolPrefix)
			if pool == rest[i+1:] {
				pool = ""
			}
			return faults.Subject{Cluster: rest[:i], Stack: name, Pool: pool}, true
		}
	}
	cluster := relayOf(name)
	return faults.Subject{Cluster: cluster}, cluster != ""
}

// relayOf returns the cluster of a relay's function, or an empty string.
func relayOf(function string) string {
	of, ok := strings.CutPrefix(function, names.Prefix)
	if !ok {
		return ""
	}
	cluster, ok := strings.CutSuffix(of, strings.TrimPrefix(names.Relay(""), names.Prefix))
	if !ok {
		return ""
	}
	return cluster
}
