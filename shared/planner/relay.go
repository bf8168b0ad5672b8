package planner

// The code of a cluster's relay. Deploying another version of drover changes no cluster, so a relay keeps its code until the control plane
// changes for another reason. See ADR 30.

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// relayCode returns the code to render: that of the deployed relay or, without one, this version's.
func (p *Planner) relayCode(deployed map[string]stack.Deployed) render.RelayCode {
	if code, found := deployedRelay(deployed); found {
		return code
	}
	return p.Relay
}

func deployedRelay(deployed map[string]stack.Deployed) (code render.RelayCode, found bool) {
	return render.ParseRelayCode(deployed[names.ControlPlane].Outputs[stack.OutputRelay])
}

// hadRelay reports whether the control plane has the security group of a relay. The relay itself may be removed already.
func hadRelay(deployed map[string]stack.Deployed) bool {
	outputs := deployed[names.ControlPlane].Outputs
	return outputs[stack.OutputRelay] != "" || outputs[stack.OutputRelayGroup] != ""
}

// relayMissing reports whether the function of the deployed relay was deleted outside drover. CloudFormation does not notice that. Between
// the two updates of a repair the function is absent, and the second update creates it.
func (p *Planner) relayMissing(ctx context.Context, w *work) (bool, error) {
	control := w.deployed[names.ControlPlane]
	if _, found := deployedRelay(w.deployed); !found || !w.resolved.Spec.ControlPlane.Endpoint.NeedsRelay() ||
		stack.InProgress(control.Status) || control.Tags[names.TagChecksum] == names.ChecksumRepair {
		return false, nil
	}
	exists, err := p.Functions.Exists(ctx, names.Relay(w.cluster))
	return !exists && err == nil, err
}

// relayOutdated reports whether a relay remains, and its code is not this version's.
func (p *Planner) relayOutdated(w *work) (old render.RelayCode, outdated bool) {
	old, found := deployedRelay(w.deployed)
	remains := w.resolved.Spec.ControlPlane.Endpoint.NeedsRelay()
	return old, found && remains && p.Relay != render.UnknownRelay && old != p.Relay
}

// updateRelay renders the cluster with this version's relay if its control plane changes for another reason. It reports whether it did.
func (p *Planner) updateRelay(w *work, changes plan.Plan) (updated bool, err error) {
	change, changed := changes.Find(names.ControlPlane)
	if _, outdated := p.relayOutdated(w); !outdated || !changed || change.Checksum == w.deployed[names.ControlPlane].Tags[names.TagChecksum] {
		return false, nil
	}
	w.desired.Relay = p.Relay
	if w.rendered, err = render.Render(w.desired); err != nil {
		return false, renderError(err)
	}
	return true, nil
}

// relayReason adds the change of the relay's code to the reasons of the control plane's change.
func relayReason(changes plan.Plan, old, present render.RelayCode) {
	i := slices.IndexFunc(changes.Changes, func(c plan.Change) bool { return c.Stack == names.ControlPlane && c.Operation == plan.Update })
	if i < 0 {
		return
	}
	change := &changes.Changes[i]
	change.Reasons = append(slices.Clone(change.Reasons), status.Reason{Field: "relay.code", Old: short(old), New: short(present)})
}

// relayWarning is the message about a relay that has other code than this version's.
func relayWarning(cluster string, old, present render.RelayCode) string {
	return fmt.Sprintf("the relay %s has the code of another version of drover (%s, not %s): the next change of the control plane updates "+
		"it; a change of a tag in spec.tags updates it now",
		names.Relay(cluster), short(old), short(present))
}

func short(code render.RelayCode) string { return code.SHA256[:min(12, len(code.SHA256))] }
