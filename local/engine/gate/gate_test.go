package gate

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func start(t *testing.T, target string) *Gate {
	t.Helper()
	g, err := New(strings.TrimPrefix(target, "http://"))
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

func dial(g *Gate, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", g.Address(), timeout)
}

func TestGate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	g := start(t, server.URL)
	requireShut := func() {
		t.Helper()
		for range 5 {
			_, err := dial(g, 100*time.Millisecond)
			require.True(t, timedOut(err), "%v: the connection is neither accepted nor refused")
		}
	}
	requireOpen := func() {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		var all sync.WaitGroup
		failed := make(chan error, 50)
		for range 50 {
			all.Go(func() {
				r, err := client.Get("http://" + g.Address())
				if err == nil {
					err = r.Body.Close()
				}
				failed <- err
			})
		}
		all.Wait()
		for range 50 {
			require.NoError(t, <-failed)
		}
	}
	for range 3 {
		requireShut()
		require.NoError(t, g.Set(true))
		requireOpen()
		require.NoError(t, g.Set(false))
	}

	require.NoError(t, g.Set(true))
	c, err := dial(g, time.Second)
	require.NoError(t, err)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	lines := bufio.NewReader(c)
	status, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200 OK\r\n", status)
	require.NoError(t, g.Set(false))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	for err == nil {
		_, err = lines.ReadString('\n')
	}
	require.False(t, timedOut(err), "shutting the gate ends its connections")
}

func TestWaitingConnection(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	g := start(t, server.URL)
	time.AfterFunc(200*time.Millisecond, func() { _ = g.Set(true) })
	c, err := dial(g, 10*time.Second)
	require.NoError(t, err, "it connects when the gate opens")
	_ = c.Close()
}

func TestUnreachableTarget(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	g := start(t, server.URL)
	server.Close()
	require.NoError(t, g.Set(true))
	_, err := http.Get("http://" + g.Address())
	require.Error(t, err)
}

func BenchmarkRequest(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	g, err := New(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(b, err)
	defer g.Close()
	require.NoError(b, g.Set(true))
	for name, url := range map[string]string{"direct": server.URL, "gate": "http://" + g.Address()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := http.Get(url)
				require.NoError(b, err)
				buffer := make([]byte, 10)
				_, _ = r.Body.Read(buffer)
				_ = r.Body.Close()
			}
		})
	}
}
