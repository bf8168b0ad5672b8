package ec2

// The API: instances, launch templates, tags and the catalog. api_network.go has networks.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Welcome.html

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the API.
func (s *Service) Wire() *wire.Service {
	operations := map[string]wire.Operation{
		"DescribeInstances":              s.describeInstances,
		"TerminateInstances":             s.terminateInstances,
		"GetConsoleOutput":               s.getConsoleOutput,
		"DescribeVolumes":                s.describeVolumes,
		"CreateVolume":                   s.apiCreateVolume,
		"DeleteVolume":                   s.apiDeleteVolume,
		"DescribeLaunchTemplates":        s.describeLaunchTemplates,
		"DescribeLaunchTemplateVersions": s.describeLaunchTemplateVersions,
		"DescribeImages":                 s.describeImages,
		"DescribeInstanceTypes":          s.describeInstanceTypes,
		"DescribeInstanceTypeOfferings":  s.describeInstanceTypeOfferings,
		"DescribeAvailabilityZones":      s.describeAvailabilityZones,
		"CreateTags":                     s.apiCreateTags,
		"DeleteTags":                     s.apiDeleteTags,
		"DescribeTags":                   s.describeTags,
		"DescribeVpcEndpointServices":    s.describeEndpointServices,
	}
	maps.Copy(operations, s.networkOperations())
	return &wire.Service{Name: "ec2", Protocol: wire.EC2Query, Version: "2016-11-15", Operations: operations}
}

type stateItem struct {
	Code int
	Name string
}

var stateCodes = map[string]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48}

type groupItem struct{ GroupId, GroupName string }

type instanceItem struct {
	InstanceId, ImageId, InstanceType, Architecture, PrivateDnsName string
	PrivateIpAddress, IpAddress, SubnetId, VpcId                    string `xml:",omitempty"`
	InstanceLifecycle                                               string `xml:",omitempty"`
	Reason                                                          string
	InstanceState                                                   stateItem
	LaunchTime                                                      time.Time
	Placement                                                       struct{ AvailabilityZone, AvailabilityZoneId, Tenancy string }
	IamInstanceProfile                                              *struct{ Arn string }
	// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Monitoring.html
	Monitoring      struct{ State string }
	GroupSet        []groupItem
	TagSet          []tagItem
	MetadataOptions struct {
		State, HttpTokens, HttpEndpoint string
		HttpPutResponseHopLimit         int
	}
	BlockDeviceMapping []struct {
		DeviceName string
		Ebs        struct {
			VolumeId            string
			DeleteOnTermination bool
		}
	}
}

func (s *Service) instanceItem(i *instance) instanceItem {
	item := instanceItem{
		InstanceId: i.id, ImageId: i.image.ID, InstanceType: i.typ.Name, Architecture: i.typ.Architecture, PrivateDnsName: i.dnsName,
		PrivateIpAddress: i.address, IpAddress: i.publicAddress, SubnetId: i.subnet, VpcId: i.vpc, Reason: i.reasonCode,
		InstanceState: stateItem{stateCodes[i.state], i.state}, LaunchTime: i.launched, TagSet: tagSet(i.tags),
	}
	item.Placement.AvailabilityZone, item.Placement.AvailabilityZoneId, item.Placement.Tenancy = i.zone, s.zoneID(i.zone), "default"
	item.Monitoring.State = "disabled"
	if i.monitoring {
		item.Monitoring.State = "enabled"
	}
	if i.spot {
		item.InstanceLifecycle = "spot"
	}
	if i.profileARN != "" {
		item.IamInstanceProfile = &struct{ Arn string }{i.profileARN}
	}
	for _, id := range i.groups {
		if g, ok := s.groups.get(id); ok {
			item.GroupSet = append(item.GroupSet, groupItem{id, g.name})
		}
	}
	m := &item.MetadataOptions
	m.State, m.HttpTokens, m.HttpEndpoint, m.HttpPutResponseHopLimit = "applied", "optional", "enabled", 1
	if i.metadata.HttpTokens != "" {
		m.HttpTokens = i.metadata.HttpTokens
	}
	if i.metadata.HttpEndpoint != "" {
		m.HttpEndpoint = i.metadata.HttpEndpoint
	}
	if i.metadata.HttpPutResponseHopLimit != nil {
		m.HttpPutResponseHopLimit = *i.metadata.HttpPutResponseHopLimit
	}
	for _, id := range i.volumes {
		if v, ok := s.volumes.get(id); ok {
			var b struct {
				DeviceName string
				Ebs        struct {
					VolumeId            string
					DeleteOnTermination bool
				}
			}
			b.DeviceName, b.Ebs.VolumeId, b.Ebs.DeleteOnTermination = v.device, id, v.dies
			item.BlockDeviceMapping = append(item.BlockDeviceMapping, b)
		}
	}
	return item
}

func (s *Service) describeInstances(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		InstanceId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	notFound := func(id string) error {
		return fail("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	found, err := selected(s.instances.all(), in.InstanceId, in.Filter, notFound, func(i *instance) values {
		lifecycle := "on-demand"
		if i.spot {
			lifecycle = "spot"
		}
		return fixed(map[string][]string{
			"instance-id": {i.id}, "instance-state-name": {i.state}, "instance-state-code": {strconv.Itoa(stateCodes[i.state])},
			"instance-type": {i.typ.Name},
			"image-id":      {i.image.ID}, "vpc-id": {i.vpc}, "subnet-id": {i.subnet}, "availability-zone": {i.zone},
			"private-dns-name":   {i.dnsName},
			"private-ip-address": {i.address}, "instance-lifecycle": {lifecycle}, "architecture": {i.typ.Architecture},
			"iam-instance-profile.arn": {i.profileARN},
			"instance.group-id":        i.groups, "network-interface.group-id": i.groups,
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type reservation struct {
		ReservationId, OwnerId string
		InstancesSet           []instanceItem
	}
	out := struct {
		ReservationSet []reservation
		NextToken      string `xml:",omitempty"`
	}{NextToken: next}
	for _, i := range list {
		out.ReservationSet = append(out.ReservationSet, reservation{"r-" + i.id[2:], s.config.Account, []instanceItem{s.instanceItem(i)}})
	}
	return out, nil
}

func (s *Service) terminateInstances(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		InstanceId []string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	type change struct {
		InstanceId                  string
		CurrentState, PreviousState stateItem
	}
	var out struct{ InstancesSet []change }
	var found []*instance
	for _, id := range in.InstanceId {
		i, err := s.instance(id)
		if err != nil {
			return nil, err
		}
		c.Resource = s.arn("instance", id)
		if err := s.allow(c.Caller, "TerminateInstances", on(i.object)); err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	if len(found) == 0 {
		return nil, fail("MissingParameter", "The request must contain the parameter InstanceId")
	}
	for _, i := range found {
		before := i.state
		s.terminate(i, "Client.UserInitiatedShutdown")
		out.InstancesSet = append(out.InstancesSet, change{i.id, stateItem{stateCodes[i.state], i.state}, stateItem{stateCodes[before], before}})
	}
	return out, nil
}

func (s *Service) getConsoleOutput(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		InstanceId string
		Latest     bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	i, err := s.instance(in.InstanceId)
	if err == nil {
		c.Resource = s.arn("instance", i.id)
		err = s.allow(c.Caller, "GetConsoleOutput", on(i.object))
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	text, err := s.Console(in.InstanceId)
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceId string
		Timestamp  time.Time
		Output     string
	}{in.InstanceId, s.config.Clock.Now(), base64.StdEncoding.EncodeToString([]byte(text))}, nil
}

func (s *Service) describeVolumes(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		VolumeId []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status := func(v *volume) string {
		if v.instance == "" {
			return "available"
		}
		return "in-use"
	}
	notFound := func(id string) error { return fail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id) }
	found, err := selected(s.volumes.all(), in.VolumeId, in.Filter, notFound, func(v *volume) values {
		return fixed(map[string][]string{
			"volume-id": {v.id}, "status": {status(v)}, "volume-type": {v.typ}, "availability-zone": {v.zone},
			"attachment.instance-id": {v.instance},
			"encrypted":              {strconv.FormatBool(v.encrypted)},
		})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	type attachment struct {
		VolumeId, InstanceId, Device, Status string
		DeleteOnTermination                  bool
	}
	type item struct {
		VolumeId, AvailabilityZone, VolumeType, Status string
		Size                                           int
		Iops                                           int `xml:",omitempty"`
		Throughput                                     int `xml:",omitempty"`
		Encrypted                                      bool
		KmsKeyId                                       string `xml:",omitempty"`
		CreateTime                                     time.Time
		AttachmentSet                                  []attachment
		TagSet                                         []tagItem
	}
	out := struct {
		VolumeSet []item
		NextToken string `xml:",omitempty"`
	}{NextToken: next}
	for _, v := range list {
		x := item{VolumeId: v.id, AvailabilityZone: v.zone, VolumeType: v.typ, Status: status(v), Size: v.size, Iops: v.iops,
			Throughput: v.throughput, Encrypted: v.encrypted, KmsKeyId: v.key, CreateTime: v.created, TagSet: tagSet(v.tags)}
		if v.instance != "" {
			x.AttachmentSet = []attachment{{
				VolumeId: v.id, InstanceId: v.instance, Device: v.device, Status: "attached", DeleteOnTermination: v.dies,
			}}
		}
		out.VolumeSet = append(out.VolumeSet, x)
	}
	return out, nil
}

type launchTemplateItem struct {
	LaunchTemplateId, LaunchTemplateName      string
	CreateTime                                time.Time
	CreatedBy                                 string
	DefaultVersionNumber, LatestVersionNumber int
	TagSet                                    []tagItem
}

func (s *Service) describeLaunchTemplates(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LaunchTemplateId, LaunchTemplateName []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range in.LaunchTemplateName {
		t, err := s.template("", name)
		if err != nil {
			return nil, err
		}
		in.LaunchTemplateId = append(in.LaunchTemplateId, t.id)
	}
	notFound := func(id string) error { _, err := s.template(id, ""); return err }
	found, err := selected(s.templates.all(), in.LaunchTemplateId, in.Filter, notFound, func(t *launchTemplate) values {
		return fixed(map[string][]string{"launch-template-name": {t.name}})
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	out := struct {
		LaunchTemplates []launchTemplateItem
		NextToken       string `xml:",omitempty"`
	}{NextToken: next}
	for _, t := range list {
		out.LaunchTemplates = append(out.LaunchTemplates, launchTemplateItem{t.id, t.name, t.created,
			"arn:" + s.config.Partition + ":iam::" + s.config.Account + ":root", t.byDefault, t.latest().number, tagSet(t.tags)})
	}
	return out, nil
}

// describeLaunchTemplateVersions returns the parts of a version that decide about its instances.
func (s *Service) describeLaunchTemplateVersions(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LaunchTemplateId, LaunchTemplateName string
		LaunchTemplateVersion                []string
		MinVersion, MaxVersion               string
		ResolveAlias                         bool
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	versions := slices.Clone(t.versions)
	if len(in.LaunchTemplateVersion) > 0 {
		versions = nil
		for _, number := range in.LaunchTemplateVersion {
			v, err := t.version(number)
			if err != nil {
				return nil, err
			}
			versions = append(versions, v)
		}
	}
	if in.MinVersion != "" || in.MaxVersion != "" || len(in.Filter) > 0 {
		return nil, wire.Unsupported("ec2", "MinVersion, MaxVersion and filters of DescribeLaunchTemplateVersions")
	}
	slices.Reverse(versions)
	list, next, err := page(versions, in.paged)
	if err != nil {
		return nil, err
	}
	type data struct {
		ImageId            string   `xml:",omitempty"`
		InstanceType       string   `xml:",omitempty"`
		UserData           string   `xml:",omitempty"`
		SecurityGroupIdSet []string `xml:",omitempty"`
		IamInstanceProfile *ProfileReference
		MetadataOptions    *MetadataOptions
	}
	type item struct {
		LaunchTemplateId, LaunchTemplateName string
		VersionNumber                        int
		VersionDescription                   string `xml:",omitempty"`
		CreateTime                           time.Time
		DefaultVersion                       bool
		LaunchTemplateData                   data
	}
	out := struct {
		LaunchTemplateVersionSet []item
		NextToken                string `xml:",omitempty"`
	}{NextToken: next}
	for _, v := range list {
		out.LaunchTemplateVersionSet = append(out.LaunchTemplateVersionSet, item{
			t.id, t.name, v.number, v.description, v.created, v.number == t.byDefault,
			data{v.data.ImageId, v.data.InstanceType, v.data.UserData, v.data.SecurityGroupIds, v.data.IamInstanceProfile, v.data.MetadataOptions},
		})
	}
	return out, nil
}

func (s *Service) describeTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ paged }
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	type item struct{ ResourceId, ResourceType, Key, Value string }
	var found []item
	for _, o := range s.objects() {
		for _, t := range tagSet(o.tags) {
			ok, err := passes(in.Filter, fixed(map[string][]string{"resource-id": {o.id}, "resource-type": {o.kind}, "key": {t.Key},
				"value": {t.Value}}))
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, item{o.id, o.kind, t.Key, t.Value})
			}
		}
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	return struct {
		TagSet    []item
		NextToken string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) apiCreateTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceId []string
		Tag        []resource.Tag
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags := map[string]string{}
	if err := userTags(tags, in.Tag); err != nil {
		return nil, err
	}
	return returned{true}, s.createTags(c.Caller, in.ResourceId, tags)
}

func (s *Service) apiDeleteTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ResourceId []string
		Tag        []struct {
			Key   string
			Value *string
		}
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	tags := map[string]*string{}
	for _, t := range in.Tag {
		tags[t.Key] = t.Value
	}
	return returned{true}, s.deleteTags(c.Caller, in.ResourceId, tags)
}

// returned is the result of operations without a result.
type returned struct{ Return bool }
