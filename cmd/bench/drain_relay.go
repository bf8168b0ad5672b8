package main

// Drains through a relay, and the price of watching through it.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/relay/handler"
	"github.com/drover-run/drover/shared/kube/relay"
)

const (
	// invokeTakes is the assumed time that Lambda adds to a request: from the caller to a warm environment and back.
	invokeTakes = 15 * time.Millisecond
	// maxRelayedToDirect limits the time of a drain of 240 pods.
	maxRelayedToDirect = 1.5
	// The relay's memory in GB and timeout, as templates/v1/control-plane.yaml.tmpl sets them.
	relayMemory, relayTimeout = 0.25, 60 * time.Second
	// streamPrice is for a gigabyte of streamed responses, beyond the first 6 MB of each: https://aws.amazon.com/lambda/pricing/
	streamPrice = 0.008
)

// throughRelay is drover in a private cluster.
var throughRelay = tool{name: "drover, through the relay", drain: func(ctx context.Context, b *testbed, nodes []string) []outcome {
	return drains(ctx, nodes, b.relayConfig)
}}

// relayConfig opens a connection through the relay's own code. The handler runs in this process, and each request takes longer by
// invokeTakes.
func (b *testbed) relayConfig() (*rest.Config, error) {
	direct := b.config()
	server, err := rest.TransportFor(direct)
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(direct.Host)
	if err != nil {
		return nil, err
	}
	invoker := &relayInvoker{handler: &handler.Handler{
		Endpoint: endpoint, Server: server, CloseIdle: func() {}, CallLimit: 25 * time.Second, Margin: 2 * time.Second,
		IdleLimit: time.Hour, Now: time.Now,
	}}
	return &rest.Config{Host: direct.Host, Transport: relay.To(invoker)("bench")}, nil
}

// relayInvoker runs the handler of the relay as Lambda does: an invocation continues without its caller, until its timeout.
type relayInvoker struct{ handler *handler.Handler }

func (i *relayInvoker) Streams() bool { return true }

func (i *relayInvoker) Invoke(_ context.Context, _ string, payload []byte) (io.ReadCloser, error) {
	var in events.RelayRequest
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, fmt.Errorf("decoding a request of the relay: %w", err)
	}
	time.Sleep(invokeTakes)
	read, write := io.Pipe()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), relayTimeout)
		defer cancel()
		answer, err := i.handler.Handle(ctx, in)
		if err == nil {
			_, err = io.Copy(write, answer)
		}
		if closer, ok := answer.(io.Closer); ok {
			_ = closer.Close()
		}
		write.CloseWithError(err)
	}()
	return read, nil
}

// watchCost is the list price of an hour of one watch through the relay, with the bytes that it streams.
func watchCost(streamed float64) (dollars, invocations float64) {
	invocations = time.Hour.Seconds() / relay.WatchLimit.Seconds()
	beyond := max(0, streamed-invocations*6e6)
	return time.Hour.Seconds()*relayMemory*gigabyteSecondPrice + invocations*invocationPrice + beyond/1e9*streamPrice, invocations
}

// reportWatching reports the price of an hour of a drain that waits for a budget: it watches pods and budgets.
func reportWatching(r *report) {
	const watches = 2
	one, invocations := watchCost(0)
	r.add("an hour of a drain that waits, through the relay", watches*one, "$", nil, fmt.Sprintf(
		"watches of pods and of budgets: %.0f GB-seconds, %.0f requests; streamed responses cost nothing below 6 MB for each request",
		watches*time.Hour.Seconds()*relayMemory, watches*invocations))
}
