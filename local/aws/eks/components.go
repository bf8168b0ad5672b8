package eks

// The tier of a control plane, and the settings of its components. The real API server and controller manager run with them. The scoring of
// the scheduler has no effect.
// https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
// https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes"
)

// The tiers of AWS::EKS::Cluster.
const standardTier = "standard"

var tiers = []string{standardTier, "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl", "tier-ultra"}

// ScalingConfig has the tier of a control plane.
type ScalingConfig struct {
	Tier string `json:"tier"`
}

// Components are the settings of a control plane's components. In a request, what is absent stays.
type Components struct {
	KubeApiServerConfig         *APIServerConfig         `json:"kubeApiServerConfig,omitempty"`
	KubeControllerManagerConfig *ControllerManagerConfig `json:"kubeControllerManagerConfig,omitempty"`
	KubeSchedulerConfig         *SchedulerConfig         `json:"kubeSchedulerConfig,omitempty"`
}

// APIServerConfig of the API.
type APIServerConfig struct {
	EventTtl             string     `json:"eventTtl,omitempty"`
	ServiceNodePortRange *PortRange `json:"serviceNodePortRange,omitempty"`
}

// PortRange of the API.
type PortRange struct {
	MinPort int `json:"minPort"`
	MaxPort int `json:"maxPort"`
}

// ControllerManagerConfig of the API.
type ControllerManagerConfig struct {
	HorizontalPodAutoscalerControllerConfig *HPAConfig   `json:"horizontalPodAutoscalerControllerConfig,omitempty"`
	PodGcControllerConfig                   *PodGCConfig `json:"podGcControllerConfig,omitempty"`
}

// HPAConfig of the API.
type HPAConfig struct {
	HorizontalPodAutoscalerSyncPeriod string `json:"horizontalPodAutoscalerSyncPeriod,omitempty"`
}

// PodGCConfig of the API.
type PodGCConfig struct {
	TerminatedPodGcThreshold int `json:"terminatedPodGcThreshold,omitempty"`
}

// SchedulerConfig of the API.
type SchedulerConfig struct {
	NodeResourcesFit *struct {
		ScoringStrategy *ScoringStrategy `json:"scoringStrategy,omitempty"`
	} `json:"nodeResourcesFit,omitempty"`
}

// ScoringStrategy of the API.
type ScoringStrategy struct {
	Type      string           `json:"type,omitempty"`
	Resources []ResourceWeight `json:"resources,omitempty"`
}

// ResourceWeight of the API.
type ResourceWeight struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

// Bounds and defaults as the page has them. That of terminated pods is from
// https://docs.aws.amazon.com/eks/latest/APIReference/API_PodGcControllerConfigRequest.html and its default is Kubernetes':
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/
const (
	oldestConfigurable            = 31
	minTTL, maxTTL                = "10m", "60m"
	minSync, maxSync              = "10s", "15s"
	minPort, maxPort              = 10260, 32767
	firstPort                     = 30000
	minTerminated, terminated     = 1, 12500
	maxTerminated, maxWeight      = 1000000, 100
	leastAllocated, mostAllocated = "LeastAllocated", "MostAllocated"
)

var scoredResources = []string{"cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"}

func defaultComponents() Components {
	scheduler := &SchedulerConfig{}
	scheduler.setStrategy(ScoringStrategy{Type: leastAllocated, Resources: []ResourceWeight{{"cpu", 1}, {"memory", 1}}})
	return Components{
		KubeApiServerConfig: &APIServerConfig{EventTtl: maxTTL, ServiceNodePortRange: &PortRange{firstPort, maxPort}},
		KubeControllerManagerConfig: &ControllerManagerConfig{
			HorizontalPodAutoscalerControllerConfig: &HPAConfig{maxSync}, PodGcControllerConfig: &PodGCConfig{terminated},
		},
		KubeSchedulerConfig: scheduler,
	}
}

func (c *SchedulerConfig) setStrategy(strategy ScoringStrategy) {
	c.NodeResourcesFit = &struct {
		ScoringStrategy *ScoringStrategy `json:"scoringStrategy,omitempty"`
	}{&strategy}
}

func (c *SchedulerConfig) strategy() *ScoringStrategy {
	if c == nil || c.NodeResourcesFit == nil {
		return nil
	}
	return c.NodeResourcesFit.ScoringStrategy
}

func (c Components) isSet() bool {
	return c.KubeApiServerConfig != nil || c.KubeControllerManagerConfig != nil || c.KubeSchedulerConfig != nil
}

// merge sets what a request states. All fields of c are set.
func (c *Components) merge(in Components) {
	server, manager := *c.KubeApiServerConfig, *c.KubeControllerManagerConfig
	if in.KubeApiServerConfig != nil {
		if ttl := in.KubeApiServerConfig.EventTtl; ttl != "" {
			server.EventTtl = ttl
		}
		if ports := in.KubeApiServerConfig.ServiceNodePortRange; ports != nil {
			server.ServiceNodePortRange = ports
		}
	}
	if in.KubeControllerManagerConfig != nil {
		if hpa := in.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig; hpa != nil {
			manager.HorizontalPodAutoscalerControllerConfig = hpa
		}
		if gc := in.KubeControllerManagerConfig.PodGcControllerConfig; gc != nil {
			manager.PodGcControllerConfig = gc
		}
	}
	c.KubeApiServerConfig, c.KubeControllerManagerConfig = &server, &manager
	if strategy := in.KubeSchedulerConfig.strategy(); strategy != nil {
		scheduler := &SchedulerConfig{}
		scheduler.setStrategy(*strategy)
		c.KubeSchedulerConfig = scheduler
	}
}

// changedComponents returns the components that a template states otherwise than before.
func changedComponents(was, in Components) (changed Components) {
	if !reflect.DeepEqual(was.KubeApiServerConfig, in.KubeApiServerConfig) {
		changed.KubeApiServerConfig = in.KubeApiServerConfig
	}
	if !reflect.DeepEqual(was.KubeControllerManagerConfig, in.KubeControllerManagerConfig) {
		changed.KubeControllerManagerConfig = in.KubeControllerManagerConfig
	}
	if !reflect.DeepEqual(was.KubeSchedulerConfig, in.KubeSchedulerConfig) {
		changed.KubeSchedulerConfig = in.KubeSchedulerConfig
	}
	return changed
}

// checkComponents checks a request, and the settings that result from it.
func checkComponents(version, tier string, in, result Components) error {
	if !slices.Contains(tiers, tier) {
		return invalid("Invalid control plane scaling tier %q: must be one of %s", tier, strings.Join(tiers, ", "))
	}
	if in.isSet() && minorNumber(version) < oldestConfigurable {
		return invalid("Control plane configuration needs Kubernetes 1.%d or later, not %s", oldestConfigurable, version)
	}
	period := result.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod
	manager := in.KubeControllerManagerConfig
	if tier == standardTier && manager != nil && manager.HorizontalPodAutoscalerControllerConfig != nil {
		return invalid("horizontalPodAutoscalerSyncPeriod needs a provisioned control plane")
	}
	if tier == standardTier && period != maxSync {
		return invalid("The control plane cannot return to standard while horizontalPodAutoscalerSyncPeriod is %s: set it to %s first", period,
			maxSync)
	}
	for _, d := range []struct{ name, value, min, max string }{
		{"eventTtl", result.KubeApiServerConfig.EventTtl, minTTL, maxTTL}, {"horizontalPodAutoscalerSyncPeriod", period, minSync, maxSync},
	} {
		value, err := time.ParseDuration(d.value)
		least, _ := time.ParseDuration(d.min)
		most, _ := time.ParseDuration(d.max)
		if err != nil || value < least || value > most {
			return invalid("%s %q must be between %s and %s", d.name, d.value, d.min, d.max)
		}
	}
	ports := result.KubeApiServerConfig.ServiceNodePortRange
	if ports.MinPort < minPort || ports.MaxPort > maxPort || ports.MinPort > ports.MaxPort {
		return invalid("serviceNodePortRange %d-%d must be within %d-%d", ports.MinPort, ports.MaxPort, minPort, maxPort)
	}
	if n := result.KubeControllerManagerConfig.PodGcControllerConfig.TerminatedPodGcThreshold; n < minTerminated || n > maxTerminated {
		return invalid("terminatedPodGcThreshold %d must be between %d and %d", n, minTerminated, maxTerminated)
	}
	strategy := result.KubeSchedulerConfig.strategy()
	if strategy.Type != leastAllocated && strategy.Type != mostAllocated {
		return invalid("Invalid scoring strategy %q", strategy.Type)
	}
	for _, r := range strategy.Resources {
		if !slices.Contains(scoredResources, r.Name) || r.Weight < 1 || r.Weight > maxWeight {
			return invalid("Invalid resource %s with weight %d in scoringStrategy", r.Name, r.Weight)
		}
	}
	return nil
}

// settings returns the settings of the real servers. Defaults are left out, so that they run as before.
func (c *cluster) settings() kubernetes.Settings {
	var s kubernetes.Settings
	if ttl := c.KubeApiServerConfig.EventTtl; ttl != maxTTL {
		s.EventTTL = ttl
	}
	if ports := *c.KubeApiServerConfig.ServiceNodePortRange; ports != (PortRange{firstPort, maxPort}) {
		s.NodePorts = fmt.Sprintf("%d-%d", ports.MinPort, ports.MaxPort)
	}
	if period := c.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod; period != maxSync {
		s.HPASyncPeriod = period
	}
	if n := c.KubeControllerManagerConfig.PodGcControllerConfig.TerminatedPodGcThreshold; n != terminated {
		s.TerminatedPodThreshold = n
	}
	return s
}

// updateTier changes the tier. The caller holds s.mu.
func (s *Service) updateTier(c *cluster, to ScalingConfig) (*UpdateOutput, error) {
	if err := checkComponents(c.Version, to.Tier, Components{}, c.Components); err != nil {
		return nil, err
	}
	u := s.newUpdate(c, "ControlPlaneScalingConfigUpdate", UpdateParam{"PreviousTier", c.ControlPlaneScaling.Tier},
		UpdateParam{"UpdatedTier", to.Tier})
	return s.begin(c, u, configWork, nothing, func() { c.ControlPlaneScaling = to }), nil
}

// updateComponents changes settings of components. The servers restart with them. The caller holds s.mu.
func (s *Service) updateComponents(c *cluster, in Components) (*UpdateOutput, error) {
	result := c.Components
	result.merge(in)
	if err := checkComponents(c.Version, c.ControlPlaneScaling.Tier, in, result); err != nil {
		return nil, err
	}
	var params []UpdateParam
	for name, value := range map[string]any{
		"KubeApiServerConfig": in.KubeApiServerConfig, "KubeControllerManagerConfig": in.KubeControllerManagerConfig,
		"KubeSchedulerConfig": in.KubeSchedulerConfig,
	} {
		if text := join(value); text != "null" {
			params = append(params, UpdateParam{name, text})
		}
	}
	slices.SortFunc(params, func(a, b UpdateParam) int { return strings.Compare(a.Type, b.Type) })
	u := s.newUpdate(c, "ControlPlaneComponentConfigUpdate", params...)
	before := c.settings()
	changed := cluster{Cluster: Cluster{Components: result}}
	after := changed.settings()
	apply := nothing
	if after != before {
		apply = func(ctx context.Context) error { return c.plane.Configure(ctx, after) }
	}
	return s.begin(c, u, configWork, apply, func() { c.Components = result }), nil
}

// bounds describes the settings of a version as DescribeClusterVersions does.
func bounds(minor string) map[string]any {
	if minorNumber(minor) < oldestConfigurable {
		return nil
	}
	between := func(standard, least, most any) map[string]any {
		return map[string]any{"defaultValue": standard, "constraints": map[string]any{"min": least, "max": most}}
	}
	ports := map[string]any{"min": minPort, "max": maxPort}
	standard := defaultComponents()
	return map[string]any{
		"kubeApiServerConfig": map[string]any{
			"eventTtl": between(maxTTL, minTTL, maxTTL),
			"serviceNodePortRange": map[string]any{
				"defaultValue": standard.KubeApiServerConfig.ServiceNodePortRange,
				"constraints":  map[string]any{"minPort": maps.Clone(ports), "maxPort": maps.Clone(ports)},
			},
		},
		"kubeControllerManagerConfig": map[string]any{
			"horizontalPodAutoscalerControllerConfig": map[string]any{"horizontalPodAutoscalerSyncPeriod": between(maxSync, minSync, maxSync)},
			"podGcControllerConfig":                   map[string]any{"terminatedPodGcThreshold": between(terminated, minTerminated, maxTerminated)},
		},
		"kubeSchedulerConfig": map[string]any{"nodeResourcesFit": map[string]any{"scoringStrategy": map[string]any{
			"defaultValue": standard.KubeSchedulerConfig.strategy(),
			"constraints": map[string]any{
				"scoringStrategy": map[string]any{"allowedValues": []string{leastAllocated, mostAllocated}},
				"resources": map[string]any{
					"name": map[string]any{"allowedValues": scoredResources}, "weight": map[string]any{"min": 1, "max": maxWeight},
				},
			},
		}}},
	}
}

// tierInfo lists the tiers above standard.
func tierInfo() (list []map[string]any) {
	for _, tier := range tiers[1:] {
		list = append(list, map[string]any{"tierName": tier})
	}
	return list
}
