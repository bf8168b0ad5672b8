package handler

// The steps: each is opened in the record, made by the converge machine, and proved here.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/upgrade"
)

// tries of a step: executions of the converge machine that ended well, and left it undone.
const tries = 3

// begin switches alarms off and opens the first step.
func (h *Handler) begin(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	r, err := h.own(ctx, in)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if r.State != upgrade.Running {
		if err := h.name(ctx, in.Cluster, &r); err != nil {
			return events.UpgradeResult{}, err
		}
		r.State, r.Last = upgrade.Running, nil
		h.open(&r)
		// Written before it is done: who stops this upgrade knows what to switch on again.
		if err := h.write(ctx, in.Cluster, &r); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	if err := h.Alarms.DisableActions(ctx, r.Alarms); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.goOn(ctx, in.Cluster, r)
}

// name the alarms that are to be silent: those of the spec whose actions are on, and whose owners let upgrades switch them off. What
// people switched off stays off afterwards.
func (h *Handler) name(ctx context.Context, cluster string, r *record) error {
	spec, err := h.spec(ctx, cluster)
	if err != nil {
		return err
	}
	alarms, err := h.Alarms.Describe(ctx, spec.Spec.Upgrade.Alarms)
	if err != nil {
		return err
	}
	for _, a := range alarms {
		if a.Actions && a.Silence && !slices.Contains(r.Alarms, a.Name) {
			r.Alarms = append(r.Alarms, a.Name)
		}
	}
	return nil
}

// open the step that is next. When it was begun is kept: it may be begun again, and then old nodes get all their time again.
func (h *Handler) open(r *record) {
	if r.Step >= len(r.Steps) {
		return
	}
	s := &r.Steps[r.Step]
	s.Made, s.Opened = time.Time{}, h.Now().UTC()
	if s.Started.IsZero() {
		s.Started = s.Opened
	}
}

// goOn with the open step.
func (h *Handler) goOn(ctx context.Context, cluster string, r record) (events.UpgradeResult, error) {
	if r.Step >= len(r.Steps) {
		return events.UpgradeResult{
			Outcome: events.UpgradeDone, Message: "every step is made",
		}, h.tell(ctx, cluster, r.Record, nil, "the result is checked")
	}
	s := r.Steps[r.Step]
	return events.UpgradeResult{
		Outcome: events.UpgradeGo, Message: told(s), Kind: string(s.Kind), Name: names.UpgradeExecution(cluster, r.Execution, r.Step, r.Try),
	}, h.tell(ctx, cluster, r.Record, nil, told(s))
}

// next looks at what a step came to, and opens the next. A step that was made counts, whatever people want by now.
func (h *Handler) next(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	r, err := h.own(ctx, in)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if r.Step >= len(r.Steps) {
		return h.goOn(ctx, in.Cluster, r)
	}
	unwanted, err := h.unwanted(ctx, in.Cluster, r.Record)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	s := r.Steps[r.Step]
	waits, missing, err := h.made(ctx, in.Cluster, &r)
	var stopped *stop
	if unwanted != nil && (err == nil || errors.As(err, &stopped)) {
		return events.UpgradeResult{}, unwanted
	}
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case h.Now().Sub(s.Opened) > s.Kind.Limit() && (waits.Outcome != "" || missing != ""):
		return events.UpgradeResult{}, stopf("%s takes longer than the %s that it may: %s", told(s), s.Kind.Limit(),
			cmp.Or(missing, waits.Message))
	case waits.Outcome != "":
		return waits, h.tell(ctx, in.Cluster, r.Record, nil, waits.Message)
	case missing != "":
		return h.again(ctx, in.Cluster, r, missing)
	}
	return h.goOn(ctx, in.Cluster, r)
}

// made proves the open step, and opens the next in the record. Otherwise it returns what to wait for, or what is missing.
func (h *Handler) made(ctx context.Context, cluster string, r *record) (waits events.UpgradeResult, missing string, err error) {
	waits, missing, err = h.prove(ctx, cluster, r.Steps[r.Step])
	if err == nil && missing == "" && waits.Outcome == "" {
		waits, err = h.drained(ctx, cluster, r)
	}
	if err != nil || missing != "" || waits.Outcome != "" {
		return waits, missing, err
	}
	r.Steps[r.Step].Ended = h.Now().UTC()
	r.Step, r.Try = r.Step+1, 0
	h.open(r)
	return waits, "", h.write(ctx, cluster, r)
}

// again makes a step that is not made, unless somebody else is at it.
func (h *Handler) again(ctx context.Context, cluster string, r record, missing string) (events.UpgradeResult, error) {
	holder, err := h.State.Holder(ctx, cluster, h.Executions.Running)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case holder != "":
		message := "the cluster is being converged by " + holder
		return busy(message, longestPause), h.tell(ctx, cluster, r.Record, nil, message)
	case r.Try == tries-1:
		return events.UpgradeResult{}, stopf("converging ended well %d times, and yet %s", tries, missing)
	}
	r.Try++
	if err := h.write(ctx, cluster, &r); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.goOn(ctx, cluster, r)
}

// unwanted says why the upgrade is not what people want any more; nil while it is. What is under way is finished first: this is a safe
// point.
func (h *Handler) unwanted(ctx context.Context, cluster string, r *upgrade.Record) (*stop, error) {
	spec, err := h.read(ctx, cluster)
	var unusable *stop
	if err != nil && !errors.As(err, &unusable) {
		return nil, err
	}
	if unusable != nil {
		return unusable, nil
	}
	if why := r.Superseded(spec); why != "" {
		return &stop{why}, nil
	}
	return nil, nil
}

// prove a step: that converging would change nothing, and that EKS runs what the stack says. It returns what is missing. While EKS is at
// something, whoever asked for it, nothing can be said, and converging would fail.
func (h *Handler) prove(ctx context.Context, cluster string, s upgrade.Step) (waits events.UpgradeResult, missing string, err error) {
	eks, err := h.EKS.ControlPlane(ctx, names.EKSCluster(cluster))
	if err != nil {
		return waits, "", err
	}
	if eks.Status == "UPDATING" {
		return busy("EKS is not done with the control plane: it is UPDATING", longestPause), "", nil
	}
	p, reason, message, err := h.Planner.Preview(ctx, cluster)
	switch {
	case err != nil:
		return waits, "", err
	case reason != "":
		return waits, "", stopf("%s: %s", reason, message)
	case len(p.Changes) > 0:
		return waits, "there is still to change: " + changes(p), nil
	case eks.Version != s.KubernetesVersion:
		return waits, fmt.Sprintf("EKS says that the control plane runs %s, not %s", eks.Version, s.KubernetesVersion), nil
	case eks.Status != "ACTIVE":
		return waits, "EKS is not done with the control plane: it is " + eks.Status, nil
	}
	return waits, "", nil
}

func changes(p plan.Plan) string {
	var all []string
	for _, c := range p.Changes {
		all = append(all, fmt.Sprintf("%s of %s", strings.ToLower(string(c.Operation)), c.Stack))
	}
	return strings.Join(all, ", ")
}

// told is a step for people.
func told(s upgrade.Step) string {
	switch {
	case s.NodesBack && s.Kind == upgrade.StepAddonsFirst:
		return "add-ons to versions that the Kubernetes version before can have"
	case s.NodesBack && s.Kind == upgrade.StepNodes: // which are back already
		return "what else the release before has"
	}
	switch s.Kind {
	case upgrade.StepAddonsFirst:
		return "add-ons to versions that the next Kubernetes version can have"
	case upgrade.StepControlPlane:
		return "control plane to " + s.KubernetesVersion
	case upgrade.StepAddons:
		return "add-ons to those of the release"
	case upgrade.StepNodes:
		return "nodes to the images of the release"
	case upgrade.StepNodesBack:
		return "nodes back to the images that they had"
	}
	return string(s.Kind)
}
