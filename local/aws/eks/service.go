package eks

// The service: its configuration, its state, the wait for changes, and the table of its operations.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes"
)

// Durations on AWS, as users report them. All of them are simulated work, which --speed shortens.
const (
	createWork  = 9 * time.Minute
	versionWork = 8 * time.Minute
	configWork  = 2 * time.Minute
	deleteWork  = 3 * time.Minute
	addonWork   = 30 * time.Second
	// degradedWork is the time after which EKS sets an add-on without available pods to DEGRADED.
	degradedWork = 15 * time.Minute
)

// UpdateTakes is the time of a version update.
const UpdateTakes = versionWork

// Identities is the interface to IAM: *iam.Service.
type Identities interface {
	// VerifyPresigned checks a presigned GetCallerIdentity URL for a cluster.
	VerifyPresigned(ctx context.Context, url, cluster string) (iam.Caller, error)
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
	AssumeRoleForPod(roleARN, sessionName string, tags map[string]string) (iam.Caller, iam.Credentials, error)
	AssumeRole(c iam.Caller, roleARN, sessionName string, duration time.Duration, context map[string]string, policy *iam.Policy) (
		iam.Caller, iam.Credentials, error)
	// LinkRole creates the service-linked role of a service, unless it exists.
	LinkRole(name, principal, description string, authorize func(action, resource string, context map[string]string) error) error
	RoleByARN(arn string) (iam.Role, error)
	UserByARN(arn string) (found bool)
}

// Keys is the interface to KMS: *kms.Service.
type Keys interface {
	// AuthorizeCluster returns an error unless the caller may create a cluster with a key.
	AuthorizeCluster(caller iam.Caller, keyARN string) error
}

// Network is the interface to EC2: *ec2.Service.
type Network interface {
	Subnets(ids ...string) ([]ec2.Subnet, error)
	// Zones returns the ids of the region's zones by name.
	Zones() map[string]string
	CreateSecurityGroup(vpcID, name, description string, selfIngress bool, tags map[string]string) (string, error)
	DeleteSecurityGroup(id string) error
	CreateNetworkInterface(subnetID string, groups []string, description, requester string, tags map[string]string) (string, error)
	DeleteNetworkInterface(id string)
	Connects(subnetID string, groups, interfaces []string, port int) bool
	NATAddress(subnetID string) (public netip.Addr, found bool)
	Changed() <-chan struct{}
}

// ControlPlane is a running Kubernetes control plane: see Config.Start.
type ControlPlane interface {
	// Address returns the URL of the API server and the PEM of its authority.
	Address() (endpoint string, ca []byte)
	// Kubeconfig returns a file for the administrator.
	Kubeconfig() string
	// Client acts as a user in groups, or as the administrator if user is empty.
	Client(user string, groups []string) (dynamic.Interface, error)
	// SetMinor changes the servers to a minor version such as 1.36.
	SetMinor(ctx context.Context, minor string) error
	// Configure restarts the servers with other settings.
	Configure(ctx context.Context, settings kubernetes.Settings) error
	Stop()
}

// Config of the service.
type Config struct {
	// Account is the twelve-digit ID, and Region a name such as us-east-1. Partition defaults to aws.
	Account, Region, Partition string
	Clock                      *clock.Clock
	Identities                 Identities
	Network                    Network
	// Keys may be nil. Then clusters cannot have an encryptionConfig.
	Keys Keys
	// Readings of open questions: questions.EntryRoles, questions.AddonIdentities and questions.LowerVersion.
	Readings questions.Readings
	// Dir has a folder with data and logs for each control plane. BinDir has the programs: kubernetes.BinDir.
	Dir, BinDir string
	// Start starts a control plane. The default is the real one of local/kubernetes.
	Start func(context.Context, kubernetes.Options) (ControlPlane, error)
	// MaxClusters is the quota of clusters. nil is no limit. https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
	MaxClusters func() int
	// RuntimeConfig enables and disables APIs of every cluster, as in "networking.k8s.io/v1beta1=true". EKS uses Kubernetes' defaults.
	RuntimeConfig string
	// UpdateFails returns the error code with which EKS fails an update of a cluster's version, or an empty string. kind is VersionUpdate or
	// VersionRollback. It may be nil.
	UpdateFails func(cluster, kind string) (code string)
	// SourceOf returns from where a caller connects to endpoints. If it is set, an endpoint admits only the sources that the cluster's
	// configuration and security groups allow: see reach.go. User is the source of connections to the endpoints that stacks return.
	SourceOf func(caller iam.Caller) Source
	User     Source
	// Log receives errors of background work. It may be nil.
	Log *slog.Logger
}

// Service is EKS in one region of one account.
type Service struct {
	config        Config
	authenticator http.Server
	webhook       string

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	watching sync.Once
	changes  *clock.Changes
	clusters map[string]*cluster
}

// New returns an EKS without clusters. Unless Config.Start is set, it listens on a loopback port for the token reviews of the clusters' API
// servers. Close stops it.
func New(config Config) (*Service, error) {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	if config.UpdateFails == nil {
		config.UpdateFails = func(string, string) string { return "" }
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{config: config, clusters: map[string]*cluster{}}
	s.changes = clock.NewChanges(&s.mu)
	s.ctx, s.stop = context.WithCancel(context.Background())
	if config.Start == nil {
		s.config.Start = startReal
		if err := s.listen(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// listen serves the authenticator to the API servers.
func (s *Service) listen() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the clusters' authenticator: %w", err)
	}
	s.webhook = "http://" + listener.Addr().String()
	s.authenticator.Handler, s.authenticator.ReadHeaderTimeout = http.HandlerFunc(s.serveTokenReview), 10*time.Second
	go func() {
		if err := s.authenticator.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("the clusters' authenticator ended", "error", err)
		}
	}()
	return nil
}

// Close stops all control planes and all running work.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	_ = s.authenticator.Close()
	var wg sync.WaitGroup
	for _, c := range s.clusters {
		if c.plane != nil {
			wg.Go(c.plane.Stop)
		}
		wg.Go(func() { s.dropGates(c) })
	}
	wg.Wait()
}

// background runs work that outlives the call that started it, until Close.
func (s *Service) background(work func(ctx context.Context)) {
	if s.closed { // the caller holds s.mu
		return
	}
	turn := s.config.Clock.Ticket("eks: in the background")
	s.work.Go(func() {
		turn()
		work(s.ctx)
	})
}

// wait returns when done returns true or an error. done is called with s.mu held.
func (s *Service) wait(ctx context.Context, done func() (bool, error)) error {
	return s.changes.Await(ctx, s.ctx, s.config.Clock, "eks: a change", done)
}

func (s *Service) arn(resource string) string {
	return fmt.Sprintf("arn:%s:eks:%s:%s:%s", s.config.Partition, s.config.Region, s.config.Account, resource)
}

func (s *Service) clusterARN(name string) string { return s.arn("cluster/" + name) }

// Wire returns the API.
func (s *Service) Wire() *wire.Service {
	w := &wire.Service{
		Name: "eks", Protocol: wire.RESTJSON, Version: "2017-11-01", Operations: map[string]wire.Operation{}, Routes: map[string]string{},
	}
	for route, operation := range s.routes() {
		_, action, _ := strings.Cut(route, " > ")
		path, _, _ := strings.Cut(route, " > ")
		w.Routes[path], w.Operations[action] = action, operation
	}
	return w
}

// routes are the routes of the API reference. https://docs.aws.amazon.com/eks/latest/APIReference/API_Operations.html
func (s *Service) routes() map[string]wire.Operation {
	return map[string]wire.Operation{
		"POST /clusters > CreateCluster":                            operation(s.CreateCluster),
		"GET /clusters > ListClusters":                              operation(s.ListClusters),
		"GET /clusters/{name} > DescribeCluster":                    operation(s.DescribeCluster),
		"DELETE /clusters/{name} > DeleteCluster":                   operation(s.DeleteCluster),
		"POST /clusters/{name}/updates > UpdateClusterVersion":      operation(s.UpdateClusterVersion),
		"POST /clusters/{name}/update-config > UpdateClusterConfig": operation(s.UpdateClusterConfig),
		"GET /clusters/{name}/updates > ListUpdates":                operation(s.ListUpdates),
		"GET /clusters/{name}/updates/{updateId} > DescribeUpdate":  operation(s.DescribeUpdate),
		"GET /cluster-versions > DescribeClusterVersions":           operation(s.DescribeClusterVersions),

		"POST /clusters/{clusterName}/insights > ListInsights":                   operation(s.ListInsights),
		"GET /clusters/{clusterName}/insights/{id} > DescribeInsight":            operation(s.DescribeInsight),
		"POST /clusters/{clusterName}/insights-refresh > StartInsightsRefresh":   operation(s.StartInsightsRefresh),
		"GET /clusters/{clusterName}/insights-refresh > DescribeInsightsRefresh": operation(s.DescribeInsightsRefresh),

		"GET /access-policies > ListAccessPolicies": operation(
			s.ListAccessPolicies),
		"POST /clusters/{clusterName}/access-entries > CreateAccessEntry": operation(
			s.CreateAccessEntry),
		"GET /clusters/{clusterName}/access-entries > ListAccessEntries": operation(
			s.ListAccessEntries),
		"GET /clusters/{clusterName}/access-entries/{principalArn} > DescribeAccessEntry": operation(
			s.DescribeAccessEntry),
		"POST /clusters/{clusterName}/access-entries/{principalArn} > UpdateAccessEntry": operation(
			s.UpdateAccessEntry),
		"DELETE /clusters/{clusterName}/access-entries/{principalArn} > DeleteAccessEntry": operation(
			s.DeleteAccessEntry),
		"POST /clusters/{clusterName}/access-entries/{principalArn}/access-policies > AssociateAccessPolicy": operation(
			s.AssociateAccessPolicy),
		"GET /clusters/{clusterName}/access-entries/{principalArn}/access-policies > ListAssociatedAccessPolicies": operation(
			s.ListAssociatedAccessPolicies),
		"DELETE /clusters/{clusterName}/access-entries/{principalArn}/access-policies/{policyArn} > DisassociateAccessPolicy": operation(
			s.DisassociateAccessPolicy),

		"GET /addons/supported-versions > DescribeAddonVersions":               operation(s.DescribeAddonVersions),
		"GET /addons/configuration-schemas > DescribeAddonConfiguration":       operation(s.DescribeAddonConfiguration),
		"POST /clusters/{clusterName}/addons > CreateAddon":                    operation(s.CreateAddon),
		"GET /clusters/{clusterName}/addons > ListAddons":                      operation(s.ListAddons),
		"GET /clusters/{clusterName}/addons/{addonName} > DescribeAddon":       operation(s.DescribeAddon),
		"POST /clusters/{clusterName}/addons/{addonName}/update > UpdateAddon": operation(s.UpdateAddon),
		"DELETE /clusters/{clusterName}/addons/{addonName} > DeleteAddon":      operation(s.DeleteAddon),

		"POST /clusters/{clusterName}/pod-identity-associations > CreatePodIdentityAssociation": operation(
			s.CreatePodIdentityAssociation),
		"GET /clusters/{clusterName}/pod-identity-associations > ListPodIdentityAssociations": operation(
			s.ListPodIdentityAssociations),
		"GET /clusters/{clusterName}/pod-identity-associations/{associationId} > DescribePodIdentityAssociation": operation(
			s.DescribePodIdentityAssociation),
		"POST /clusters/{clusterName}/pod-identity-associations/{associationId} > UpdatePodIdentityAssociation": operation(
			s.UpdatePodIdentityAssociation),
		"DELETE /clusters/{clusterName}/pod-identity-associations/{associationId} > DeletePodIdentityAssociation": operation(
			s.DeletePodIdentityAssociation),

		"GET /tags/{resourceArn} > ListTagsForResource": operation(s.ListTagsForResource),
		"POST /tags/{resourceArn} > TagResource":        operation(s.TagResource),
		"DELETE /tags/{resourceArn} > UntagResource":    operation(s.UntagResource),
	}
}

// operation converts a method to a wire operation. It decodes the input. The method itself authorizes, because CloudFormation calls it too.
func operation[In, Out any](method func(context.Context, iam.Caller, In) (Out, error)) wire.Operation {
	return func(ctx context.Context, c *wire.Call) (any, error) {
		var in In
		if err := c.Decode(&in); err != nil {
			return nil, err
		}
		return method(ctx, c.Caller, in)
	}
}

// The errors of the API. https://docs.aws.amazon.com/eks/latest/APIReference/CommonErrors.html
func invalid(format string, args ...any) error {
	return &wire.Error{Code: "InvalidParameterException", Message: fmt.Sprintf(format, args...), Status: 400}
}

// unchangedError reports that a cluster already has the requested configuration.
type unchangedError struct{ error }

func (e unchangedError) Unwrap() error { return e.error }

func unchanged(format string, args ...any) error {
	return unchangedError{invalid(format, args...)}
}

func invalidRequest(format string, args ...any) error {
	return &wire.Error{Code: "InvalidRequestException", Message: fmt.Sprintf(format, args...), Status: 400}
}

func inUse(format string, args ...any) error {
	return &wire.Error{Code: "ResourceInUseException", Message: fmt.Sprintf(format, args...), Status: 409}
}

func notFound(format string, args ...any) error {
	return &wire.Error{Code: "ResourceNotFoundException", Message: fmt.Sprintf(format, args...), Status: 404}
}

func unsupportedError(format string, args ...any) error {
	return wire.Unsupported("eks", fmt.Sprintf(format, args...))
}

func isNotFound(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Code == "ResourceNotFoundException"
}

// Page requests a part of a list.
type Page struct {
	MaxResults int
	NextToken  string
}

// paginate returns a page of a sorted list and the token of the next one. A token is the last name of the previous page.
func (p Page) paginate(names []string) ([]string, *string) {
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(n string) bool { return n <= p.NextToken })
	limit := p.MaxResults
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	if len(names) <= limit {
		return append([]string{}, names...), nil
	}
	return names[:limit], &names[limit-1]
}

func keys[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }

// randomHex returns n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// uuid returns a UUID as in AWS's ARNs.
func uuid() string {
	h := randomHex(16)
	return strings.Join([]string{h[:8], h[8:12], "4" + h[13:16], "a" + h[17:20], h[20:]}, "-")
}

// planeDir returns a new folder for a cluster's control plane, because a name may be reused.
func (s *Service) planeDir(cluster string) (string, error) {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(s.config.Dir, cluster+"-")
}
