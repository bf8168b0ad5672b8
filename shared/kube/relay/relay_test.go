package relay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/relay/handler"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
)

// lambda runs the handler of the relay as Lambda does: an invocation continues without its caller, until its timeout.
type lambda struct {
	handler     *handler.Handler
	timeout     time.Duration
	buffered    bool
	learned     atomic.Bool
	invocations atomic.Int64
	running     atomic.Int64
	last        events.RelayRequest
}

func (l *lambda) Streams() bool { return !l.learned.Load() }

func (l *lambda) Invoke(ctx context.Context, function string, payload []byte) (io.ReadCloser, error) {
	if l.buffered && !l.learned.Swap(true) {
		return nil, errors.New("this region does not stream")
	}
	if function != "drover-demo-relay" {
		return nil, codedError("ResourceNotFoundException")
	}
	l.invocations.Add(1)
	var in events.RelayRequest
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	l.last = in
	read, write := io.Pipe()
	l.running.Add(1)
	go func() {
		defer l.running.Add(-1)
		running, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		defer cancel()
		out, err := l.handler.Handle(running, in)
		if err != nil {
			_ = write.CloseWithError(err)
			return
		}
		if closer, ok := out.(io.Closer); ok {
			defer func() { _ = closer.Close() }()
		}
		if l.buffered {
			all, err := io.ReadAll(out)
			if err != nil {
				_ = write.CloseWithError(err)
				return
			}
			out = bytes.NewReader(all)
		}
		_, err = io.Copy(write, out)
		_ = write.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = read.CloseWithError(ctx.Err()) })
	return read, nil
}

type codedError string

func (c codedError) Error() string     { return "lambda says " + string(c) }
func (c codedError) ErrorCode() string { return string(c) }

// newRelay connects a relay to a server.
func newRelay(t *testing.T, serve http.HandlerFunc) *lambda {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	endpoint, err := url.Parse(server.URL)
	require.NoError(t, err)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.DisableCompression = true
	return &lambda{timeout: 10 * time.Second, handler: &handler.Handler{
		Endpoint: endpoint, Server: transport, CloseIdle: transport.CloseIdleConnections,
		CallLimit: 5 * time.Second, Margin: 100 * time.Millisecond, IdleLimit: 20 * time.Second, Now: time.Now,
	}}
}

func client(l *lambda) *http.Client { return &http.Client{Transport: relay.To(l)("demo")} }

// call sends one request. The host of its URL does not matter.
func call(t *testing.T, l *lambda, method, path, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://elsewhere.example"+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	response, err := client(l).Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	return response, string(read), err
}

func TestRelay(t *testing.T) {
	t.Run("forwards a request and its response", func(t *testing.T) {
		var seen *http.Request
		var sent string
		l := newRelay(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			seen, sent = r, string(body)
			w.Header().Add("Audit-Id", "one")
			w.Header().Add("Warning", "a")
			w.Header().Add("Warning", "b")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte("too late"))
		})
		response, body, err := call(t, l, http.MethodPost, "/api/v1/namespaces/a%2Fb/pods?dryRun=All&x=1", "{}",
			"Authorization", "Bearer secret", "Accept", "application/json", "Connection", "X-Private", "X-Private", "hop", "Upgrade", "spdy")
		require.NoError(t, err)
		require.Equal(t, http.StatusConflict, response.StatusCode)
		require.Equal(t, "too late", body)
		require.Equal(t, []string{"a", "b"}, response.Header.Values("Warning"))
		require.Equal(t, "/api/v1/namespaces/a%2Fb/pods?dryRun=All&x=1", seen.RequestURI)
		require.Equal(t, "{}", sent)
		require.Equal(t, "Bearer secret", seen.Header.Get("Authorization"))
		require.Empty(t, seen.Header.Get("X-Private")+seen.Header.Get("Upgrade")+seen.Header.Get("Connection"))
		require.NotContains(t, seen.Host, "elsewhere")
	})

	t.Run("follows no redirect", func(t *testing.T) {
		l := newRelay(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		})
		c := client(l)
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/api", nil)
		require.NoError(t, err)
		response, err := c.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusFound, response.StatusCode)
		require.EqualValues(t, 1, l.invocations.Load())
	})

	t.Run("sends long lists compressed", func(t *testing.T) {
		l := newRelay(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(strings.Repeat("pod ", 10000)))
			_ = z.Close()
		})
		response, body, err := call(t, l, http.MethodGet, "/api/v1/pods", "")
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("pod ", 10000), body)
		require.Empty(t, response.Header.Get("Content-Encoding"))
	})

	t.Run("does not use connections that Lambda may have frozen", func(t *testing.T) {
		connections := map[string]bool{}
		l := newRelay(t, func(_ http.ResponseWriter, r *http.Request) { connections[r.RemoteAddr] = true })
		now := time.Now()
		l.handler.Now = func() time.Time { return now }
		for range 2 {
			_, _, err := call(t, l, http.MethodGet, "/healthz", "")
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { return l.running.Load() == 0 }, time.Minute, time.Millisecond)
		require.Len(t, connections, 1)
		now = now.Add(time.Minute)
		_, _, err := call(t, l, http.MethodGet, "/healthz", "")
		require.NoError(t, err)
		require.Len(t, connections, 2)
	})
}

// nodes serves a list and a watch of nodes, with one event for each value of next.
func nodes(next <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
			return
		}
		limit, err := time.ParseDuration(r.URL.Query().Get("timeoutSeconds") + "s")
		if err != nil {
			http.Error(w, "no limit", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		end := time.After(limit)
		for {
			select {
			case name := <-next:
				_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"` + name + `"}}}` + "\n"))
				w.(http.Flusher).Flush()
			case <-end:
				return
			case <-r.Context().Done():
				return
			}
		}
	}
}

func watchNodes(ctx context.Context, t *testing.T, l *lambda) watch.Interface {
	t.Helper()
	c, err := kube.Connect(&rest.Config{Host: "https://api.example", BearerToken: "secret", Transport: relay.To(l)("demo")})
	require.NoError(t, err)
	w, err := c.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).
		Watch(ctx, metav1.ListOptions{ResourceVersion: "7"})
	require.NoError(t, err)
	return w
}

func TestWatch(t *testing.T) {
	name := func(event watch.Event) string {
		object, ok := event.Object.(metav1.Object)
		require.True(t, ok, "%+v", event)
		return object.GetName()
	}

	t.Run("streams each event as it happens, and ends with its caller", func(t *testing.T) {
		next := make(chan string)
		l := newRelay(t, nodes(next))
		ctx, cancel := context.WithCancel(t.Context())
		w := watchNodes(ctx, t, l)
		for _, want := range []string{"a", "b"} {
			next <- want
			require.Equal(t, want, name(<-w.ResultChan()))
		}
		cancel()
		for event := range w.ResultChan() { // as over a direct connection, client-go reports the end of ctx
			require.Equal(t, watch.Error, event.Type)
		}
	})

	t.Run("ends cleanly at the limit of the relay", func(t *testing.T) {
		next := make(chan string, 1)
		l := newRelay(t, nodes(next))
		l.timeout = 500 * time.Millisecond
		next <- "a"
		w := watchNodes(t.Context(), t, l)
		require.Equal(t, "a", name(<-w.ResultChan()))
		event, open := <-w.ResultChan()
		require.False(t, open, "%+v", event)
		require.Eventually(t, func() bool { return l.running.Load() == 0 }, time.Minute, time.Millisecond)
	})

	t.Run("lasts no longer than its caller", func(t *testing.T) {
		l := newRelay(t, nodes(nil))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		watchNodes(ctx, t, l).Stop()
		require.Regexp(t, `timeoutSeconds=(19|20)(&|$)`, l.last.Path)
		watchNodes(t.Context(), t, l).Stop()
		require.Regexp(t, `timeoutSeconds=50(&|$)`, l.last.Path)
	})

	t.Run("is short where responses are not streamed", func(t *testing.T) {
		next := make(chan string, 1)
		l := newRelay(t, nodes(next))
		l.buffered = true
		next <- "a"
		begin := time.Now()
		w := watchNodes(t.Context(), t, l)
		require.Equal(t, "a", name(<-w.ResultChan()))
		_, open := <-w.ResultChan()
		require.False(t, open)
		require.Less(t, time.Since(begin), 2*relay.BufferedWatchLimit)
		require.EqualValues(t, 1, l.invocations.Load())
		require.Contains(t, l.last.Path, "timeoutSeconds=3")
	})
}

func TestErrors(t *testing.T) {
	reason := func(t *testing.T, err error) relay.Reason {
		t.Helper()
		var failed *relay.Error
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Error(), "drover-demo-relay")
		return failed.Reason
	}
	ok := func(http.ResponseWriter, *http.Request) {}

	t.Run("name a relay that is missing", func(t *testing.T) {
		l := newRelay(t, ok)
		c := &http.Client{Transport: relay.To(l)("other")}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/", nil)
		require.NoError(t, err)
		_, err = c.Do(request)
		var failed *relay.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, relay.Missing, failed.Reason)
		require.ErrorContains(t, err, "RelayMissing: drover-other-relay: lambda says ResourceNotFoundException; ")
	})

	t.Run("name each reason of Lambda", func(t *testing.T) {
		for code, want := range map[string]relay.Reason{
			"ResourceNotFoundException": relay.Missing, "AccessDeniedException": relay.Forbidden,
			"TooManyRequestsException": relay.Throttled, "ThrottlingException": relay.Throttled,
			"ResourceNotReadyException": relay.NotReady, "SubnetIPAddressLimitReachedException": relay.NotReady,
			"Sandbox.Timedout": relay.TimedOut, "Runtime.ExitError": relay.Failed, "Function.ResponseSizeTooLarge": relay.TooLarge,
		} {
			_, err := fixedFunction{err: codedError(code)}.get(t)
			require.Equal(t, want, reason(t, err), code)
			// In the middle of a response.
			body, err := fixedFunction{text: `{"status":200}` + "\nhalf", err: codedError(code), late: true}.get(t)
			require.Equal(t, "half", body)
			require.Equal(t, want, reason(t, err), code)
		}
	})

	t.Run("name a relay of another version", func(t *testing.T) {
		for _, text := range []string{"", "{}\n", "hello\n", `{"status":200}`, `{"errorMessage":"x"}` + "\n", strings.Repeat("x", 300<<10)} {
			_, err := fixedFunction{text: text}.get(t)
			require.Equal(t, relay.Incompatible, reason(t, err))
		}
	})

	t.Run("name a server that cannot be reached", func(t *testing.T) {
		l := newRelay(t, ok)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l.handler.Endpoint = &url.URL{Scheme: "https", Host: listener.Addr().String()}
		require.NoError(t, listener.Close())
		_, _, err = call(t, l, http.MethodGet, "/", "")
		require.Equal(t, relay.Unreachable, reason(t, err))
	})

	t.Run("name a server that does not answer", func(t *testing.T) {
		l := newRelay(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		l.handler.CallLimit = 50 * time.Millisecond
		_, _, err := call(t, l, http.MethodGet, "/", "")
		require.Equal(t, relay.Unreachable, reason(t, err))
	})

	t.Run("name a server that another authority signed", func(t *testing.T) {
		l := newRelay(t, ok)
		l.handler.Server = &http.Transport{}
		_, _, err := call(t, l, http.MethodGet, "/", "")
		require.Equal(t, relay.Untrusted, reason(t, err))
	})

	t.Run("report a response that was cut off", func(t *testing.T) {
		l := newRelay(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("half"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		l.handler.CallLimit = 100 * time.Millisecond
		_, body, err := call(t, l, http.MethodGet, "/", "")
		require.Equal(t, "half", body)
		require.Equal(t, relay.Failed, reason(t, err))
	})

	t.Run("are the caller's when the caller ended the request", func(t *testing.T) {
		l := newRelay(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://any/", nil)
		require.NoError(t, err)
		_, err = client(l).Do(request)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failed *relay.Error
		require.NotErrorAs(t, err, &failed)
	})
}

// fixedFunction is a function with one response.
type fixedFunction struct {
	text string
	err  error
	// late returns err after the text.
	late bool
}

func (f fixedFunction) Streams() bool { return true }

func (f fixedFunction) Invoke(context.Context, string, []byte) (io.ReadCloser, error) {
	if f.err != nil && !f.late {
		return nil, f.err
	}
	return io.NopCloser(io.MultiReader(strings.NewReader(f.text), ending{f.err})), nil
}

// ending ends a response with an error.
type ending struct{ err error }

func (e ending) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return 0, io.EOF
}

func (f fixedFunction) get(t *testing.T) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/", nil)
	require.NoError(t, err)
	response, err := relay.To(f)("demo").RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	return string(read), err
}

// answeredError is an error of AWS, with the id of its request.
type answeredError struct{ id string }

func (a answeredError) Error() string {
	return "RequestID: " + a.id + ", ResourceNotFoundException: Function not found"
}
func (a answeredError) ErrorCode() string    { return "ResourceNotFoundException" }
func (a answeredError) ErrorMessage() string { return "Function not found" }

// refusing refuses each invocation.
type refusing struct{ err error }

func (r refusing) Streams() bool { return true }

func (r refusing) Invoke(context.Context, string, []byte) (io.ReadCloser, error) { return nil, r.err }

func TestErrorsRepeat(t *testing.T) {
	for _, id := range []string{"one", "two"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://elsewhere.example/", nil)
		require.NoError(t, err)
		response, err := relay.To(refusing{answeredError{id}})("demo").RoundTrip(request)
		require.Nil(t, response)
		require.EqualError(t, err,
			"RelayMissing: drover-demo-relay: ResourceNotFoundException: Function not found; drover recreates it")
		require.ErrorIs(t, err, answeredError{id})
	}
}

func TestWithoutRelay(t *testing.T) {
	cause := errors.New("closed")
	missing := &relay.Error{Reason: relay.Missing, Function: "drover-demo-relay", Cause: errors.New("not found")}
	require.EqualError(t, missing.WithoutRelay("EKS cluster drover-demo", cause),
		"EndpointClosed: EKS cluster drover-demo: closed; to restrict it after that, set spec.controlPlane.endpoint")
	throttled := &relay.Error{Reason: relay.Throttled}
	require.Equal(t, error(throttled), throttled.WithoutRelay("EKS cluster drover-demo", cause))
}
