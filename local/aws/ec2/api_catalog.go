package ec2

// The API of predefined objects: images, instance types, zones.

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

func (s *Service) describeImages(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ImageId, Owner, ExecutableBy []string
		IncludeDeprecated            bool
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	type ebs struct {
		DeleteOnTermination bool
		VolumeSize          int
		VolumeType          string
		Encrypted           bool
	}
	type device struct {
		DeviceName string
		Ebs        ebs
	}
	type item struct {
		ImageId, Name, Architecture, ImageState, ImageType, ImageOwnerId string
		RootDeviceName, RootDeviceType, VirtualizationType               string
		PlatformDetails                                                  string
		Platform, SourceImageId                                          string `xml:",omitempty"`
		IsPublic                                                         bool
		BlockDeviceMapping                                               []device
	}
	var found []item
	for _, id := range in.ImageId {
		if _, err := s.image(id); err != nil {
			return nil, err
		}
	}
	const amazon = "602401143452" // the account of the EKS images
	for _, i := range append(s.images(), imagesOf(silent)...) {
		if i.Silent && !asksFor(in.ImageId, in.Filter, i.ID) {
			continue
		}
		if len(in.ImageId) > 0 && !slices.Contains(in.ImageId, i.ID) || len(in.Owner) > 0 && !slices.Contains(in.Owner, amazon) &&
			!slices.Contains(in.Owner, "amazon") {
			continue
		}
		ok, err := passes(in.Filter, fixed(map[string][]string{
			"image-id": {i.ID}, "name": {i.Name}, "architecture": {i.Architecture}, "state": {"available"}, "owner-id": {amazon},
		}))
		if err != nil {
			return nil, err
		}
		if ok {
			x := item{
				ImageId: i.ID, Name: i.Name, Architecture: i.Architecture, ImageState: "available", ImageType: "machine", ImageOwnerId: amazon,
				RootDeviceName: i.devices()[0], RootDeviceType: "ebs", VirtualizationType: "hvm", IsPublic: true,
				PlatformDetails: cmp.Or(i.Platform, "Linux/UNIX"), SourceImageId: i.SourceID,
			}
			// "For Windows AMIs, windows; otherwise blank": https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Image.html
			if strings.HasPrefix(i.Platform, "Windows") {
				x.Platform = "windows"
			}
			for _, name := range i.devices() {
				x.BlockDeviceMapping = append(x.BlockDeviceMapping, device{name, ebs{true, 20, "gp3", false}})
			}
			found = append(found, x)
		}
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	return struct {
		ImagesSet []item
		NextToken string `xml:",omitempty"`
	}{list, next}, nil
}

// asksFor reports whether a request names an image by its id. Silent images are listed only then.
func asksFor(ids []string, filters []filter, id string) bool {
	return slices.Contains(ids, id) || slices.ContainsFunc(filters, func(f filter) bool {
		return f.Name == "image-id" && slices.Contains(f.Value, id)
	})
}

func (s *Service) describeInstanceTypes(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		InstanceType []string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	for _, name := range in.InstanceType {
		if _, err := instanceType(name); err != nil {
			return nil, err
		}
	}
	type disk struct {
		SizeInGB, Count int
		Type            string
	}
	type store struct {
		TotalSizeInGB int
		NvmeSupport   string
		Disks         []disk
	}
	type item struct {
		InstanceType                                     string
		InstanceStorageSupported                         bool
		InstanceStorageInfo                              *store
		CurrentGeneration, BurstablePerformanceSupported bool
		ProcessorInfo                                    struct{ SupportedArchitectures []string }
		VCpuInfo                                         struct{ DefaultVCpus int }
		MemoryInfo                                       struct{ SizeInMiB int }
		NetworkInfo                                      struct{ MaximumNetworkInterfaces, Ipv4AddressesPerInterface int }
		SupportedUsageClasses                            []string
	}
	var found []item
	for _, t := range InstanceTypes() {
		if len(in.InstanceType) > 0 && !slices.Contains(in.InstanceType, t.Name) {
			continue
		}
		ok, err := passes(in.Filter, fixed(map[string][]string{
			"instance-type": {t.Name}, "processor-info.supported-architecture": {t.Architecture}, "vcpu-info.default-vcpus": {strconv.Itoa(t.VCPUs)},
			"memory-info.size-in-mib": {strconv.Itoa(t.MemoryMiB)}, "current-generation": {"true"},
			"burstable-performance-supported": {strconv.FormatBool(t.Burstable)},
		}))
		if err != nil {
			return nil, err
		}
		if ok {
			x := item{InstanceType: t.Name, CurrentGeneration: true, BurstablePerformanceSupported: t.Burstable, SupportedUsageClasses: []string{
				"on-demand", "spot",
			}}
			x.ProcessorInfo.SupportedArchitectures = []string{t.Architecture}
			x.VCpuInfo.DefaultVCpus, x.MemoryInfo.SizeInMiB = t.VCPUs, t.MemoryMiB
			x.NetworkInfo.MaximumNetworkInterfaces, x.NetworkInfo.Ipv4AddressesPerInterface = t.Interfaces, t.AddressesPerInterface
			// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStorageInfo.html
			if t.Disks > 0 {
				x.InstanceStorageSupported = true
				x.InstanceStorageInfo = &store{t.Disks * t.DiskGB, "required", []disk{{t.DiskGB, t.Disks, "ssd"}}}
			}
			found = append(found, x)
		}
	}
	if in.MaxResults == nil && len(in.InstanceType) == 0 {
		hundred := 100
		in.MaxResults = &hundred
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceTypeSet []item
		NextToken       string `xml:",omitempty"`
	}{list, next}, nil
}

// describeInstanceTypeOfferings returns every type in every zone.
func (s *Service) describeInstanceTypeOfferings(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LocationType string
		paged
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	var locations []string
	switch in.LocationType {
	case "", "region":
		in.LocationType, locations = "region", []string{s.config.Region}
	case "availability-zone":
		locations = s.config.Zones
	case "availability-zone-id":
		for _, z := range s.config.Zones {
			locations = append(locations, s.zoneID(z))
		}
	default:
		return nil, fail("InvalidParameterValue", "The location type '%s' is invalid", in.LocationType)
	}
	type item struct{ InstanceType, LocationType, Location string }
	var found []item
	for _, t := range InstanceTypes() {
		for _, l := range locations {
			ok, err := passes(in.Filter, fixed(map[string][]string{"instance-type": {t.Name}, "location": {l}}))
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, item{t.Name, in.LocationType, l})
			}
		}
	}
	list, next, err := page(found, in.paged)
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceTypeOfferingSet []item
		NextToken               string `xml:",omitempty"`
	}{list, next}, nil
}

func (s *Service) describeAvailabilityZones(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		ZoneName, ZoneId     []string
		Filter               []filter
		AllAvailabilityZones bool
	}
	if err := s.begin(c, &in); err != nil {
		return nil, err
	}
	type item struct{ ZoneName, ZoneId, ZoneState, ZoneType, RegionName, GroupName, OptInStatus, NetworkBorderGroup string }
	var out struct{ AvailabilityZoneInfo []item }
	for _, name := range in.ZoneName {
		if !slices.Contains(s.config.Zones, name) {
			return nil, fail("InvalidParameterValue", "Invalid availability zone: [%s]", name)
		}
	}
	for _, z := range s.config.Zones {
		if len(in.ZoneName) > 0 && !slices.Contains(in.ZoneName, z) || len(in.ZoneId) > 0 && !slices.Contains(in.ZoneId, s.zoneID(z)) {
			continue
		}
		ok, err := passes(in.Filter, fixed(map[string][]string{
			"zone-name": {z}, "zone-id": {s.zoneID(z)}, "state": {"available"}, "region-name": {s.config.Region},
			"zone-type": {"availability-zone"}, "opt-in-status": {"opt-in-not-required"},
		}))
		if err != nil {
			return nil, err
		}
		if ok {
			out.AvailabilityZoneInfo = append(out.AvailabilityZoneInfo, item{
				z, s.zoneID(z), "available", "availability-zone", s.config.Region, s.config.Region + "-zg-1", "opt-in-not-required", s.config.Region,
			})
		}
	}
	return out, nil
}
