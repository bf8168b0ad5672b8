// Package relay reaches the API servers of private clusters: an http.RoundTripper over the relay function in the cluster's network. It
// invokes the function through an interface, so it imports no SDK. See functions/relay for the other side.
package relay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

// Invoker invokes functions.
type Invoker interface {
	// Invoke returns the bytes of a response as they arrive. Closing the reader, or ending ctx, ends it.
	Invoke(ctx context.Context, function string, payload []byte) (io.ReadCloser, error)
	// Streams is false after Invoke has found that a response arrives only as a whole, at its end. That Invoke has failed.
	Streams() bool
}

// Limits of one watch. The relay function ends it later by itself.
const (
	// WatchLimit is shorter than the timeout of the relay function, and the margin before it.
	WatchLimit = 50 * time.Second
	// BufferedWatchLimit is how late an event may arrive where responses are not streamed.
	BufferedWatchLimit = 3 * time.Second
)

// maxHead limits the first line of a response.
const maxHead = 256 << 10

// To returns the way to the API servers of clusters, through their relays.
func To(invoker Invoker) func(cluster string) http.RoundTripper {
	return func(cluster string) http.RoundTripper { return &transport{invoker, names.Relay(cluster)} }
}

// transport sends requests through one relay. The relay knows the endpoint, so it ignores scheme and host of a request.
type transport struct {
	invoker  Invoker
	function string
}

// RoundTrip invokes the relay once, or twice where it finds that responses are not streamed.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := readBody(request)
	if err != nil {
		return nil, fmt.Errorf("reading the request for %s: %w", t.function, err)
	}
	streams := t.invoker.Streams()
	response, err := t.send(request, body, streams)
	if err != nil && streams && !t.invoker.Streams() {
		response, err = t.send(request, body, false)
	}
	return response, err
}

func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(request.Body)
	return body, errors.Join(err, request.Body.Close())
}

func (t *transport) send(request *http.Request, body []byte, streams bool) (*http.Response, error) {
	ctx, header, target := request.Context(), request.Header.Clone(), *request.URL
	compressed := false
	if query := target.Query(); isWatch(query.Get("watch")) {
		query.Set("timeoutSeconds", strconv.FormatInt(watchSeconds(ctx, query.Get("timeoutSeconds"), streams), 10))
		target.RawQuery = query.Encode()
	} else if compressed = request.Method == http.MethodGet && header.Get("Accept-Encoding") == ""; compressed {
		// As net/http does for a direct connection. Long lists are a tenth as long.
		header.Set("Accept-Encoding", "gzip")
	}
	payload, err := json.Marshal(events.RelayRequest{Method: request.Method, Path: target.RequestURI(), Header: header, Body: body})
	if err != nil {
		return nil, fmt.Errorf("encoding the request for %s: %w", t.function, err)
	}
	stream, err := t.invoker.Invoke(ctx, t.function, payload)
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	response, err := t.receive(request, stream)
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	if compressed && response.Header.Get("Content-Encoding") == "gzip" {
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
		response.Body, response.Uncompressed = &unzippedBody{compressed: response.Body}, true
	}
	return response, nil
}

// receive reads the first line. The rest of the stream is the body.
func (t *transport) receive(request *http.Request, stream io.ReadCloser) (*http.Response, error) {
	buffered := bufio.NewReaderSize(stream, maxHead)
	first, err := buffered.ReadSlice('\n')
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, t.explain(request.Context(), err)
	}
	var head events.RelayResponse
	if err != nil || json.NewDecoder(bytes.NewReader(first)).Decode(&head) != nil || head.Status == 0 && head.Error == nil {
		return nil, t.failure(Incompatible, errors.New("its response does not begin with a line that this version of drover knows"))
	}
	if head.Error != nil {
		return nil, t.refusal(head.Error)
	}
	return &http.Response{
		StatusCode: head.Status, Status: strconv.Itoa(head.Status) + " " + http.StatusText(head.Status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header(head.Header).Clone(), ContentLength: -1, Request: request,
		Body: &body{Reader: buffered, Closer: stream, explain: func(err error) error { return t.explain(request.Context(), err) }},
	}, nil
}

func isWatch(value string) bool { return value != "" && value != "0" && value != "false" }

// watchSeconds limits a watch, so that the API server ends it cleanly: before the relay would, and when the caller's time is over. A relay
// does not notice that its caller ended the request.
func watchSeconds(ctx context.Context, wanted string, streams bool) int64 {
	limit := WatchLimit
	if !streams {
		limit = BufferedWatchLimit
	}
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	seconds := max(1, int64(limit/time.Second))
	if n, err := strconv.ParseInt(wanted, 10, 64); err == nil && n > 0 {
		seconds = min(seconds, n)
	}
	return seconds
}

// body is the rest of a response, with errors that name the relay.
type body struct {
	io.Reader
	io.Closer
	explain func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = b.explain(err)
	}
	return n, err
}

// unzippedBody reads a compressed body. It opens it with the first read, as an empty body is no gzip.
type unzippedBody struct {
	compressed io.ReadCloser
	reader     *gzip.Reader
}

func (u *unzippedBody) Read(p []byte) (int, error) {
	if u.reader == nil {
		reader, err := gzip.NewReader(u.compressed)
		if err != nil {
			return 0, err
		}
		u.reader = reader
	}
	return u.reader.Read(p)
}

func (u *unzippedBody) Close() error { return u.compressed.Close() }
