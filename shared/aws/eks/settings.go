package eks

// The bounds of the settings of control planes.

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
)

// SettingBounds returns the bounds of the settings for a Kubernetes version and a tier. Without a tier, those of standard. A version that
// EKS does not offer has none.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ClusterVersionInformation.html
func (r *Reader) SettingBounds(ctx context.Context, version, tier string) (*preflight.SettingBounds, error) {
	bounds := &preflight.SettingBounds{Defaults: map[string]string{"tier": api.TierStandard, "zonalShift": "false"}}
	in := &eks.DescribeClusterVersionsInput{ClusterVersions: []string{version}}
	pages := eks.NewDescribeClusterVersionsPaginator(r.client.DescribeClusterVersions, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the settings of control planes: %w", err)
		}
		for _, v := range page.ClusterVersions {
			if aws.ToString(v.ClusterVersion) != version {
				continue
			}
			addBounds(bounds, v.ControlPlaneComponentConfig)
			for _, t := range v.ControlPlaneScalingTiers {
				name := aws.ToString(t.TierName)
				if name == tier {
					addBounds(bounds, t.ControlPlaneComponentConfigOverrides)
				}
				if name != api.TierStandard && name != "" {
					bounds.Tiers = append(bounds.Tiers, name)
				}
			}
		}
	}
	return bounds, nil
}

// addBounds adds what EKS reports: of a version, and then what differs with a tier.
func addBounds(b *preflight.SettingBounds, in *types.ControlPlaneConfigInfo) {
	if in == nil {
		return
	}
	if server := in.KubeApiServerConfig; server != nil {
		b.EventTTL = duration(b, "settings.eventTTL", server.EventTtl, b.EventTTL)
		addPorts(b, server.ServiceNodePortRange)
	}
	if manager := in.KubeControllerManagerConfig; manager != nil {
		if hpa := manager.HorizontalPodAutoscalerControllerConfig; hpa != nil {
			b.HPASyncPeriod = duration(b, "settings.hpaSyncPeriod", hpa.HorizontalPodAutoscalerSyncPeriod, b.HPASyncPeriod)
		}
		if gc := manager.PodGcControllerConfig; gc != nil && gc.TerminatedPodGcThreshold != nil {
			if limits := gc.TerminatedPodGcThreshold.Constraints; limits != nil {
				b.TerminatedPods = numbers(limits.Min, limits.Max)
			}
			if value := gc.TerminatedPodGcThreshold.DefaultValue; value != nil {
				b.Defaults["settings.terminatedPodThreshold"] = strconv.Itoa(int(*value))
			}
		}
	}
	if scheduler := in.KubeSchedulerConfig; scheduler != nil && scheduler.NodeResourcesFit != nil {
		addScoring(b, scheduler.NodeResourcesFit.ScoringStrategy)
	}
}

// duration returns the bounds of a duration, or the earlier ones, and keeps its default.
func duration(b *preflight.SettingBounds, name string, in *types.DurationParameterConfig,
	before *preflight.DurationBounds) *preflight.DurationBounds {
	if in == nil {
		return before
	}
	if in.DefaultValue != nil {
		b.Defaults[name] = *in.DefaultValue
	}
	if in.Constraints == nil {
		return before
	}
	return &preflight.DurationBounds{Min: aws.ToString(in.Constraints.Min), Max: aws.ToString(in.Constraints.Max)}
}

func numbers(least, most *int32) *preflight.NumberBounds {
	return &preflight.NumberBounds{Min: int(aws.ToInt32(least)), Max: int(aws.ToInt32(most))}
}

func addPorts(b *preflight.SettingBounds, in *types.PortRangeParameterConfig) {
	if in == nil {
		return
	}
	if value := in.DefaultValue; value != nil {
		b.Defaults["settings.nodePorts"] = preflight.FormatPorts(int(value.MinPort), int(value.MaxPort))
	}
	if limits := in.Constraints; limits != nil && limits.MinPort != nil && limits.MaxPort != nil {
		b.FirstPort, b.LastPort = numbers(limits.MinPort.Min, limits.MinPort.Max), numbers(limits.MaxPort.Min, limits.MaxPort.Max)
	}
}

func addScoring(b *preflight.SettingBounds, in *types.ScoringStrategyConfig) {
	if in == nil {
		return
	}
	if value := in.DefaultValue; value != nil {
		scoring := api.Scoring{Type: api.ScoringType(value.Type), Weights: map[string]int{}}
		for _, weight := range value.Resources {
			scoring.Weights[aws.ToString(weight.Name)] = int(aws.ToInt32(weight.Weight))
		}
		b.Defaults["settings.scoring"] = scoring.String()
	}
	out := &preflight.ScoringBounds{}
	if limits := in.Constraints; limits != nil {
		if limits.ScoringStrategy != nil {
			out.Types = slices.Clone(limits.ScoringStrategy.AllowedValues)
		}
		if resources := limits.Resources; resources != nil {
			if resources.Name != nil {
				out.Resources = slices.Clone(resources.Name.AllowedValues)
			}
			if resources.Weight != nil {
				out.Weight = numbers(resources.Weight.Min, resources.Weight.Max)
			}
		}
	}
	b.Scoring = out
}
