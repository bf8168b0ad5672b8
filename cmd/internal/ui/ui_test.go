package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/store"
)

// source answers with its own words.
type source struct{ err error }

func (s source) Fleet(context.Context) ([]byte, error) { return []byte(`{"clusters":[]}`), s.err }

func (s source) Cluster(_ context.Context, name string) ([]byte, error) {
	if name != "demo" {
		return nil, store.ErrNotFound
	}
	return []byte(`{"status":{}}`), nil
}

func (s source) Nodes(context.Context, string) ([]byte, error) { return []byte(`{"pools":[]}`), nil }

func (s source) Rollouts(context.Context) ([]byte, error) { return []byte(`{"rollouts":[]}`), nil }

func (s source) Rollout(_ context.Context, name string) ([]byte, error) {
	return []byte(`{"state":"` + name + `"}`), nil
}

func (s source) Plan(_ context.Context, digest string) ([]byte, error) {
	return []byte(`{"plan":"` + digest + `"}`), nil
}

func (s source) Meanings(context.Context) ([]byte, error) { return []byte(`{}`), nil }

func (s source) Decide(_ context.Context, spec api.DecisionSpec) (string, error) {
	if spec.Verb == "" {
		return "", api.Errors{{Cause: field.Required(field.NewPath("spec", "verb"), "")}}
	}
	return strings.ToLower(string(spec.Verb)) + "-1", s.err
}

func (s source) Answer(_ context.Context, rollout, decision string) ([]byte, error) {
	return []byte(`{"rollout":"` + rollout + `","decision":"` + decision + `"}`), nil
}

// unbuilt is a server without the files of the page, which make ui builds.
func unbuilt(s Source) *Server {
	return &Server{
		Page: Page{Account: "000000000000", Region: "us-east-1", Decides: true}, Source: s, token: "secret", hosts: []string{"127.0.0.1:4711",
			"localhost:4711"},
		files: map[string]File{"index.html": {"index.html", contentTypes["index.html"], []byte("<!doctype html>")}},
	}
}

func TestServer(t *testing.T) {
	const own = "127.0.0.1:4711"
	with := func(more ...string) map[string]string {
		headers := map[string]string{"Authorization": "Bearer secret"}
		if len(more) == 2 {
			headers[more[0]] = more[1]
		}
		return headers
	}
	for name, test := range map[string]struct {
		method, path, host string
		headers            map[string]string
		code               int
		body               string
	}{
		"serves the page without the token": {method: "GET", path: "/", host: own, code: 200, body: "<!doctype html>"},
		"serves data with the token": {
			method: "GET", path: "/status/fleet.json", host: "localhost:4711", headers: with(), code: 200, body: `{"clusters":[]}`,
		},
		"serves one cluster": {
			method: "GET", path: "/status/clusters/demo.json", host: own, headers: with(), code: 200, body: `{"status":{}}`,
		},
		"serves the nodes of a cluster": {
			method: "GET", path: "/nodes/demo.json", host: own, headers: with(), code: 200, body: `{"pools":[]}`,
		},
		"serves the account": {
			method: "GET", path: "/page.json", host: own, headers: with(), code: 200, body: `"account":"000000000000"`,
		},
		"knows no other cluster":         {method: "GET", path: "/status/clusters/x.json", host: own, headers: with(), code: 404},
		"knows no other path":            {method: "GET", path: "/leases/demo.json", host: own, headers: with(), code: 404},
		"refuses data without the token": {method: "GET", path: "/status/fleet.json", host: own, code: 401, body: "token is missing"},
		"refuses another token": {
			method: "GET", path: "/page.json", host: own, headers: map[string]string{"Authorization": "Bearer secres"}, code: 401,
		},
		"refuses a rebound name": {method: "GET", path: "/", host: "attacker.example:4711", code: 403, body: "own address"},
		"refuses another port":   {method: "GET", path: "/", host: "127.0.0.1:80", code: 403},
		"refuses another origin": {
			method: "GET", path: "/status/fleet.json", host: own, headers: with("Origin", "https://attacker.example"), code: 403,
			body: "own page",
		},
		"refuses a request from another site": {
			method: "GET", path: "/app.js", host: own, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, code: 403,
		},
		"accepts the page's own requests": {method: "GET", path: "/", host: own, headers: with("Origin", "http://"+own), code: 200},
		"refuses a write, also with the token": {
			method: "POST", path: "/status/fleet.json", host: own, headers: with(), code: 405, body: "only reads",
		},
		"serves the rollouts": {
			method: "GET", path: "/status/rollouts.json", host: own, headers: with(), code: 200, body: `{"rollouts":[]}`,
		},
		"serves one rollout": {
			method: "GET", path: "/status/rollouts/k.json", host: own, headers: with(), code: 200, body: `{"state":"k"}`,
		},
		"serves a plan": {
			method: "GET", path: "/rollouts/plans/0a.json", host: own, headers: with(), code: 200, body: `{"plan":"0a"}`,
		},
		"serves the meanings of reasons": {method: "GET", path: "/meanings.json", host: own, headers: with(), code: 200, body: `{}`},
		"serves the answer to a decision": {
			method: "GET", path: "/rollouts/answers/k/a-1.json", host: own, headers: with(), code: 200, body: `"decision":"a-1"`,
		},
		"knows no other record":               {method: "GET", path: "/rollouts/runs/k.json", host: own, headers: with(), code: 404},
		"refuses a rollout without the token": {method: "GET", path: "/status/rollouts/k.json", host: own, code: 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, nil)
			r.Host = test.host
			for key, value := range test.headers {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			unbuilt(source{}).ServeHTTP(w, r)
			require.Equal(t, test.code, w.Code)
			require.Contains(t, w.Body.String(), test.body)
			require.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
			require.NotContains(t, policy, "unsafe")
		})
	}
	t.Run("accepts decisions", func(t *testing.T) { decisions(t, own) })
	t.Run("reports what AWS answers", func(t *testing.T) {
		r := httptest.NewRequest("GET", "/status/fleet.json", nil)
		r.Host = "127.0.0.1:4711"
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		unbuilt(source{errors.New("AccessDenied")}).ServeHTTP(w, r)
		require.Equal(t, http.StatusBadGateway, w.Code)
		require.Equal(t, "AccessDenied\n", w.Body.String())
	})
}

// decisions tests who may make a decision, and how.
func decisions(t *testing.T, own string) {
	const pause = `{"rollout": "k", "verb": "Pause"}`
	for name, test := range map[string]struct {
		body    string
		change  func(*Server, *http.Request)
		code    int
		message string
	}{
		"with the token":      {body: pause, code: 200, message: `{"decision":"pause-1"}`},
		"not without a token": {pause, func(_ *Server, r *http.Request) { r.Header.Del("Authorization") }, 401, "token is missing"},
		"not for another host": {
			pause, func(_ *Server, r *http.Request) { r.Host = "attacker.example:4711" }, 403, "own address",
		},
		"not from another site": {
			pause, func(_ *Server, r *http.Request) { r.Header.Set("Origin", "https://attacker.example") }, 403, "own page",
		},
		"not as a form": {
			pause, func(_ *Server, r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "a JSON document",
		},
		"not in a page that only reads": {pause, func(s *Server, _ *http.Request) { s.Page.Decides = false }, 405, "only reads"},
		"not with unknown fields":       {body: `{"rollout": "k", "verb": "Pause", "force": true}`, code: 400, message: `unknown field "force"`},
		"not if it is invalid":          {body: `{"rollout": "k"}`, code: 400, message: "spec.verb"},
		"not if it is too large":        {body: `{"reason": "` + strings.Repeat("a", maxDecision) + `"}`, code: 400, message: "too large"},
		"reports what AWS answers": {
			pause, func(s *Server, _ *http.Request) { s.Source = source{errors.New("AccessDenied")} }, 502, "AccessDenied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := unbuilt(source{})
			r := httptest.NewRequest("POST", "/decisions", strings.NewReader(test.body))
			r.Host = own
			r.Header.Set("Authorization", "Bearer secret")
			r.Header.Set("Content-Type", "application/json")
			if test.change != nil {
				test.change(s, r)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			require.Equal(t, test.code, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), test.message)
		})
	}
}

// start serves the page of a source. It skips the test if the page is not built.
func start(t *testing.T, s Source) *Server {
	t.Helper()
	listener, err := Listen(0)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(listener.Addr().String(), "127.0.0.1:"))
	server, err := NewServer(listener, Page{Account: "000000000000", Region: "us-east-1", Decides: true}, s)
	if errors.Is(err, ErrNotBuilt) {
		_ = listener.Close()
		missing(t, "the page is not built: run make ui")
	}
	require.NoError(t, err)
	web := &http.Server{Handler: server}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() { _ = web.Close() })
	return server
}

func TestServe(t *testing.T) {
	server := start(t, source{})
	r, err := http.Get(strings.Replace(server.URL(), "/#token=", "/app.js?", 1))
	require.NoError(t, err)
	defer r.Body.Close()
	script, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, 200, r.StatusCode)
	require.NotEmpty(t, script)
	page, err := json.Marshal(server.Page)
	require.NoError(t, err)
	require.JSONEq(t, `{"account":"000000000000","region":"us-east-1","decides":true}`, string(page))
}
