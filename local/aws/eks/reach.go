package eks

// Who reaches the endpoint of a cluster. https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
//
// On AWS an endpoint is one name, which resolves to public or private addresses. Here it is one loopback address for each source of
// connections: DescribeCluster returns the caller's, and Resolve replaces them in the environment of functions. Each address forwards
// connections while the cluster admits its source. Otherwise it drops them, so that a client waits until its own timeout.

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/gate"
)

// endpointPort is the port of endpoints on AWS.
const endpointPort = 443

// Source is where connections come from: the network interfaces of a function in a VPC, or public addresses.
type Source struct {
	// Public has all addresses of a source outside of VPCs. A cluster admits the source if it admits all of them.
	Public netip.Prefix
	// SubnetIDs and SecurityGroupIDs of a function in a VPC.
	SubnetIDs, SecurityGroupIDs []string
}

func (f Source) key() string {
	return fmt.Sprint(f.Public, " ", slices.Sorted(slices.Values(f.SubnetIDs)), slices.Sorted(slices.Values(f.SecurityGroupIDs)))
}

// Reaches reports whether a source can connect to the endpoint of a cluster.
func (s *Service) Reaches(cluster string, from Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(cluster)
	return err == nil && s.admitsLocked(c, from)
}

func (s *Service) admitsLocked(c *cluster, from Source) bool {
	access := c.ResourcesVpcConfig
	if len(from.SubnetIDs) == 0 {
		return access.EndpointPublicAccess && covers(access.PublicAccessCidrs, from.Public)
	}
	subnet := from.SubnetIDs[0] // Lambda chooses any
	own, err := s.config.Network.Subnets(subnet)
	if err != nil {
		return false
	}
	if access.EndpointPrivateAccess && own[0].VPCID == access.VPCID {
		return s.config.Network.Connects(subnet, from.SecurityGroupIDs, c.interfaces, endpointPort)
	}
	address, found := s.config.Network.NATAddress(subnet)
	return found && access.EndpointPublicAccess && covers(access.PublicAccessCidrs, netip.PrefixFrom(address, address.BitLen()))
}

// covers reports whether one of the blocks contains all addresses.
func covers(blocks []string, addresses netip.Prefix) bool {
	return slices.ContainsFunc(blocks, func(text string) bool {
		block, err := netip.ParsePrefix(text)
		return err == nil && addresses.IsValid() && block.Bits() <= addresses.Bits() && block.Contains(addresses.Addr())
	})
}

// endpointFor returns the endpoint of a cluster for a source. The caller holds s.mu.
func (s *Service) endpointFor(c *cluster, from Source) (string, error) {
	at, ok := c.gates[from.key()]
	if !ok {
		address, _ := c.plane.Address()
		g, err := gate.New(strings.TrimPrefix(address, "https://"))
		if err != nil {
			return "", err
		}
		at = &sourceGate{g, from}
		if err := g.Set(s.admitsLocked(c, from)); err != nil {
			g.Close()
			return "", err
		}
		c.gates[from.key()] = at
		s.watching.Do(func() { s.background(s.watchGates) })
	}
	return "https://" + at.Address(), nil
}

// sourceGate is the address of an endpoint for one source.
type sourceGate struct {
	*gate.Gate
	from Source
}

// watchGates opens and shuts gates when a cluster or its network changes.
func (s *Service) watchGates(ctx context.Context) {
	for {
		network := s.config.Network.Changed()
		s.mu.Lock()
		changed := s.changes.Next()
		admitted := map[*sourceGate]bool{}
		for _, c := range s.clusters {
			for _, g := range c.gates {
				admitted[g] = s.admitsLocked(c, g.from)
			}
		}
		s.mu.Unlock()
		for g, open := range admitted {
			if err := g.Set(open); err != nil {
				s.config.Log.Error("the endpoint of a cluster neither opens nor shuts", "address", g.Address(), "error", err)
			}
		}
		select {
		case <-changed:
		case <-network:
		case <-ctx.Done():
			return
		}
	}
}

// dropGates closes the addresses of a deleted cluster. The caller does not hold s.mu.
func (s *Service) dropGates(c *cluster) {
	s.mu.Lock()
	gates := slices.Collect(maps.Values(c.gates))
	clear(c.gates)
	s.mu.Unlock()
	for _, g := range gates {
		g.Close()
	}
}

// sourceOf returns the source of a caller. The caller does not hold s.mu, because other services answer and ask this one.
func (s *Service) sourceOf(caller iam.Caller) Source {
	if s.config.SourceOf == nil {
		return Source{}
	}
	return s.config.SourceOf(caller)
}

// describeFor returns a cluster with the endpoint for a source. The caller holds s.mu.
func (s *Service) describeFor(c *cluster, from Source) (*Cluster, error) {
	d := c.describe()
	if d.Endpoint == "" || s.config.SourceOf == nil || c.Status == deleting {
		return d, nil
	}
	var err error
	d.Endpoint, err = s.endpointFor(c, from)
	return d, err
}

// Resolve replaces the endpoints of clusters in a text, such as an environment variable, by those for a source.
func (s *Service) Resolve(text string, from Source) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clusters {
		if c.Endpoint == "" || c.Status == deleting || !strings.Contains(text, c.Endpoint) {
			continue
		}
		endpoint, err := s.endpointFor(c, from)
		if err != nil {
			s.config.Log.Error("no endpoint for a function", "cluster", c.Name, "error", err)
			continue
		}
		text = strings.ReplaceAll(text, c.Endpoint, endpoint)
	}
	return text
}
