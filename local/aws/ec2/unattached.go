package ec2

// Volumes and network interfaces without an instance, which Kubernetes creates and leaves behind.

import (
	"context"
	"slices"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

// CreateVolume creates a volume for another service, such as Kubernetes' EBS driver.
func (s *Service) CreateVolume(zone string, sizeGiB int, tags map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.newVolume(zone, sizeGiB, tags)
	if err != nil {
		return "", err
	}
	return v.id, nil
}

// newVolume creates a volume after its caller was authorized. The caller holds the lock.
func (s *Service) newVolume(zone string, sizeGiB int, tags map[string]string) (*volume, error) {
	if !slices.Contains(s.config.Zones, zone) {
		return nil, fail("InvalidZone.NotFound", "The zone '%s' does not exist.", zone)
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	v := &volume{
		object: s.newObject("volume", "vol", tags), zone: zone, typ: "gp3", size: sizeGiB, iops: 3000, throughput: 125,
		created: s.config.Clock.Now(),
	}
	s.volumes.put(v.id, v)
	s.changes.Announce()
	return v, nil
}

// resultOfToken returns the result of an earlier call with the same client token, if any. The caller holds the lock.
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
func (s *Service) resultOfToken(c *wire.Call, token string) string {
	if token == "" {
		return ""
	}
	return s.tokens[c.Action+" "+token]
}

// recordToken records the result of a call with a client token. The caller holds the lock.
func (s *Service) recordToken(c *wire.Call, token, id string) {
	if token != "" {
		s.tokens[c.Action+" "+token] = id
	}
}

// largestVolume is the limit of gp3, in GiB. https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html
const largestVolume = 65_536

// apiCreateVolume serves tests that act as Kubernetes' EBS driver. It supports only the driver's defaults.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html
func (s *Service) apiCreateVolume(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		AvailabilityZone, VolumeType, ClientToken string
		Size                                      int
		TagSpecification                          []tagSpecification
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags, err := specified(in.TagSpecification, "volume")
	if err != nil {
		return nil, err
	}
	switch {
	case in.VolumeType != "" && in.VolumeType != "gp3":
		return nil, wire.Unsupported("ec2", "volumes of the type "+in.VolumeType)
	case in.Size < 1 || in.Size > largestVolume:
		return nil, fail("InvalidParameterValue", "Volume of %dGiB is not between 1GiB and %dGiB.", in.Size, largestVolume)
	}
	c.Resource = s.arn("volume", "*")
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.allowMaking(c.Caller, "CreateVolume", "volume", tags); err != nil {
		return nil, err
	}
	v, again := s.volumes.get(s.resultOfToken(c, in.ClientToken))
	if !again {
		if v, err = s.newVolume(in.AvailabilityZone, in.Size, tags); err != nil {
			return nil, err
		}
		s.recordToken(c, in.ClientToken, v.id)
	}
	return struct {
		VolumeId, AvailabilityZone, VolumeType, Status string
		Size, Iops, Throughput                         int
		CreateTime                                     time.Time
		TagSet                                         []tagItem
	}{v.id, v.zone, v.typ, "available", v.size, v.iops, v.throughput, v.created, tagSet(v.tags)}, nil
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteVolume.html
func (s *Service) apiDeleteVolume(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ VolumeId string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("volume", in.VolumeId)
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes.get(in.VolumeId)
	if !ok {
		return nil, fail("InvalidVolume.NotFound", "The volume '%s' does not exist.", in.VolumeId)
	}
	if err := s.allow(c.Caller, "DeleteVolume", on(v.object)); err != nil {
		return nil, err
	}
	if v.instance != "" {
		return nil, fail("VolumeInUse", "Volume %s is currently attached to %s", v.id, v.instance)
	}
	s.volumes.delete(v.id)
	s.changes.Announce()
	return returned{true}, nil
}

// apiCreateInterface serves tests that act as Kubernetes' network plugin. The interface is not attached.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateNetworkInterface.html
func (s *Service) apiCreateInterface(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		SubnetId, Description, ClientToken string
		SecurityGroupId                    []string
		TagSpecification                   []tagSpecification
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags, err := specified(in.TagSpecification, "network-interface")
	if err == nil {
		err = checkTags(tags)
	}
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn("network-interface", "*")
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.subnet(in.SubnetId)
	if err != nil {
		return nil, err
	}
	if err := s.allowMaking(c.Caller, "CreateNetworkInterface", "network-interface", tags, on(sub.object)); err != nil {
		return nil, err
	}
	i, again := s.interfaces.get(s.resultOfToken(c, in.ClientToken))
	if !again {
		if in.SecurityGroupId == nil { // "The default is the default security group for the VPC."
			for _, g := range s.groups.all() {
				if g.vpc == sub.vpc && g.name == "default" {
					in.SecurityGroupId = []string{g.id}
				}
			}
		}
		if i, err = s.newInterface(sub, in.SecurityGroupId, "interface", in.Description, "", tags); err != nil {
			return nil, err
		}
		s.recordToken(c, in.ClientToken, i.id)
		s.changes.Announce()
	}
	type item struct {
		NetworkInterfaceId, SubnetId, VpcId, AvailabilityZone, Description, PrivateIpAddress, Status string
		TagSet                                                                                       []tagItem
	}
	return struct{ NetworkInterface item }{
		item{i.id, i.subnet, i.vpc, i.zone, i.description, i.address.String(), "available", tagSet(i.tags)},
	}, nil
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteNetworkInterface.html
func (s *Service) apiDeleteInterface(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ NetworkInterfaceId string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn("network-interface", in.NetworkInterfaceId)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.interfaces.get(in.NetworkInterfaceId)
	if !ok {
		return nil, fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", in.NetworkInterfaceId)
	}
	if err := s.allow(c.Caller, "DeleteNetworkInterface", on(i.object)); err != nil {
		return nil, err
	}
	if i.owner != "" {
		return nil, fail("InvalidParameterValue", "Network interface '%s' is currently in use.", i.id)
	}
	s.freeInterface(i.id)
	return returned{true}, nil
}
