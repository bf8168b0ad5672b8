package harness

// Control planes in virtual time, by local/kubernetes/apiserver: nodes join and are drained, and their pods are evicted
// first.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// cluster is a control plane with an API in memory.
type cluster struct {
	*apiserver.Server
	name, endpoint string
	account        *Account
}

func (a *Account) startCluster(_ context.Context, o kubernetes.Options) (eks.ControlPlane, error) {
	a.mu.Lock()
	a.started++
	host := fmt.Sprintf("%s-%d.eks.local", o.Name, a.started)
	c := &cluster{Server: apiserver.New(a.clock), name: o.Name, endpoint: "http://" + host, account: a}
	a.clusters[host] = c
	a.mu.Unlock()
	if a.options.OnCluster != nil {
		a.options.OnCluster(c.name, c.Server)
	}
	return c, nil
}

// API returns the API of an EKS cluster, or nil.
func (a *Account) API(eksCluster string) *apiserver.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.clusters {
		if c.name == eksCluster {
			return c.Server
		}
	}
	return nil
}

// DeleteNode deletes a Node object of a cluster as its administrator. It returns the HTTP status.
func (a *Account) DeleteNode(of, node string) int {
	answer := httptest.NewRecorder()
	a.API(names.EKSCluster(of)).ServeHTTP(answer, httptest.NewRequest(http.MethodDelete, "/api/v1/nodes/"+node, nil))
	return answer.Code
}

func (c *cluster) Address() (string, []byte) { return c.endpoint, []byte("authority") }
func (c *cluster) Kubeconfig() string        { return "" }
func (c *cluster) Client(string, []string) (dynamic.Interface, error) {
	return dynamic.NewForConfig(&rest.Config{Host: c.endpoint, QPS: -1, Transport: inProcess{c.Server}})
}
func (c *cluster) SetMinor(context.Context, string) error { return nil }
func (c *cluster) Configure(context.Context, kubernetes.Settings) error {
	return nil
}

func (c *cluster) Stop() {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	delete(c.account.clusters, strings.TrimPrefix(c.endpoint, "http://"))
	c.Close()
}

// Kubernetes returns an administrator's client of a cluster's API, in virtual time.
func (a *Account) Kubernetes(cluster string) dynamic.Interface {
	a.t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://x", QPS: -1, Transport: inProcess{a.API(names.EKSCluster(cluster))}})
	require.NoError(a.t, err)
	return client
}

// Reach returns the transport with which functions reach the API at an endpoint.
func (a *Account) Reach(endpoint string) http.RoundTripper {
	return apiTransport{account: a, from: functionSource}
}

// apiTransport connects from a source: a function of drover's, or a relay.
type apiTransport struct {
	account *Account
	from    eks.Source
	relay   string // the name of the relay, if it is one
}

// RoundTrip makes a call, in its turn, if an API answers at the address and the source reaches it.
func (t apiTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	i, _ := r.Context().Value(invocationKey{}).(*invocation)
	if t.relay != "" {
		what := t.relay + ": " + r.Method + " " + r.URL.RequestURI()
		t.account.clock.Take("kubernetes: " + what)
		r.Header.Set(apiserver.WhoHeader, what)
	} else if i != nil {
		what := i.what(r)
		t.account.clock.Take("kubernetes: " + what)
		if i.isDead() {
			return nil, errKilled
		}
		r.Header.Set(apiserver.WhoHeader, what)
	}
	t.account.mu.Lock()
	c := t.account.clusters[r.URL.Host]
	t.account.mu.Unlock()
	if c == nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: fmt.Errorf("no such host")}
	}
	if !t.account.EKS.Reaches(c.name, t.from) {
		return nil, t.account.unreachable(r)
	}
	if refused := t.account.refuse(c.name, r); refused != nil {
		return refused, nil
	}
	if r.URL.Query().Get("watch") != "" {
		return inprocess.Transport(c.Server).RoundTrip(r)
	}
	return inProcess{c.Server}.RoundTrip(r)
}
