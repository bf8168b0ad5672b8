// Package kube is the client for the Kubernetes API of a cluster: tokens, nodes, health, volumes, and the RBAC rules of drover's functions.
// It finds the endpoint through EKS. Its subpackage drainer drains nodes. Its subpackage survey reads what the checks need.
// Its subpackage relay reaches private clusters.
package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// Clusters opens the APIs of clusters.
type Clusters struct {
	// describe is an operation, and not EKS's client: the linker would keep all operations of a client in a program with text/template.
	describe func(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	presign  *sts.PresignClient
	reach    func(endpoint string) http.RoundTripper
	relay    func(cluster string) http.RoundTripper
	// role and group are those of WithRole.
	role, group string
}

// Option of Clusters.
type Option func(*Clusters)

// WithTransport calls API servers through a transport instead of the network, unless reach is nil. The authority of the cluster is then not
// verified.
func WithTransport(reach func(endpoint string) http.RoundTripper) Option {
	return func(c *Clusters) { c.reach = reach }
}

// WithRelay calls API servers whose endpoints are not open to everyone through their clusters' relays: see package relay.
func WithRelay(relay func(cluster string) http.RoundTripper) Option {
	return func(c *Clusters) { c.relay = relay }
}

// NewClusters returns the clusters of an account. cfg is the identity that calls EKS and signs in to API servers.
func NewClusters(cfg aws.Config, options ...Option) *Clusters {
	c := &Clusters{describe: eks.NewFromConfig(cfg).DescribeCluster, presign: sts.NewPresignClient(sts.NewFromConfig(cfg))}
	for _, apply := range options {
		apply(c)
	}
	return c
}

// Cluster is one cluster's API.
type Cluster struct {
	Typed
	Dynamic dynamic.Interface
	version string
}

// Version is that of the control plane, such as "1.36". It is empty after Connect.
func (c *Cluster) Version() string { return c.version }

// CallTimeout limits one call to an API server that does not respond.
const CallTimeout = 10 * time.Second

// Open finds the endpoint of a cluster and signs in. The token is valid for longer than a function runs.
func (c *Clusters) Open(ctx context.Context, cluster string) (*Cluster, error) {
	name := names.EKSCluster(cluster)
	out, err := c.describe(ctx, &eks.DescribeClusterInput{Name: &name})
	if err != nil {
		if fault.Code(err) == "ResourceNotFoundException" {
			return nil, fmt.Errorf("EKS cluster %s: %w", name, pool.ErrNoCluster)
		}
		return nil, fmt.Errorf("describing EKS cluster %s: %w", name, err)
	}
	if out.Cluster.Status == types.ClusterStatusCreating || out.Cluster.Endpoint == nil {
		return nil, fmt.Errorf("EKS cluster %s is %s: %w", name, out.Cluster.Status, pool.ErrNoCluster)
	}
	relayed, closed := false, error(nil)
	if vpc := out.Cluster.ResourcesVpcConfig; vpc != nil {
		relayed = !api.IsOpen(vpc.EndpointPublicAccess, vpc.PublicAccessCidrs)
		if relayed && out.Cluster.Tags[names.TagRelay] == "" {
			closed = closedOutside(name, vpc)
		}
	}
	opened, err := c.connect(ctx, cluster, stack.API{
		Endpoint: *out.Cluster.Endpoint, Authority: aws.ToString(out.Cluster.CertificateAuthority.Data), Relayed: relayed,
	}, closed)
	if err != nil {
		return nil, err
	}
	opened.version = aws.ToString(out.Cluster.Version)
	return opened, nil
}

// Opener opens clusters as the interface that a function declares.
type Opener[C any] struct {
	Clusters *Clusters
	As       func(*Cluster) C
}

// Open opens a cluster, as Clusters.Open does.
func (o Opener[C]) Open(ctx context.Context, cluster string) (C, error) {
	opened, err := o.Clusters.Open(ctx, cluster)
	if err != nil {
		var none C
		return none, err
	}
	return o.As(opened), nil
}

// connect signs in. closed is why the endpoint is not open to everyone, though the cluster's stack made no relay; nil if it made one.
func (c *Clusters) connect(ctx context.Context, cluster string, to stack.API, closed error) (*Cluster, error) {
	eksCluster := names.EKSCluster(cluster)
	ca, err := base64.StdEncoding.DecodeString(to.Authority)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority of EKS cluster %s: %w", eksCluster, err)
	}
	token, err := Token(ctx, c.presign, eksCluster)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{Host: to.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	switch {
	case to.Relayed && c.relay != nil: // the relay verifies the authority
		config.Transport, config.TLSClientConfig = c.relay(cluster), rest.TLSClientConfig{}
		if closed != nil {
			config.Transport = withoutRelay{config.Transport, "EKS cluster " + eksCluster, closed}
		}
	case c.reach != nil:
		config.Transport, config.TLSClientConfig = c.reach(config.Host), rest.TLSClientConfig{}
	}
	if c.role != "" {
		message := unauthorizedMessage(eksCluster, c.role, c.group)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return explainer{next, message} })
	}
	opened, err := Connect(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to EKS cluster %s: %w", eksCluster, err)
	}
	return opened, nil
}

// Connect connects to the API of a configuration.
func Connect(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "drover"
	config.QPS = -1 // the API server's priority and fairness decides, not a client's own limit
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed, err := newTyped(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Dynamic: untyped, Typed: typed}, nil
}
