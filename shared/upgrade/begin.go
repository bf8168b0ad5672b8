package upgrade

// How the record of an upgrade begins, and what it means after the upgrade has ended.

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// Begin returns the record of a requested upgrade. last is the record of the last upgrade; nil if there was none. If last stopped on the
// way to the same target, the new upgrade continues it, with its steps and the state from before it. Otherwise the caller fills in the
// steps.
func Begin(last *Record, start Start, spec *api.Cluster, from, target Target, execution string, now time.Time) *Record {
	r := &Record{
		Number: 1, Execution: execution, Origin: start.Origin, Key: start.Key, From: from, Target: target,
		State: Checking, Started: now.UTC().Truncate(time.Second), Answered: map[Origin]string{},
	}
	if start.Origin != OriginSpec {
		r.Overridden = ReleaseText(spec)
		if !target.matches(r.Overridden) {
			r.Before = last.overriddenTarget(from)
		}
	}
	if last != nil {
		r.Number, r.Alarms = last.Number+1, last.Alarms // still disabled
		maps.Copy(r.Answered, last.Answered)
	}
	if changed := last.LastChange(); changed.CanContinue(from, target) {
		r.First = cmp.Or(changed.First, changed.Number)
		r.From, r.Steps, r.Step, r.Images = changed.From, changed.Steps, changed.Step, changed.Images
		r.RollbackTarget, r.RollbackUntil = changed.RollbackTarget, changed.RollbackUntil
	} else if changed != nil {
		if changed.Origin == OriginRollback && changed.State != Done && sameTarget(from, changed.From) && sameTarget(target, changed.From) {
			back := changed.Target
			r.RollbackTarget, r.RollbackUntil = &back, changed.RollbackUntil
		}
		previous := *changed
		previous.Last, previous.Answered, previous.Alarms = nil, nil, nil
		r.Last = &previous
	}
	r.Answered[start.Origin] = start.Key
	return r
}

// LastChange returns the last upgrade that changed the cluster: this one, or the one before if this one has changed nothing.
func (r *Record) LastChange() *Record {
	if r == nil || r.State != Blocked && (r.State != Checking || len(r.Steps) > 0 && !r.Steps[0].Started.IsZero()) {
		return r
	}
	return r.Last
}

// CanContinue reports whether a new upgrade can continue this one. The new upgrade must have the same target, and start from the version
// before the open step or from the version of that step.
func (r *Record) CanContinue(from, target Target) bool {
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

// Pin returns the target that the cluster is pinned to, according to its last upgrade. It is for a cluster whose stack lost the release
// tag.
func (r *Record) Pin() Target {
	last := r.LastChange()
	if last == nil { // this one was blocked, and no other came before it
		return r.From
	}
	for i, s := range last.Steps {
		if s.AppliesRelease() && (i < last.Step || i == last.Step && !s.Started.IsZero()) {
			return last.Target
		}
	}
	return last.From
}

// ReleaseText returns the release and version that a spec names, as one text. Record.Overridden stores this text, so that a
// later spec can be compared with it.
func ReleaseText(spec *api.Cluster) string {
	if spec.Spec.KubernetesVersion == "" {
		return spec.Spec.Release.Name
	}
	return spec.Spec.Release.Name + inKubernetes(spec.Spec.KubernetesVersion)
}

// overriddenTarget returns the last target that a spec named and that was deployed: the deployed one, or the one that earlier upgrades
// overrode.
func (r *Record) overriddenTarget(from Target) Target {
	if r.overrides() && r.LastChange().Before.Release != "" {
		return r.LastChange().Before
	}
	return from
}

// overridesSpec reports whether this upgrade overrides a spec. It does if the spec names Overridden or Before.
func (r *Record) overridesSpec(spec *api.Cluster) bool {
	return r.Overridden != "" && (r.Overridden == ReleaseText(spec) || namedBy(spec, r.Before))
}

// matches reports whether a text of ReleaseText is about this target.
func (t Target) matches(named string) bool {
	return named == t.Release || named == t.Release+inKubernetes(t.KubernetesVersion)
}

func inKubernetes(version string) string { return " (Kubernetes " + version + ")" }

// SupersededReason says why the spec stops an upgrade in flight; empty if the upgrade continues. spec is nil if it was deleted.
func (r *Record) SupersededReason(spec *api.Cluster) string {
	switch {
	case spec == nil:
		return "the spec was deleted"
	case spec.Spec.Paused:
		return "spec.paused is true"
	case namedBy(spec, r.Target), r.overridesSpec(spec):
		return ""
	case r.Overridden != "":
		return fmt.Sprintf("the spec now names release %s, and no longer %s", ReleaseText(spec), r.overriddenNames())
	}
	return fmt.Sprintf("the spec now names release %s, and no longer %s", ReleaseText(spec), r.Target)
}

// namedBy reports whether a spec names a target.
func namedBy(spec *api.Cluster, to Target) bool {
	return spec.Spec.Release.Name == to.Release && (spec.Spec.KubernetesVersion == "" || spec.Spec.KubernetesVersion == to.KubernetesVersion)
}

// Adopt makes an upgrade of another origin count as requested by this version of the spec, if the spec names its target. The
// version then requests no other upgrade. A rollback to the release that the spec named throughout is not adopted: if it stopped, no spec
// could request the rest.
func (r *Record) Adopt(spec *api.Cluster, version string) {
	if r.Overridden == "" || spec == nil || !namedBy(spec, r.Target) || r.Origin == OriginRollback && r.Overridden == ReleaseText(spec) {
		return
	}
	r.Overridden, r.Answered = "", maps.Clone(r.Answered)
	if r.Answered == nil {
		r.Answered = map[Origin]string{}
	}
	r.Answered[OriginSpec] = specKey(version)
}

// overrides reports whether an upgrade that has ended may override a spec.
func (r *Record) overrides() bool {
	last := r.LastChange()
	return last != nil && last.Overridden != "" && last.State.Final()
}

// ClearOverride ends the override of the spec, after the spec named the deployed release. Every later spec then
// requests what it names, even if it named that before.
func (r *Record) ClearOverride() {
	if r.overrides() {
		r.LastChange().Overridden = ""
	}
}

// OverrideReason describes what applies instead of the release of the spec, and why, given the deployed target. It is
// empty if the release of the spec applies.
func (r *Record) OverrideReason(deployed Target) string {
	last := r.LastChange()
	switch {
	case !r.overrides():
		return ""
	case last.unfinished() && last.changedNothing(deployed):
		if last.From.matches(last.Overridden) {
			return ""
		}
		return fmt.Sprintf("the upgrade to %s stopped before it changed anything", last.Target)
	case last.unfinished():
		return fmt.Sprintf("the upgrade to %s stopped before its last step, and its changes stay", last.Target)
	case last.Target.matches(last.Overridden):
		return ""
	}
	return fmt.Sprintf("%s applies, requested by %s, until the spec names a release other than %s", last.Target, originNames[last.Origin],
		last.overriddenNames())
}

// overriddenNames describes what a spec may name without ending the override: see overridesSpec.
func (r *Record) overriddenNames() string {
	if r.Before.Release == "" || r.Before.matches(r.Overridden) {
		return r.Overridden
	}
	return r.Overridden + " or " + r.Before.Release
}

// originNames are the origins in words.
var originNames = map[Origin]string{
	OriginChannel: "its channel", OriginAt: "spec.upgrade.at", OriginRollout: "a rollout", OriginCommand: "an operator",
	OriginRollback: "a rollback",
}

// RetryHint says when a missed upgrade begins, or how to start it. The requests of spec and channels stay valid.
func RetryHint(spec *api.Cluster, origin Origin, now time.Time) string {
	timed := spec != nil && spec.Spec.Upgrade.At != nil && spec.Spec.Upgrade.At.Release == spec.Spec.Release.Name
	switch {
	case origin == OriginAt, origin == OriginSpec && timed:
		return "Set another time in spec.upgrade.at"
	case spec == nil || origin != OriginSpec && origin != OriginChannel:
		return "Start it again when the cluster is idle"
	}
	open, next := spec.Spec.Upgrade.Open(now)
	switch {
	case open && next.IsZero():
		return "It begins when the cluster is idle"
	case open:
		return "It begins when the cluster is idle, in the open window or in the next one, at " + next.UTC().Format(time.RFC3339)
	case next.IsZero():
		return "It does not begin: " + spec.Spec.Upgrade.NoMore(now) + ": change it"
	}
	return "It begins in the window that opens at " + next.UTC().Format(time.RFC3339)
}

// openStep returns the open step; the last one if all are completed.
func (r *Record) openStep() Step {
	if len(r.Steps) == 0 {
		return Step{Kind: StepNodes, KubernetesVersion: r.Target.KubernetesVersion}
	}
	return r.Steps[min(r.Step, len(r.Steps)-1)]
}

// StoppedBefore reports whether the upgrade that changed the cluster last was stopped on the way to a target.
func (r *Record) StoppedBefore(to Target) bool {
	last := r.LastChange()
	return last.unfinished() && sameTarget(to, last.Target)
}

// unfinished reports whether an upgrade was stopped with steps left.
func (r *Record) unfinished() bool { return r != nil && r.State == Stopped && r.Step < len(r.Steps) }

// changedNothing reports whether a stopped upgrade changed nothing: its first step updates the control plane, which is still where it was.
func (r *Record) changedNothing(deployed Target) bool {
	return r.Step == 0 && r.Steps[0].Kind == StepControlPlane && sameTarget(deployed, r.From)
}

// inFlight reports whether an upgrade is in flight.
func (r *Record) inFlight() bool { return r != nil && !r.State.Final() }

// targetApplies reports whether the target of an upgrade applies instead of the release of the spec.
func (r *Record) targetApplies(spec *api.Cluster) bool {
	switch {
	case r == nil:
		return false
	case r.State == Blocked:
		return r.Last.targetApplies(spec)
	}
	return r.overridesSpec(spec)
}
