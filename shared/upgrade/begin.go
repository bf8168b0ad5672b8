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
		if !target.spelled(r.Over) {
			r.Before = last.before(from)
		}
	}
	if last != nil {
		r.Number, r.Alarms = last.Number+1, last.Alarms // that are off still
		maps.Copy(r.Answered, last.Answered)
	}
	if changed := last.Changed(); changed.Fits(from, target) {
		r.First = cmp.Or(changed.First, changed.Number)
		r.From, r.Steps, r.Step, r.Images = changed.From, changed.Steps, changed.Step, changed.Images
		r.Back, r.BackUntil = changed.Back, changed.BackUntil
	} else if changed != nil {
		if changed.Origin == OriginRollback && changed.State != Done && same(from, changed.From) && same(target, changed.From) {
			back := changed.Target
			r.Back, r.BackUntil = &back, changed.BackUntil
		}
		kept := *changed
		kept.Last, kept.Answered, kept.Alarms = nil, nil, nil
		r.Last = &kept
	}
	r.Answered[start.Origin] = start.Key
	return r
}

// Changed returns the last upgrade that changed the cluster: this one, or the one before if this one has changed nothing.
func (r *Record) Changed() *Record {
	if r == nil || r.State != Blocked && (r.State != Checking || len(r.Steps) > 0 && !r.Steps[0].Started.IsZero()) {
		return r
	}
	return r.Last
}

// Fits says whether an upgrade that began to change the cluster can go on where it was left: to the same target, from what was before the
// open step or from what that makes.
func (r *Record) Fits(from, target Target) bool {
	if r == nil || r.State == Done || r.Target != target || len(r.Steps) == 0 {
		return false
	}
	open := min(r.Step, len(r.Steps)-1)
	before := r.From.KubernetesVersion
	if open > 0 {
		before = r.Steps[open-1].KubernetesVersion
	}
	return from.KubernetesVersion == before || from.KubernetesVersion == r.Steps[open].KubernetesVersion
}

// Pin is what a cluster is pinned to, as far as its last upgrade says: for one whose stack does not say it any more.
func (r *Record) Pin() Target {
	last := r.Changed()
	if last == nil { // what was blocked, and nothing before it
		return r.From
	}
	for i, s := range last.Steps {
		if s.Moved() && (i < last.Step || i == last.Step && !s.Started.IsZero()) {
			return last.Target
		}
	}
	return last.From
}

// Named is what a spec says of releases and versions, to see whether it says something else now: a record's Over.
func Named(spec *api.Cluster) string {
	if spec.Spec.KubernetesVersion == "" {
		return spec.Spec.Release.Name
	}
	return spec.Spec.Release.Name + inKubernetes(spec.Spec.KubernetesVersion)
}

// before is what the spec named last that came to something: what the cluster is, or what the upgrades that made it so counted instead of.
func (r *Record) before(from Target) Target {
	if r.overrides() && r.Changed().Before.Release != "" {
		return r.Changed().Before
	}
	return from
}

// overrules says whether an upgrade was asked for instead of what a spec names: it names that still, or is put back
// to what it named before.
func (r *Record) overrules(spec *api.Cluster) bool {
	return r.Over != "" && (r.Over == Named(spec) || namedBy(spec, r.Before))
}

// spelled says whether what a spec names (see Named) is this target.
func (t Target) spelled(named string) bool {
	return named == t.Release || named == t.Release+inKubernetes(t.KubernetesVersion)
}

func inKubernetes(version string) string { return " (Kubernetes " + version + ")" }

// Superseded says why an upgrade that is under way does not go on: what the spec says meanwhile. spec is nil when it was deleted.
// "" when it goes on.
func (r *Record) Superseded(spec *api.Cluster) string {
	switch {
	case spec == nil:
		return "the spec was deleted"
	case spec.Spec.Paused:
		return "spec.paused is true"
	case namedBy(spec, r.Target), r.overrules(spec):
		return ""
	case r.Over != "":
		return fmt.Sprintf("the spec names release %s by now, and no longer %s", Named(spec), r.over())
	}
	return fmt.Sprintf("the spec names release %s by now, and no longer %s", Named(spec), r.Target)
}

// namedBy says whether a spec names a target.
func namedBy(spec *api.Cluster, to Target) bool {
	return spec.Spec.Release.Name == to.Release && (spec.Spec.KubernetesVersion == "" || spec.Spec.KubernetesVersion == to.KubernetesVersion)
}

// Adopt makes an upgrade that was asked for otherwise the spec's own, when that names its target: what becomes of it
// is the answer to that version of the spec, which does not ask for it anew. A rollback to what the spec has named
// all along stays what it is: stopped on its way, it leaves what no spec can ask for.
func (r *Record) Adopt(spec *api.Cluster, version string) {
	if r.Over == "" || spec == nil || !namedBy(spec, r.Target) || r.Origin == OriginRollback && r.Over == Named(spec) {
		return
	}
	r.Over, r.Answered = "", maps.Clone(r.Answered)
	if r.Answered == nil {
		r.Answered = map[Origin]string{}
	}
	r.Answered[OriginSpec] = specKey(version)
}

// overrides says whether an upgrade that is over may count instead of what a spec names.
func (r *Record) overrides() bool {
	last := r.Changed()
	return last != nil && last.Over != "" && last.State.Over()
}

// ClearOverride ends the override of the spec, after the spec named the deployed release. Every later spec then
// requests what it names, even if it named that before.
func (r *Record) ClearOverride() {
	if r.overrides() {
		r.Changed().Over = ""
	}
}

// OverrideReason describes what applies instead of the release of the spec, and why, given the deployed target. It is
// empty if the release of the spec applies.
func (r *Record) OverrideReason(deployed Target) string {
	last := r.Changed()
	switch {
	case !r.overrides():
		return ""
	case last.unfinished() && last.unmoved(deployed):
		if last.From.spelled(last.Over) {
			return ""
		}
		return fmt.Sprintf("the upgrade to %s stopped before it had moved anything", last.Target)
	case last.unfinished():
		return fmt.Sprintf("the upgrade to %s stopped on its way, and what it moved stays", last.Target)
	case last.Target.spelled(last.Over):
		return ""
	}
	return fmt.Sprintf("%s counts, which %s asked for, until the spec names another than %s", last.Target, askers[last.Origin], last.over())
}

// over is what a spec may name without taking the word back, for people: see overrules.
func (r *Record) over() string {
	if r.Before.Release == "" || r.Before.spelled(r.Over) {
		return r.Over
	}
	return r.Over + " or " + r.Before.Release
}

// askers are who asked, in words.
var askers = map[Origin]string{
	OriginChannel: "its channel", OriginAt: "spec.upgrade.at", OriginHand: "somebody", OriginRollback: "a rollback",
}

// Again says when an upgrade that was missed begins after all, if it does. What spec and channels ask for stays asked for.
func Again(spec *api.Cluster, origin Origin, now time.Time) string {
	timed := spec != nil && spec.Spec.Upgrade.At != nil && spec.Spec.Upgrade.At.Release == spec.Spec.Release.Name
	switch {
	case origin == OriginAt, origin == OriginSpec && timed:
		return "Set another time in spec.upgrade.at"
	case spec == nil || origin != OriginSpec && origin != OriginChannel:
		return "Start it again when the cluster is free"
	}
	open, next := spec.Spec.Upgrade.Open(now)
	switch {
	case open && next.IsZero():
		return "It begins when the cluster is free"
	case open:
		return "It begins when the cluster is free, in the window that is open or in the next, at " + next.UTC().Format(time.RFC3339)
	case next.IsZero():
		return "It does not begin: " + spec.Spec.Upgrade.NoMore(now) + ": change it"
	}
	return "It begins in the window that opens at " + next.UTC().Format(time.RFC3339)
}

// open is the step that counts; the last one when all are done.
func (r *Record) open() Step {
	if len(r.Steps) == 0 {
		return Step{Kind: StepNodes, KubernetesVersion: r.Target.KubernetesVersion}
	}
	return r.Steps[min(r.Step, len(r.Steps)-1)]
}

// Unfinished says whether an upgrade to a target was stopped on its way, whatever was tried since and changed nothing.
func (r *Record) Unfinished(to Target) bool {
	last := r.Changed()
	return last.unfinished() && same(to, last.Target)
}

// unfinished says whether an upgrade was stopped on its way.
func (r *Record) unfinished() bool { return r != nil && r.State == Stopped && r.Step < len(r.Steps) }

// unmoved says that an upgrade left a cluster as it was: it was to begin with the control plane, which is where it was.
func (r *Record) unmoved(deployed Target) bool {
	return r.Step == 0 && r.Steps[0].Kind == StepControlPlane && same(deployed, r.From)
}

// underWay says whether an upgrade is being made.
func (r *Record) underWay() bool { return r != nil && !r.State.Over() }

// counts says whether the release of an upgrade that was asked for otherwise still counts instead of the one that the spec names.
func (r *Record) counts(spec *api.Cluster) bool {
	switch {
	case r == nil:
		return false
	case r.State == Blocked:
		return r.Last.counts(spec)
	}
	return r.overrules(spec)
}
