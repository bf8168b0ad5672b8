package plan

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// NodesEffect returns what an update of a pool's stack does to running nodes, given the values of its parameters:
//
//   - Another fingerprint replaces them, and so does a subnet that the pool no longer has.
//   - Everything else is in place: tags, sizes, instance types, and added subnets.
//
// It is "" if the deployed stack has no fingerprint, because an older drover deployed it. Only the change set shows the effect then.
func NodesEffect(nodes *render.Fingerprint, deployed stack.Deployed, values map[string]string) status.Effect {
	switch was := deployed.Outputs[render.Nodes]; {
	case nodes == nil || was == "":
		return ""
	case was != nodes.Sum(values), removesSubnet(deployed.Parameters[render.SubnetIDs], values[render.SubnetIDs]):
		return status.ReplacesNodes
	}
	return status.InPlace
}

// NodesParameters returns the parameters about the nodes for an update of a pool's stack, or for its creation.
func NodesParameters(nodes *render.Fingerprint, deployed stack.Deployed, values map[string]string) map[string]string {
	sum, since := nodes.Sum(values), ""
	if sum == deployed.Outputs[render.Nodes] {
		since = deployed.Outputs[render.NodesSince]
	}
	return map[string]string{render.Nodes: sum, render.NodesSince: since}
}

// removesSubnet reports whether a list of subnets lacks one of an older list.
func removesSubnet(before, now string) bool {
	kept := strings.Split(now, ",")
	return slices.ContainsFunc(strings.Split(before, ","), func(id string) bool { return id != "" && !slices.Contains(kept, id) })
}

// valueOf returns the value of a parameter from the deployed outputs. Items are places among the zones of the new spec, and the deployed
// output has the zones of the deployed one. A zone that is not deployed yet has no value.
func (in Input) valueOf(from *render.OutputRef) string {
	if old := in.Old[names.Network]; old != nil && len(from.Items) > 0 {
		deployed := *from
		deployed.Items = nil
		for _, item := range from.Items {
			if at := slices.Index(old.Spec.Network.Zones, in.New.Spec.Network.Zones[item]); at >= 0 {
				deployed.Items = append(deployed.Items, at)
			}
		}
		if len(deployed.Items) == 0 {
			return ""
		}
		from = &deployed
	}
	value, _ := from.Value(in.Deployed[from.Stack].Outputs)
	return value
}

// effectOf returns what an update of a stack does to running nodes. It is "" if that is unknown.
func (in Input) effectOf(desired render.Stack, deployed stack.Deployed, reasons []status.Reason) status.Effect {
	protection := func(r status.Reason) bool { return strings.HasPrefix(r.Field, "terminationProtection.") }
	switch {
	case desired.Pace == nil, !slices.ContainsFunc(reasons, func(r status.Reason) bool { return !protection(r) }):
		return status.InPlace
	case !stack.Settled(deployed.Status): // a rollback may have left other nodes
		return ""
	}
	values := map[string]string{}
	for _, parameter := range desired.Parameters {
		values[parameter.Name] = parameter.Value
		if from := parameter.From; from != nil {
			if values[parameter.Name] = in.valueOf(from); values[parameter.Name] == "" {
				values[parameter.Name] = deployed.Parameters[parameter.Name]
			}
		}
	}
	return NodesEffect(desired.Nodes, deployed, values)
}
