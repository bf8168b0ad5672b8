package handler

// A pool is replaced when its old nodes are gone: CloudFormation does not wait for the drains of the last ones, and EKS removes the Node
// object of an instance a while after that has ended. Until then EKS counts an old kubelet, and takes no control plane back.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// beyond its pool's own time a drain gets this much more before the upgrade stops. It is also what Node objects get after the drains.
const beyond = 15 * time.Minute

// remainder of old nodes: what is left, how long a step waits for it after everything was replaced, and what to say when that is over.
type remainder struct {
	what    string
	allowed time.Duration
	late    string
}

// drained waits for old nodes after a step that replaced them: for as long as their pool gives a drain. The outcome is empty when
// none is left.
func (h *Handler) drained(ctx context.Context, cluster string, r *record) (events.UpgradeResult, error) {
	s := &r.Steps[r.Step]
	if s.Kind != upgrade.StepNodes && s.Kind != upgrade.StepNodesBack {
		return events.UpgradeResult{}, nil
	}
	left, err := h.left(ctx, cluster, r.Record)
	if err != nil || left.what == "" {
		return events.UpgradeResult{}, err
	}
	if s.Made.IsZero() {
		s.Made = h.Now().UTC()
		if err := h.write(ctx, cluster, r); err != nil {
			return events.UpgradeResult{}, err
		}
	} else if h.Now().Sub(s.Made) > left.allowed+beyond {
		return events.UpgradeResult{}, stopf("%s, for longer than drain.timeout (%s). %s", left.what, left.allowed, left.late)
	}
	waits := asOf(left.what, h.Now(), pause(h.Now().Sub(s.Made), s.Made.Sub(s.Opened)))
	return waits, h.tell(ctx, cluster, r.Record, nil, waits.Message)
}

// left says what of the old nodes there still is: instances that are drained, then Node objects of those that have ended.
func (h *Handler) left(ctx context.Context, cluster string, r *upgrade.Record) (remainder, error) {
	j, err := h.retrace(ctx, cluster, r)
	if err != nil {
		return remainder{}, err
	}
	var leaving []string
	var drains, longest time.Duration
	states := map[string]string{}
	for _, pool := range j.after.Spec.Pools {
		group, _, err := h.Groups.Describe(ctx, names.Group(cluster, pool.Name))
		if err != nil {
			return remainder{}, err
		}
		allowed, err := time.ParseDuration(pool.Drain.Timeout)
		if err != nil {
			return remainder{}, fmt.Errorf("reading drain.timeout of pool %s: %w", pool.Name, err)
		}
		longest = max(longest, allowed)
		for _, instance := range group.Leaving() {
			leaving = append(leaving, fmt.Sprintf("%s of pool %s", instance, pool.Name))
			drains = max(drains, allowed)
		}
		for _, i := range group.Instances {
			states[i.ID] = i.State
		}
	}
	if len(leaving) > 0 {
		return remainder{"still being drained: " + strings.Join(leaving, ", "), drains, "The status says for which pods they wait"}, nil
	}
	ended, err := h.endedNodes(ctx, cluster, states)
	var unreachable *fault.ClusterUnreachable
	switch {
	case errors.As(err, &unreachable):
		return remainder{"whether old nodes are gone cannot be seen: " + err.Error(), longest, "See why the cluster's API does not answer"}, nil
	case err != nil || len(ended) == 0:
		return remainder{}, err
	}
	return remainder{
		"their instances have ended, and the cluster still lists these nodes: " + strings.Join(ended, ", "), longest,
		"EKS removes them within minutes: see why it does not, or remove them with kubectl delete node",
	}, nil
}

// endedNodes lists the nodes of drover's pools whose instances have ended. states are those of the instances that groups have; what was
// detached from its group goes on, and its node with it.
func (h *Handler) endedNodes(ctx context.Context, cluster string, states map[string]string) ([]string, error) {
	control, err := h.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	if err != nil {
		return nil, err
	}
	nodes, err := h.Nodes.Health(ctx, cluster, control.Outputs["ClusterEndpoint"], control.Outputs["ClusterCertificateAuthority"])
	if err != nil {
		return nil, err
	}
	old := map[string]pool.NodeHealth{}
	var strangers []string
	for _, n := range nodes {
		switch state, member := states[n.Instance]; {
		case !member:
			strangers = append(strangers, n.Instance)
			old[n.Instance] = n
		case state == pool.TerminatingProceed:
			old[n.Instance] = n
		}
	}
	alive, err := h.Instances.RunningInstances(ctx, strangers)
	if err != nil {
		return nil, err
	}
	for _, id := range alive {
		delete(old, id)
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(old)) {
		all = append(all, fmt.Sprintf("%s (%s) of pool %s", old[id].Name, id, old[id].Pool))
	}
	return all, nil
}
