package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestControl(t *testing.T) {
	e := New(3)
	now := start
	server := httptest.NewServer(Control(e, func() time.Time { return now }))
	defer server.Close()
	ask := func(method, path, body string) (int, string, State) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		var state State
		if response.StatusCode == http.StatusOK {
			require.NoError(t, json.Unmarshal(text, &state))
		}
		return response.StatusCode, string(text), state
	}
	code, _, state := ask("GET", Path, "")
	require.Equal(t, 200, code)
	require.Equal(t, State{Seed: 3, Rules: []RuleStatus{}, Struck: map[Kind]int{}}, state)

	code, _, state = ask("POST", Path, "throttle service=s3\n\n drop event=\"a & b\" for=1m\n")
	require.Equal(t, 200, code)
	require.Equal(t, []RuleStatus{{ID: 1, Rule: "throttle service=s3"}, {ID: 2, Rule: `drop event="a & b" for=1m0s`}}, state.Rules)

	e.Decide(now, Moment{What: Call, Service: "s3"})
	now = now.Add(2 * time.Minute)
	_, _, state = ask("GET", Path, "")
	require.Equal(t, 1, state.Rules[0].Struck)
	require.True(t, state.Rules[1].Over)
	require.Equal(t, map[Kind]int{Throttle: 1}, state.Struck)

	code, text, _ := ask("POST", Path, "kill\nexplode")
	require.Equal(t, 400, code)
	require.Contains(t, text, `"explode" is no kind of fault`)
	require.Len(t, e.List(now), 2, "all or none")
	code, text, _ = ask("PUT", Path, "\n")
	require.Equal(t, 400, code)
	require.Contains(t, text, "no rules")
	code, _, _ = ask("PUT", Path, strings.Repeat("x", maxRules+1))
	require.Equal(t, 400, code)

	_, _, state = ask("DELETE", Path+"/1", "")
	require.Len(t, state.Rules, 1)
	for _, id := range []string{"1", "x"} {
		code, text, _ = ask("DELETE", Path+"/"+id, "")
		require.Equal(t, 404, code)
		require.Contains(t, text, "there is no rule")
	}
	_, _, state = ask("PUT", Path, "kill p=0.5")
	require.Equal(t, []RuleStatus{{ID: 3, Rule: "kill p=0.5"}}, state.Rules)
	_, _, state = ask("DELETE", Path, "")
	require.Empty(t, state.Rules)
	_, _, state = ask("PUT", Path+"?seed=9", "drop p=0.5")
	require.Equal(t, State{Seed: 9, Rules: []RuleStatus{{ID: 1, Rule: "drop p=0.5"}}, Struck: map[Kind]int{}}, state)
	for _, path := range []string{"?seed=x", "?seed=-1"} {
		code, text, _ = ask("PUT", Path+path, "drop")
		require.Equal(t, 400, code)
		require.Contains(t, text, "a number, and only with PUT")
	}
	code, _, _ = ask("POST", Path+"?seed=9", "drop")
	require.Equal(t, 400, code)
	code, _, _ = ask("PATCH", Path, "")
	require.Equal(t, 405, code)
}

func TestControlRejectsOtherMachines(t *testing.T) {
	tests := map[string]struct {
		from, host string
		want       int
	}{
		"this machine":                    {"127.0.0.1:999", "127.0.0.1:4566", 200},
		"this machine by name":            {"127.0.0.1:999", "localhost:4566", 200},
		"this machine by IPv6":            {"[::1]:999", "[::1]:4566", 200},
		"without a port":                  {"[::1]:999", "[::1]", 200},
		"another machine":                 {"192.0.2.1:999", "127.0.0.1:4566", 403},
		"a page whose name was rebound":   {"127.0.0.1:999", "evil.example:4566", 403},
		"none":                            {"", "localhost", 403},
		"this machine under another name": {"127.0.0.1:999", "192.0.2.1", 403},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest("GET", Path, nil)
			request.RemoteAddr, request.Host = test.from, test.host
			recorder := httptest.NewRecorder()
			Control(New(1), time.Now).ServeHTTP(recorder, request)
			require.Equal(t, test.want, recorder.Code)
		})
	}
}

func TestAbout(t *testing.T) {
	tests := map[string]struct{ name, cluster, stack, pool string }{
		"a stack":                  {"drover-demo-network", "demo", "drover-demo-network", ""},
		"a pool's stack, or group": {"drover-demo-pool-a-b", "demo", "drover-demo-pool-a-b", "a-b"},
		"a stack's ARN": {
			"arn:aws:cloudformation:us-east-1:1:stack/drover-my-own-addons-on-nodes/uuid", "my-own", "drover-my-own-addons-on-nodes", "",
		},
		"a status":                  {"status/clusters/demo.json", "demo", "", ""},
		"a spec, by its ARN":        {"arn:aws:s3:::drover-specs-1-us-east-1/clusters/demo.yaml", "demo", "", ""},
		"a lease":                   {"leases/demo.json", "demo", "", ""},
		"a waiter":                  {"arn:aws:s3:::drover-state-1-us-east-1/waiters/drover-demo-pool-a.json", "demo", "drover-demo-pool-a", "a"},
		"drover's own stack":        {"drover", "", "", ""},
		"a bucket":                  {"arn:aws:s3:::drover-specs-1-us-east-1", "", "", ""},
		"another owner's":           {"other-demo-network", "", "", ""},
		"a stack of no known kind":  {"drover-demo-database", "", "", ""},
		"nothing":                   {"", "", "", ""},
		"a template, no cluster's":  {"arn:aws:s3:::b/templates/abc.yaml", "", "", ""},
		"a pool that has no name":   {"drover-demo-pool-", "", "", ""},
		"one dash after the prefix": {"drover-", "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, Moment{Cluster: test.cluster, Stack: test.stack, Pool: test.pool}, Moment{}.About(test.name))
		})
	}
	documents := map[string]struct {
		text string
		want Moment
	}{
		"a stack's event": {
			`{"stack-id": "arn:aws:cloudformation:us-east-1:1:stack/drover-demo-network/u"}`, Moment{Cluster: "demo", Stack: "drover-demo-network"},
		},
		"an object's event": {`{"object": {"key": "clusters/demo.yaml"}}`, Moment{Cluster: "demo"}},
		"a group's event": {
			`{"AutoScalingGroupName": "drover-demo-pool-a"}`, Moment{Cluster: "demo", Stack: "drover-demo-pool-a", Pool: "a"},
		},
		"an input": {`{"cluster": "demo"}`, Moment{Cluster: "demo"}},
		"an event as input": {
			`{"detail": {"AutoScalingGroupName": "drover-demo-pool-a"}}`, Moment{Cluster: "demo", Stack: "drover-demo-pool-a", Pool: "a"},
		},
		"text":                {`hello`, Moment{}},
		"something else":      {`{"cluster": 1}`, Moment{}},
		"a detail that is no": {`{"cluster": "demo", "detail": 1}`, Moment{Cluster: "demo"}},
	}
	for name, test := range documents {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, Moment{}.In([]byte(test.text))) })
	}
}
