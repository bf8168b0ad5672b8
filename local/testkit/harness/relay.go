package harness

// Functions that the stacks of clusters create: the relays of private clusters. They run in this process, with drover's own handler.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	relay "github.com/drover-run/drover/functions/relay/handler"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/s3"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
)

// relayPackage is in place of the package of relays. They run in this process.
const relayPackage = "the code of relays"

// relayCode is the code of relays for this machine.
var relayCode = render.RelayCode{
	Architecture: map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH], SHA256: names.SHA256([]byte(relayPackage)),
}

// functionSource is where drover's functions connect from: TEST-NET-1, which no host has. https://www.rfc-editor.org/rfc/rfc5737
var functionSource = eks.Source{Public: netip.MustParsePrefix("192.0.2.0/24")}

// DialTimeout is the time after which client-go ends a connection attempt that gets no answer.
const DialTimeout = 30 * time.Second

// packages reads the packages of functions.
type packages struct{ s3 *s3.Service }

// ReadObject reads an object if the caller may.
func (p packages) ReadObject(ctx context.Context, caller iam.Caller, bucket, key string) ([]byte, error) {
	return p.s3.ReadObject(ctx, caller, bucket, key, "")
}

// Relay is code of a relay. It receives the transport to the API server.
type Relay func(ctx context.Context, server http.RoundTripper, payload []byte) (io.Reader, error)

// SetRelay replaces the code of a cluster's relay, as that of another version of drover. nil is this version's.
func (a *Account) SetRelay(cluster string, run Relay) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.relays == nil {
		a.relays = map[string]Relay{}
	}
	a.relays[names.Relay(cluster)] = run
}

// runRelay runs a function of a cluster's stack.
func (a *Account) runRelay(ctx context.Context, f lambda.Inside, payload []byte) (io.Reader, error) {
	if !strings.HasPrefix(f.Name, names.Prefix) || !strings.HasSuffix(f.Name, "-relay") {
		return nil, wire.Unsupported("lambda", "the function "+f.Name+": in this process only relays run")
	}
	endpoint, err := url.Parse(f.Variables["CLUSTER_ENDPOINT"])
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("CLUSTER_ENDPOINT of %s is %q", f.Name, f.Variables["CLUSTER_ENDPOINT"])
	}
	a.mu.Lock()
	run := a.relays[f.Name]
	a.mu.Unlock()
	from := eks.Source{SubnetIDs: f.SubnetIDs, SecurityGroupIDs: f.SecurityGroupIDs}
	server := apiTransport{account: a, from: from, relay: f.Name}
	if run != nil {
		return run(ctx, toHost{server, endpoint.Host}, payload)
	}
	var in events.RelayRequest
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	h := &relay.Handler{
		Endpoint: endpoint, Server: server, CloseIdle: func() {},
		CallLimit: 25 * time.Second, Margin: 2 * time.Second, IdleLimit: 20 * time.Second, Now: time.Now, // as in functions/relay/setup
	}
	return h.Handle(ctx, in)
}

// unreachable waits like a connection to an address without a route.
func (a *Account) unreachable(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), DialTimeout)
	defer cancel()
	err := a.clock.Timer(ctx, 2*DialTimeout)
	if r.Context().Err() == nil {
		err = os.ErrDeadlineExceeded // "i/o timeout"
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// toHost sends requests to one host, whatever they name.
type toHost struct {
	next http.RoundTripper
	host string
}

func (t toHost) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", t.host
	return t.next.RoundTrip(r)
}
