package render

// Settings of the API server, the controller manager and the scheduler.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// Kept is the output of the control plane's stack with the fields that EKS keeps when the template no longer states them: a line
// "path=value" for each, with the path below spec.controlPlane. A stack without such fields does not have it.
const Kept = "Kept"

// SecurityGroups is the output of a stack with the security groups of the spec, separated by commas.
const SecurityGroups = "SecurityGroupIds"

// ParseKept returns the values of that output by their paths.
func ParseKept(output string) map[string]string {
	kept := map[string]string{}
	for line := range strings.Lines(output) {
		if path, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "="); found {
			kept[path] = value
		}
	}
	return kept
}

// settings are the parameters of the components.
type settings struct {
	EventTTL, HPASyncPeriod string
	NodePorts               *portRange
	TerminatedPods          int
	Scoring                 string
	Weights                 []resourceWeight
}

type portRange struct{ First, Last int }

type resourceWeight struct {
	Name   string
	Weight int
}

// zonalShift is whether a zonal shift may move traffic and nodes.
type zonalShift struct{ Enabled bool }

func newZonalShift(stated *bool) *zonalShift {
	if stated == nil {
		return nil
	}
	return &zonalShift{*stated}
}

// addSettings adds what the spec states of the components, and the output of what EKS keeps.
func (p *controlPlaneParams) addSettings(spec *api.ControlPlane) error {
	in := spec.Settings
	out := settings{EventTTL: in.EventTTL, HPASyncPeriod: in.HPASyncPeriod, TerminatedPods: in.TerminatedPodThreshold}
	if in.NodePorts != "" {
		first, last, ok := api.ParsePorts(in.NodePorts)
		if !ok {
			return fmt.Errorf("spec.controlPlane.settings.nodePorts: %q is not a range of ports", in.NodePorts)
		}
		out.NodePorts = &portRange{first, last}
	}
	if in.Scoring != nil {
		out.Scoring = string(in.Scoring.Type)
		for _, name := range slices.Sorted(maps.Keys(in.Scoring.Weights)) {
			out.Weights = append(out.Weights, resourceWeight{name, in.Scoring.Weights[name]})
		}
	}
	kept := spec.Kept()
	if len(kept) == 0 {
		return nil
	}
	p.Settings = &out
	for _, path := range slices.Sorted(maps.Keys(kept)) {
		p.Kept += path + "=" + kept[path] + "\n"
	}
	return nil
}
