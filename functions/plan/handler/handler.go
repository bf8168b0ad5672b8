// Package handler decides what a cluster needs: it reads the spec and the stacks, renders, compares, and takes the lease
// only if there is something to change. An unchanged cluster costs reads and nothing else.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is what people wrote: a subset of store.Bucket.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	GetVersion(ctx context.Context, key, version string, limit int64) (store.Object, error)
}

// State is what drover keeps: a subset of store.State.
type State interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	PutOnce(ctx context.Context, key string, body []byte) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	Rolls(ctx context.Context, cluster string) (map[string]time.Time, error)
	AddRolls(ctx context.Context, cluster string, pools []string, at time.Time) error
	AddDue(ctx context.Context, cluster string, at time.Time) error
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Acquire(ctx context.Context, cluster string, seen store.Lease, execution string) (store.Lease, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Stacks is what is deployed: a subset of cloudformation.Stacks.
type Stacks interface {
	Of(ctx context.Context, cluster string, expected []string) (map[string]stack.Deployed, error)
	Owners(ctx context.Context, arns []string) (map[string]string, error)
}

// Executions tells whether a holder of the lease still runs: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
}

// Groups tells whether a pool has nodes: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, group string) (pool.Group, bool, error)
}

// Versions tells what EKS offers, and whether a cluster is there: a subset of eks.Versions.
type Versions interface {
	Offered(ctx context.Context) ([]string, error)
	Exists(ctx context.Context, eksCluster string) (bool, error)
}

// Handler plans.
type Handler struct {
	Specs      Specs
	State      State
	Stacks     Stacks
	Executions Executions
	Groups     Groups
	Versions   Versions
	Cell       render.Cell
	// Render is render.Render, unless who plans remembers what was rendered.
	Render func(render.Cluster) (*render.Output, error)
	Now    func() time.Time
	// IgnorePaused plans a paused spec as if it were not paused, for previews.
	IgnorePaused bool
}

// stop ends planning with a reason for people: nothing will be done until one of them acts.
type stop struct{ reason, message string }

func (s *stop) Error() string { return s.message }

// tell is what planning comes to. Who pauses a cluster says so in a spec that is valid.
func (s *stop) tell(result *events.PlanResult) {
	result.Outcome, result.Reason, result.Message = events.OutcomeStopped, s.reason, s.message
	result.Accepted = result.Accepted || s.reason == status.ReasonPaused
}

func (s *stop) rejection() *events.Rejection {
	return &events.Rejection{Reason: s.reason, Message: s.message}
}

// attempts to take the lease against others who take it at the same moment.
const attempts = 4

// Handle plans once. It returns with the lease held when the outcome is Changes, and possibly otherwise: report gives
// it up.
func (h *Handler) Handle(ctx context.Context, in events.PlanRequest) (events.PlanResult, error) {
	for range attempts {
		result, err := h.try(ctx, in)
		var stopped *stop
		var refused *refused
		switch {
		case errors.As(err, &refused):
			logging.From(ctx).Info("request refused", "cluster", in.Cluster, "roll", in.Roll, "reason", refused.message)
			result.Outcome, result.Reason, result.Message = events.OutcomeRefused, status.ReasonRollRefused, refused.message
			return result, h.recordRefusal(ctx, in.Cluster, refused.message)
		case errors.As(err, &stopped):
			logging.From(ctx).Info("stopped", "cluster", in.Cluster, "reason", stopped.reason, "message", stopped.message)
			stopped.tell(&result)
			return result, nil
		case !errors.Is(err, store.ErrConflict):
			return result, err
		}
	}
	return events.PlanResult{}, &fault.Transient{
		Cause: fmt.Errorf("taking the lease of %s: lost against others %d times", in.Cluster, attempts),
	}
}

func (h *Handler) try(ctx context.Context, in events.PlanRequest) (events.PlanResult, error) {
	result := events.PlanResult{Cluster: in.Cluster, Stages: plan.Plan{}.Stages()}
	lease, err := h.State.Lease(ctx, in.Cluster)
	if err != nil {
		return result, err
	}
	result.Seen = lease.Fence
	if lease.Execution != "" && lease.Execution != in.Execution {
		running, err := h.Executions.Running(ctx, lease.Execution)
		if err != nil {
			return result, err
		}
		if running {
			logging.From(ctx).Info("busy", "cluster", in.Cluster, "holder", lease.Execution)
			result.Outcome = events.OutcomeBusy
			if err := h.askLater(ctx, in); err != nil {
				return result, err
			}
			return result, h.behind(ctx, in.Cluster)
		}
	}
	if lease.Execution == in.Execution {
		in.Roll = nil // this call was repeated: they were written down before the lease was taken
	}
	w, err := h.read(ctx, in.Cluster, in)
	if errors.Is(err, errAbsent) {
		return h.delete(ctx, in, lease, result)
	}
	result.SpecVersion = w.newest
	if err != nil {
		return result, err
	}
	w.judged(&result)
	for _, at := range w.later {
		if err := h.State.AddDue(ctx, in.Cluster, at); err != nil {
			return result, err
		}
	}
	p, err := h.compute(ctx, w)
	if err != nil {
		return result, err
	}
	result.Upgrade = h.planned(w)
	if w.decision.Served {
		result.Served = w.record.Number
	}
	if len(p.Changes) == 0 {
		result.Outcome = events.OutcomeUnchanged
		if w.rolled, err = h.drainedByRolls(ctx, w); err != nil {
			return result, err
		}
		return result, h.tell(ctx, in, w, p, lease.Fence)
	}
	if lease, err = h.State.Acquire(ctx, in.Cluster, lease, in.Execution); err != nil {
		return result, err
	}
	result.Fence, result.Seen, result.Outcome, result.Stages = lease.Fence, lease.Fence, events.OutcomeChanges, p.Stages()
	if result.PlanKey, err = h.keep(ctx, w, p); err != nil {
		return result, err
	}
	return result, h.tell(ctx, in, w, p, lease.Fence)
}

// Preview plans without a lease and without telling anybody: it only reads. It returns the plan, or the reason why there is
// none, as Handle would put it into the status. With both, the plan is that of the last good spec, and the reason why the newest is
// not used.
func (h *Handler) Preview(ctx context.Context, cluster string) (p plan.Plan, reason, message string, err error) {
	_, seen, err := h.preview(ctx, cluster)
	if seen.Reason == "" && seen.Unused != nil {
		return seen.Plan, seen.Unused.Reason, seen.Unused.Message, err
	}
	return seen.Plan, seen.Reason, seen.Message, err
}

func (h *Handler) preview(ctx context.Context, cluster string) (w work, seen plan.Preview, err error) {
	w, err = h.read(ctx, cluster, events.PlanRequest{})
	if err == nil {
		seen.Plan, err = h.compute(ctx, w)
	}
	if w.rejected != nil {
		seen.Unused = w.rejected.rejection()
	}
	var stopped *stop
	switch {
	case errors.As(err, &stopped):
		seen.Reason, seen.Message = stopped.reason, stopped.message
		return w, seen, nil
	case errors.Is(err, errAbsent):
		seen.Reason, seen.Message = status.ReasonSpecAbsent, "there is no spec "+names.ClusterSpec(cluster)
		return w, seen, nil
	}
	return w, seen, err
}

// work is what planning has read and rendered.
type work struct {
	cluster string
	// version of the spec that counts, and of the newest. They differ when the newest cannot be used, because of rejected.
	version, newest string
	rejected        *stop
	// spec as it was written, and as it is resolved.
	spec, resolved *api.Cluster
	// pin is the release by name and content, release its content.
	pin     string
	release []byte
	// templates are the template versions of pools that have another than the cluster.
	templates map[string]string
	rendered  *render.Output
	// deployed are the stacks as they were at the time read.
	deployed map[string]stack.Deployed
	read     time.Time
	// at is what the cluster is and is pinned to; zero before there is a control plane.
	at upgrade.Target
	// later are the times at which to plan again: those at which the spec wants pools rolled and that are still to come, and that of the
	// next upgrade.
	later []time.Time
	// decision says what counts, by the record of the last upgrade. releases are those that were read, by name, and by content where
	// that is pinned.
	decision upgrade.Decision
	record   *upgrade.Record
	releases map[string]content
	// rolled are the nodes that rolls replaced and that are still drained.
	rolled []status.Node
}

// judged tells what became of the newest spec, once one that counts was read.
func (w *work) judged(result *events.PlanResult) {
	if result.Accepted = w.rejected == nil; !result.Accepted {
		result.Rejected = w.rejected.rejection()
	}
}

// render reads stacks and release of a spec, and renders.
func (h *Handler) render(ctx context.Context, w work, in events.PlanRequest, spec *api.Cluster, body []byte) (work, error) {
	cluster, key := w.cluster, names.ClusterSpec(w.cluster)
	if err := h.ask(ctx, in, spec); err != nil {
		return w, err
	}
	stacks, err := h.mayHave(ctx, cluster, in, spec)
	if err != nil {
		return w, err
	}
	w.read = h.Now()
	if w.deployed, err = h.Stacks.Of(ctx, cluster, stacks); err != nil {
		return w, err
	}
	if w.record, _, err = h.State.Upgrade(ctx, cluster); err != nil {
		return w, err
	}
	if err := h.decide(ctx, &w, spec); err != nil {
		return w, err
	}
	errs, err := h.resolve(ctx, &w, spec)
	if errs == nil && err == nil {
		errs, err = h.wants(ctx, &w, spec)
	}
	if errs == nil && err == nil && !w.decision.Step.NodesBack {
		errs, err = h.versions(ctx, w.resolved, plan.KubernetesVersion(w.deployed), "")
	}
	if errs == nil && err == nil {
		errs, err = h.owners(ctx, &w)
	}
	if err != nil {
		return w, err
	}
	if errs != nil {
		return w, &stop{status.ReasonSpecInvalid, errs.In(key, body).Error()}
	}
	asked, err := h.State.Rolls(ctx, cluster)
	if err != nil {
		return w, err
	}
	var rollAt map[string]time.Time
	rollAt, w.later = plan.RollAt(w.resolved, w.deployed, asked, h.Now())
	if !w.decision.Look.IsZero() {
		w.later = append(w.later, w.decision.Look)
	}
	rendered := h.Render
	if rendered == nil {
		rendered = render.Render
	}
	if w.rendered, err = rendered(render.Cluster{Cell: h.Cell, Resolved: w.resolved, RollAt: rollAt, Templates: w.templates}); err != nil {
		return w, &stop{status.ReasonSpecInvalid, err.Error()}
	}
	return w, nil
}

// mayHave lists the stacks that a cluster may have by name: those of its spec and, when an execution plans, those that earlier ones knew. A
// stack that is no more than a change set is not found by tag.
func (h *Handler) mayHave(ctx context.Context, cluster string, in events.PlanRequest, spec *api.Cluster) ([]string, error) {
	stacks := expected(spec)
	if in.Execution == "" {
		return stacks, nil
	}
	before, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) {
		return stacks, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range seen(before.Status) {
		if !slices.Contains(stacks, name) {
			stacks = append(stacks, name)
		}
	}
	return stacks, nil
}

// expected lists the stacks that a spec asks for, without rendering it; both add-on stacks, as a release may fill them.
func expected(spec *api.Cluster) []string {
	var stacks []string
	if spec.Spec.Network.Existing == nil {
		stacks = append(stacks, names.Network)
	}
	stacks = append(stacks, names.ControlPlane, names.Addons, names.NodeAddons)
	for _, pool := range spec.Spec.Pools {
		stacks = append(stacks, names.PoolStack(pool.Name))
	}
	return stacks
}

// compute compares. Whether there are nodes is asked only when there may be none.
func (h *Handler) compute(ctx context.Context, w work) (plan.Plan, error) {
	p, err := h.differences(ctx, w)
	if err != nil {
		return p, err
	}
	p.Warnings = api.Warnings(w.resolved, &api.Release{}) // the release's add-ons are in the resolved spec
	if p, err = h.lost(ctx, w, p); err != nil || !p.NeedsNode(w.resolved) {
		return p, err
	}
	there, err := h.hasNode(ctx, w)
	if err != nil || there {
		return p, err
	}
	return p.WithoutNodes(), nil
}

// hasNode says whether a pool has an instance in service.
func (h *Handler) hasNode(ctx context.Context, w work) (bool, error) {
	for _, pool := range w.resolved.Spec.Pools {
		group, _, err := h.Groups.Describe(ctx, names.Group(w.cluster, pool.Name))
		if err != nil {
			return false, err
		}
		if group.Serving() > 0 {
			return true, nil
		}
	}
	return false, nil
}

// differences are all there are. What was deployed last is read only when something differs, to say what and why.
func (h *Handler) differences(ctx context.Context, w work) (plan.Plan, error) {
	in := plan.Input{
		Cluster: w.cluster, SpecVersion: w.version, Release: w.pin, New: w.resolved,
		Desired: w.rendered.Stacks, Deployed: w.deployed,
	}
	if w.rejected != nil {
		in.Rejected = w.newest
	}
	p := plan.Compute(in)
	if !slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Operation == plan.Update }) {
		return p, nil
	}
	var err error
	if in.Old, err = h.before(ctx, w); err != nil {
		return p, err
	}
	p = plan.Compute(in)
	if len(p.Refused) > 0 {
		return p, refuse(p.Refused)
	}
	return p, nil
}

// refuse stops planning because of changes that are not made, by name.
func refuse(changes []status.Reason) *stop {
	var lines []string
	for _, refused := range changes {
		lines = append(lines, refused.Line())
	}
	return &stop{status.ReasonChangeRefused, strings.Join(lines, "\n")}
}

// before reads the specs that last changed each stack, by stack. One that cannot be read any more, because its version
// expired or this drover no longer reads it, is left out: reasons are then told by checksum.
func (h *Handler) before(ctx context.Context, w work) (map[string]*api.Cluster, error) {
	var release *api.Release
	name, sha := w.at.Release, w.at.SHA256
	if sha == "" { // a control plane that could not be created
		name, sha = plan.Pin(w.deployed)
	}
	if sha != "" {
		object, err := h.State.Get(ctx, names.PinnedRelease(sha), api.MaxFile)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		release, _ = api.ReadRelease(name, object.Body, api.Options{})
	}
	specs, old := map[string]*api.Cluster{}, map[string]*api.Cluster{}
	for _, stack := range slices.Sorted(maps.Keys(w.deployed)) {
		version := w.deployed[stack].Tags[names.TagSpecVersion]
		if _, read := specs[version]; !read && version != "" {
			object, err := h.Specs.GetVersion(ctx, names.ClusterSpec(w.cluster), version, api.MaxFile)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			specs[version] = nil
			if spec, errs := api.ReadCluster("", object.Body, api.Options{}); errs == nil && release != nil {
				specs[version] = asDeployed(spec, release, w.deployed)
			}
		}
		if specs[version] != nil {
			old[stack] = specs[version]
		}
	}
	return old, nil
}

// asDeployed resolves a spec as it was converged to: whatever it said of releases and versions, the stacks say what came of it. nil if
// it cannot be resolved.
func asDeployed(spec *api.Cluster, release *api.Release, deployed map[string]stack.Deployed) *api.Cluster {
	version := plan.KubernetesVersion(deployed)
	if version == "" {
		version = spec.Spec.KubernetesVersion
	}
	step := upgrade.Step{KubernetesVersion: version}
	resolved, errs := upgrade.Effective(spec, release, nil, step)
	if errs != nil {
		return nil
	}
	upgrade.Keep{
		Images: true, Addons: true, Stated: true,
	}.Apply(spec, resolved, step, plan.Images(deployed), plan.AddonVersions(deployed, resolved.Spec.Addons))
	return resolved
}

// keep writes what the changes need to the state bucket, content-addressed: writing it twice is writing it once.
func (h *Handler) keep(ctx context.Context, w work, p plan.Plan) (string, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sha := names.SHA256(w.release)
	objects := map[string][]byte{names.PinnedRelease(sha): w.release, names.Plan(body): body}
	maps.Copy(objects, w.rendered.UserData)
	for _, stack := range w.rendered.Stacks {
		change, changes := p.Find(stack.Name)
		if changes {
			objects[stack.TemplateKey] = stack.Template
		}
		if change.FirstKey != "" {
			objects[change.FirstKey] = stack.FirstTemplate
		}
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if err := h.State.PutOnce(ctx, key, objects[key]); err != nil {
			return "", err
		}
	}
	return names.Plan(body), nil
}

// tell writes what is known into the status: the stacks as they are, what will change, and why. What a later holder of the lease
// wrote stays: then all that was read here is out of date, which is store.ErrConflict.
func (h *Handler) tell(ctx context.Context, in events.PlanRequest, w work, p plan.Plan, fence int64) error {
	late := false
	err := h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if late = s.Fence > fence; late {
			return
		}
		s.Fence = fence
		if s.GoodVersion != w.version {
			s.Failures, s.RetryAt, s.FailedTry = 0, nil, 0
		}
		if s.SpecVersion != w.newest {
			s.Unset(status.RequestAccepted) // an earlier spec refused that request
		}
		s.SpecVersion, s.GoodVersion, s.Deletion = w.newest, w.version, nil
		w.observe(s, h.Now())
		s.Plan = nil
		for _, change := range p.Changes {
			planned := status.Change{Stack: change.Stack, Operation: string(change.Operation), Effect: change.Effect(), Reasons: change.Reasons}
			if change.Stack == names.ControlPlane {
				planned.KubernetesVersion = w.resolved.Spec.KubernetesVersion
			}
			s.Plan = append(s.Plan, planned)
		}
		tellAddons(s, p.AddonsWait, h.Now())
		s.Warn(p.Warnings, h.Now())
		s.Rolled(w.rolled, h.Now())
		h.tellUpgrade(s, w)
		if len(p.Changes) > 0 {
			s.Phase, s.Execution, s.RetryAt = status.Converging, in.Execution, nil
			if w.record != nil && !w.record.State.Over() {
				s.Phase = status.Upgrading
			}
			s.Message = fmt.Sprintf("changing %d of %d stacks", len(p.Changes), len(w.rendered.Stacks))
			s.Set(accepted(w.rejected), h.Now())
			s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonConverging, Message: s.Message}, h.Now())
		}
	})
	if err == nil && late {
		return store.ErrConflict
	}
	return err
}

// observe writes what a cluster is into its status, as far as planning reads it.
func (w *work) observe(s *status.Status, now time.Time) {
	s.Release = w.resolved.Spec.Release.Name
	// The deployed version: an update of the control plane may fail. Without a control plane there is none.
	s.KubernetesVersion = plan.KubernetesVersion(w.deployed)
	s.TemplateVersion = w.resolved.Spec.TemplateVersion
	s.Endpoint = w.deployed[names.ControlPlane].Outputs["ClusterEndpoint"]
	var seen []status.Stack
	for _, stack := range w.rendered.Stacks {
		if deployed, ok := w.deployed[stack.Name]; ok {
			seen = append(seen, status.Stack{Name: stack.Name, Status: deployed.Status})
		}
	}
	s.Observe(seen, w.read, now)
}

// accepted is the condition of the newest spec.
func accepted(rejected *stop) status.Condition {
	if rejected != nil {
		return status.Condition{Type: status.SpecAccepted, Status: "False", Reason: rejected.reason, Message: rejected.message}
	}
	return status.Condition{Type: status.SpecAccepted, Status: "True", Reason: status.ReasonValid}
}

// tellAddons says in the status that the add-ons that need nodes wait for one, and when they do no more. A cluster whose add-ons never
// waited has no such condition.
func tellAddons(s *status.Status, wait bool, now time.Time) {
	switch {
	case wait:
		s.Set(status.Condition{
			Type: status.AddonsDeployed, Status: "False", Reason: status.ReasonNoNodes,
			Message: "stack " + names.NodeAddons + " waits for the first node: no pool has one, and none has a minSize above 0",
		}, now)
	case s.Condition(status.AddonsDeployed) != nil:
		s.Set(status.Condition{Type: status.AddonsDeployed, Status: "True", Reason: status.ReasonHasNodes}, now)
	}
}
