package ec2

// The catalog: predefined instance types and zones. images.go has the machine images.

import (
	"slices"
	"strings"
)

// InstanceType is a kind of machine.
type InstanceType struct {
	Name string
	// Architecture is x86_64 or arm64.
	Architecture string
	VCPUs        int
	MemoryMiB    int
	// Interfaces and AddressesPerInterface bound the pods of the VPC CNI.
	Interfaces, AddressesPerInterface int
	Burstable                         bool
	// Disks is the number of NVMe disks of an instance, and DiskGB the size of one. Other types have only EBS.
	Disks, DiskGB int
}

// MaxPods is the number of pods that nodeadm allows without prefix delegation.
// https://github.com/awslabs/amazon-eks-ami: eni-max-pods.txt
func (t InstanceType) MaxPods() int { return t.Interfaces*(t.AddressesPerInterface-1) + 2 }

// size of an instance of one of the m, c and r families.
type size struct {
	name                  string
	vcpus                 int
	interfaces, addresses int
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/AvailableIpPerENI.html
var sizes = []size{
	{"medium", 1, 2, 4}, {"large", 2, 3, 10}, {"xlarge", 4, 4, 15}, {"2xlarge", 8, 4, 15}, {"4xlarge", 16, 8, 30},
	{"8xlarge", 32, 8, 30}, {"12xlarge", 48, 8, 30}, {"16xlarge", 64, 15, 50}, {"24xlarge", 96, 15, 50},
}

var burstableSizes = []struct {
	size
	memoryMiB int
}{
	{size{"micro", 2, 2, 2}, 1 << 10}, {size{"small", 2, 3, 4}, 2 << 10}, {size{"medium", 2, 3, 6}, 4 << 10},
	{size{"large", 2, 3, 12}, 8 << 10}, {size{"xlarge", 4, 4, 15}, 16 << 10}, {size{"2xlarge", 8, 4, 15}, 32 << 10},
}

var instanceTypes = func() map[string]InstanceType {
	types := map[string]InstanceType{}
	add := func(family, architecture string, s size, memoryMiB int, burstable bool) {
		name := family + "." + s.name
		types[name] = InstanceType{
			Name: name, Architecture: architecture, VCPUs: s.vcpus, MemoryMiB: memoryMiB, Interfaces: s.interfaces,
			AddressesPerInterface: s.addresses, Burstable: burstable,
		}
	}
	memoryPerVCPU := map[byte]int{'c': 2 << 10, 'm': 4 << 10, 'r': 8 << 10}
	for _, letter := range []byte("cmr") {
		for _, generation := range []string{"5", "5a", "6i", "6a", "7i", "7a", "6g", "7g", "8g"} {
			architecture := "x86_64"
			if strings.HasSuffix(generation, "g") {
				architecture = "arm64"
			}
			for _, s := range sizes {
				if s.name == "medium" && architecture == "x86_64" && generation != "7a" ||
					s.name == "24xlarge" && (generation == "6g" || generation == "7g") {
					continue
				}
				add(string(letter)+generation, architecture, s, s.vcpus*memoryPerVCPU[letter], false)
			}
		}
	}
	// Accelerators: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
	for _, s := range sizes {
		if s.name == "xlarge" || s.name == "2xlarge" || s.name == "8xlarge" {
			add("g6", "x86_64", s, s.vcpus*4<<10, false)
			add("g5g", "arm64", s, s.vcpus*2<<10, false)
			add("inf2", "x86_64", s, s.vcpus*4<<10, false)
		}
	}
	// Types with disks: https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html#gp_instance-store
	for name, disks := range map[string]struct{ count, gb int }{
		"large": {1, 118}, "xlarge": {1, 237}, "2xlarge": {1, 474}, "4xlarge": {1, 950}, "8xlarge": {1, 1900}, "12xlarge": {2, 1425},
		"16xlarge": {2, 1900}, "24xlarge": {4, 1425},
	} {
		s := sizes[slices.IndexFunc(sizes, func(s size) bool { return s.name == name })]
		add("m6id", "x86_64", s, s.vcpus*4<<10, false)
		t := types["m6id."+name]
		t.Disks, t.DiskGB = disks.count, disks.gb
		types[t.Name] = t
	}
	for family, architecture := range map[string]string{"t3": "x86_64", "t3a": "x86_64", "t4g": "arm64"} {
		for _, s := range burstableSizes {
			add(family, architecture, s.size, s.memoryMiB, true)
		}
	}
	return types
}()

// InstanceTypes of the catalog by name.
func InstanceTypes() []InstanceType {
	types := make([]InstanceType, 0, len(instanceTypes))
	for _, t := range instanceTypes {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return types
}

// instanceType finds a type of the catalog.
func instanceType(name string) (InstanceType, error) {
	t, ok := instanceTypes[name]
	if !ok {
		return InstanceType{}, fail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
	}
	return t, nil
}

// privateDNSName is the name of an instance in the VPC's DNS, by its address.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/hostname-types.html
func (s *Service) privateDNSName(address string) string {
	domain := s.config.Region + ".compute.internal"
	if s.config.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(address, ".", "-") + "." + domain
}
