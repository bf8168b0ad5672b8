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

	e.Decide(now, Moment{Kind: Call, Service: "s3"})
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
