// Package setup builds the relay function: its connection to one API server, and its handler.
package setup

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/drover-run/drover/functions/relay/handler"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

// Environment variables of the function. The control plane's template sets them.
const (
	endpointVariable  = "CLUSTER_ENDPOINT"
	authorityVariable = "CLUSTER_CA"
)

// New returns the handler of the function. If the environment is unusable, the process exits before it receives a request.
func New(env lambdaruntime.Env) *handler.Handler {
	h, err := newHandler(env.Must(endpointVariable), env.Must(authorityVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return h
}

// newHandler connects to an endpoint whose certificate the authority (base64) signed.
func newHandler(endpoint, authority string) (*handler.Handler, error) {
	to, err := url.Parse(endpoint)
	if err != nil || to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("%s is no https URL: %q", endpointVariable, endpoint)
	}
	pem, err := base64.StdEncoding.DecodeString(authority)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64: %w", authorityVariable, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", authorityVariable)
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		// The caller decides about compression.
		DisableCompression: true,
	}
	return &handler.Handler{
		Endpoint: to, Server: transport, CloseIdle: transport.CloseIdleConnections,
		CallLimit: 25 * time.Second, Margin: 2 * time.Second, IdleLimit: 20 * time.Second, Now: time.Now,
	}, nil
}
