package storm

// Endpoints that are closed outside drover: they no longer admit drover's functions, and the cluster has no relay.

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// closeEndpoints closes endpoints in a plot, mostly amid other acts. An operator opens half of them again by a time, and the others when
// the world is over.
func closeEndpoints(seed uint64, p *plot) {
	r := rand.New(rand.NewPCG(seed, 5)) // #nosec G404 -- a world, no secret
	for _, cluster := range slices.Sorted(maps.Keys(p.last)) {
		if r.IntN(3) > 0 {
			continue
		}
		at := p.amid(r)
		p.acts = append(p.acts, act{
			at: at, cluster: cluster, what: "close the endpoint outside drover", do: func(w *world) { w.closeEndpoint(cluster) },
		})
		if r.IntN(2) == 0 {
			at += time.Duration(5+r.IntN(180)) * time.Minute
			p.acts = append(p.acts, act{
				at: at, cluster: cluster, what: "open the endpoint outside drover", do: func(w *world) { w.openEndpoint(cluster) },
			})
		}
	}
	p.sortActs()
}

// endpointAccess returns the access to a cluster's endpoint, as EKS reports it, and whether EKS changes the cluster.
func (w *world) endpointAccess(cluster string) (access api.Access, changes, found bool) {
	out, err := w.eks().DescribeCluster(w.t.Context(), &eks.DescribeClusterInput{Name: aws.String(names.EKSCluster(cluster))})
	if err != nil || out.Cluster.ResourcesVpcConfig == nil {
		return access, false, false
	}
	is := out.Cluster.ResourcesVpcConfig
	return api.Access{Public: is.EndpointPublicAccess, Private: is.EndpointPrivateAccess, CIDRs: is.PublicAccessCidrs},
		out.Cluster.Status == types.ClusterStatusUpdating, true
}

func (w *world) eks() *eks.Client { return eks.NewFromConfig(w.Config()) }

// admit changes who may connect to a cluster's public endpoint. EKS may refuse.
func (w *world) admit(cluster, cidr string) bool {
	_, err := w.eks().UpdateClusterConfig(w.t.Context(), &eks.UpdateClusterConfigInput{
		Name:               aws.String(names.EKSCluster(cluster)),
		ResourcesVpcConfig: &types.VpcConfigRequest{EndpointPublicAccess: aws.Bool(true), PublicAccessCidrs: []string{cidr}},
	})
	if err != nil {
		w.record("the endpoint of %s does not change to %s: %v", cluster, cidr, fault.Code(err))
	}
	return err == nil
}

// closeEndpoint closes an open endpoint.
func (w *world) closeEndpoint(cluster string) {
	access, _, found := w.endpointAccess(cluster)
	if found && api.IsOpen(access.Public, access.CIDRs) && w.admit(cluster, "198.51.100.0/24") {
		w.closed[cluster] = true
	}
}

// openEndpoint opens an endpoint that was closed. EKS refuses while it changes the cluster.
func (w *world) openEndpoint(cluster string) {
	if w.closed[cluster] && w.isClosed(cluster) {
		w.admit(cluster, "0.0.0.0/0")
	}
}

// isClosed reports whether a closed endpoint is still closed. A spec that makes the cluster private, or public again, replaces the access.
func (w *world) isClosed(cluster string) bool {
	access, changes, found := w.endpointAccess(cluster)
	if !found || !changes && (!access.Public || api.IsOpen(access.Public, access.CIDRs)) {
		delete(w.closed, cluster)
	}
	return w.closed[cluster]
}
