package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

var (
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	slicesOf   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	validating = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutating   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

// survey surveys the cluster with read access: every other request fails the test.
func (w *world) survey() preflight.Survey {
	w.t.Helper()
	config := config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "upgrade", Groups: []string{kube.UpgradeGroup, "system:authenticated"}}
	methods := &recorder{seen: map[string]int{}}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { methods.next = next; return methods }
	cluster, err := kube.Connect(config)
	require.NoError(w.t, err)
	found, err := survey.Of(context.Background(), cluster)
	require.NoError(w.t, err)
	require.Equal(w.t, []string{http.MethodGet}, methods.methods())
	return found
}

// recorder counts requests by method.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen map[string]int
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen[request.Method]++
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

func (r *recorder) methods() (methods []string) {
	for method := range r.seen {
		methods = append(methods, method)
	}
	return methods
}

// assignToPool assigns a node to a pool.
func (w *world) assignToPool(name, pool string) string {
	w.t.Helper()
	node := w.node(name)
	require.NoError(w.t, w.patch(nodes, "", node, fmt.Sprintf(`{"metadata":{"labels":{"drover.run/pool":%q}}}`, pool)))
	return node
}

func nodeOf(t *testing.T, s preflight.Survey, name string) preflight.Node {
	t.Helper()
	i := slices.IndexFunc(s.Nodes, func(n preflight.Node) bool { return n.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s is not in %+v", name, s.Nodes)
	return s.Nodes[i]
}

// budgetsOf returns the findings about the world's namespace.
func (w *world) budgetsOf(s preflight.Survey) map[string]preflight.Budget {
	found := map[string]preflight.Budget{}
	for _, b := range s.Budgets {
		if b.Namespace == w.name {
			found[b.Name] = b
		}
	}
	return found
}

// grant grants the rights of the upgrade function, once for all tests.
func grant(t *testing.T, w *world) {
	t.Helper()
	require.NoError(t, w.cluster.GrantRoles(context.Background()))
	w.eventually(func() bool {
		config := config()
		config.Impersonate = rest.ImpersonationConfig{UserName: "upgrade", Groups: []string{kube.UpgradeGroup, "system:authenticated"}}
		cluster, err := kube.Connect(config)
		require.NoError(t, err)
		_, err = survey.Of(context.Background(), cluster)
		return err == nil
	}, "the grant does not take effect")
}

func TestSurveyOfNodesAndPods(t *testing.T) {
	w := newWorld(t)
	grant(t, w)
	a, b, other := w.assignToPool("a", "workers"), w.assignToPool("b", "workers"), w.node("c")
	_, err := w.api.Resource(nodes).Patch(context.Background(), a, types.MergePatchType,
		[]byte(`{"status":{"nodeInfo":{"kubeletVersion":"v1.36.3-eks-1"}}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w.create(deployments, w.name,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {nowhere: "true"}, containers: [{name: c, image: c}]}}}}`)
	w.create(pods, w.name, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: sized}, spec: {nodeName: %s,
		initContainers: [{name: big, image: i, resources: {requests: {cpu: "3", memory: 1Gi}}},
			{name: side, image: i, restartPolicy: Always, resources: {requests: {cpu: 250m, memory: 128Mi}}}],
		containers: [{name: c, image: c, resources: {requests: {cpu: 500m, memory: 512Mi}}}, {name: d, image: c, `+
		`resources: {requests: {cpu: "1", memory: 1Gi}}}]}}`, a))
	w.bare("crashing", b, "")
	w.status(pods, "crashing",
		`{"status":{"containerStatuses":[{"name":"c","image":"c","imageID":"",`+
			`"ready":false,"restartCount":9,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`)
	w.bare("finished", b, "")
	w.status(pods, "finished", `{"status":{"phase":"Succeeded"}}`)
	require.NoError(t, w.patch(nodes, "", other, `{"spec":{"unschedulable":true}}`))
	require.NoError(t,
		w.patch(nodes, "", b, `{"spec":{"unschedulable":true},"metadata":{"annotations":{"drover.run/draining-since":"2026-11-22T00:00:00Z"}}}`))

	var s preflight.Survey
	w.eventually(func() bool { s = w.survey(); return len(w.workloads(s)) == 1 && len(w.podsFound(s)) == 3 }, "the survey is incomplete")
	require.Empty(t, s.Unhealthy)
	n := nodeOf(t, s, a)
	require.Equal(t, "workers", n.Pool)
	require.True(t, n.Ready)
	require.NotZero(t, n.Created)
	require.Equal(t, "v1.36.3-eks-1", n.Kubelet)
	require.Equal(t, preflight.Resources{
		MilliCPU: 3000, Memory: 1664 << 20, Pods: 1,
	}, n.Requested, "the larger of the init containers and the sum of the containers")
	require.Equal(t, preflight.Resources{MilliCPU: 64000, Memory: 256 << 30, Pods: 500}, n.Allocatable)
	require.True(t, nodeOf(t, s, b).Leaving && nodeOf(t, s, b).Cordoned, "drover drains it")
	require.EqualValues(t, 1, nodeOf(t, s, b).Requested.Pods, "finished pods request nothing")
	require.True(t, nodeOf(t, s, other).Cordoned)
	require.False(t, nodeOf(t, s, other).Leaving)
	require.Empty(t, nodeOf(t, s, other).Pool)

	found := w.podsFound(s)
	require.Equal(t, "CrashLoopBackOff", found["crashing"].State)
	require.Equal(t, b, found["crashing"].Node)
	require.Empty(t, found["crashing"].Workload)
	delete(found, "crashing")
	require.Len(t, found, 2)
	for _, p := range found {
		require.Equal(t, "Pending", p.State)
		require.Equal(t, "Deployment web", p.Workload)
		require.NotZero(t, p.Since)
	}
	require.Equal(t, []preflight.Workload{{Kind: "Deployment", Namespace: w.name, Name: "web", Desired: 2, Ready: 0}}, w.workloads(s))
}

func (w *world) status(resource schema.GroupVersionResource, name, patch string) {
	w.t.Helper()
	_, err := w.api.Resource(resource).Namespace(w.name).Patch(context.Background(), name, "application/strategic-merge-patch+json",
		[]byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
}

func (w *world) podsFound(s preflight.Survey) map[string]preflight.Pod {
	found := map[string]preflight.Pod{}
	for _, p := range s.Pods {
		if p.Namespace == w.name {
			found[p.Name] = p
		}
	}
	return found
}

func (w *world) workloads(s preflight.Survey) (found []preflight.Workload) {
	for _, workload := range s.Workloads {
		if workload.Namespace == w.name {
			found = append(found, workload)
		}
	}
	return found
}

func TestSurveyOfBudgets(t *testing.T) {
	w, elsewhere := newWorld(t), newWorld(t)
	grant(t, w)
	a := w.assignToPool("a", "workers")
	w.deploy("web", 3, "a", "")
	w.bare("lonely", a, "")
	// All select by app: web, in this namespace and in another.
	const web = "selector: {matchLabels: {app: web}}"
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all}, spec: {minAvailable: 3, "+web+"}}")
	elsewhere.create(budgets, elsewhere.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: theirs}, spec: "+
		"{maxUnavailable: 0, "+web+"}}")
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: typo}, spec: {minAvailable: 1, selector: "+
		"{matchLabels: {app: wbe}}}}")
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: unmanaged}, spec: {maxUnavailable: 1, "+
		"selector: {matchLabels: {app: lonely}}}}")
	// The disruption controller cannot count pods of an owner without a scale subresource.
	owner := w.create(configMaps, w.name, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	w.bare("odd", a, "")
	require.NoError(t, w.patch(pods, w.name, "odd",
		fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q,"controller":true}]}}`,
			owner.GetUID())))
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: odd}, spec: {maxUnavailable: 1, selector: "+
		"{matchLabels: {app: odd}}}}")

	var s preflight.Survey
	w.eventually(func() bool {
		s = w.survey()
		found := w.budgetsOf(s)
		return found["all"].Expected == 3 && found["odd"].Failed != "" && !found["unmanaged"].Stale && !found["typo"].Stale &&
			!elsewhere.budgetsOf(s)["theirs"].Stale
	}, "the controller does not count")
	found := w.budgetsOf(s)
	require.Equal(t, preflight.Budget{
		Namespace: w.name, Name: "all", Rule: "minAvailable 3", Expected: 3, Desired: 3, Healthy: 3, Covered: map[string]int{"workers": 3},
	}, found["all"])
	require.Empty(t, found["typo"].Covered)
	require.Zero(t, found["typo"].Expected)
	require.Contains(t, found["odd"].Failed, "scale")
	require.Zero(t, found["unmanaged"].Expected)
	require.Equal(t, 1, found["unmanaged"].Covered["workers"])
	require.Empty(t, elsewhere.budgetsOf(s)["theirs"].Covered, "a budget covers only its namespace")
	require.Empty(t, s.Overlaps, "budgets of two namespaces do not overlap")

	// The results of the checks.
	all := fmt.Sprint(preflight.Before(&preflight.Facts{ReadAt: time.Now(), Survey: s}, upgradeOfNodes()))
	require.Contains(t, all, w.name+"/all (minAvailable 3) can never allow a disruption: it requires 3 of 3 pods")
	require.Contains(t, all, w.name+"/odd (maxUnavailable 1) allows nothing: ")
	require.Contains(t, all, w.name+"/unmanaged (maxUnavailable 1) counts none of its pods")
	require.Contains(t, all, w.name+"/typo")
	require.NotContains(t, all, elsewhere.name+"/theirs (")

	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: second}, spec: {maxUnavailable: 1, "+
		web+"}}")
	w.eventually(func() bool { s = w.survey(); return len(s.Overlaps) == 3 }, "overlaps are not seen")
	require.Equal(t, w.name, s.Overlaps[0].Namespace)
	require.Equal(t, "workers", s.Overlaps[0].Pool)
	require.ElementsMatch(t, []string{"all", "second"}, s.Overlaps[0].Budgets)
	// The API server confirms it.
	w.slices(a, policy(), func(report drain.Report) bool { return strings.Contains(fmt.Sprint(report.Blocked), "more than one") })
}

func TestSurveyOfPodsThatAreNotReady(t *testing.T) {
	w := newWorld(t)
	grant(t, w)
	a := w.assignToPool("a", "workers")
	w.deploy("web", 2, "a", "")
	w.create(budgets, w.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1, selector: "+
		"{matchLabels: {app: web}}}}")
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	sick := w.podsOn(a)[0].Name
	w.status(pods, sick, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%q}]}}`,
		since.Format(time.RFC3339)))
	var found preflight.Budget
	w.eventually(func() bool {
		found = w.budgetsOf(w.survey())["web"]
		return found.Healthy == 1 && found.Allowed == 0 && found.Unhealthy == 1
	}, "the pod still counts")
	require.Equal(t, since, found.Since.UTC())
	require.Equal(t, "maxUnavailable 1", found.Rule)
	require.Equal(t, 1, found.Covered["workers"], "the pod that is not Ready may leave")
}

func TestSurveyOfWebhooks(t *testing.T) {
	w := newWorld(t)
	grant(t, w)
	a := w.node("a")
	w.bare("p", a, "")
	w.create(services, w.name, "{apiVersion: v1, kind: Service, metadata: {name: policy}, spec: {ports: [{port: 443}]}}")
	hooks := func(resource schema.GroupVersionResource, kind, name, body string) {
		t.Helper()
		w.create(resource, "", fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: %s-%s}, webhooks: [%s]}",
			kind, w.name, name, body))
		t.Cleanup(func() {
			require.NoError(t, w.api.Resource(resource).Delete(context.Background(), w.name+"-"+name, metav1.DeleteOptions{}))
		})
	}
	hook := func(name, policy, rules, extra string) string {
		return fmt.Sprintf("{name: %s.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: %s, clientConfig: {service: "+
			"{namespace: %s, name: policy}}, rules: [%s]%s}",
			name, policy, w.name, rules, extra)
	}
	const (
		evictions = `{apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: [CREATE]}`
		leases    = `{apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases], operations: [DELETE]}`
		status    = `{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/status"], operations: ["*"], scope: Cluster}`
		secrets   = `{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: ["*"]}`
	)
	// The webhooks apply only to the namespace of this test. Those for the status apply to a label that no object has.
	mine := fmt.Sprintf(", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}", w.name)
	hooks(validating, "ValidatingWebhookConfiguration", "policy", strings.Join([]string{
		hook("evictions", "Fail", evictions, mine),
		hook("ignored", "Ignore", evictions, mine),
		hook("elsewhere", "Fail", evictions, ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: nowhere}}"),
		hook("others", "Fail", evictions, mine+", objectSelector: {matchLabels: {app: others}}"),
		hook("secrets", "Fail", secrets, mine),
		hook("leases", "Fail", leases, mine),
		"{name: outside.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, clientConfig: {url: " +
			"'https://example.com/x'}, rules: [" + evictions + "]" + mine + "}",
		"{name: own.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, clientConfig: {url: " +
			"'https://127.0.0.1:21362/x'}, rules: [" + evictions + "]" + mine + "}",
	}, ", "))
	hooks(mutating, "MutatingWebhookConfiguration", "status", hook("status", "Fail", status,
		fmt.Sprintf(", objectSelector: {matchLabels: {world: %s, sick: 'yes'}}", w.name)))

	require.Equal(t, []preflight.Webhook{{
		Configuration: "ValidatingWebhookConfiguration " + w.name + "-policy", Name: "evictions.example.com", Service: w.name + "/policy",
		Matches: []string{"evictions"},
	}, {
		Configuration: "ValidatingWebhookConfiguration " + w.name + "-policy", Name: "outside.example.com", Host: "example.com",
		Matches: []string{"evictions"},
	}}, w.survey().Webhooks)
	w.slices(a, policy(), func(report drain.Report) bool { return len(report.Blocked) > 0 }) // the webhook does block it

	w.endpoints("one", "10.0.0.1", "true")
	w.endpoints("two", "10.0.0.2", "false")
	require.Equal(t, 1, w.survey().Webhooks[0].Endpoints, "only ready endpoints")
	w.endpoints("three", "10.0.0.1", "true")
	w.endpoints("four", "10.0.0.3", "true")
	require.Equal(t, 2, w.survey().Webhooks[0].Endpoints, "each address once")

	require.NoError(t, w.patch(nodes, "", a, `{"metadata":{"labels":{"sick":"yes"}}}`))
	s := w.survey()
	require.NoError(t, w.patch(nodes, "", a, `{"metadata":{"labels":{"sick":null}}}`))
	require.Len(t, s.Webhooks, 3)
	require.Equal(t, []string{"the status of nodes"}, s.Webhooks[2].Matches)
}

func (w *world) endpoints(name, address, ready string) {
	w.t.Helper()
	w.create(slicesOf, w.name,
		fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s, labels: {kubernetes.io/service-name: policy}},
		addressType: IPv4, endpoints: [{addresses: [%s], conditions: {ready: %s}}], ports: [{port: 443}]}`, name, address, ready))
}

// upgradeOfNodes is a plan that replaces the nodes of the pool workers.
func upgradeOfNodes() *preflight.Plan {
	after := &api.Cluster{}
	after.Spec.Pools = []api.Pool{{Name: "workers"}}
	return &preflight.Plan{Cluster: "demo", Steps: []upgrade.Step{{Kind: upgrade.StepNodes, KubernetesVersion: "1.36"}}, After: after}
}

func TestSurveyReadsPages(t *testing.T) {
	w := newWorld(t)
	const n = 1100
	w.create(deployments, w.name,
		fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {nowhere: "true"}, containers: [{name: c, image: c}]}}}}`, n))
	requests := &recorder{seen: map[string]int{}}
	config := config()
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { requests.next = next; return requests }
	cluster, err := kube.Connect(config)
	require.NoError(t, err)
	w.eventually(func() bool {
		list, err := w.api.Resource(pods).Namespace(w.name).List(context.Background(), metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
		left := list.GetRemainingItemCount()
		return left != nil && *left == n-1
	}, "the pods do not exist")
	began := time.Now()
	s, err := survey.Of(context.Background(), cluster)
	require.NoError(t, err)
	t.Logf("%d pods in %s, %d requests", n, time.Since(began).Round(time.Millisecond), requests.seen[http.MethodGet])
	require.Len(t, w.podsFound(s), n)
	require.GreaterOrEqual(t, requests.seen[http.MethodGet], 11, "readiness, eight kinds, and two more pages of pods")
}
