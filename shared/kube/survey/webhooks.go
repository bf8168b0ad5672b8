package survey

// Admission webhooks that reject requests while they are unavailable, and that apply to requests of an upgrade for nodes
// and pods.

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/preflight"
)

// hookConfiguration has the fields of a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
type hookConfiguration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Webhooks []hook            `json:"webhooks"`
}

type hook struct {
	Name          string `json:"name"`
	FailurePolicy string `json:"failurePolicy"`
	ClientConfig  struct {
		URL     string `json:"url"`
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"clientConfig"`
	Rules             []hookRule            `json:"rules"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
}

type hookRule struct {
	APIGroups  []string `json:"apiGroups"`
	Resources  []string `json:"resources"`
	Operations []string `json:"operations"`
	Scope      string   `json:"scope"`
}

// write is a request that an upgrade causes: by kubelets of new and old nodes, by controllers that start replacements and
// delete Node objects, and by drover, which evicts pods.
type write struct {
	words                      string
	group, resource, operation string
	// of is the kind of the object: "pod" or "node".
	of string
}

var writes = []write{
	{words: "new pods", resource: "pods", operation: "CREATE", of: "pod"},
	{words: "evictions", resource: "pods/eviction", operation: "CREATE", of: "pod"},
	{words: "deletions of pods", resource: "pods", operation: "DELETE", of: "pod"},
	{words: "the binding of pods", resource: "pods/binding", operation: "CREATE", of: "pod"},
	{words: "the status of pods", resource: "pods/status", operation: "UPDATE", of: "pod"},
	{words: "new nodes", resource: "nodes", operation: "CREATE", of: "node"},
	{words: "nodes", resource: "nodes", operation: "UPDATE", of: "node"},
	{words: "the status of nodes", resource: "nodes/status", operation: "UPDATE", of: "node"},
	{words: "deletions of nodes", resource: "nodes", operation: "DELETE", of: "node"},
	{words: "leases of new nodes", group: "coordination.k8s.io", resource: "leases", operation: "CREATE", of: "lease"},
	{words: "leases of nodes", group: "coordination.k8s.io", resource: "leases", operation: "UPDATE", of: "lease"},
}

// asks reports whether a rule applies to a write.
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules
func (r hookRule) asks(w write) bool {
	if r.Scope == "Cluster" && w.of != "node" || r.Scope == "Namespaced" && w.of == "node" {
		return false
	}
	return slices.ContainsFunc(r.APIGroups, func(g string) bool { return g == "*" || g == w.group }) &&
		slices.ContainsFunc(r.Operations, func(o string) bool { return o == "*" || o == w.operation }) &&
		slices.ContainsFunc(r.Resources, func(resource string) bool { return covers(resource, w.resource) })
}

// covers reports whether a rule's resource, such as "*", "*/*", "pods/*" or "*/status", covers a resource or
// subresource. "*" covers no subresources.
func covers(rule, resource string) bool {
	ruled, ruledSub, ruledHasSub := strings.Cut(rule, "/")
	name, sub, hasSub := strings.Cut(resource, "/")
	switch {
	case rule == "*/*":
		return true
	case ruled != "*" && ruled != name:
		return false
	case ruledSub == "*":
		return true
	}
	return ruledHasSub == hasSub && ruledSub == sub
}

// watchedHook is a webhook and the writes of an upgrade that it applies to.
type watchedHook struct {
	found              preflight.Webhook
	namespace, service string
	// The selectors limit these writes: namespaces selects by the labels of namespaces, objects by those of the object.
	asked               []write
	namespaces, objects labels.Selector
	matches             map[string]bool
}

// allHooks reads the webhooks with failurePolicy Fail that apply to a write of an upgrade. It omits those of EKS, which run on the
// control plane's own machines. Conditions in CEL count as true.
func (s *surveyor) allHooks(ctx context.Context) error {
	for _, k := range []struct{ kind, resource string }{
		{"ValidatingWebhookConfiguration", "validatingwebhookconfigurations"}, {"MutatingWebhookConfiguration", "mutatingwebhookconfigurations"},
	} {
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: k.resource}
		if err := eachObject(ctx, s.cluster, resource, "", metav1.ListOptions{}, func(c *hookConfiguration) {
			for _, h := range c.Webhooks {
				if watched := newWatchedHook(k.kind+" "+c.Metadata.Name, h); watched != nil {
					s.hooks = append(s.hooks, watched)
				}
			}
		}); err != nil {
			return err
		}
	}
	return s.allNamespaces(ctx)
}

// newWatchedHook returns nil for a webhook that cannot block an upgrade.
func newWatchedHook(configuration string, h hook) *watchedHook {
	host := ""
	if at, err := url.Parse(h.ClientConfig.URL); err == nil {
		host = at.Hostname()
	}
	if h.FailurePolicy == "Ignore" || h.ClientConfig.Service == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
		return nil
	}
	w := &watchedHook{matches: map[string]bool{}, namespaces: selector(h.NamespaceSelector), objects: selector(h.ObjectSelector)}
	w.found = preflight.Webhook{Configuration: configuration, Name: h.Name, Host: host}
	if of := h.ClientConfig.Service; of != nil {
		w.namespace, w.service = of.Namespace, of.Name
		w.found.Service = w.namespace + "/" + w.service
	}
	for _, write := range writes {
		if slices.ContainsFunc(h.Rules, func(r hookRule) bool { return r.asks(write) }) {
			w.asked = append(w.asked, write)
		}
	}
	if len(w.asked) == 0 {
		return nil
	}
	return w
}

// selector converts a selector of labels. A missing or invalid one selects everything.
func selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	read, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything()
	}
	return read
}

// allNamespaces reads the labels of namespaces, if any webhook selects by them.
func (s *surveyor) allNamespaces(ctx context.Context) error {
	s.namespaces = map[string]labels.Set{}
	if !slices.ContainsFunc(s.hooks, func(h *watchedHook) bool { return !h.namespaces.Empty() }) {
		return nil
	}
	return eachPage(ctx, s.cluster.Core, "namespaces", func(l *corev1.NamespaceList) []corev1.Namespace {
		return l.Items
	}, func(n *corev1.Namespace) {
		s.namespaces[n.Name] = n.Labels
	})
}

// seeNode records the webhooks that apply to a node and its lease.
func (s *surveyor) seeNode(n *corev1.Node) {
	for _, h := range s.hooks {
		for _, w := range h.asked {
			switch {
			case w.of == "node" && h.objects.Matches(labels.Set(n.Labels)):
				h.matches[w.words] = true
			case w.of == "lease" && h.objects.Matches(labels.Set{}) && h.namespaces.Matches(s.namespaces[corev1.NamespaceNodeLease]):
				h.matches[w.words] = true
			}
		}
	}
}

// seePod records the webhooks that apply to a pod.
func (s *surveyor) seePod(p *corev1.Pod) {
	for _, h := range s.hooks {
		if !h.objects.Matches(labels.Set(p.Labels)) || !h.namespaces.Matches(s.namespaces[p.Namespace]) {
			continue
		}
		for _, w := range h.asked {
			if w.of == "pod" {
				h.matches[w.words] = true
			}
		}
	}
}

// endpointSlice has the fields that are read.
type endpointSlice struct {
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
}

// allEndpoints counts the ready endpoints behind the webhooks that apply.
// https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/
func (s *surveyor) allEndpoints(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	for _, h := range s.hooks {
		if len(h.matches) == 0 || h.service == "" {
			continue
		}
		ready := map[string]bool{} // an address may be in two slices for a while
		options := metav1.ListOptions{LabelSelector: labels.Set{"kubernetes.io/service-name": h.service}.String()}
		if err := eachObject(ctx, s.cluster, resource, h.namespace, options, func(slice *endpointSlice) {
			for _, e := range slice.Endpoints {
				if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					ready[e.Addresses[0]] = true
				}
			}
		}); err != nil {
			return err
		}
		h.found.Endpoints = len(ready)
	}
	return nil
}

func (s *surveyor) hooksFound() []preflight.Webhook {
	var found []preflight.Webhook
	for _, h := range s.hooks {
		if h.found.Matches = sortedKeys(h.matches); len(h.matches) > 0 {
			found = append(found, h.found)
		}
	}
	return found
}
