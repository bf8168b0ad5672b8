package upgrade

// What a record says of itself: how it begins, and what it still means once it is over.

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// Begin is the record of an upgrade that was asked for, after the one that was last, if any. Steps are for the caller to fill in,
// unless it goes on with one to the same target that was stopped: then those are there already, and so is what the cluster was.
func Begin(last *Record, start Start, spec *api.Cluster, from, target Target, execution string, now time.Time) *Record {
	r := &Record{
		Number: 1, Execution: execution, Origin: start.Origin, Key: start.Key, From: from, Target: target,
		State: Checking, Started: now.UTC().Truncate(time.Second), Answered: map[Origin]string{},
	}
	if start.Origin != OriginSpec {
		r.Over = Named(spec)
	}
	if last != nil {
		r.Number = last.Number + 1
		maps.Copy(r.Answered, last.Answered)
		if last.counts(spec) {
			r.Before = Named(spec)
		}
		if last.State == Stopped && last.Target == target && len(last.Steps) > 0 {
			r.First = cmp.Or(last.First, last.Number)
			r.From, r.Steps, r.Step, r.Alarms = last.From, last.Steps, last.Step, last.Alarms
		}
	}
	r.Answered[start.Origin] = start.Key
	return r
}

// Named is what a spec says of releases and versions, to see whether it says something else now: a record's Over.
func Named(spec *api.Cluster) string {
	if spec.Spec.KubernetesVersion == "" {
		return spec.Spec.Release.Name
	}
	return spec.Spec.Release.Name + " (Kubernetes " + spec.Spec.KubernetesVersion + ")"
}

// Superseded says why an upgrade that is under way does not go on: what the spec says meanwhile. spec is nil when it was deleted.
// "" when it goes on.
func (r *Record) Superseded(spec *api.Cluster) string {
	switch {
	case spec == nil:
		return "the spec was deleted"
	case spec.Spec.Paused:
		return "spec.paused is true"
	case r.Origin != OriginSpec:
		if named := Named(spec); named != r.Over {
			return fmt.Sprintf("the spec names release %s by now, and no longer %s", named, cmp.Or(r.Over, "what it did"))
		}
	case spec.Spec.Release.Name != r.Target.Release,
		spec.Spec.KubernetesVersion != "" && spec.Spec.KubernetesVersion != r.Target.KubernetesVersion:
		return fmt.Sprintf("the spec names release %s by now, and no longer %s", Named(spec), r.Target)
	}
	return ""
}

// open is the step that counts; the last one when all are done.
func (r *Record) open() Step {
	if len(r.Steps) == 0 {
		return Step{Kind: StepNodes, KubernetesVersion: r.Target.KubernetesVersion}
	}
	return r.Steps[min(r.Step, len(r.Steps)-1)]
}

// unfinished says whether an upgrade was stopped on its way.
func (r *Record) unfinished() bool { return r != nil && r.State == Stopped && r.Step < len(r.Steps) }

// underWay says whether an upgrade is being made.
func (r *Record) underWay() bool { return r != nil && !r.State.Over() }

// counts says whether the release of an upgrade that was asked for otherwise still counts instead of the one that the spec names.
func (r *Record) counts(spec *api.Cluster) bool {
	if r == nil {
		return false
	}
	over := r.Over
	if r.State == Blocked {
		over = r.Before
	}
	return over != "" && over == Named(spec)
}
