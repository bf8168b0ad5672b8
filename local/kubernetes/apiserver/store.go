package apiserver

// Objects, their versions and their watchers.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/engine/clock"
)

// object is a stored object. It is immutable: a change stores a copy.
type object = map[string]any

// kind of objects.
type kind struct {
	group, version, resource, kind string
	namespaced                     bool
}

func (k kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

func (k kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

// kinds that the server supports.
var kinds = []kind{
	nodes,
	pods,
	namespaces,
	{version: "v1", resource: "services", kind: "Service", namespaced: true},
	{version: "v1", resource: "serviceaccounts", kind: "ServiceAccount", namespaced: true},
	deployments,
	{group: "apps", version: "v1", resource: "daemonsets", kind: "DaemonSet", namespaced: true},
	budgets,
	{group: "storage.k8s.io", version: "v1", resource: "volumeattachments", kind: "VolumeAttachment"},
	{group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles", kind: "ClusterRole"},
	{group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterrolebindings", kind: "ClusterRoleBinding"},
	{group: "rbac.authorization.k8s.io", version: "v1", resource: "rolebindings", kind: "RoleBinding", namespaced: true},
	{version: "v1", resource: "persistentvolumes", kind: "PersistentVolume"},
	{group: "apps", version: "v1", resource: "statefulsets", kind: "StatefulSet", namespaced: true},
	{group: "discovery.k8s.io", version: "v1", resource: "endpointslices", kind: "EndpointSlice", namespaced: true},
	{
		group: "admissionregistration.k8s.io", version: "v1", resource: "validatingwebhookconfigurations",
		kind: "ValidatingWebhookConfiguration",
	},
	{group: "admissionregistration.k8s.io", version: "v1", resource: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration"},
}

// The kinds that the server knows by name.
var (
	nodes       = kind{version: "v1", resource: "nodes", kind: "Node"}
	pods        = kind{version: "v1", resource: "pods", kind: "Pod", namespaced: true}
	namespaces  = kind{version: "v1", resource: "namespaces", kind: "Namespace"}
	deployments = kind{group: "apps", version: "v1", resource: "deployments", kind: "Deployment", namespaced: true}
	budgets     = kind{group: "policy", version: "v1", resource: "poddisruptionbudgets", kind: "PodDisruptionBudget", namespaced: true}
)

// change of an object, as watches send it.
type change struct {
	version int
	kind    kind
	typ     string // ADDED, MODIFIED, DELETED
	object  object
}

// Server is one cluster's API. Close ends its watches and timers.
type Server struct {
	clock *clock.Clock
	world *world

	mu      sync.Mutex
	closed  chan struct{}
	version int
	objects map[kind]map[string]object // by namespace/name
	changes []change
	changed chan struct{} // closed and replaced at every change
	// downUntil is the time until which the server answers nothing.
	downUntil time.Time
	// deprecated are the lines of metrics about deprecated APIs that a client requested.
	deprecated []string
}

// New returns an API with only the default namespaces.
func New(c *clock.Clock) *Server {
	s := &Server{clock: c, closed: make(chan struct{}), changed: make(chan struct{}), objects: map[kind]map[string]object{}}
	s.world = &world{server: s, apps: map[string]App{}, instances: map[string]string{}}
	for _, k := range kinds {
		s.objects[k] = map[string]object{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range []string{"default", "kube-system"} {
		_, _ = s.create(namespaces, object{"metadata": object{"name": name}}) // cannot fail: no object exists yet
	}
	return s
}

// Close ends the watches and the cluster's own work.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// Requested counts a request for a deprecated API, which the minor version in removed, such as 1.38, removes.
func (s *Server) Requested(group, version, resource, removed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deprecated = append(s.deprecated, fmt.Sprintf(
		"apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=\"\",version=%q} 1\n", group, removed,
		resource, version))
}

// Metrics returns the metrics about deprecated APIs in Prometheus' text format.
// https://kubernetes.io/docs/reference/using-api/deprecation-policy/#rest-resources-aka-api-objects
func (s *Server) Metrics(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down() {
		return nil, errDown
	}
	return []byte(strings.Join(s.deprecated, "")), nil
}

// Down stops all answers for d.
func (s *Server) Down(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downUntil = s.clock.Now().Add(d)
	s.wake() // watches end
}

func (s *Server) down() bool { return s.clock.Now().Before(s.downUntil) }

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func key(namespace, name string) string { return namespace + "/" + name }

func meta(o object) object {
	m, _ := o["metadata"].(object)
	return m
}

func text(o object, path ...string) string {
	last := len(path) - 1
	for _, name := range path[:last] {
		o, _ = o[name].(object)
	}
	v, _ := o[path[last]].(string)
	return v
}

func nameOf(o object) string { return text(o, "metadata", "name") }

// put stores an object and notifies the watches.
func (s *Server) put(k kind, typ string, o object) object {
	s.version++
	m := meta(o)
	m["resourceVersion"] = strconv.Itoa(s.version)
	id := key(text(o, "metadata", "namespace"), nameOf(o))
	if typ == "DELETED" {
		delete(s.objects[k], id)
	} else {
		s.objects[k][id] = o
	}
	s.changes = append(s.changes, change{s.version, k, typ, o})
	s.wake()
	return o
}

func (s *Server) find(k kind, namespace, name string) (object, error) {
	if o, ok := s.objects[k][key(namespace, name)]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(k.groupResource(), name)
}

func (s *Server) create(k kind, o object) (object, error) {
	m := meta(o)
	if m == nil || nameOf(o) == "" {
		return nil, apierrors.NewBadRequest("an object without a name")
	}
	if _, err := s.find(k, text(o, "metadata", "namespace"), nameOf(o)); err == nil {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), nameOf(o))
	}
	o["apiVersion"], o["kind"] = k.apiVersion(), k.kind
	m["uid"], m["creationTimestamp"] = uuid.NewString(), s.clock.Now().UTC().Format(time.RFC3339)
	return s.settle(k, "ADDED", o), nil
}

// update replaces an object's content, but not its identity.
func (s *Server) update(k kind, old, o object) (object, error) {
	m, was := meta(o), meta(old)
	if m == nil {
		return nil, apierrors.NewBadRequest("an object without metadata")
	}
	if uid, stated := m["uid"]; stated && uid != was["uid"] {
		return nil, apierrors.NewConflict(k.groupResource(), nameOf(old), fmt.Errorf("the object's UID is %v, not %v", was["uid"], uid))
	}
	if v, stated := m["resourceVersion"]; stated && v != "" && v != was["resourceVersion"] {
		return nil, apierrors.NewConflict(k.groupResource(), nameOf(old), fmt.Errorf("the object has been modified"))
	}
	for _, fixed := range []string{"uid", "name", "namespace", "creationTimestamp", "resourceVersion"} {
		if v, ok := was[fixed]; ok {
			m[fixed] = v
		}
	}
	o["apiVersion"], o["kind"] = k.apiVersion(), k.kind
	if same(old, o) {
		return old, nil
	}
	return s.settle(k, "MODIFIED", o), nil
}

func same(a, b object) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// settle stores an object and lets the cluster react.
func (s *Server) settle(k kind, typ string, o object) object {
	s.world.complete(k, o)
	o = s.put(k, typ, o)
	s.world.follow(k, o, typ)
	return o
}

// remove removes an object immediately.
func (s *Server) remove(k kind, o object) {
	o = runtime.DeepCopyJSON(o)
	s.settle(k, "DELETED", o)
}

// list returns the matching objects by namespace and name.
func (s *Server) list(k kind, namespace string, match matcher) []object {
	found := []object{}
	for _, o := range s.objects[k] {
		if (namespace == "" || text(o, "metadata", "namespace") == namespace) && match.matches(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return cmp.Or(cmp.Compare(text(a, "metadata", "namespace"), text(b, "metadata", "namespace")), cmp.Compare(nameOf(a), nameOf(b)))
	})
	return found
}

// matcher is the selector of a request.
type matcher struct {
	labels labels.Selector
	fields fields.Selector
}

func newMatcher(o metav1.ListOptions) (matcher, error) {
	l, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return matcher{}, apierrors.NewBadRequest(err.Error())
	}
	f, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return matcher{}, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range f.Requirements() {
		if !slices.Contains([]string{"metadata.name", "metadata.namespace", "spec.nodeName"}, r.Field) {
			return matcher{}, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	return matcher{l, f}, nil
}

func labelsOf(o object) labels.Set {
	set, _, _ := unstructured.NestedStringMap(o, "metadata", "labels")
	return set
}

func (m matcher) matches(o object) bool {
	return (m.labels == nil || m.labels.Empty() || m.labels.Matches(labelsOf(o))) && (m.fields == nil || m.fields.Empty() ||
		m.fields.Matches(fields.Set{
			"metadata.name": nameOf(o), "metadata.namespace": text(o, "metadata", "namespace"), "spec.nodeName": text(o, "spec", "nodeName"),
		}))
}
