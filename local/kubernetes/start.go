// The control plane as a whole: its configuration, start, readiness, change of version, and stop.

package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of one start on a busy machine, and of one graceful stop.
const (
	startTimeout = 2 * time.Minute
	stopGrace    = 3 * time.Second
	readyPoll    = 50 * time.Millisecond
)

// stages are what KWOK does as the kubelet of each node. Those of pods are KWOK's own.
//
//go:embed stages.yaml
var stages []byte

// Options of a control plane.
type Options struct {
	// Name of the cluster, in its certificates and kubeconfig.
	Name string
	// Dir has keys, data and logs. It must be empty or absent. Stop removes only the data.
	Dir string
	// BinDir has the programs: see Build.
	BinDir string
	// Minor is the Kubernetes version that the servers emulate, such as "1.35". Empty means that of Version. The programs
	// can emulate any minor version from MinMinor on, with --emulated-version.
	Minor string
	// ServiceCIDR of the cluster, such as "172.20.0.0/16".
	ServiceCIDR string
	// PodCIDR has the addresses that KWOK gives pods. Empty means 100.64.0.0/10.
	PodCIDR string
	// Issuer of service account tokens, an https URL. Empty means the API server's own name.
	Issuer string
	// TokenWebhookURL receives a TokenReview (authentication.k8s.io/v1) for each bearer token that is not a service
	// account's. TokenWebhookCA is the PEM of its authority for https. Empty means no webhook.
	TokenWebhookURL string
	TokenWebhookCA  []byte
	// Hosts in the API server's certificate, in addition to 127.0.0.1 and localhost.
	Hosts []string
	// Settings of the servers.
	Settings Settings
	// RuntimeConfig enables and disables APIs, as in "networking.k8s.io/v1beta1=true". Empty means Kubernetes' defaults.
	RuntimeConfig string
	// DefaultLimits keeps Kubernetes' client limits of the controllers and the scheduler, 20 and 50 calls a second. Without
	// it both may make 500.
	DefaultLimits bool
	// Measured is for measurements of other programs on this control plane. It gets as much memory as on a machine of its
	// own. Its controllers and scheduler get only idle processor time: on a machine of their own they would not compete
	// with the measured program.
	Measured bool
	// Log receives restarts of programs that died. It may be nil.
	Log *slog.Logger
}

// Settings of the servers. Zero values are Kubernetes' defaults.
type Settings struct {
	// EventTTL and HPASyncPeriod are durations such as 30m. NodePorts is a range such as 30000-32767.
	EventTTL, HPASyncPeriod, NodePorts string
	TerminatedPodThreshold             int
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Endpoint of the API server, https on the loopback address.
	Endpoint string
	// CA is the PEM of the authority of the API server's certificate.
	CA []byte
	// AdminToken is a bearer token of a user in system:masters.
	AdminToken string
	// AdminKubeconfig is the path of a kubeconfig with the same.
	AdminKubeconfig string

	options Options
	dir     string
	port    int
	guard   *guard

	mu sync.Mutex
	// parts are the running programs by name.
	parts map[string]*process
	// starting receives the first death of a part while the control plane starts. It is nil otherwise.
	starting chan error
	stopOnce sync.Once
	// changing is held while servers are restarted. stopped is closed by Stop.
	changing sync.Mutex
	stopped  chan struct{}
	syncing  sync.WaitGroup
}

// MinMinor is the oldest minor version for Options.Minor.
func MinMinor() string { _, minor := ownMinor(); return fmt.Sprintf("1.%d", minor-3) }

// MaxMinor is the minor version of the programs themselves.
func MaxMinor() string { _, minor := ownMinor(); return fmt.Sprintf("1.%d", minor) }

func ownMinor() (major, minor int) {
	parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(parts[1])
	return major, minor
}

// CanActAs reports whether the programs can emulate a Kubernetes minor version, such as "1.35".
func CanActAs(v string) bool {
	rest, ok := strings.CutPrefix(v, "1.")
	if !ok {
		return false
	}
	minor, err := strconv.Atoi(rest)
	_, own := ownMinor()
	return err == nil && strconv.Itoa(minor) == rest && minor <= own && minor >= own-3
}

// Start starts a control plane and returns when it answers, after about three seconds. An error has the last log lines
// of the program that failed. After an error nothing runs.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if missing := Missing(o.BinDir); len(missing) > 0 {
		return nil, fmt.Errorf("starting cluster %s: %s not built in %s: run `make kubernetes`", o.Name, strings.Join(missing, ", "), o.BinDir)
	}
	if o.Minor == "" {
		o.Minor = MaxMinor()
	}
	if !CanActAs(o.Minor) {
		return nil, fmt.Errorf("starting cluster %s: Kubernetes %s cannot act as %s, only as %s to %s", o.Name, Version, o.Minor,
			MinMinor(), MaxMinor())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := prepare(o)
	if err != nil {
		return nil, fmt.Errorf("starting cluster %s: %w", o.Name, err)
	}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("starting cluster %s: %w", o.Name, err)
	}
	c.syncing.Go(c.syncPods)
	return c, nil
}

// prepare writes all files that the programs read.
func prepare(o Options) (*ControlPlane, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return nil, fmt.Errorf("folder %s must be empty: %w", dir, errors.Join(err))
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		options: o, dir: dir, port: port, parts: map[string]*process{}, stopped: make(chan struct{}),
		Endpoint:        "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		AdminKubeconfig: filepath.Join(dir, "admin.kubeconfig"),
	}
	if err := c.writeKeys(); err != nil {
		return nil, err
	}
	if err := c.writeConfiguration(); err != nil {
		return nil, err
	}
	c.guard, err = newGuard()
	return c, err
}

func (c *ControlPlane) writeKeys() error {
	ca, err := newAuthority("kubernetes", time.Now())
	if err != nil {
		return err
	}
	c.CA = ca.PEM
	if err := os.WriteFile(c.path("ca.crt"), ca.PEM, 0o600); err != nil {
		return err
	}
	if err := serviceAccountKeys(c.dir); err != nil {
		return err
	}
	_, services, err := net.ParseCIDR(c.options.ServiceCIDR)
	if err != nil {
		return fmt.Errorf("service CIDR: %w", err)
	}
	first := append(net.IP(nil), services.IP...)
	first[len(first)-1]++
	hosts := append([]string{
		"127.0.0.1", "localhost", first.String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}, c.options.Hosts...)
	p, err := ca.issue("kube-apiserver", hosts)
	if err != nil {
		return err
	}
	if err := p.write(c.dir, "apiserver"); err != nil {
		return err
	}
	return c.writeTokens()
}

// writeTokens writes the tokens of the API server's users. A certificate would be verified again for each request, which
// is a fifteenth of the API server's work while a node is being drained. EKS identifies its users by tokens too.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file
func (c *ControlPlane) writeTokens() error {
	var file []byte
	for _, id := range []struct{ file, user, groups string }{
		{"admin", "kubernetes-admin", "system:masters"},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
		{"kube-scheduler", "system:kube-scheduler", ""},
		// KWOK plays every kubelet, also on nodes that it does not own.
		{"kwok", "kwok", "system:masters"},
	} {
		token := rand.Text()
		if id.file == "admin" {
			c.AdminToken = token
		}
		file = fmt.Appendf(file, "%s,%s,%s,%q\n", token, id.user, id.user, id.groups)
		if err := os.WriteFile(c.path(id.file+".kubeconfig"), kubeconfig(c.options.Name, c.Endpoint, c.CA, id.user, token), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(c.path("tokens.csv"), file, 0o600)
}

func (c *ControlPlane) writeConfiguration() error {
	if err := os.WriteFile(c.path("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	if err := c.writePodStages(); err != nil {
		return err
	}
	if c.options.TokenWebhookURL == "" {
		return nil
	}
	webhook := kubeconfig("authenticator", c.options.TokenWebhookURL, c.options.TokenWebhookCA, "kube-apiserver", "")
	return os.WriteFile(c.path("token-webhook.yaml"), webhook, 0o600)
}

// start starts the programs and waits until the API server and the controllers answer.
func (c *ControlPlane) start(ctx context.Context) error {
	c.starting = make(chan error, 8)
	defer func() {
		c.mu.Lock()
		c.starting = nil
		c.mu.Unlock()
	}()
	if err := c.launch("etcd", c.etcdArguments()); err != nil {
		return err
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	return c.launch("kwok", c.kwokArguments())
}

// startServers starts the programs of the control plane's version.
func (c *ControlPlane) startServers(ctx context.Context) error {
	if err := c.launch("kube-apiserver", c.apiserverArguments()); err != nil {
		return err
	}
	if err := c.await(ctx, "the API server", "/readyz", nil); err != nil {
		return err
	}
	for name, arguments := range map[string][]string{
		"kube-controller-manager": c.controllerManagerArguments(),
		"kube-scheduler":          c.schedulerArguments(),
	} {
		if err := c.launch(name, arguments); err != nil {
			return err
		}
	}
	// The controller manager creates it. Pods need it, so a cluster without it is not ready.
	return c.await(ctx, "the controllers", "/api/v1/namespaces/default/serviceaccounts/default", nil)
}

// SetMinor changes a running control plane to a Kubernetes minor version, such as "1.36". The servers restart as that
// version while etcd keeps the data. The API does not answer for about two seconds. KWOK continues, as kubelets do:
// another KWOK would wait for the leases of this one to expire before it played a pod.
func (c *ControlPlane) SetMinor(ctx context.Context, minor string) error {
	if !CanActAs(minor) {
		return fmt.Errorf("Kubernetes %s cannot act as %s, only as %s to %s", Version, minor, MinMinor(), MaxMinor())
	}
	return c.restart(ctx, func() { c.options.Minor = minor })
}

// Configure restarts the servers of a running control plane with other settings, as SetMinor does.
func (c *ControlPlane) Configure(ctx context.Context, settings Settings) error {
	return c.restart(ctx, func() { c.options.Settings = settings })
}

// restart restarts the servers with other options.
func (c *ControlPlane) restart(ctx context.Context, set func()) error {
	return c.change(ctx, startTimeout, func(ctx context.Context) error {
		c.stopParts("kube-scheduler", "kube-controller-manager", "kube-apiserver")
		c.mu.Lock()
		set()
		c.starting = make(chan error, 8)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			c.starting = nil
			c.mu.Unlock()
		}()
		return c.startServers(ctx)
	})
}

// Metrics returns the API server's metrics in Prometheus' text format.
func (c *ControlPlane) Metrics(ctx context.Context) ([]byte, error) {
	client := c.client()
	defer client.CloseIdleConnections()
	return c.read(ctx, client, "/metrics")
}

// Interrupt kills the API server, so that it refuses connections, and restarts it after a time. It returns when the API
// server answers again. If the context ends first, the API server remains down. The data remains, and the other programs
// continue.
func (c *ControlPlane) Interrupt(ctx context.Context, after time.Duration) error {
	return c.change(ctx, after+startTimeout, func(ctx context.Context) error {
		c.mu.Lock()
		p := c.parts["kube-apiserver"]
		delete(c.parts, "kube-apiserver")
		c.mu.Unlock()
		if p != nil {
			p.stop(0)
		}
		wait := time.NewTimer(after)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.launch("kube-apiserver", c.apiserverArguments()); err != nil {
			return err
		}
		return c.await(ctx, "the API server", "/readyz", nil)
	})
}

var errStopped = errors.New("the control plane was stopped")

// change restarts servers, one change at a time, and none after Stop.
func (c *ControlPlane) change(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	select {
	case <-c.stopped:
		return errStopped
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	go func() {
		select {
		case <-c.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return do(ctx)
}

// Stop ends all programs and returns when they have ended. It removes the cluster's data but not the logs. It may be
// called more than once.
func (c *ControlPlane) Stop() {
	c.stopOnce.Do(func() {
		close(c.stopped)
		c.syncing.Wait()
		c.changing.Lock()
		defer c.changing.Unlock()
		c.stopParts("kwok", "kube-scheduler", "kube-controller-manager")
		c.stopParts("kube-apiserver")
		c.stopParts("etcd")
		c.guard.release()
		_ = os.RemoveAll(c.path("etcd"))
	})
}

// stopParts stops the named programs that run, concurrently.
func (c *ControlPlane) stopParts(names ...string) {
	var wg sync.WaitGroup
	for _, name := range names {
		c.mu.Lock()
		p := c.parts[name]
		delete(c.parts, name)
		c.mu.Unlock()
		if p != nil {
			wg.Go(func() { p.stop(stopGrace) })
		}
	}
	wg.Wait()
}

func (c *ControlPlane) launch(name string, arguments []string) error {
	argv := append([]string{filepath.Join(c.options.BinDir, name)}, arguments...)
	limit := memory
	if c.options.Measured {
		limit = memoryMeasured
	}
	if c.options.Measured && (name == "kube-controller-manager" || name == "kube-scheduler") {
		argv = append([]string{"nice", "-n", "19"}, argv...)
	}
	p, err := startProcess(name, c.dir, argv, limit, c.guard, c.partDied)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[name] = p
	return nil
}

func (c *ControlPlane) partDied(p *process, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starting != nil {
		select {
		case c.starting <- fmt.Errorf("%w; the end of %s:\n%s", err, p.logFile, p.tail(12)):
		default:
		}
		return
	}
	c.options.Log.Warn("a program of a control plane died and is started again", "cluster", c.options.Name, "program", p.name, "error",
		err, "log", p.logFile)
}

// await polls path until it answers 200. The death of a program ends the wait.
func (c *ControlPlane) await(ctx context.Context, what, path string, last error) error {
	client := c.client()
	defer client.CloseIdleConnections()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if _, last = c.read(ctx, client, path); last == nil {
			return nil
		}
		select {
		case err := <-c.starting:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w: %w", what, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

func (c *ControlPlane) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Timeout:   5 * time.Second,
	}
}

// maxAnswer limits an answer, in bytes: the metrics of an API server are about two megabytes.
const maxAnswer = 32 << 20

// read gets a path of the API server, as its administrator.
func (c *ControlPlane) read(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Endpoint+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.AdminToken)
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(body[:min(len(body), 2<<10)]))
	}
	return body, nil
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

// freePort returns a free loopback port.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
