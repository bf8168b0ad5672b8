package api

// Settings of control planes: rules that need no call of AWS, and what EKS keeps when a spec no longer states it.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TierStandard is the tier that EKS scales by itself.
const TierStandard = "standard"

// oldestWithSettings is the oldest minor version of Kubernetes that has settings.
// https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
const oldestWithSettings = 31

// logRetentions are the days for which CloudWatch Logs can keep logs.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
var logRetentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// validateSettingsOf checks what does not depend on EKS's bounds.
func validateSettingsOf(path *field.Path, s *ClusterSpec) (errs field.ErrorList) {
	c := &s.ControlPlane
	if days := c.LogRetentionDays; days > 0 && !slices.Contains(logRetentions, days) {
		at, _ := slices.BinarySearch(logRetentions, days)
		if last := len(logRetentions) - 1; at > 0 && at <= last {
			errs = append(errs, field.Invalid(path.Child("logRetentionDays"), days, fmt.Sprintf("CloudWatch Logs does not have this retention: "+
				"use %d or %d", logRetentions[at-1], logRetentions[at])))
		}
	}
	settings := path.Child("settings")
	if c.Settings.HPASyncPeriod != "" && (c.Tier == "" || c.Tier == TierStandard) {
		errs = append(errs, field.Forbidden(settings.Child("hpaSyncPeriod"), "EKS has it for provisioned control planes only: set tier to one "+
			"above standard, or remove this field"))
	}
	if len(c.Subnets) > 0 && s.Network.Existing == nil {
		errs = append(errs, field.Forbidden(path.Child("subnets"), "the network of the cluster has its subnets: remove this field, or use "+
			"network.existing"))
	}
	if p := c.IdentityProvider; p != nil && p.GroupsClaim != "" && p.GroupsPrefix == "" {
		errs = append(errs, field.Required(path.Child("identityProvider", "groupsPrefix"), "groupsClaim needs it: the provider could otherwise "+
			"give any group, such as drover's"))
	}
	if n := minor(s.KubernetesVersion); n >= 0 && n < oldestWithSettings && len(c.Settings.kept()) > 0 {
		errs = append(errs, field.Forbidden(settings, fmt.Sprintf("EKS has settings for Kubernetes 1.%d or newer, and the cluster has %s: "+
			"remove them, or upgrade first", oldestWithSettings, s.KubernetesVersion)))
	}
	return errs
}

// orderedPorts checks a range of ports.
func orderedPorts(value string) []string {
	first, last, ok := ParsePorts(value)
	switch {
	case !ok:
		return nil // the pattern reports it
	case last > 65535:
		return []string{"must end at 65535 or before"}
	case first > last:
		return []string{"must not end before it begins"}
	}
	return nil
}

// ParsePorts returns the first and the last port of a range.
func ParsePorts(value string) (first, last int, ok bool) {
	from, to, _ := strings.Cut(value, "-")
	first, err := strconv.Atoi(from)
	last, wrong := strconv.Atoi(to)
	return first, last, err == nil && wrong == nil
}

// kept returns the settings that are stated, by their fields below settings.
func (s ControlPlaneSettings) kept() map[string]string {
	kept := map[string]string{}
	for name, value := range map[string]string{"eventTTL": s.EventTTL, "nodePorts": s.NodePorts, "hpaSyncPeriod": s.HPASyncPeriod} {
		if value != "" {
			kept[name] = value
		}
	}
	if s.TerminatedPodThreshold > 0 {
		kept["terminatedPodThreshold"] = strconv.Itoa(s.TerminatedPodThreshold)
	}
	if s.Scoring != nil {
		kept["scoring"] = s.Scoring.String()
	}
	return kept
}

// String returns the strategy and its weights, such as "MostAllocated cpu=2,memory=1".
func (s *Scoring) String() string {
	names := slices.SortedFunc(maps.Keys(s.Weights), func(a, b string) int {
		return cmp.Or(s.Weights[b]-s.Weights[a], strings.Compare(a, b))
	})
	var weights []string
	for _, name := range names {
		weights = append(weights, fmt.Sprintf("%s=%d", name, s.Weights[name]))
	}
	return strings.TrimSpace(string(s.Type) + " " + strings.Join(weights, ","))
}

// Kept returns the fields of the control plane that EKS keeps when nothing states them, with their values. The paths are below
// spec.controlPlane.
func (c *ControlPlane) Kept() map[string]string {
	kept := map[string]string{}
	for name, value := range c.Settings.kept() {
		kept["settings."+name] = value
	}
	if c.Tier != "" {
		kept["tier"] = c.Tier
	}
	if c.ZonalShift != nil {
		kept["zonalShift"] = strconv.FormatBool(*c.ZonalShift)
	}
	return kept
}
