package ec2

// Volumes and network interfaces that belong to no instance: what Kubernetes makes, and leaves behind.

import (
	"context"
	"slices"

	"github.com/drover-run/drover/local/wire"
)

// CreateVolume makes a volume for another service, such as Kubernetes' EBS driver.
func (s *Service) CreateVolume(zone string, sizeGiB int, tags map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.config.Zones, zone) {
		return "", fail("InvalidZone.NotFound", "The zone '%s' does not exist.", zone)
	}
	if err := checkTags(tags); err != nil {
		return "", err
	}
	v := &volume{object: s.newObject("volume", "vol", tags), zone: zone, typ: "gp3", size: sizeGiB, iops: 3000, throughput: 125, created: s.config.Clock.Now()}
	s.volumes.put(v.id, v)
	s.changedLocked()
	return v.id, nil
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
	s.changedLocked()
	return returned{true}, nil
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
