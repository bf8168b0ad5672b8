// Package handler forwards requests to the API server of one cluster and streams the responses. It adds no credentials: the caller's
// token is in the request. It logs neither headers nor bodies.
package handler

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
)

// Handler forwards requests.
type Handler struct {
	// Endpoint of the API server. Requests go nowhere else.
	Endpoint *url.URL
	// Server sends requests, and follows no redirects.
	Server http.RoundTripper
	// CloseIdle closes the connections that Server keeps.
	CloseIdle func()
	// CallLimit ends requests that are no watches.
	CallLimit time.Duration
	// Margin before the deadline of the invocation ends every request, so that the response ends before Lambda stops the function.
	Margin time.Duration
	// IdleLimit is the age from which a kept connection is not used. Lambda freezes the function between requests, and the other side may
	// close the connection unnoticed.
	IdleLimit time.Duration
	Now       func() time.Time

	mu   sync.Mutex
	last time.Time
}

// hopByHop are the headers that concern one connection.
// https://datatracker.ietf.org/doc/html/rfc9110#section-7.6.1
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade",
}

// Handle forwards a request. Lambda streams the reader that it returns: one line of JSON (events.RelayResponse), then the bytes of the
// body as they arrive. It returns no error: what the relay cannot forward is an error in that line.
func (h *Handler) Handle(ctx context.Context, in events.RelayRequest) (io.Reader, error) {
	to, err := h.target(in.Path)
	if err != nil {
		return failureResponse(events.RelayRefused, err), nil
	}
	watch := isWatch(to)
	ctx, cancel := h.limit(ctx, watch)
	request, err := newRequest(ctx, to, in)
	if err != nil {
		cancel()
		return failureResponse(events.RelayRefused, err), nil
	}
	h.closeStale()
	response, err := h.Server.RoundTrip(request)
	if err != nil {
		cancel()
		return failureResponse(reasonOf(err), err), nil
	}
	return &answer{
		head: line(events.RelayResponse{Status: response.StatusCode, Header: endToEnd(response.Header)}),
		body: response.Body, watch: watch, over: func() bool { return ctx.Err() != nil }, done: func() { cancel(); h.markUsed() },
	}, nil
}

// target is a path at the endpoint.
func (h *Handler) target(path string) (*url.URL, error) {
	to, err := url.ParseRequestURI(path)
	if err != nil || to.IsAbs() || to.Host != "" || !strings.HasPrefix(path, "/") {
		return nil, errors.New("the path of the request is no absolute path")
	}
	to.Scheme, to.Host = h.Endpoint.Scheme, h.Endpoint.Host
	return to, nil
}

// newRequest is the HTTP request to the API server.
func newRequest(ctx context.Context, to *url.URL, in events.RelayRequest) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, in.Method, to.String(), bytes.NewReader(in.Body))
	if err != nil {
		return nil, fmt.Errorf("the request is invalid: %w", err)
	}
	request.URL = to // an encoded path stays encoded
	request.Header = endToEnd(in.Header)
	request.Header.Del("Host")
	request.Header.Del("Content-Length")
	return request, nil
}

// endToEnd returns the headers that are not of one connection only.
func endToEnd(in map[string][]string) http.Header {
	out := http.Header{}
	for name, values := range in {
		for _, value := range values {
			out.Add(name, value)
		}
	}
	for _, named := range out.Values("Connection") {
		for name := range strings.SplitSeq(named, ",") {
			out.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	return out
}

// isWatch reports whether a request is a watch, whose response ends only by a limit.
func isWatch(to *url.URL) bool {
	switch to.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return true
}

// limit bounds a request: by the invocation's deadline less the margin, and by CallLimit unless it is a watch.
func (h *Handler) limit(ctx context.Context, watch bool) (context.Context, context.CancelFunc) {
	var bounds []time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		bounds = append(bounds, time.Until(deadline)-h.Margin)
	}
	if !watch {
		bounds = append(bounds, h.CallLimit)
	}
	if len(bounds) == 0 {
		return context.WithCancel(ctx)
	}
	limit := bounds[0]
	for _, other := range bounds {
		limit = min(limit, other)
	}
	return context.WithTimeout(ctx, limit)
}

// closeStale closes connections that were not used for IdleLimit. It compares wall clocks: the other clock may stop with the function.
func (h *Handler) closeStale() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now().Round(0)
	if !h.last.IsZero() && now.Sub(h.last) > h.IdleLimit {
		h.CloseIdle()
	}
	h.last = now
}

func (h *Handler) markUsed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.Now().Round(0)
}

// reasonOf classifies an error of a request without a response.
func reasonOf(err error) events.RelayReason {
	var untrusted *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &untrusted):
		return events.RelayUntrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return events.RelayTimeout
	}
	return events.RelayUnreachable
}

// failureResponse is the response for a request that was not forwarded.
func failureResponse(reason events.RelayReason, err error) io.Reader {
	return &answer{head: line(events.RelayResponse{Error: &events.RelayError{Reason: reason, Message: err.Error()}})}
}

// line encodes the first line of a response. Its types have no value that JSON cannot hold.
func line(head events.RelayResponse) []byte {
	encoded, err := json.Marshal(head)
	if err != nil {
		panic(err)
	}
	return append(encoded, '\n')
}
