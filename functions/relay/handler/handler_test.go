package handler

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

// server answers requests as a function.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func newHandler(serve server) *Handler {
	return &Handler{
		Endpoint: &url.URL{Scheme: "https", Host: "api.example"}, Server: serve, CloseIdle: func() {},
		CallLimit: time.Minute, Margin: time.Second, IdleLimit: time.Minute, Now: time.Now,
	}
}

// handle returns the first line and the rest of a response.
func handle(t *testing.T, h *Handler, in events.RelayRequest) (head events.RelayResponse, body string) {
	t.Helper()
	out, err := h.Handle(t.Context(), in)
	require.NoError(t, err)
	encoded, err := json.Marshal(out)
	require.NoError(t, err)
	require.Equal(t, "{}", string(encoded), "Lambda's runtime would send it as JSON")
	all, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, out.(io.Closer).Close())
	first, body, found := strings.Cut(string(all), "\n")
	require.True(t, found)
	require.NoError(t, json.Unmarshal([]byte(first), &head))
	return head, body
}

func TestHandle(t *testing.T) {
	t.Run("sends every request to the endpoint", func(t *testing.T) {
		var seen []string
		h := newHandler(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.URL.Scheme+"://"+r.URL.Host+" "+r.Host+" "+r.URL.RequestURI())
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
		})
		for path, want := range map[string]string{
			"/api?x=1":            "https://api.example api.example /api?x=1",
			"/a%2Fb":              "https://api.example api.example /a%2Fb",
			"//evil.example/api":  "https://api.example api.example //evil.example/api",
			"/@evil.example/api":  "https://api.example api.example /@evil.example/api",
			"/\\evil.example/api": "https://api.example api.example /%5Cevil.example/api",
		} {
			seen = nil
			head, body := handle(t, h, events.RelayRequest{Method: "GET", Path: path, Header: http.Header{"Host": {"evil.example"}}})
			require.Equal(t, events.RelayResponse{Status: http.StatusOK}, head)
			require.Equal(t, "ok", body)
			require.Equal(t, []string{want}, seen)
		}
	})

	t.Run("refuses what is no request to the endpoint", func(t *testing.T) {
		h := newHandler(func(*http.Request) (*http.Response, error) { return nil, errors.New("must not be called") })
		for _, in := range []events.RelayRequest{
			{Method: "GET", Path: "https://evil.example/api"}, {Method: "GET", Path: "evil.example"}, {Method: "GET"},
			{Method: "GET", Path: "@evil.example/"}, {Method: "G T", Path: "/"}, {Method: "GET", Path: "/%zz"},
		} {
			head, _ := handle(t, h, in)
			require.NotNil(t, head.Error, in)
			require.Equal(t, events.RelayRefused, head.Error.Reason)
		}
	})

	t.Run("ends each request in time", func(t *testing.T) {
		var left time.Duration
		h := newHandler(func(r *http.Request) (*http.Response, error) {
			deadline, ok := r.Context().Deadline()
			require.True(t, ok)
			left = time.Until(deadline)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		})
		for path, want := range map[string]time.Duration{
			"/pods?watch=true": 9 * time.Second, "/pods?watch=1": 9 * time.Second, "/pods": 5 * time.Second, "/pods?watch=false": 5 * time.Second,
		} {
			h.CallLimit = 5 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			out, err := h.Handle(ctx, events.RelayRequest{Method: "GET", Path: path})
			require.NoError(t, err)
			require.NoError(t, out.(io.Closer).Close())
			cancel()
			require.InDelta(t, want, left, float64(time.Second), path)
		}
	})

	t.Run("closes the response of the server", func(t *testing.T) {
		closed := false
		h := newHandler(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: closing{&closed}}, nil
		})
		handle(t, h, events.RelayRequest{Method: "GET", Path: "/"})
		require.True(t, closed)
	})
}

type closing struct{ closed *bool }

func (c closing) Read([]byte) (int, error) { return 0, io.EOF }

func (c closing) Close() error {
	*c.closed = true
	return nil
}
