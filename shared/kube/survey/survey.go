// Package survey reads the state of a whole cluster for the checks before and after an upgrade. It lists page by page and
// keeps only what the checks report, so its memory does not grow with the number of pods. It judges nothing:
// shared/preflight does.
package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
)

// Clusters surveys clusters by name.
type Clusters struct{ clusters *kube.Clusters }

// New returns the surveys of an account's clusters.
func New(clusters *kube.Clusters) *Clusters { return &Clusters{clusters} }

// Survey opens a cluster and surveys it. If the API server does not respond or denies access, the error is
// *fault.ClusterUnreachable.
func (c *Clusters) Survey(ctx context.Context, cluster string) (preflight.Survey, error) {
	opened, err := c.clusters.Open(ctx, cluster)
	if err != nil {
		return preflight.Survey{}, err
	}
	return Of(ctx, opened)
}

// Of surveys an opened cluster. If the API server does not respond or denies access, the error is
// *fault.ClusterUnreachable.
func Of(ctx context.Context, cluster *kube.Cluster) (preflight.Survey, error) {
	s := &surveyor{cluster: cluster, nodes: map[string]*preflight.Node{}}
	// Budgets and webhooks are read before the nodes and pods that they apply to.
	for _, read := range []func(context.Context) error{
		s.readiness, s.allBudgets, s.allHooks, s.allNodes, s.allPods, s.allEndpoints, s.allWorkloads,
	} {
		if err := read(ctx); err != nil {
			return preflight.Survey{}, &fault.ClusterUnreachable{Cause: err}
		}
	}
	return s.result(), nil
}

// surveyor collects the survey.
type surveyor struct {
	cluster *kube.Cluster
	found   preflight.Survey
	// nodes by name, in the order of the list.
	nodes   map[string]*preflight.Node
	order   []string
	budgets map[string][]*watchedBudget // by namespace
	hooks   []*watchedHook
	// namespaces holds the labels of namespaces by name, if a webhook selects by them.
	namespaces map[string]labels.Set
	proxies    map[string]bool
}

func (s *surveyor) result() preflight.Survey {
	for _, name := range s.order {
		s.found.Nodes = append(s.found.Nodes, *s.nodes[name])
	}
	s.found.Budgets, s.found.Webhooks = s.budgetsFound(), s.hooksFound()
	s.found.KubeProxies = sortedKeys(s.proxies)
	return s.found
}

// pageSize is how many objects a call lists.
const pageSize = 500

// eachPage lists a kind page by page. It keeps no page after handling it.
func eachPage[T any, L any, PL interface {
	*L
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, client rest.Interface, resource string, items func(PL) []T, handle func(*T)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list := PL(new(L))
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
			defer cancel()
			return client.Get().Resource(resource).VersionedParams(&options, kube.Parameters).Do(ctx).Into(list)
		}()
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource, err)
		}
		all := items(list)
		for i := range all {
			handle(&all[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// eachObject lists kinds whose fields drover reads in part: T has these fields, with their JSON names. The complete types would
// enlarge every function that calls a cluster.
func eachObject[T any](ctx context.Context, c *kube.Cluster, resource schema.GroupVersionResource, namespace string,
	options metav1.ListOptions, handle func(*T)) error {
	options.Limit = pageSize
	for {
		page, cancel := context.WithTimeout(ctx, kube.CallTimeout)
		list, err := c.Dynamic.Resource(resource).Namespace(namespace).List(page, options)
		cancel()
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			var object T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &object); err != nil {
				return fmt.Errorf("reading %s %s: %w", resource.Resource, list.Items[i].GetName(), err)
			}
			handle(&object)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// readiness reads the API server's own health checks. Every authenticated user may do so, unless an operator removed that
// right.
// https://kubernetes.io/docs/reference/using-api/health-checks/
func (s *surveyor) readiness(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	// The REST client would truncate the body of a 503, as the text of an error.
	url := s.cluster.Core.Get().AbsPath("/readyz").Param("verbose", "true").URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return err
	}
	response, err := s.cluster.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("calling /readyz: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, readyzLimit))
	if err != nil {
		return fmt.Errorf("calling /readyz: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusForbidden, http.StatusUnauthorized:
		return nil
	}
	for line := range strings.Lines(string(body)) {
		if failed, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(failed, " ")
			s.found.Unhealthy = append(s.found.Unhealthy, name)
		}
	}
	if len(s.found.Unhealthy) == 0 {
		s.found.Unhealthy = []string{response.Status}
	}
	return nil
}

// readyzLimit limits the bytes of a response: it has a line for each of about fifty checks.
const readyzLimit = 64 << 10

// leavingTaints are set by autoscalers on nodes that they remove. Such a node was not cordoned by an operator.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/utils/taints/taints.go,
// https://karpenter.sh/docs/concepts/disruption/
var leavingTaints = []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}

func (s *surveyor) allNodes(ctx context.Context) error {
	return eachPage(ctx, s.cluster.Core, "nodes", func(l *corev1.NodeList) []corev1.Node { return l.Items }, func(in *corev1.Node) {
		n := &preflight.Node{
			Name: in.Name, Pool: in.Labels[names.LabelPool], Created: in.CreationTimestamp.Time, Since: in.CreationTimestamp.Time,
			Message:  "it has no Ready condition",
			Cordoned: in.Spec.Unschedulable, Leaving: in.Annotations[kube.AnnotationDraining] != "" || !in.DeletionTimestamp.IsZero(),
			Kubelet: in.Status.NodeInfo.KubeletVersion,
			Allocatable: preflight.Resources{
				MilliCPU: in.Status.Allocatable.Cpu().MilliValue(), Memory: in.Status.Allocatable.Memory().Value(),
				Pods: in.Status.Allocatable.Pods().Value(),
			},
		}
		for _, c := range in.Status.Conditions {
			if c.Type == corev1.NodeReady {
				n.Ready, n.Since, n.Message = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time, c.Message
			}
		}
		for _, taint := range in.Spec.Taints {
			for _, mark := range leavingTaints {
				n.Leaving = n.Leaving || taint.Key == mark
			}
		}
		s.seeNode(in)
		s.nodes[n.Name] = n
		s.order = append(s.order, n.Name)
	})
}

func (s *surveyor) allPods(ctx context.Context) error {
	s.proxies = map[string]bool{}
	return eachPage(ctx, s.cluster.Core, "pods", func(l *corev1.PodList) []corev1.Pod { return l.Items }, func(p *corev1.Pod) {
		node := s.nodes[p.Spec.NodeName]
		s.load(node, p)
		s.standOut(p)
		s.cover(node, p)
		s.seePod(p)
	})
}

func (s *surveyor) allBudgets(ctx context.Context) error {
	s.budgets = map[string][]*watchedBudget{}
	return eachPage(ctx, s.cluster.Policy, "poddisruptionbudgets",
		func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget {
			return l.Items
		},
		func(b *policyv1.PodDisruptionBudget) {
			s.budgets[b.Namespace] = append(s.budgets[b.Namespace], newWatchedBudget(b))
		})
}

// controller has the fields of a workload that keeps pods running.
type controller struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas *int64 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas          int64 `json:"readyReplicas"`
		DesiredNumberScheduled int64 `json:"desiredNumberScheduled"`
		NumberReady            int64 `json:"numberReady"`
	} `json:"status"`
}

func (s *surveyor) allWorkloads(ctx context.Context) error {
	var errs []error
	for _, k := range []struct{ kind, resource string }{
		{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}, {"DaemonSet", "daemonsets"},
	} {
		resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: k.resource}
		errs = append(errs, eachObject(ctx, s.cluster, resource, "", metav1.ListOptions{}, func(c *controller) {
			w := preflight.Workload{Kind: k.kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name}
			w.Desired, w.Ready = 1, int(c.Status.ReadyReplicas) // 1 is the default of Kubernetes
			if c.Spec.Replicas != nil {
				w.Desired = int(*c.Spec.Replicas)
			}
			if k.kind == "DaemonSet" {
				w.Desired, w.Ready = int(c.Status.DesiredNumberScheduled), int(c.Status.NumberReady)
			}
			s.found.Workloads = append(s.found.Workloads, w)
		}))
	}
	return errors.Join(errs...)
}
