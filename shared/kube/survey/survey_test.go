package survey

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/preflight"
)

// empty responds with empty lists, and with this status and body for /readyz.
func empty(readyz func(w http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			readyz(w)
			return
		}
		resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		kind := map[string]string{"nodes": "Node", "pods": "Pod", "poddisruptionbudgets": "PodDisruptionBudget"}[resource]
		version := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"+resource), "/apis/"), "/api/")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[]}`, version, kind)
	})
}

func surveyOf(t *testing.T, handler http.Handler) (preflight.Survey, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cluster, err := kube.Connect(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return Of(context.Background(), cluster)
}

func TestReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   []string
	}{
		"it is ready": {200, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n", nil},
		"failed checks are listed": {
			500, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/x failed: reason withheld\nreadyz check failed\n",
			[]string{"etcd", "poststarthook/x"},
		},
		"a failure without a list": {503, "no", []string{"503 Service Unavailable"}},
		"access is denied to everyone": {
			403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := surveyOf(t, empty(func(w http.ResponseWriter) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			require.NoError(t, err)
			require.Equal(t, c.want, found.Unhealthy)
		})
	}
}

func TestSurveyWithoutResponse(t *testing.T) {
	lists := empty(func(http.ResponseWriter) {})
	for _, resource := range []string{
		"nodes", "pods", "poddisruptionbudgets", "deployments", "statefulsets", "daemonsets", "validatingwebhookconfigurations",
		"mutatingwebhookconfigurations",
	} {
		_, err := surveyOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/"+resource) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not you","code":403}`))
				return
			}
			lists.ServeHTTP(w, r)
		}))
		var unreachable *fault.ClusterUnreachable
		require.ErrorAs(t, err, &unreachable, resource)
		require.ErrorContains(t, err, "listing "+resource)
	}
	server := httptest.NewServer(nil)
	server.Close()
	cluster, err := kube.Connect(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	_, err = Of(context.Background(), cluster)
	require.ErrorContains(t, err, "calling /readyz")
}

func TestWebhookRules(t *testing.T) {
	rule := func(groups, resources, operations, scope string) hookRule {
		return hookRule{strings.Split(groups, ","), strings.Split(resources, ","), strings.Split(operations, ","), scope}
	}
	for name, c := range map[string]struct {
		rule hookRule
		want string
	}{
		"pods":                          {rule("", "pods", "CREATE", "*"), "new pods"},
		"every operation on pods":       {rule("", "pods", "*", "*"), "new pods, deletions of pods"},
		"a star covers no subresources": {rule("*", "*", "CREATE", "*"), "new pods, new nodes, leases of new nodes"},
		"two stars cover all": {
			rule("*", "*/*", "UPDATE", ""), "the status of pods, nodes, the status of nodes, leases of nodes",
		},
		"subresources of one": {
			rule("", "pods/*", "CREATE,UPDATE", ""), "new pods, evictions, the binding of pods, the status of pods",
		},
		"one subresource of all": {rule("*", "*/status", "*", "*"), "the status of pods, the status of nodes"},
		"cluster-wide objects":   {rule("*", "*", "UPDATE,CREATE", "Cluster"), "new nodes, nodes"},
		"namespaced objects": {
			rule("*", "*", "UPDATE,CREATE", "Namespaced"), "new pods, leases of new nodes, leases of nodes",
		},
		"leases":                                    {rule("coordination.k8s.io", "leases", "UPDATE", "*"), "leases of nodes"},
		"leases that new nodes make":                {rule("coordination.k8s.io", "leases", "CREATE", "*"), "leases of new nodes"},
		"deletions of nodes":                        {rule("", "nodes", "DELETE", "Cluster"), "deletions of nodes"},
		"another group's pods":                      {rule("metrics.k8s.io", "pods", "*", "*"), ""},
		"a resource that an upgrade does not write": {rule("", "secrets", "*", "*"), ""},
		"a connection":                              {rule("", "pods/exec", "CONNECT", "*"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range writes {
				if c.rule.asks(w) {
					got = append(got, w.words)
				}
			}
			require.Equal(t, c.want, strings.Join(got, ", "))
		})
	}
}

func TestStatesOfPods(t *testing.T) {
	made, changed := metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC))
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	ready := func(is corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: is, LastTransitionTime: changed}}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   string
		since  metav1.Time
	}{
		"Ready": {
			corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionTrue)}, "", metav1.Time{},
		},
		"not Ready": {
			corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse)}, "NotReady", changed,
		},
		"not scheduled": {corev1.PodStatus{Phase: corev1.PodPending}, "Pending", made},
		"starting": {
			corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ContainerCreating")}, "Pending", made,
		},
		"in a crash loop": {
			corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse), ContainerStatuses: waiting("CrashLoopBackOff")},
			"CrashLoopBackOff", made,
		},
		"in a crash loop of its first container": {
			corev1.PodStatus{
				Phase: corev1.PodPending, InitContainerStatuses: waiting("CrashLoopBackOff"), ContainerStatuses: waiting("PodInitializing"),
			}, "CrashLoopBackOff", made,
		},
		"without its image": {
			corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ImagePullBackOff")}, "ImagePullBackOff", made,
		},
		"without conditions": {corev1.PodStatus{Phase: corev1.PodRunning}, "", metav1.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			state, since := stateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}, Status: c.status})
			require.Equal(t, c.want, state)
			require.Equal(t, c.since.Time, since)
		})
	}
}

func TestWorkloadOfAPod(t *testing.T) {
	is := true
	owned := func(kind, name, hash string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &is}}}}
		if hash != "" {
			p.Labels = map[string]string{"pod-template-hash": hash}
		}
		return p
	}
	require.Equal(t, "Deployment coredns", workloadOf(owned("ReplicaSet", "coredns-7d8f9", "7d8f9")))
	require.Equal(t, "ReplicaSet bare", workloadOf(owned("ReplicaSet", "bare", "")), "a ReplicaSet without a Deployment")
	require.Equal(t, "ReplicaSet x-1", workloadOf(owned("ReplicaSet", "x-1", "2")))
	require.Equal(t, "DaemonSet aws-node", workloadOf(owned("DaemonSet", "aws-node", "")))
	require.Empty(t, workloadOf(&corev1.Pod{}))
}

// The versions of kube-proxy are read from its pods' images.
func TestKubeProxies(t *testing.T) {
	s := &surveyor{proxies: map[string]bool{}}
	node := &preflight.Node{}
	for _, image := range []string{
		"602401143452.dkr.ecr.eu-central-1.amazonaws.com/eks/kube-proxy:v1.36.0-minimal-eksbuild.2",
		"registry.k8s.io/kube-proxy:v1.35.1@sha256:abc", "localhost:5000/kube-proxy", "kube-proxy@sha256:abc",
	} {
		s.load(node, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Labels: map[string]string{"k8s-app": "kube-proxy"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-proxy", Image: image}}},
		})
	}
	require.Equal(t, []string{"v1.35.1", "v1.36.0-minimal-eksbuild.2"}, sortedKeys(s.proxies))
	require.EqualValues(t, 4, node.Requested.Pods)
}
