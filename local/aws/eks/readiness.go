package eks

// The inputs of insights: a cluster's nodes, add-ons and API server, compared with the next and the previous version.

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxSkew is the number of minors by which a kubelet or a kube-proxy may be older than the API server.
	// https://kubernetes.io/releases/version-skew-policy/
	maxSkew = 3
	// deprecationMemory is the time for which EKS reports a request to a deprecated API.
	deprecationMemory = 30 * 24 * time.Hour
)

// Meter is a control plane whose API server exports its metrics in Prometheus' text format, with the requested deprecated APIs.
type Meter interface {
	Metrics(ctx context.Context) ([]byte, error)
}

// deprecatedAPI is a resource of an API that a later minor version does not serve.
type deprecatedAPI struct{ group, version, resource, removed string }

func (a deprecatedAPI) path() string { return "/apis/" + a.group + "/" + a.version + "/" + a.resource }

// findings are the observed state of a cluster.
type findings struct {
	version      string
	upgradedFrom string // empty if it cannot be rolled back
	kubelets     map[string]int
	kubeProxy    int // 0 if there is none or its version cannot be read
	addons       map[string]string
	entries      map[string]catalogAddon
	issues       []string
	deprecated   []deprecatedAPI
	// nodesUnknown reports whether the API server did not return the nodes.
	nodesUnknown bool
}

// findings reads a cluster's own API, without s.mu.
func (s *Service) findings(ctx context.Context, c *cluster) findings {
	s.rememberDeprecated(ctx, c)
	f := findings{kubelets: map[string]int{}, addons: map[string]string{}, entries: map[string]catalogAddon{}}
	nodes, err := c.admin.Resource(nodeResource).List(ctx, metav1.ListOptions{})
	if f.nodesUnknown = err != nil; err == nil {
		for _, n := range nodes.Items {
			version, _, _ := unstructured.NestedString(n.Object, "status", "nodeInfo", "kubeletVersion")
			f.kubelets[n.GetName()] = minorOf(version)
		}
	}
	f.kubeProxy = s.kubeProxyMinor(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now()
	f.version = c.Version
	if now.Sub(c.upgradedAt) <= rollbackWindow {
		f.upgradedFrom = c.upgradedFrom
	}
	for name, a := range c.addons {
		f.addons[name], f.entries[name] = a.AddonVersion, a.entry
	}
	for _, i := range c.Health.Issues {
		f.issues = append(f.issues, i.Message)
	}
	subnets, err := s.config.Network.Subnets(c.ResourcesVpcConfig.SubnetIds...)
	if err == nil {
		err = roomForControlPlane(subnets)
	}
	if err != nil {
		f.issues = append(f.issues, err.Error())
	}
	for api, at := range c.insights.deprecated {
		if now.Sub(at) <= deprecationMemory {
			f.deprecated = append(f.deprecated, api)
		}
	}
	slices.SortFunc(f.deprecated, func(a, b deprecatedAPI) int { return strings.Compare(a.removed+a.path(), b.removed+b.path()) })
	return f
}

var minorPart = regexp.MustCompile(`^v?1\.(\d+)`)

// minorOf is 35 for v1.35.5-eks-0e3cf2b, and 0 if the version cannot be read.
func minorOf(version string) int {
	m := minorPart.FindStringSubmatch(version)
	if m == nil {
		return 0
	}
	return minorNumber("1." + m[1])
}

// kubeProxyMinor is the minor of the DaemonSet, with or without an add-on.
func (s *Service) kubeProxyMinor(ctx context.Context, c *cluster) int {
	o, err := c.admin.Resource(daemonSetResource).Namespace("kube-system").Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		return 0
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		m, _ := container.(map[string]any)
		image, _ := m["image"].(string)
		if _, tag, ok := strings.Cut(image, "kube-proxy:"); ok {
			return minorOf(tag)
		}
	}
	return 0
}

// deprecatedRequest matches an API server's count of requests to deprecated APIs.
// https://kubernetes.io/docs/reference/using-api/deprecation-policy/#rest-resources-aka-api-objects
var deprecatedRequest = regexp.MustCompile(`(?m)^apiserver_requested_deprecated_apis\{([^}]*)\} 1$`)

var metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)

// rememberDeprecated records the deprecated APIs that were requested since the API server started. If the API server returns no metrics,
// the next call reads them.
func (s *Service) rememberDeprecated(ctx context.Context, c *cluster) {
	meter, ok := c.plane.(Meter)
	if !ok {
		return
	}
	text, err := meter.Metrics(ctx)
	if err != nil {
		s.config.Log.Warn("reading an API server's metrics failed", "cluster", c.Name, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range deprecatedRequest.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, l := range metricLabel.FindAllStringSubmatch(line[1], -1) {
			labels[l[1]] = l[2]
		}
		if labels["removed_release"] == "" {
			continue // deprecated, but not removed in a known version
		}
		if c.insights.deprecated == nil {
			c.insights.deprecated = map[deprecatedAPI]time.Time{}
		}
		c.insights.deprecated[deprecatedAPI{
			labels["group"], labels["version"], labels["resource"], labels["removed_release"],
		}] = s.config.Clock.Now()
	}
}

func minor(n int) string { return fmt.Sprintf("1.%d", n) }

// forUpgrade returns the insights of the category UPGRADE_READINESS.
func (f findings) forUpgrade() []*Insight {
	now := minorNumber(f.version)
	all := []*Insight{f.kubeletSkew(now), f.proxySkew(now), f.addonsFit(upgradeReadiness, now+1), f.health(upgradeReadiness, now+1)}
	removals := map[string]bool{minor(now + 1): true, minor(now + 2): true}
	for _, api := range f.deprecated {
		removals[api.removed] = true
	}
	for _, release := range slices.Sorted(maps.Keys(removals)) {
		if minorNumber(release) > now {
			all = append(all, f.deprecatedIn(release, now))
		}
	}
	return all
}

// forRollback returns the insights of the category ROLLBACK_READINESS for a cluster that can be rolled back.
func (f findings) forRollback() []*Insight {
	if f.upgradedFrom == "" {
		return nil
	}
	before := minorNumber(f.upgradedFrom)
	apis := newInsight(rollbackReadiness, "Incompatible API usage", before,
		"Checks for usage of APIs that are not compatible with the previous Kubernetes version.")
	apis.set(unknown, "The local account does not compare the APIs in use with those of the previous version.",
		"Remove objects of APIs and fields that only the current version has.")
	return []*Insight{
		apis, f.kubeletRollback(before), f.proxyRollback(before), f.addonsFit(rollbackReadiness, before), f.health(rollbackReadiness, before),
	}
}

func newInsight(category, name string, version int, description string) *Insight {
	return &Insight{
		InsightSummary: InsightSummary{Name: name, Category: category, KubernetesVersion: minor(version), Description: description},
		AdditionalInfo: map[string]string{
			"Amazon EKS cluster insights": "https://docs.aws.amazon.com/eks/latest/userguide/cluster-insights.html",
		},
		Resources: []InsightResource{},
		CategorySpecificSummary: InsightSummaries{
			DeprecationDetails: []DeprecationDetail{}, AddonCompatibilityDetails: []AddonCompatibilityDetail{},
		},
	}
}

func (i *Insight) set(status, reason, recommendation string) {
	i.InsightStatus, i.Recommendation = InsightStatus{status, reason}, recommendation
}

// worst returns the worse of two statuses that are not UNKNOWN.
func worst(a, b string) string {
	order := []string{passing, warning, serious}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// skewStatus returns the status of a part with one minor if the API server becomes one minor newer than now.
func skewStatus(part, now int) string {
	switch {
	case now+1-part > maxSkew:
		return serious
	case now+2-part > maxSkew:
		return warning
	}
	return passing
}

func (f findings) kubeletSkew(now int) *Insight {
	i := newInsight(upgradeReadiness, "Kubelet version skew", now+1, "Checks for kubelet versions of worker nodes in the cluster to see "+
		"if upgrade would cause non compliance with supported Kubernetes kubelet version skew policy.")
	f.overNodes(i, func(kubelet int) string { return skewStatus(kubelet, now) })
	switch i.InsightStatus.Status {
	case passing:
		i.InsightStatus.Reason = "Node kubelet versions comply with the version skew policy after an upgrade."
	case warning, serious:
		i.InsightStatus.Reason = fmt.Sprintf("%d nodes have a kubelet that is too old for what comes after Kubernetes %s.", len(i.Resources),
			f.version)
		i.Recommendation = "Upgrade your worker nodes to match the Kubernetes version of your cluster control plane."
	}
	return i
}

func (f findings) kubeletRollback(before int) *Insight {
	i := newInsight(rollbackReadiness, "Kubelet version rollback compatibility", before,
		"Checks for kubelet versions of worker nodes in the cluster to see "+
			"if rollback would cause non compliance with supported Kubernetes kubelet version skew policy.")
	f.overNodes(i, func(kubelet int) string {
		if kubelet > before {
			return serious
		}
		return passing
	})
	switch i.InsightStatus.Status {
	case passing:
		i.InsightStatus.Reason = "No node kubelet version is newer than the previous Kubernetes version."
	case serious:
		i.InsightStatus.Reason = "At least one node kubelet version matches the cluster control plane version."
		i.Recommendation = "Roll back your worker nodes before the control plane."
	}
	return i
}

// overNodes judges every node. Nodes that do not pass become the insight's resources.
func (f findings) overNodes(i *Insight, judge func(kubelet int) string) {
	status := passing
	for _, name := range slices.Sorted(maps.Keys(f.kubelets)) {
		kubelet := f.kubelets[name]
		if kubelet == 0 {
			f.nodesUnknown = true
			continue
		}
		is := judge(kubelet)
		status = worst(status, is)
		if is != passing {
			i.Resources = append(i.Resources, InsightResource{
				KubernetesResourceURI: "/api/v1/nodes/" + name, InsightStatus: InsightStatus{is, "Its kubelet is of " + minor(kubelet) + "."},
			})
		}
	}
	if status == passing && f.nodesUnknown {
		i.set(unknown, "Unable to determine status of node kubelet versions.", "")
		return
	}
	i.InsightStatus.Status = status
}

func (f findings) proxySkew(now int) *Insight {
	i := newInsight(upgradeReadiness, "kube-proxy version skew", now+1, "Checks version of kube-proxy in cluster to see "+
		"if upgrade would cause non compliance with supported Kubernetes kube-proxy version skew policy.")
	switch is := skewStatus(f.kubeProxy, now); {
	case f.kubeProxy == 0:
		i.set(unknown, "Unable to determine status of kube-proxy versions.", "")
	case is != passing:
		i.set(is, fmt.Sprintf("kube-proxy is of %s, too old for what comes after Kubernetes %s.", minor(f.kubeProxy), f.version),
			"Update kube-proxy to match the Kubernetes version of your cluster control plane.")
	case f.kubeProxy == now:
		i.set(passing, "kube-proxy versions match the cluster control plane version.", "")
	default:
		i.set(passing, "kube-proxy versions comply with the version skew policy after an upgrade.", "")
	}
	return i
}

func (f findings) proxyRollback(before int) *Insight {
	i := newInsight(rollbackReadiness, "kube-proxy version rollback compatibility", before,
		"Checks version of kube-proxy in cluster to see "+
			"if rollback would cause non compliance with supported Kubernetes kube-proxy version skew policy.")
	switch {
	case f.kubeProxy == 0:
		i.set(unknown, "Unable to determine status of kube-proxy versions.", "")
	case f.kubeProxy > before:
		i.set(serious, fmt.Sprintf("kube-proxy is of %s, newer than the previous Kubernetes version.", minor(f.kubeProxy)),
			"Roll back kube-proxy before the control plane.")
	default:
		i.set(passing, "kube-proxy versions are not newer than the previous Kubernetes version.", "")
	}
	return i
}

// addonsFit checks that the installed add-ons fit a version.
func (f findings) addonsFit(category string, target int) *Insight {
	name, which := "EKS add-on version compatibility", "next"
	if category == rollbackReadiness {
		name, which = "EKS add-on version rollback compatibility", "previous"
	}
	i := newInsight(category, name, target, fmt.Sprintf("Checks version of installed EKS add-ons to ensure they are compatible with the %s "+
		"version of Kubernetes.", which))
	for _, name := range slices.Sorted(maps.Keys(f.addons)) {
		if f.entries[name].check(f.addons[name], minor(target)) == nil {
			continue
		}
		fitting := []string{}
		for _, v := range f.entries[name].versions {
			if v.fits(minor(target)) {
				fitting = append(fitting, v.version)
			}
		}
		i.CategorySpecificSummary.AddonCompatibilityDetails = append(i.CategorySpecificSummary.AddonCompatibilityDetails,
			AddonCompatibilityDetail{name, fitting})
	}
	if n := len(i.CategorySpecificSummary.AddonCompatibilityDetails); n > 0 {
		i.set(serious, fmt.Sprintf("%d installed EKS add-on versions are not compatible with %s Kubernetes version.", n, which),
			"Update the add-ons to versions that are compatible.")
	} else {
		i.set(passing, fmt.Sprintf("All installed EKS add-on versions are compatible with %s Kubernetes version.", which), "")
	}
	return i
}

func (f findings) health(category string, target int) *Insight {
	i := newInsight(category, "Cluster health issues", target, "Checks for any cluster health issues "+
		"that prevent successful upgrade to the next Kubernetes version on EKS.")
	if len(f.issues) > 0 {
		i.set(serious, strings.Join(f.issues, "; "), "Resolve the health issues of the cluster.")
	} else {
		i.set(passing, "No cluster health issues detected.", "")
	}
	return i
}

func (f findings) deprecatedIn(release string, now int) *Insight {
	i := newInsight(upgradeReadiness, "Deprecated APIs removed in Kubernetes v"+release, minorNumber(release),
		fmt.Sprintf("Checks for usage of deprecated APIs that are scheduled for removal in Kubernetes v%s. "+
			"Upgrading your cluster before migrating to the updated APIs supported by v%s could cause application impact.", release, release))
	for _, api := range f.deprecated {
		if api.removed == release {
			i.CategorySpecificSummary.DeprecationDetails = append(i.CategorySpecificSummary.DeprecationDetails, DeprecationDetail{
				api.path(), release, []struct{}{},
			})
		}
	}
	switch {
	case len(i.CategorySpecificSummary.DeprecationDetails) == 0:
		i.set(passing, "No deprecated API usage detected within the last 30 days.", "")
	case minorNumber(release) == now+1:
		i.set(serious, "Deprecated API usage detected within the last 30 days and your cluster is on the version before its removal.", "")
	default:
		i.set(warning, "Deprecated API usage detected within the last 30 days.", "")
	}
	if i.InsightStatus.Status != passing {
		i.Recommendation = "Update manifests and API clients to use newer Kubernetes APIs if applicable before upgrading to Kubernetes v" +
			release + "."
	}
	return i
}
