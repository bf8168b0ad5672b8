// Package inprocess calls an HTTP handler without sockets, streams included. Virtual time (testing/synctest) cannot
// advance while a goroutine waits for the network.
package inprocess

import (
	"io"
	"net/http"
	"sync"
)

// Transport returns a RoundTripper whose requests the handler answers.
func Transport(handler http.Handler) http.RoundTripper { return transport{handler} }

type transport struct{ handler http.Handler }

// RoundTrip returns when the handler has written its header, flushed, or returned. The body follows while it is written.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	body, w := io.Pipe()
	answer := &response{header: http.Header{}, status: http.StatusOK, body: w, ready: make(chan struct{})}
	go func() {
		t.handler.ServeHTTP(answer, in)
		answer.WriteHeader(http.StatusOK)
		_ = w.Close()
	}()
	select {
	case <-answer.ready:
	case <-r.Context().Done():
		_ = body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// response is an http.ResponseWriter whose body the client reads.
type response struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	once         sync.Once
	ready        chan struct{}
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher. The transport has no buffer, so it only writes the header.
func (w *response) Flush() { w.WriteHeader(http.StatusOK) }
