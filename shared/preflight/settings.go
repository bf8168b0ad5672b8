package preflight

// Settings of control planes, and their bounds. EKS has them by Kubernetes version and tier.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
)

// SettingBounds are EKS's bounds of the settings of one Kubernetes version and tier. A setting that EKS does not report is nil.
type SettingBounds struct {
	// Tiers are the tiers above standard.
	Tiers                   []string
	EventTTL, HPASyncPeriod *DurationBounds
	FirstPort, LastPort     *NumberBounds
	TerminatedPods          *NumberBounds
	Scoring                 *ScoringBounds
	// Defaults are the values without a setting, by field below spec.controlPlane.
	Defaults map[string]string
}

// DurationBounds are the least and the most of a duration, as EKS writes it.
type DurationBounds struct{ Min, Max string }

// NumberBounds are the least and the most of a number.
type NumberBounds struct{ Min, Max int }

// ScoringBounds are the types of scoring, and the resources and weights.
type ScoringBounds struct {
	Types, Resources []string
	Weight           *NumberBounds
}

// CheckSettings returns an error for each field of a resolved control plane that is outside EKS's bounds, or that is deployed and missing
// in the spec. EKS keeps the deployed value of such a field:
// https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
func (b *SettingBounds) CheckSettings(spec *api.ClusterSpec, deployed map[string]string) (errs field.ErrorList) {
	path, c := field.NewPath("spec", "controlPlane"), &spec.ControlPlane
	settings := path.Child("settings")
	where := "for Kubernetes " + spec.KubernetesVersion
	if c.Tier != "" {
		where += " and " + c.Tier
	}
	if c.Tier != "" && c.Tier != api.TierStandard && !slices.Contains(b.Tiers, c.Tier) {
		errs = append(errs, field.Invalid(path.Child("tier"), c.Tier, fmt.Sprintf("EKS offers these tiers for Kubernetes %s: %s",
			spec.KubernetesVersion, strings.Join(append([]string{api.TierStandard}, b.Tiers...), ", "))))
	}
	absent := func(at *field.Path, value any) {
		errs = append(errs, field.Invalid(at, value, "EKS does not offer this setting "+where+": remove it"))
	}
	duration := func(name, value string, bounds *DurationBounds) {
		switch at := settings.Child(name); {
		case value == "":
		case bounds == nil:
			absent(at, value)
		case !bounds.contain(value):
			errs = append(errs, field.Invalid(at, value, fmt.Sprintf("EKS allows %s to %s %s", bounds.Min, bounds.Max, where)))
		}
	}
	duration("eventTTL", c.Settings.EventTTL, b.EventTTL)
	duration("hpaSyncPeriod", c.Settings.HPASyncPeriod, b.HPASyncPeriod)
	if first, last, ok := api.ParsePorts(c.Settings.NodePorts); ok {
		switch at := settings.Child("nodePorts"); {
		case b.FirstPort == nil || b.LastPort == nil:
			absent(at, c.Settings.NodePorts)
		case !b.FirstPort.contain(first) || !b.LastPort.contain(last):
			errs = append(errs, field.Invalid(at, c.Settings.NodePorts, fmt.Sprintf("EKS allows a first port between %d and %d and a last one "+
				"between %d and %d %s", b.FirstPort.Min, b.FirstPort.Max, b.LastPort.Min, b.LastPort.Max, where)))
		}
	}
	if n := c.Settings.TerminatedPodThreshold; n > 0 {
		switch at := settings.Child("terminatedPodThreshold"); {
		case b.TerminatedPods == nil:
			absent(at, n)
		case !b.TerminatedPods.contain(n):
			errs = append(errs, field.Invalid(at, n, fmt.Sprintf("EKS allows %d to %d %s", b.TerminatedPods.Min, b.TerminatedPods.Max, where)))
		}
	}
	errs = append(errs, b.checkScoring(settings.Child("scoring"), c.Settings.Scoring, where)...)
	return append(errs, b.checkKept(path, c, deployed)...)
}

func (b *SettingBounds) checkScoring(path *field.Path, scoring *api.Scoring, where string) (errs field.ErrorList) {
	if scoring == nil {
		return nil
	}
	if b.Scoring == nil {
		return field.ErrorList{field.Invalid(path.Child("type"), string(scoring.Type), "EKS does not offer this setting "+where+": remove it")}
	}
	if types := b.Scoring.Types; len(types) > 0 && !slices.Contains(types, string(scoring.Type)) {
		errs = append(errs, field.Invalid(path.Child("type"), string(scoring.Type), "EKS allows "+strings.Join(types, " and ")+" "+where))
	}
	for _, name := range slices.Sorted(maps.Keys(scoring.Weights)) {
		weight, at := scoring.Weights[name], path.Child("weights").Key(name)
		if names := b.Scoring.Resources; len(names) > 0 && !slices.Contains(names, name) {
			errs = append(errs, field.Invalid(at, weight, "EKS has weights "+where+" for these resources only: "+strings.Join(names, ", ")))
		}
		if bounds := b.Scoring.Weight; bounds != nil && !bounds.contain(weight) {
			errs = append(errs, field.Invalid(at, weight, fmt.Sprintf("EKS allows %d to %d %s", bounds.Min, bounds.Max, where)))
		}
	}
	return errs
}

// checkKept refuses the removal of fields that EKS keeps, unless their last value is the default.
func (b *SettingBounds) checkKept(path *field.Path, c *api.ControlPlane, deployed map[string]string) (errs field.ErrorList) {
	stated := c.Kept()
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		defaultValue, found := b.Defaults[name]
		if _, isStated := stated[name]; isStated || found && isSame(defaultValue, deployed[name]) {
			continue
		}
		instead := "state it"
		if found {
			instead = fmt.Sprintf("state it, or its default, %q", defaultValue)
		}
		errs = append(errs, field.Required(child(path, name), fmt.Sprintf("EKS keeps %q when it is removed: %s", deployed[name], instead)))
	}
	return errs
}

func child(path *field.Path, name string) *field.Path {
	for part := range strings.SplitSeq(name, ".") {
		path = path.Child(part)
	}
	return path
}

func (b *NumberBounds) contain(n int) bool { return n >= b.Min && n <= b.Max }

// contain reports whether a duration is within bounds. It ignores a bound that is no duration.
func (b *DurationBounds) contain(value string) bool {
	d, err := time.ParseDuration(value)
	least, minErr := time.ParseDuration(b.Min)
	most, maxErr := time.ParseDuration(b.Max)
	return err != nil || (minErr != nil || d >= least) && (maxErr != nil || d <= most)
}

// isSame compares two values of a setting. Durations may be in other units.
func isSame(a, b string) bool {
	x, err := time.ParseDuration(a)
	y, otherErr := time.ParseDuration(b)
	return a == b || err == nil && otherErr == nil && x == y
}

// FormatPorts formats a range of ports as a spec has it.
func FormatPorts(first, last int) string { return strconv.Itoa(first) + "-" + strconv.Itoa(last) }
