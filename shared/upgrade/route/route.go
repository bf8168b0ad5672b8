// Package route computes the route of an upgrade: from the deployed release to the target, in steps. It is pure. Package checker reads its
// input. The upgrade function and the command line use both.
package route

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// StopError is why an upgrade does not begin or does not continue. Its message reaches the status.
type StopError struct{ Message string }

func (e *StopError) Error() string { return e.Message }

// Stopf returns a StopError.
func Stopf(format string, args ...any) error { return &StopError{fmt.Sprintf(format, args...)} }

// Route of an upgrade.
type Route struct {
	Spec *api.Cluster
	// Stack is the ID of the control plane's stack.
	Stack string
	// Busy is why an upgrade must wait for that stack (see Busy); empty if it need not.
	Busy string
	// Last is the record of the last upgrade of this cluster; nil without one.
	Last     *upgrade.Record
	From, To upgrade.Target
	// Old and New are the releases of From and To. NewBody is the content of New.
	Old, New *api.Release
	NewBody  []byte
	// Before and After are the resolved cluster, as deployed and as desired.
	Before, After *api.Cluster
	// NodesSince are the launch template versions since which the deployed nodes are made of the same, by pool: see render.NodesSince.
	NodesSince map[string]string
	// Images are the deployed images by pool.
	Images map[string]string
	// RollbackUntil is when EKS stops accepting the rollback of the control plane. It is zero if the version does not change.
	RollbackUntil time.Time
}

// Deployed returns the release and version of a control plane's stack.
func Deployed(cluster string, controlPlane stack.Deployed) (upgrade.Target, error) {
	name, sha, pinned := strings.Cut(controlPlane.Tags[names.TagRelease], "@")
	version := controlPlane.Outputs["KubernetesVersion"]
	switch {
	case version != "" && !pinned:
		return upgrade.Target{}, Stopf("the tag %s was removed from stack %s outside drover, so the release of the cluster is unknown. "+
			"The audit restores the tag by converging",
			names.TagRelease, names.Stack(cluster, names.ControlPlane))
	case version == "":
		return upgrade.Target{}, Stopf("cluster %s has no control plane yet: drover creates it with the release of its spec", cluster)
	}
	return upgrade.Target{Release: name, SHA256: sha, KubernetesVersion: version}, nil
}

// Busy returns why an upgrade must wait for the control plane's stack: an operation is in flight, or drover has to recreate the stack.
// It returns "" if the upgrade need not wait.
func Busy(controlPlane stack.Deployed) string {
	switch {
	case stack.InProgress(controlPlane.Status):
		return fmt.Sprintf("is being changed (%s)", controlPlane.Status)
	case stack.MustRecreate(controlPlane.Status):
		return fmt.Sprintf("must be recreated (%s)", controlPlane.Status)
	}
	return ""
}

// SetTarget chooses To: the requested release, else the target of a stopped upgrade, else the release of the spec.
//   - If pinned is false, the caller reads the release from the specs bucket and sets To.SHA256. A release keeps its content from the
//     start of its upgrade.
//   - If complete is false, the caller calls SetVersion.
func (r *Route) SetTarget(in events.Upgrade) (pinned, complete bool) {
	last := r.Last.LastChange()
	if in.Release == "" && Unfinished(r.Last) && last.Origin != upgrade.OriginRollback {
		r.To = last.Target
		return true, true
	}
	r.To.Release = in.Release
	if r.To.Release == "" {
		r.To.Release = r.Spec.Spec.Release.Name
	}
	if in.SHA256 != "" {
		r.To.SHA256 = in.SHA256
		return true, false
	}
	known := []upgrade.Target{r.From, {}}
	if Unfinished(r.Last) {
		known[1] = last.Target
	}
	for _, t := range known {
		if t.Release == r.To.Release {
			r.To.SHA256 = t.SHA256
			return true, false
		}
	}
	return false, false
}

// SetVersion sets the Kubernetes version of To: the requested one, else the one that the spec states for this release, else the release's.
func (r *Route) SetVersion(in events.Upgrade) {
	if r.To.KubernetesVersion = in.KubernetesVersion; r.To.KubernetesVersion != "" {
		return
	}
	r.To.KubernetesVersion = r.New.Spec.KubernetesVersion
	if stated := r.Spec.Spec.KubernetesVersion; stated != "" && r.Spec.Spec.Release.Name == r.To.Release {
		r.To.KubernetesVersion = stated
	}
}

// rollbackWithin is how long after an update EKS rolls a control plane back.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
const rollbackWithin = 7 * 24 * time.Hour

// SetRollbackTarget sets To to what the cluster was before its last upgrade. If the request names a release, it must be that one.
func (r *Route) SetRollbackTarget(in events.Upgrade, now time.Time) error {
	last := r.Last.LastChange()
	switch {
	case last == nil:
		return Stopf("this cluster has no upgrade that can be rolled back")
	case last.Origin == upgrade.OriginRollback && last.State == upgrade.Done:
		return Stopf("the last upgrade was rolled back already, to %s", last.Target)
	case last.Origin == upgrade.OriginRollback:
		r.To, r.RollbackUntil = last.Target, last.RollbackUntil
	case last.RollbackTarget != nil:
		r.To, r.RollbackUntil = *last.RollbackTarget, last.RollbackUntil
	default:
		r.To = last.From
		for _, s := range last.Steps {
			if s.Kind == upgrade.StepControlPlane && s.KubernetesVersion == r.From.KubernetesVersion && !s.Ended.IsZero() {
				r.RollbackUntil = s.Ended.Add(rollbackWithin)
			}
		}
	}
	switch {
	case in.Release != "" && (in.Release != r.To.Release || in.SHA256 != "" && in.SHA256 != r.To.SHA256):
		return Stopf("the rollback to release %s is not possible: the release before the last upgrade is %s", in.Release, r.To.Release)
	case r.To.KubernetesVersion == r.From.KubernetesVersion:
		r.RollbackUntil = time.Time{}
	case !r.RollbackUntil.IsZero() && r.RollbackUntil.Before(now):
		return Stopf("EKS rolls a control plane back within 7 days only, and this one was upgraded to %s on %s. To roll back only the nodes, "+
			"name their old images in the pools' imageID",
			r.From.KubernetesVersion, r.RollbackUntil.Add(-rollbackWithin).Format(time.DateTime))
	}
	return nil
}

// Resolve sets Before and After from the spec and the two releases.
func (r *Route) Resolve() error {
	var errs api.Errors
	if r.Before, errs = upgrade.Effective(r.Spec, r.Old, nil, upgrade.Step{KubernetesVersion: r.From.KubernetesVersion}); errs != nil {
		return Stopf("the spec is invalid with the deployed release (%s): %s", r.From.Release, errs)
	}
	last := upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: r.To.KubernetesVersion}
	if r.After, errs = upgrade.Effective(r.Spec, r.Old, r.New, last); errs != nil {
		return Stopf("the spec is invalid with the release %s: %s", r.To.Release, errs)
	}
	if errs = api.Validate(r.After, api.Options{TemplateVersions: templates.Versions()}); errs != nil {
		return Stopf("the cluster would be invalid with the release %s: %s", r.To.Release, errs)
	}
	return nil
}

// ComponentStacks names the stacks that ApplyDeployed needs.
func (r *Route) ComponentStacks() []string {
	all := []string{names.Addons, names.NodeAddons}
	for _, pool := range r.Before.Spec.Pools {
		all = append(all, names.PoolStack(pool.Name))
	}
	return all
}

// ApplyDeployed corrects Before with the deployed stacks. The spec may name the target already, and an earlier upgrade may have stopped
// between two steps.
func (r *Route) ApplyDeployed(deployed map[string]stack.Deployed) {
	r.Images, r.NodesSince = plan.Images(deployed), plan.NodesSince(deployed)
	upgrade.Keep{
		Images: true, Addons: true, OverridesSpec: true,
	}.Apply(r.Spec, r.Before, upgrade.Step{}, plan.KeptImages(deployed, r.Before), plan.AddonVersions(deployed, r.Before.Spec.Addons))
}

// Checked returns the input of the checks for an upgrade with these steps.
func (r *Route) Checked(cluster string, rollback bool, steps []upgrade.Step) *preflight.Plan {
	return &preflight.Plan{
		Cluster: cluster, From: r.From, To: r.To, Steps: steps, Before: r.Before, After: r.After,
		Alarms: r.Spec.Spec.Upgrade.Alarms, UpgradeFrom: r.New.Spec.UpgradeFrom, Rollback: rollback, RollbackUntil: r.RollbackUntil,
		NodesSince: r.NodesSince,
	}
}

// Finished reports whether there is nothing to do: the cluster is at its target, and no upgrade stopped between two steps.
func (r *Route) Finished() bool { return r.From == r.To && !Unfinished(r.Last) }

// Steps returns the steps of the whole route. If the versions are too far apart, it returns *upgrade.TooFar.
func (r *Route) Steps(rollback bool, compat upgrade.Compat) ([]upgrade.Step, error) {
	compute := upgrade.Steps
	if rollback {
		compute = upgrade.RollbackSteps
	}
	steps, err := compute(r.Before, r.After, compat)
	var far *upgrade.TooFar
	if err == nil || errors.As(err, &far) {
		return steps, err
	}
	return nil, Stopf("%s", err)
}

// Unfinished reports whether the last upgrade that changed the cluster is not done.
func Unfinished(r *upgrade.Record) bool {
	last := r.LastChange()
	return last != nil && last.State != upgrade.Done
}

// EndState is the state of an upgrade that ends before it is done.
func EndState(r *upgrade.Record) upgrade.State {
	if r.LastChange() == r {
		return upgrade.Stopped
	}
	return upgrade.Blocked
}

// Ended returns a record after the end of its execution.
func Ended(r *upgrade.Record) *upgrade.Record {
	if r == nil || r.State.Final() {
		return r
	}
	ended := *r
	ended.State = EndState(r)
	return &ended
}

// Same reports whether a request is for the upgrade of a record.
func Same(in events.Upgrade, r *upgrade.Record) bool {
	if in.Key != "" && in.Key == r.Key {
		return true
	}
	if in.Rollback != (r.Origin == upgrade.OriginRollback) {
		return false
	}
	return in.Rollback || (in.Release == "" || in.Release == r.Target.Release) &&
		(in.KubernetesVersion == "" || in.KubernetesVersion == r.Target.KubernetesVersion)
}

// StepName describes a step. The status, the history and the command line show it.
func StepName(s upgrade.Step) string {
	switch {
	case s.NodesRolledBack && s.Kind == upgrade.StepAddonsFirst:
		return "add-ons to versions for the previous Kubernetes version"
	case s.NodesRolledBack && s.Kind == upgrade.StepNodes: // an earlier step replaced the nodes
		return "the rest of the previous release"
	}
	switch s.Kind {
	case upgrade.StepAddonsFirst:
		return "add-ons to versions for the next Kubernetes version"
	case upgrade.StepControlPlane:
		return "control plane to " + s.KubernetesVersion
	case upgrade.StepAddons:
		return "add-ons to the versions of the release"
	case upgrade.StepNodes:
		return "nodes to the images of the release"
	case upgrade.StepNodesBack:
		return "nodes back to their previous images"
	}
	return string(s.Kind)
}
