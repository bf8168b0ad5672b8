package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestCheckSettings(t *testing.T) {
	off := false
	bounds := &SettingBounds{
		Tiers:    []string{"tier-xl"},
		EventTTL: &DurationBounds{"10m", "60m"}, HPASyncPeriod: &DurationBounds{"10s", "15s"},
		FirstPort: &NumberBounds{10260, 32767}, LastPort: &NumberBounds{10260, 32767}, TerminatedPods: &NumberBounds{1, 1000},
		Scoring: &ScoringBounds{Types: []string{"MostAllocated"}, Resources: []string{"cpu", "memory"}, Weight: &NumberBounds{1, 10}},
		Defaults: map[string]string{
			"tier": "standard", "zonalShift": "false", "settings.eventTTL": "60m", "settings.scoring": "LeastAllocated cpu=1,memory=1",
		},
	}
	const path, where = "spec.controlPlane.", " for Kubernetes 1.36"
	for name, test := range map[string]struct {
		bounds   *SettingBounds
		spec     api.ControlPlane
		deployed map[string]string
		want     []string
	}{
		"all within": {bounds: bounds, spec: api.ControlPlane{Tier: "tier-xl", ZonalShift: &off, Settings: api.ControlPlaneSettings{
			EventTTL: "1h", NodePorts: "10260-32767", HPASyncPeriod: "10s", TerminatedPodThreshold: 1000,
			Scoring: &api.Scoring{Type: api.MostAllocated, Weights: map[string]int{"cpu": 10}},
		}}, deployed: map[string]string{"tier": "tier-xl", "zonalShift": "true"}},
		"all outside": {bounds: bounds, spec: api.ControlPlane{Tier: "tier-2xl", Settings: api.ControlPlaneSettings{
			EventTTL: "9m", NodePorts: "10259-32768", HPASyncPeriod: "16s", TerminatedPodThreshold: 1001,
			Scoring: &api.Scoring{Type: api.LeastAllocated, Weights: map[string]int{"cpu": 11, "disk": 1}},
		}}, want: []string{
			path + `tier: Invalid value: "tier-2xl": EKS offers these tiers for Kubernetes 1.36: standard, tier-xl`,
			path + `settings.eventTTL: Invalid value: "9m": EKS allows 10m to 60m` + where + ` and tier-2xl`,
			path + `settings.hpaSyncPeriod: Invalid value: "16s": EKS allows 10s to 15s` + where + ` and tier-2xl`,
			path + `settings.nodePorts: Invalid value: "10259-32768": EKS allows a first port between 10260 and 32767 and a last one between ` +
				`10260 and 32767` + where + ` and tier-2xl`,
			path + `settings.terminatedPodThreshold: Invalid value: 1001: EKS allows 1 to 1000` + where + ` and tier-2xl`,
			path + `settings.scoring.type: Invalid value: "LeastAllocated": EKS allows MostAllocated` + where + ` and tier-2xl`,
			path + `settings.scoring.weights[cpu]: Invalid value: 11: EKS allows 1 to 10` + where + ` and tier-2xl`,
			path + `settings.scoring.weights[disk]: Invalid value: 1: EKS has weights` + where +
				` and tier-2xl for these resources only: cpu, memory`,
		}},
		"none offered": {bounds: &SettingBounds{}, spec: api.ControlPlane{Settings: api.ControlPlaneSettings{
			EventTTL: "10m", NodePorts: "30000-30001", TerminatedPodThreshold: 1, Scoring: &api.Scoring{Type: api.MostAllocated},
		}}, want: []string{
			path + `settings.eventTTL: Invalid value: "10m": EKS does not offer this setting` + where + `: remove it`,
			path + `settings.nodePorts: Invalid value: "30000-30001": EKS does not offer this setting` + where + `: remove it`,
			path + `settings.terminatedPodThreshold: Invalid value: 1: EKS does not offer this setting` + where + `: remove it`,
			path + `settings.scoring.type: Invalid value: "MostAllocated": EKS does not offer this setting` + where + `: remove it`,
		}},
		"removed": {bounds: bounds, deployed: map[string]string{
			"settings.eventTTL": "30m", "settings.nodePorts": "30000-30001", "tier": "tier-xl", "zonalShift": "true",
		}, want: []string{
			path + `settings.eventTTL: Required value: EKS keeps "30m" when it is removed: state it, or its default, "60m"`,
			path + `settings.nodePorts: Required value: EKS keeps "30000-30001" when it is removed: state it`,
			path + `tier: Required value: EKS keeps "tier-xl" when it is removed: state it, or its default, "standard"`,
			path + `zonalShift: Required value: EKS keeps "true" when it is removed: state it, or its default, "false"`,
		}},
		"defaults removed": {bounds: bounds, deployed: map[string]string{
			"settings.eventTTL": "1h", "settings.scoring": "LeastAllocated cpu=1,memory=1", "tier": "standard", "zonalShift": "false",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, err := range test.bounds.CheckSettings(&api.ClusterSpec{KubernetesVersion: "1.36", ControlPlane: test.spec}, test.deployed) {
				texts = append(texts, err.Error())
			}
			require.Equal(t, test.want, texts)
		})
	}
}
