package eks

// Insights: the findings of EKS about a cluster, refreshed once a day or on request.
// https://docs.aws.amazon.com/eks/latest/userguide/cluster-insights.html

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// The categories of insights.
const (
	upgradeReadiness  = "UPGRADE_READINESS"
	rollbackReadiness = "ROLLBACK_READINESS"
)

// The statuses of insights. A finding about the next version is an ERROR, one about a later version a WARNING.
const (
	passing = "PASSING"
	warning = "WARNING"
	serious = "ERROR"
	unknown = "UNKNOWN"
)

const (
	// insightAge is the age at which EKS refreshes insights, in real time.
	insightAge = 24 * time.Hour
	// refreshWork is the time of a requested refresh.
	refreshWork = time.Minute
)

// InsightSummary is an insight in ListInsights.
type InsightSummary struct {
	ID                 string        `json:"id"`
	Name               string        `json:"name"`
	Category           string        `json:"category"`
	KubernetesVersion  string        `json:"kubernetesVersion"`
	LastRefreshTime    time.Time     `json:"lastRefreshTime"`
	LastTransitionTime time.Time     `json:"lastTransitionTime"`
	Description        string        `json:"description"`
	InsightStatus      InsightStatus `json:"insightStatus"`
}

// InsightStatus of an insight, or of a resource in one.
type InsightStatus struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// Insight is an insight in DescribeInsight.
type Insight struct {
	InsightSummary
	Recommendation          string            `json:"recommendation"`
	AdditionalInfo          map[string]string `json:"additionalInfo"`
	Resources               []InsightResource `json:"resources"`
	CategorySpecificSummary InsightSummaries  `json:"categorySpecificSummary"`
}

// InsightResource is a resource that an insight is about.
type InsightResource struct {
	ARN                   string        `json:"arn,omitempty"`
	KubernetesResourceURI string        `json:"kubernetesResourceUri,omitempty"`
	InsightStatus         InsightStatus `json:"insightStatus"`
}

// InsightSummaries are details of some insights.
type InsightSummaries struct {
	DeprecationDetails        []DeprecationDetail        `json:"deprecationDetails"`
	AddonCompatibilityDetails []AddonCompatibilityDetail `json:"addonCompatibilityDetails"`
}

// DeprecationDetail is a deprecated API that was used. The local account does not know the client.
type DeprecationDetail struct {
	Usage              string     `json:"usage"`
	StopServingVersion string     `json:"stopServingVersion"`
	ClientStats        []struct{} `json:"clientStats"`
}

// AddonCompatibilityDetail has the compatible versions of an add-on.
type AddonCompatibilityDetail struct {
	Name               string   `json:"name"`
	CompatibleVersions []string `json:"compatibleVersions"`
}

// insights of a cluster at the time of the last refresh.
type insights struct {
	all []*Insight
	// version of the cluster at that time.
	version string
	at      time.Time
	// refresh is the last requested refresh, if any.
	refresh *InsightsRefresh
	// deprecated are the requested deprecated APIs, with the time when EKS last read the count. A replaced API server starts counting from
	// zero.
	deprecated map[deprecatedAPI]time.Time
}

// InsightsRefresh is the progress of a requested refresh.
type InsightsRefresh struct {
	Status    string     `json:"status"`
	Message   string     `json:"message"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// look refreshes a cluster's insights.
func (s *Service) look(ctx context.Context, c *cluster) []*Insight {
	f := s.findings(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now()
	made := append(f.forUpgrade(), f.forRollback()...)
	for _, i := range made {
		i.LastRefreshTime, i.LastTransitionTime = now, now
		at := slices.IndexFunc(c.insights.all, func(o *Insight) bool {
			return o.Category == i.Category && o.Name == i.Name && o.KubernetesVersion == i.KubernetesVersion
		})
		if at < 0 {
			i.ID = uuid()
			continue
		}
		old := c.insights.all[at]
		i.ID = old.ID
		if old.InsightStatus.Status == i.InsightStatus.Status {
			i.LastTransitionTime = old.LastTransitionTime
		}
	}
	c.insights.all, c.insights.version, c.insights.at = made, c.Version, now
	return made
}

// currentInsights returns the insights of a cluster. EKS refreshes them after a day, and after a change of the version.
func (s *Service) currentInsights(ctx context.Context, caller iam.Caller, action, name string) ([]*Insight, error) {
	if err := caller.Authorize("eks:"+action, s.clusterARN(name), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, err := s.find(name)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	all, running := c.insights.all, c.admin != nil && c.Status != deleting
	stale := c.insights.version != c.Version || s.config.Clock.Now().Sub(c.insights.at) > insightAge
	s.mu.Unlock()
	if running && stale {
		return s.look(ctx, c), nil
	}
	return all, nil
}

// ListInsightsInput of the API.
type ListInsightsInput struct {
	ClusterName string
	Filter      struct{ Categories, KubernetesVersions, Statuses []string }
	Page
}

// ListInsightsOutput of the API.
type ListInsightsOutput struct {
	Insights  []InsightSummary `json:"insights"`
	NextToken *string          `json:"nextToken"`
}

// ListInsights of the API.
func (s *Service) ListInsights(ctx context.Context, caller iam.Caller, in ListInsightsInput) (*ListInsightsOutput, error) {
	all, err := s.currentInsights(ctx, caller, "ListInsights", in.ClusterName)
	if err != nil {
		return nil, err
	}
	allows := func(wanted []string, value string) bool { return len(wanted) == 0 || slices.Contains(wanted, value) }
	byID := map[string]InsightSummary{}
	for _, i := range all {
		if allows(in.Filter.Categories, i.Category) && allows(in.Filter.KubernetesVersions, i.KubernetesVersion) && allows(in.Filter.Statuses,
			i.InsightStatus.Status) {
			byID[i.ID] = i.InsightSummary
		}
	}
	ids, next := in.paginate(keys(byID))
	out := &ListInsightsOutput{Insights: []InsightSummary{}, NextToken: next}
	for _, id := range ids {
		out.Insights = append(out.Insights, byID[id])
	}
	return out, nil
}

// DescribeInsightInput of the API.
type DescribeInsightInput struct{ ClusterName, ID string }

// DescribeInsightOutput of the API.
type DescribeInsightOutput struct {
	Insight *Insight `json:"insight"`
}

// DescribeInsight of the API.
func (s *Service) DescribeInsight(ctx context.Context, caller iam.Caller, in DescribeInsightInput) (*DescribeInsightOutput, error) {
	all, err := s.currentInsights(ctx, caller, "DescribeInsight", in.ClusterName)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(i *Insight) bool { return i.ID == in.ID })
	if i < 0 {
		return nil, notFound("No insight found for id: %s", in.ID)
	}
	return &DescribeInsightOutput{all[i]}, nil
}

// InsightsRefreshInput of the API.
type InsightsRefreshInput struct{ ClusterName string }

// StartInsightsRefresh refreshes a cluster's insights now.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_StartInsightsRefresh.html
func (s *Service) StartInsightsRefresh(_ context.Context, caller iam.Caller, in InsightsRefreshInput) (*InsightsRefresh, error) {
	if err := caller.Authorize("eks:StartInsightsRefresh", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if c.admin == nil || c.Status == deleting {
		return nil, invalidRequest("Cluster %s is %s: its insights cannot be refreshed", c.Name, c.Status)
	}
	if r := c.insights.refresh; r != nil && r.Status == "IN_PROGRESS" {
		return nil, invalidRequest("An insights refresh of cluster %s is in progress already", c.Name)
	}
	now := s.config.Clock.Now()
	r := &InsightsRefresh{Status: "IN_PROGRESS", Message: "Insights refresh is in progress", StartedAt: &now}
	c.insights.refresh = r
	s.background(func(ctx context.Context) {
		if s.config.Clock.Work(ctx, refreshWork) != nil {
			return
		}
		s.look(ctx, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		end := s.config.Clock.Now()
		r.Status, r.Message, r.EndedAt = "COMPLETED", "Insights refresh completed", &end
		s.changes.Announce()
	})
	begun := *r
	begun.StartedAt = nil // times appear only in the description
	return &begun, nil
}

// DescribeInsightsRefresh returns the last requested refresh.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeInsightsRefresh.html
func (s *Service) DescribeInsightsRefresh(_ context.Context, caller iam.Caller, in InsightsRefreshInput) (*InsightsRefresh, error) {
	if err := caller.Authorize("eks:DescribeInsightsRefresh", s.clusterARN(in.ClusterName), nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if c.insights.refresh == nil {
		return nil, notFound("No insights refresh found for cluster: %s.", c.Name)
	}
	r := *c.insights.refresh
	return &r, nil
}

// readyForRollback refuses a rollback if an insight has status ERROR. EKS refreshes the insights first.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html#rollback-step1
func (s *Service) readyForRollback(ctx context.Context, c *cluster) error {
	var against []string
	for _, i := range s.look(ctx, c) {
		if i.Category == rollbackReadiness && i.InsightStatus.Status == serious {
			against = append(against, fmt.Sprintf("%s (%s)", i.Name, i.InsightStatus.Reason))
		}
	}
	if len(against) > 0 {
		return invalidRequest("Cluster %s has rollback readiness insights with status ERROR: %s. "+
			"Resolve them, or use the force flag to override them", c.Name, strings.Join(against, "; "))
	}
	return nil
}
