package handler

// The steps: each is opened in the record, made by the converge machine, and proved here.

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
		r.State = upgrade.Running
		h.open(&r)
		// Written before it is done: who stops this upgrade knows what to switch on again.
		if err := h.write(ctx, in.Cluster, &r); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	if err := h.Alarms.Silence(ctx, r.Alarms); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.goOn(ctx, in.Cluster, r)
}

// name the alarms that are to be silent: those of the spec whose actions are on. What people switched off stays off afterwards.
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
		if a.Actions && !slices.Contains(r.Alarms, a.Name) {
			r.Alarms = append(r.Alarms, a.Name)
		}
	}
	return nil
}

// open the step that is next. When it was begun is kept: it may be begun again.
func (h *Handler) open(r *record) {
	if r.Step < len(r.Steps) && r.Steps[r.Step].Started.IsZero() {
		r.Steps[r.Step].Started = h.Now().UTC()
	}
}

// goOn with the open step.
func (h *Handler) goOn(ctx context.Context, cluster string, r record) (events.UpgradeResult, error) {
	if r.Step >= len(r.Steps) {
		return events.UpgradeResult{Outcome: events.UpgradeDone, Message: "every step is made"}, h.tell(ctx, cluster, r.Record, nil, "the result is checked")
	}
	s := r.Steps[r.Step]
	return events.UpgradeResult{
		Outcome: events.UpgradeGo, Message: told(s), Kind: string(s.Kind), Name: names.UpgradeExecution(cluster, r.Number, r.Step, r.Try),
	}, h.tell(ctx, cluster, r.Record, nil, told(s))
}

// next looks at what a step came to, and opens the next.
func (h *Handler) next(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	r, err := h.own(ctx, in)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if r.Step >= len(r.Steps) {
		return h.goOn(ctx, in.Cluster, r)
	}
	if err := h.wanted(ctx, in.Cluster, r.Record); err != nil {
		return events.UpgradeResult{}, err
	}
	missing, err := h.prove(ctx, in.Cluster, r.Steps[r.Step])
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if missing != "" {
		return h.again(ctx, in.Cluster, r, missing)
	}
	if waits, err := h.drained(ctx, in.Cluster, &r); err != nil || waits.Outcome != "" {
		return waits, err
	}
	r.Steps[r.Step].Ended = h.Now().UTC()
	r.Step, r.Try = r.Step+1, 0
	h.open(&r)
	if err := h.write(ctx, in.Cluster, &r); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.goOn(ctx, in.Cluster, r)
}

// again makes a step that is not made, unless somebody else is at it.
func (h *Handler) again(ctx context.Context, cluster string, r record, missing string) (events.UpgradeResult, error) {
	holder, err := h.holder(ctx, cluster)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case holder != "":
		return busy("the cluster is being converged by "+holder, longestPause), nil
	case r.Try == tries-1:
		return events.UpgradeResult{}, stopf("converging ended well %d times, and yet %s", tries, missing)
	}
	r.Try++
	if err := h.write(ctx, cluster, &r); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.goOn(ctx, cluster, r)
}

// wanted finds out whether the upgrade is still what people want. What is under way is finished first: this is a safe point.
func (h *Handler) wanted(ctx context.Context, cluster string, r *upgrade.Record) error {
	spec, err := h.read(ctx, cluster)
	if err != nil {
		return err
	}
	if why := r.Superseded(spec); why != "" {
		return &stop{why}
	}
	return nil
}

// prove a step: that converging would change nothing, and that EKS runs what the stack says. It returns what is missing.
func (h *Handler) prove(ctx context.Context, cluster string, s upgrade.Step) (missing string, err error) {
	p, reason, message, err := h.Planner.Preview(ctx, cluster)
	switch {
	case err != nil:
		return "", err
	case reason != "":
		return "", stopf("%s: %s", reason, message)
	case len(p.Changes) > 0:
		return "there is still to change: " + changes(p), nil
	}
	eks, err := h.EKS.ControlPlane(ctx, names.EKSCluster(cluster))
	switch {
	case err != nil:
		return "", err
	case eks.Version != s.KubernetesVersion:
		return fmt.Sprintf("EKS says that the control plane runs %s, not %s", eks.Version, s.KubernetesVersion), nil
	case eks.Status != "ACTIVE":
		return "EKS is not done with the control plane: it is " + eks.Status, nil
	}
	return "", nil
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
