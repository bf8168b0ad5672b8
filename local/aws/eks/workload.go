package eks

// The workloads of add-ons: Deployments and DaemonSets with the images that AWS publishes. KWOK simulates their pods.

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	deployment = "Deployment"
	daemonSet  = "DaemonSet"
)

// workload is a set of pods of an add-on.
type workload struct {
	kind, name          string
	replicas            int64
	images              []string // one container each, named after the last part of the path
	hostNetwork         bool
	cpuMilli, memoryMiB int // requests of each container, or 0
	priority            string
	labels              map[string]any // of the pods, in addition to app.kubernetes.io/name
	budget              bool           // a PodDisruptionBudget of maxUnavailable 1
	dnsService          bool           // the service kube-dns on the tenth address of the service CIDR
}

func (w workload) resource() schema.GroupVersionResource {
	if w.kind == daemonSet {
		return daemonSetResource
	}
	return deploymentResource
}

func (w workload) selector() map[string]any {
	selector := map[string]any{"app.kubernetes.io/name": w.name}
	maps.Copy(selector, w.labels)
	return selector
}

// object returns the Deployment or DaemonSet for an add-on's version.
func (w workload) object(namespace, registry, version string) map[string]any {
	var containers []any
	for _, image := range w.images {
		requests := map[string]any{}
		if w.cpuMilli > 0 {
			requests["cpu"] = fmt.Sprintf("%dm", w.cpuMilli)
		}
		if w.memoryMiB > 0 {
			requests["memory"] = fmt.Sprintf("%dMi", w.memoryMiB)
		}
		containers = append(containers, map[string]any{
			"name": image[strings.LastIndex(image, "/")+1:], "image": registry + "/" + image + ":" + version,
			"resources": map[string]any{"requests": requests},
		})
	}
	pod := map[string]any{
		"serviceAccountName": w.name, "containers": containers, "hostNetwork": w.hostNetwork,
		"tolerations": []any{
			map[string]any{
				"key": "CriticalAddonsOnly", "operator": "Exists",
			}, map[string]any{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
		},
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
	}
	if w.priority != "" {
		pod["priorityClassName"] = w.priority
	}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": w.selector()},
		"template": map[string]any{"metadata": map[string]any{"labels": w.selector()}, "spec": pod},
	}
	if w.kind == daemonSet {
		pod["tolerations"] = []any{map[string]any{"operator": "Exists"}}
		spec["updateStrategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": "10%"}}
	} else {
		spec["replicas"] = w.replicas
		// Spread over nodes where possible, like the add-ons of EKS.
		pod["affinity"] =
			map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
				"weight": int64(100), "podAffinityTerm": map[string]any{
					"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": w.selector()},
				},
			}}}}
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": w.kind,
		"metadata": map[string]any{"name": w.name, "namespace": namespace, "labels": w.selector()}, "spec": spec,
	}
}

// ensureNamespace creates the namespace of an add-on. It changes none that exists.
func ensureNamespace(ctx context.Context, client dynamic.Interface, name string) error {
	if name == "kube-system" {
		return nil
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	return patiently(ctx, func() error {
		_, err := client.Resource(namespaceResource).Create(ctx, o, metav1.CreateOptions{FieldManager: "eks"})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return wrapObject(err, "creating", o)
	})
}

// install creates an add-on's objects in a cluster, or changes them to its version.
func (s *Service) install(ctx context.Context, client dynamic.Interface, a catalogAddon, version, serviceCIDR string) error {
	registry := "602401143452.dkr.ecr." + s.config.Region + ".amazonaws.com"
	if err := ensureNamespace(ctx, client, a.namespace); err != nil {
		return err
	}
	for _, w := range a.workloads {
		metadata := map[string]any{"name": w.name, "namespace": a.namespace}
		objects := []struct {
			resource schema.GroupVersionResource
			object   map[string]any
		}{
			{serviceAccountResource, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}},
			{w.resource(), w.object(a.namespace, registry, version)},
		}
		if w.budget {
			objects = append(objects, struct {
				resource schema.GroupVersionResource
				object   map[string]any
			}{budgetResource, map[string]any{
				"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
				"spec": map[string]any{"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": w.selector()}},
			}})
		}
		for _, o := range objects {
			if err := ensure(ctx, client, o.resource, o.object); err != nil {
				return err
			}
		}
		if w.dnsService {
			if err := ensureDNS(ctx, client, w, a.namespace, serviceCIDR); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureDNS creates the service in the resolv.conf of nodes: the tenth address of the service CIDR.
func ensureDNS(ctx context.Context, client dynamic.Interface, w workload, namespace, serviceCIDR string) error {
	services, err := netip.ParsePrefix(serviceCIDR)
	if err != nil {
		return fmt.Errorf("address of kube-dns: %w", err)
	}
	address := services.Addr()
	for range 10 {
		address = address.Next()
	}
	port := func(name, protocol string) any {
		return map[string]any{"name": name, "protocol": protocol, "port": int64(53), "targetPort": int64(53)}
	}
	return ensure(ctx, client, serviceResource, map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "kube-dns", "namespace": namespace, "labels": w.selector()},
		"spec": map[string]any{
			"clusterIP": address.String(), "selector": w.selector(), "ports": []any{port("dns", "UDP"), port("dns-tcp", "TCP")},
		},
	})
}

// uninstall removes an add-on's objects.
func uninstall(ctx context.Context, client dynamic.Interface, a catalogAddon) error {
	for _, w := range a.workloads {
		for _, resource := range []schema.GroupVersionResource{w.resource(), budgetResource, serviceAccountResource} {
			if err := remove(ctx, client, resource, a.namespace, w.name); err != nil {
				return fmt.Errorf("remove add-on %s: %w", a.name, err)
			}
		}
		if w.dnsService {
			if err := remove(ctx, client, serviceResource, a.namespace, "kube-dns"); err != nil {
				return fmt.Errorf("remove add-on %s: %w", a.name, err)
			}
		}
	}
	return nil
}

// available reports whether all pods of an add-on are available, or else a workload that lacks some. up counts new or available pods.
func available(ctx context.Context, client dynamic.Interface, a catalogAddon) (ok bool, lacking string, up int64, err error) {
	for _, w := range a.workloads {
		o, err := client.Resource(w.resource()).Namespace(a.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return false, w.name, up, err
		}
		number := func(fields ...string) int64 {
			n, _, _ := unstructured.NestedInt64(o.Object, fields...)
			return n
		}
		up += number("status", "availableReplicas") + number("status", "updatedReplicas") + number("status", "numberAvailable") +
			number("status", "updatedNumberScheduled")
		observed := number("status", "observedGeneration") >= o.GetGeneration()
		ready := number("status", "availableReplicas") >= w.replicas && number("status", "updatedReplicas") >= w.replicas
		if w.kind == daemonSet {
			desired := number("status", "desiredNumberScheduled")
			ready = number("status", "numberAvailable") >= desired && number("status", "updatedNumberScheduled") >= desired
		}
		if !observed || !ready {
			return false, w.name, up, nil
		}
	}
	return true, "", up, nil
}

// pods returns the pods of an add-on, as far as the API responds.
func pods(ctx context.Context, client dynamic.Interface, a catalogAddon) (all []unstructured.Unstructured) {
	for _, w := range a.workloads {
		selector := labels.Set(map[string]string{"app.kubernetes.io/name": w.name}).String()
		list, err := client.Resource(podResource).Namespace(a.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err == nil {
			all = append(all, list.Items...)
		}
	}
	return all
}

// unschedulable reports whether the scheduler rejected a pod of an add-on.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions
func unschedulable(ctx context.Context, client dynamic.Interface, a catalogAddon) bool {
	for _, pod := range pods(ctx, client, a) {
		conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
		for _, condition := range conditions {
			c, ok := condition.(map[string]any)
			if ok && c["type"] == "PodScheduled" && c["status"] == "False" && c["reason"] == "Unschedulable" {
				return true
			}
		}
	}
	return false
}

// resyncAnnotation changes to make KWOK process a pod again.
const resyncAnnotation = "local.drover.run/resync"

// resync makes KWOK process the pods of an add-on that are bound to a node and not started. A kubelet checks all its pods each minute. KWOK
// handles each event once, and drops a pod if it could not write the status or did not manage the node at that time.
// https://github.com/kubernetes-sigs/kwok/blob/v0.8.0/pkg/kwok/controllers/pod_controller.go
func (s *Service) resync(ctx context.Context, c *cluster, a catalogAddon) {
	for _, pod := range pods(ctx, c.admin, a) {
		node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if node == "" || phase != "Pending" || pod.GetDeletionTimestamp() != nil {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, resyncAnnotation, s.config.Clock.Now().Format(time.RFC3339Nano))
		_, err := c.admin.Resource(podResource).Namespace(pod.GetNamespace()).Patch(ctx, pod.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{})
		s.config.Log.Warn("pod was bound but not started", "cluster", c.Name, "node", node, "pod", pod.GetName(), "error", err)
	}
}

// selfManaged are the add-ons that EKS installs by default. They are not EKS add-ons.
var selfManaged = []string{"vpc-cni", "kube-proxy", "coredns"}

func (s *Service) installSelfManaged(ctx context.Context, c *cluster, client dynamic.Interface) error {
	for _, a := range catalog {
		if !slices.Contains(selfManaged, a.name) {
			continue
		}
		if err := s.install(ctx, client, a, a.newestFor(c.Version), c.KubernetesNetworkConfig.ServiceIpv4Cidr); err != nil {
			return err
		}
	}
	return nil
}
