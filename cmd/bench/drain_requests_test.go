package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKubectlsRequestsAreRead(t *testing.T) {
	r := requests{evictions: map[int]int{}}
	output := r.read(
		`I1122 02:47:10.123456    4711 loader.go:405] "Config loaded from file" logger="kubeconfig-loader" filename="/tmp/admin.kubeconfig"
I1122 02:47:10.345678    4711 round_trippers.go:632] "Response" verb="GET" ` +
			`url="https://127.0.0.1:6443/api/v1/pods?fieldSelector=spec.nodeName%3Da" status="200 OK" milliseconds=12
I1122 02:47:10.445678    4711 round_trippers.go:632] "Response" verb="POST" ` +
			`url="https://127.0.0.1:6443/api/v1/namespaces/bench/pods/web-1/eviction?timeout=1s" status="201 Created" milliseconds=5
I1122 02:47:10.545678    4711 round_trippers.go:632] "Response" verb="POST" ` +
			`url="https://127.0.0.1:6443/api/v1/namespaces/bench/pods/web-2/eviction" status="409 Conflict" milliseconds=5
I1122 02:47:10.645678    4711 round_trippers.go:632] "Response" verb="POST" ` +
			`url="https://127.0.0.1:6443/api/v1/namespaces/bench/pods/web-3/eviction" status="" milliseconds=5
evicting pod bench/web-1
error: unable to drain node "a"
I1122 02:47:10.745678    4711 helpers.go:246] server response object: []

`)
	require.Equal(t, `error: unable to drain node "a"`, output)
	require.Equal(t, 4, r.total)
	require.Equal(t, map[int]int{201: 1, 409: 1, 0: 1}, r.evictions)
}

func TestRequestsThroughAClientAreCounted(t *testing.T) {
	r := requests{evictions: map[int]int{}}
	client := http.Client{Transport: r.through(answers(http.StatusTooManyRequests))}
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/bench/pods/web-1/eviction"} {
		res, err := client.Post("http://api"+path, "", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	}
	client.Transport = r.through(answers(0))
	_, err := client.Post("http://api/api/v1/namespaces/bench/pods/web-1/eviction", "", nil)
	require.Error(t, err)
	require.Equal(t, 3, r.total)
	require.Equal(t, map[int]int{http.StatusTooManyRequests: 1, 0: 1}, r.evictions)
}

// answers is a server that always gives the same answer; 0 is none.
type answers int

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

func TestTableHasARowForEachCase(t *testing.T) {
	c := drainCase{name: "10 nodes", nodes: 10}
	row := c.row(map[string][]trial{
		drover.name:        {{took: 11.26, requests: 400}, {took: 12, requests: 300}, {took: 10, requests: 500}},
		kubectlAtOnce.name: {{took: 5, requests: 70, failed: 9}},
	}, 9.5)
	require.Equal(t, "| 10 nodes | 11.3 s, 400 requests |  |  | 5 s, 70 requests, 9 of 10 failed |  | 9.5 s |\n", row)
}
