package lambda

// Streamed responses. https://docs.aws.amazon.com/lambda/latest/dg/configuration-response-streaming.html

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
)

// Limits of a streamed response: its size, the size up to which its bandwidth is unlimited, and its bandwidth afterwards, in bytes and
// bytes per second. https://docs.aws.amazon.com/lambda/latest/dg/configuration-response-streaming.html#config-rs-bandwidth
const (
	maxStream       = 200 << 20
	uncapped        = 6 << 20
	cappedPerSecond = 2 << 20
)

// stream passes a response to its caller while the function writes it. If the caller has left, the rest is dropped and the function
// continues, as on AWS.
type stream struct {
	service *Service
	id      string // of the request
	chunks  chan []byte
	left    chan struct{} // closed when nothing reads chunks any longer
	size    int
}

// Write waits until the caller takes the chunk. It returns an error for a response that is too large.
func (t *stream) Write(p []byte) (int, error) {
	before := max(t.size, uncapped)
	t.size += len(p)
	if t.size > maxStream {
		return 0, fmt.Errorf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxStream)
	}
	if capped := t.size - before; capped > 0 {
		_ = t.service.config.Clock.Timer(t.service.ctx, time.Duration(capped)*time.Second/cappedPerSecond)
	}
	turn := t.service.config.Clock.Ticket("lambda: a chunk of " + t.id)
	select {
	case t.chunks <- append([]byte{}, p...):
	case <-t.left:
	}
	turn()
	return len(p), nil
}

// InvokeStreaming runs a function. It returns when the response begins, or with the error of the invocation. begun.Copy passes the
// response on and waits for its end.
func (s *Service) InvokeStreaming(ctx context.Context, caller iam.Caller, in Invocation) (begun *Streaming, err error) {
	f, payload, err := s.admit(caller, in, maxPayload)
	if err != nil {
		return nil, err
	}
	id := uuid.NewString()
	b := &Streaming{
		RequestID: id, service: s, stream: &stream{service: s, id: id, chunks: make(chan []byte), left: make(chan struct{})},
		done: make(chan outcome, 1),
	}
	if !s.background(func() {
		a, report, err := f.run(&invocation{id: b.RequestID, payload: payload, stream: b.stream, responses: make(chan response, 1)})
		b.done <- outcome{a, report, err}
	}) {
		return nil, context.Canceled
	}
	turn := s.config.Clock.Ticket("lambda: the begin of " + b.RequestID)
	defer turn()
	select {
	case b.first = <-b.stream.chunks:
		return b, nil
	case o := <-b.done:
		b.done <- o
		return b, o.err
	case <-ctx.Done():
		close(b.stream.left)
		return nil, ctx.Err()
	}
}

// outcome of an invocation.
type outcome struct {
	response
	report Report
	err    error
}

// Streaming is an invocation whose response has begun.
type Streaming struct {
	RequestID string

	service *Service
	stream  *stream
	first   []byte
	done    chan outcome
}

// Copy writes the response to w until it ends, w fails or the context ends. It returns the error of the function, if any, and the last
// part of its log.
func (b *Streaming) Copy(ctx context.Context, w io.Writer) (failed *Failure, log string, err error) {
	defer close(b.stream.left)
	if len(b.first) > 0 {
		if _, err := w.Write(b.first); err != nil {
			return nil, "", err
		}
	}
	for {
		chunk, end, err := b.next(ctx)
		switch {
		case err != nil:
			return nil, "", err
		case end == nil:
			if _, err := w.Write(chunk); err != nil {
				return nil, "", err
			}
			continue
		case end.failed:
			failed = &Failure{Details: string(end.payload)}
			var named struct{ ErrorType string }
			_ = json.Unmarshal(end.payload, &named) // a function may fail without JSON
			failed.Code = or(named.ErrorType, "Unhandled")
			return failed, end.report.Log, nil
		}
		if len(end.payload) > 0 { // a function that does not stream
			_, err = w.Write(end.payload)
		}
		return nil, end.report.Log, err
	}
}

func (b *Streaming) next(ctx context.Context) (chunk []byte, end *outcome, err error) {
	turn := b.service.config.Clock.Ticket("lambda: the rest of " + b.RequestID)
	defer turn()
	if ctx.Err() != nil { // select would choose at random if a chunk waits, too
		return nil, nil, ctx.Err()
	}
	select {
	case chunk = <-b.stream.chunks:
		return chunk, nil, nil
	case o := <-b.done:
		return nil, &o, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Failure of a streamed function. AWS documents neither the values of the code nor the form of the details. Here the code is the error's
// type, as in the trailer of a runtime, and the details are the error as JSON.
// https://docs.aws.amazon.com/lambda/latest/api/API_InvokeWithResponseStreamCompleteEvent.html
type Failure struct{ Code, Details string }

// events writes messages of application/vnd.amazon.eventstream.
// https://smithy.io/2.0/aws/amazon-eventstream.html
type events struct{ w io.Writer }

// Write implements io.Writer: each chunk is a PayloadChunk.
func (e events) Write(p []byte) (int, error) {
	return len(p), e.send("PayloadChunk", "application/octet-stream", p)
}

func (e events) complete(f *Failure, log string) error {
	end := struct {
		ErrorCode    string `json:",omitempty"`
		ErrorDetails string `json:",omitempty"`
		LogResult    string `json:",omitempty"`
	}{LogResult: log}
	if f != nil {
		end.ErrorCode, end.ErrorDetails = f.Code, f.Details
	}
	raw, _ := json.Marshal(end) // strings can always be encoded
	return e.send("InvokeComplete", "application/json", raw)
}

// send writes one message: lengths, their checksum, headers, payload, and the checksum of everything.
func (e events) send(kind, contentType string, payload []byte) error {
	const stringValue = 7 // the type of a header's value
	var headers []byte
	for _, h := range [][2]string{{":message-type", "event"}, {":event-type", kind}, {":content-type", contentType}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, stringValue)
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	const overhead = 16 // two lengths and two checksums
	message := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(payload)+overhead))
	message = binary.BigEndian.AppendUint32(message, uint32(len(headers)))
	message = binary.BigEndian.AppendUint32(message, crc32.ChecksumIEEE(message))
	message = append(append(message, headers...), payload...)
	_, err := e.w.Write(binary.BigEndian.AppendUint32(message, crc32.ChecksumIEEE(message)))
	return err
}

// The errors of a region without response streaming, for Config.NoStreaming. AWS does not say which one it returns. UnknownOperation is the
// documented code: https://docs.aws.amazon.com/lambda/latest/api/CommonErrors.html. UnknownPath is what Lambda's endpoint answers, as users
// report, for a path that it does not serve: https://github.com/boto/boto3/issues/294
const (
	UnknownOperation = "UnknownOperationException"
	UnknownPath      = "AccessDeniedException"
)

func noStreaming(code string) error {
	if code == UnknownPath {
		return &iam.Error{Code: code, Message: "Unable to determine service/operation name to be authorized", Status: http.StatusForbidden}
	}
	return &iam.Error{Code: code, Message: "The action or operation requested is not recognized", Status: http.StatusNotFound}
}
