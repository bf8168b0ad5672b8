package handler

// Where an upgrade leads: from what is deployed to what was asked for, in steps.

import (
	"context"
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
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/templates"
)

// journey of a cluster.
type journey struct {
	spec *api.Cluster
	// stack is the control plane's. moving says that an operation on it is under way, and so that from is what it was
	// before; or that converging has to make it anew, at that version: an upgrade that begins meanwhile would be of a
	// cluster that is gone. last is the record of this cluster's last upgrade; nil when there was none.
	stack, moving string
	last          *upgrade.Record
	// old and next are the releases by content; nextBody is the new one's.
	old, next *api.Release
	nextBody  []byte
	from, to  upgrade.Target
	// before and after are the cluster resolved, as it is deployed and as it is to be. images are those of the pools that there are.
	before, after *api.Cluster
	images        map[string]string
	// backUntil is until when EKS takes the control plane back, of a rollback that moves it; zero otherwise.
	backUntil time.Time
}

// spec reads a cluster's spec, which must be one that counts.
func (h *Handler) spec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, err := h.read(ctx, cluster)
	switch {
	case err != nil:
		return nil, err
	case spec == nil:
		return nil, stopf("there is no spec %s: there is nothing to upgrade", names.ClusterSpec(cluster))
	case spec.Spec.Paused && !h.IgnorePaused:
		return nil, stopf("spec.paused is true: drover starts nothing on this cluster")
	}
	return spec, nil
}

// read a cluster's spec; nil when there is none.
func (h *Handler) read(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := h.newest(ctx, cluster)
	return spec, err
}

// newest reads a cluster's spec with its version.
func (h *Handler) newest(ctx context.Context, cluster string) (spec *api.Cluster, version string, err error) {
	key := names.ClusterSpec(cluster)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, "", nil
	case errors.As(err, &large):
		return nil, "", stopf("%s", err)
	case err != nil:
		return nil, "", err
	}
	spec, errs := api.ReadCluster(key, object.Body, api.Options{Name: cluster, TemplateVersions: templates.Versions()})
	if errs != nil {
		return nil, "", stopf("the newest spec cannot be used: %s", errs)
	}
	return spec, object.Version, nil
}

// travel reads everything about an upgrade to a release, or back to the one before. r is the last one of a cluster of this name.
func (h *Handler) travel(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record) (j journey, err error) {
	if j.spec, err = h.spec(ctx, in.Cluster); err != nil {
		return j, err
	}
	var deployed stack.Deployed
	if j.from, deployed, err = h.deployed(ctx, in.Cluster); err != nil {
		return j, err
	}
	j.stack = deployed.ID
	switch {
	case stack.InProgress(deployed.Status):
		j.moving = fmt.Sprintf("is being changed (%s)", deployed.Status)
	case stack.MustRecreate(deployed.Status):
		j.moving = fmt.Sprintf("is to be made anew (%s)", deployed.Status)
	}
	if r != nil && r.Stack == j.stack {
		j.last = r
	}
	if j.old, _, err = h.pinned(ctx, j.from); err != nil {
		return j, err
	}
	if in.Rollback {
		err = h.back(ctx, &j)
	} else {
		err = h.target(ctx, in, &j)
	}
	if err == nil {
		err = j.resolve()
	}
	if err != nil {
		return j, err
	}
	return j, h.asDeployed(ctx, in.Cluster, &j)
}

// asDeployed has what is before be what the stacks say: the spec may state already what is to come, and an upgrade may have stopped on
// its way.
func (h *Handler) asDeployed(ctx context.Context, cluster string, j *journey) error {
	deployed := map[string]stack.Deployed{}
	stacks := []string{names.Addons, names.NodeAddons}
	for _, pool := range j.before.Spec.Pools {
		stacks = append(stacks, names.PoolStack(pool.Name))
	}
	for _, stack := range stacks {
		described, err := h.Stacks.Describe(ctx, names.Stack(cluster, stack))
		if err != nil {
			return err
		}
		deployed[stack] = described
	}
	j.images = plan.Images(deployed)
	upgrade.Keep{
		Images: true, Addons: true, Stated: true,
	}.Apply(j.spec, j.before, upgrade.Step{}, j.images, plan.AddonVersions(deployed, j.before.Spec.Addons))
	return nil
}

// retrace reads about an upgrade that is under way.
func (h *Handler) retrace(ctx context.Context, cluster string, r *upgrade.Record) (j journey, err error) {
	j.from, j.to = r.From, r.Target
	if j.spec, err = h.spec(ctx, cluster); err != nil {
		return j, err
	}
	if j.old, _, err = h.pinned(ctx, j.from); err != nil {
		return j, err
	}
	if j.next, j.nextBody, err = h.pinned(ctx, j.to); err != nil {
		return j, err
	}
	return j, j.resolve()
}

// checked is what the checks are told of an upgrade with these steps.
func (j journey) checked(cluster string, rollback bool, steps []upgrade.Step) *preflight.Plan {
	return &preflight.Plan{
		Cluster: cluster, From: j.from, To: j.to, Steps: steps, Before: j.before, After: j.after,
		Alarms: j.spec.Spec.Upgrade.Alarms, UpgradeFrom: j.next.Spec.UpgradeFrom, Rollback: rollback, BackUntil: j.backUntil,
	}
}

// deployed is what the control plane's stack says, and the stack.
func (h *Handler) deployed(ctx context.Context, cluster string) (upgrade.Target, stack.Deployed, error) {
	stack, err := h.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	if err != nil {
		return upgrade.Target{}, stack, err
	}
	name, sha, pinned := strings.Cut(stack.Tags[names.TagRelease], "@")
	version := stack.Outputs["KubernetesVersion"]
	switch {
	case version != "" && !pinned:
		return upgrade.Target{}, stack, stopf("somebody took the tag %s from stack %s: which release the cluster is at is not known until it is "+
			"converged, which the audit does",
			names.TagRelease, names.Stack(cluster, names.ControlPlane))
	case version == "":
		return upgrade.Target{}, stack, stopf("cluster %s has no control plane yet: it is created at the release that its spec names", cluster)
	}
	return upgrade.Target{Release: name, SHA256: sha, KubernetesVersion: version}, stack, nil
}

// pinned reads a release by content.
func (h *Handler) pinned(ctx context.Context, t upgrade.Target) (*api.Release, []byte, error) {
	object, err := h.State.Get(ctx, names.PinnedRelease(t.SHA256), api.MaxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the pinned release %s: %w", t.Release, err)
	}
	release, errs := api.ReadRelease(names.ReleaseSpec(t.Release), object.Body, api.Options{})
	if errs != nil {
		return nil, nil, stopf("the release %s, as it is pinned, cannot be read any more: %s", t.Release, errs)
	}
	return release, object.Body, nil
}

// target is the release that was asked for. Without one it is that of the upgrade that stopped, or the spec's.
func (h *Handler) target(ctx context.Context, in events.UpgradeRequest, j *journey) (err error) {
	last := j.last.Changed()
	if in.Release == "" && unfinished(j.last) && last.Origin != upgrade.OriginRollback {
		j.to = last.Target
		j.next, j.nextBody, err = h.pinned(ctx, j.to)
		return err
	}
	j.to.Release = in.Release
	if j.to.Release == "" {
		j.to.Release = j.spec.Spec.Release.Name
	}
	// A release that was begun keeps the content that it had then.
	for _, known := range []upgrade.Target{j.from, begun(j.last)} {
		if known.Release == j.to.Release {
			j.to.SHA256 = known.SHA256
			j.next, j.nextBody, err = h.pinned(ctx, j.to)
			break
		}
	}
	if j.next == nil && err == nil {
		err = h.catalogued(ctx, j)
	}
	if err != nil {
		return err
	}
	if j.to.KubernetesVersion = in.KubernetesVersion; j.to.KubernetesVersion == "" {
		j.to.KubernetesVersion = j.next.Spec.KubernetesVersion
		if stated := j.spec.Spec.KubernetesVersion; stated != "" && j.spec.Spec.Release.Name == j.to.Release {
			j.to.KubernetesVersion = stated
		}
	}
	return nil
}

// begun is the target of an upgrade that is not finished.
func begun(r *upgrade.Record) upgrade.Target {
	if unfinished(r) {
		return r.Changed().Target
	}
	return upgrade.Target{}
}

// unfinished says that an upgrade began to change the cluster and did not come to its end, whatever was tried since and changed nothing.
func unfinished(r *upgrade.Record) bool {
	last := r.Changed()
	return last != nil && last.State != upgrade.Done
}

// over is the state of an upgrade that ends before it is done.
func over(r *upgrade.Record) upgrade.State {
	if r.Changed() == r {
		return upgrade.Stopped
	}
	return upgrade.Blocked
}

// catalogued reads a release from the specs bucket.
func (h *Handler) catalogued(ctx context.Context, j *journey) error {
	key := names.ReleaseSpec(j.to.Release)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return stopf("there is no release %s: upload it, or name another", key)
	case errors.As(err, &large):
		return stopf("%s", err)
	case err != nil:
		return err
	}
	release, errs := api.ReadRelease(key, object.Body, api.Options{Name: j.to.Release})
	if errs != nil {
		return stopf("the release %s cannot be used: %s", key, errs)
	}
	j.next, j.nextBody, j.to.SHA256 = release, object.Body, names.SHA256(object.Body)
	return nil
}

// rollbackWithin is how long after an update EKS takes a control plane back.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
const rollbackWithin = 7 * 24 * time.Hour

// back is what was before the last upgrade.
func (h *Handler) back(ctx context.Context, j *journey) (err error) {
	last := j.last.Changed()
	switch {
	case last == nil:
		return stopf("there was no upgrade of this cluster that could be rolled back")
	case last.Origin == upgrade.OriginRollback && last.State == upgrade.Done:
		return stopf("the last upgrade was rolled back already, to %s", last.Target)
	case last.Origin == upgrade.OriginRollback:
		j.to, j.backUntil = last.Target, last.BackUntil
	case last.Back != nil:
		j.to, j.backUntil = *last.Back, last.BackUntil
	default:
		j.to = last.From
		for _, s := range last.Steps {
			if s.Kind == upgrade.StepControlPlane && s.KubernetesVersion == j.from.KubernetesVersion && !s.Ended.IsZero() {
				j.backUntil = s.Ended.Add(rollbackWithin)
			}
		}
	}
	switch {
	case j.to.KubernetesVersion == j.from.KubernetesVersion:
		j.backUntil = time.Time{} // it does not move, or has
	case !j.backUntil.IsZero() && j.backUntil.Before(h.Now()):
		return stopf("EKS takes a control plane back within 7 days: the one of this cluster came to %s on %s. Nodes alone: name the old images "+
			"in the pools' imageID",
			j.from.KubernetesVersion, j.backUntil.Add(-rollbackWithin).Format(time.DateTime))
	}
	j.next, j.nextBody, err = h.pinned(ctx, j.to)
	return err
}

// resolve both ends.
func (j *journey) resolve() error {
	var errs api.Errors
	if j.before, errs = upgrade.Effective(j.spec, j.old, nil, upgrade.Step{KubernetesVersion: j.from.KubernetesVersion}); errs != nil {
		return stopf("the spec does not fit the release that is deployed (%s): %s", j.from.Release, errs)
	}
	last := upgrade.Step{Kind: upgrade.StepNodes, KubernetesVersion: j.to.KubernetesVersion}
	if j.after, errs = upgrade.Effective(j.spec, j.old, j.next, last); errs != nil {
		return stopf("the spec does not fit the release %s: %s", j.to.Release, errs)
	}
	if errs = api.Validate(j.after, api.Options{TemplateVersions: templates.Versions()}); errs != nil {
		return stopf("the cluster would not be valid with the release %s: %s", j.to.Release, errs)
	}
	return nil
}

// steps of the journey.
func (h *Handler) steps(ctx context.Context, j journey, rollback bool) ([]upgrade.Step, error) {
	var addons []string
	for _, a := range j.before.Spec.Addons {
		addons = append(addons, a.Name)
	}
	compat, err := h.EKS.Compat(ctx, addons)
	if err != nil {
		return nil, err
	}
	way := upgrade.Steps
	if rollback {
		way = upgrade.StepsBack
	}
	steps, err := way(j.before, j.after, compat)
	var far *upgrade.TooFar
	if errors.As(err, &far) {
		if far.Offered, err = h.EKS.Offered(ctx); err != nil {
			return nil, err
		}
		err = far
	}
	if err != nil {
		return nil, stopf("%s", err)
	}
	return steps, nil
}

// way is the steps of an upgrade and the one that is open: those of the one that it goes on with, if there are any.
// They are planned anew up to where the control plane is to move next, unless it has, and are less those that EKS, or
// somebody, made already.
func (h *Handler) way(ctx context.Context, in events.UpgradeRequest, j journey, steps []upgrade.Step, open int) ([]upgrade.Step,
	int, error) {
	eks, err := h.EKS.ControlPlane(ctx, names.EKSCluster(in.Cluster))
	if err != nil {
		return nil, 0, err
	}
	if from := upgrade.Unmoved(steps, open, j.from.KubernetesVersion); len(steps) == 0 || from >= 0 &&
		eks.Version == j.from.KubernetesVersion {
		anew, err := h.steps(ctx, j, in.Rollback || len(steps) > 0 && steps[0].NodesBack)
		if err != nil {
			return nil, 0, err
		}
		steps, open = upgrade.Replan(steps, from, anew), from
	}
	return upgrade.Overtaken(steps, min(open, len(steps)), eks.Version), open, nil
}
