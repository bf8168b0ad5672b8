package api

// Rules about several fields of a pool, and about a cluster's tags.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePool(path *field.Path, p *Pool) (errs field.ErrorList) {
	if p.MaxSize > 0 && p.MinSize > p.MaxSize {
		errs = append(errs, field.Invalid(path.Child("minSize"), p.MinSize, fmt.Sprintf("must be less than or equal to maxSize, %d", p.MaxSize)))
	}
	if p.Spot != nil && p.MaxSize > 0 && p.Spot.OnDemandBase > p.MaxSize {
		errs = append(errs, field.Invalid(path.Child("spot", "onDemandBase"), p.Spot.OnDemandBase,
			fmt.Sprintf("must be less than or equal to maxSize, %d", p.MaxSize)))
	}
	for i, instanceType := range p.InstanceTypes {
		at := path.Child("instanceTypes").Index(i)
		family, _, _ := strings.Cut(instanceType, ".")
		switch architecture, certain := architectureOf(family); {
		case strings.HasPrefix(family, "mac"):
			errs = append(errs, field.Invalid(at, instanceType, "EKS does not support macOS nodes"))
		case certain && architecture != p.Architecture && slices.Contains([]Architecture{AMD64, ARM64}, p.Architecture):
			errs = append(errs, field.Invalid(at, instanceType, fmt.Sprintf("its architecture is %s, but the pool's is %s", architecture,
				p.Architecture)))
		}
	}
	errs = append(errs, validateImage(path, p)...)
	errs = append(errs, validateBottlerocket(path, p)...)
	errs = append(errs, validateVolume(path.Child("rootVolume"), &p.RootVolume)...)
	errs = append(errs, validateVolumes(path.Child("volumes"), p.Volumes)...)
	errs = append(errs, validateLabels(path.Child("labels"), p.Labels)...)
	errs = append(errs, validateDrain(path.Child("drain"), &p.Drain)...)
	errs = append(errs, validateUpdate(path.Child("update"), &p.Update)...)
	errs = append(errs, validateReadiness(path.Child("readiness"), p)...)
	errs = append(errs, validateKubelet(path.Child("kubelet"), p.Kubelet)...)
	return append(errs, validateFlags(path.Child("kubeletFlags"), p.KubeletFlags)...)
}

// family of instance types: letters, the generation, attributes, and sometimes more after a dash.
var instanceFamily = regexp.MustCompile(`^([a-z]+)([0-9]+)([a-z]*)(-.+)?$`)

// architectureOf returns the architecture that a family's name implies, or "". AWS marks its own processors, which are Arm's, with a g
// among the attributes. Names that follow no rule imply nothing.
// https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
func architectureOf(family string) (a Architecture, certain bool) {
	part := instanceFamily.FindStringSubmatch(family)
	switch {
	case part == nil:
		return "", false
	case strings.Contains(part[3], "g"), family == "a1":
		return ARM64, true
	case part[4] != "" && part[4] != "-flex":
		return "", false
	}
	return AMD64, true
}

// volumeLimits of EBS, and how IOPS and throughput depend on each other and on the size.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html
// https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html
var volumeLimits = map[string]struct {
	maxSize          int // GiB
	minSize          int // GiB
	minIOPS, maxIOPS int // 0 when IOPS cannot be stated
	iopsPerGiB       int
	iopsRequired     bool
	throughput       bool
}{
	"gp2": {maxSize: 16384},
	"gp3": {maxSize: 65536, minIOPS: 3000, maxIOPS: 80000, iopsPerGiB: 500, throughput: true},
	"io1": {maxSize: 16384, minSize: 4, minIOPS: 100, maxIOPS: 64000, iopsPerGiB: 50, iopsRequired: true},
	"io2": {maxSize: 65536, minSize: 4, minIOPS: 100, maxIOPS: 256000, iopsPerGiB: 1000, iopsRequired: true},
}

const (
	baseIOPS       = 3000 // of gp3, when none are stated
	iopsPerMiB     = 4    // gp3 gives 0.25 MiB/s of throughput for each provisioned IOPS
	baseThroughput = 125  // MiB/s of gp3, when none is stated
)

func validateVolume(path *field.Path, v *RootVolume) (errs field.ErrorList) {
	limits, ok := volumeLimits[v.Type]
	if !ok {
		return nil
	}
	if v.SizeGiB > limits.maxSize {
		errs = append(errs, field.Invalid(path.Child("sizeGiB"), v.SizeGiB, fmt.Sprintf("must be less than or equal to %d for %s",
			limits.maxSize, v.Type)))
	}
	if v.SizeGiB > 0 && v.SizeGiB < limits.minSize {
		errs = append(errs, field.Invalid(path.Child("sizeGiB"), v.SizeGiB, fmt.Sprintf("must be greater than or equal to %d for %s",
			limits.minSize, v.Type)))
	}
	at := path.Child("iops")
	switch most := min(limits.maxIOPS, max(limits.minIOPS, limits.iopsPerGiB*v.SizeGiB)); {
	case v.IOPS == 0 && limits.iopsRequired:
		errs = append(errs, field.Required(at, "for "+v.Type))
	case v.IOPS == 0:
	case limits.maxIOPS == 0:
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("the size of a %s volume determines its IOPS: remove this field", v.Type)))
	case v.IOPS < limits.minIOPS || v.IOPS > most:
		errs = append(errs, field.Invalid(at, v.IOPS, fmt.Sprintf("must be between %d and %d for %s of %d GiB", limits.minIOPS, most,
			v.Type, v.SizeGiB)))
	}
	at = path.Child("throughput")
	switch most := max(v.IOPS, baseIOPS) / iopsPerMiB; {
	case v.Throughput == 0:
	case !limits.throughput:
		errs = append(errs, field.Forbidden(at, "only gp3 volumes have this field: remove it"))
	case v.Throughput > max(most, baseThroughput):
		errs = append(errs, field.Invalid(at, v.Throughput,
			fmt.Sprintf("must be less than or equal to %d with %d IOPS, which is a quarter of the IOPS", most,
				max(v.IOPS, baseIOPS))))
	}
	return errs
}

// validateVolumes checks further disks. EC2 takes /dev/sdb and /dev/xvdb for the same device.
func validateVolumes(path *field.Path, volumes []Volume) (errs field.ErrorList) {
	devices := map[byte]string{}
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		if v.SizeGiB == 0 && v.SnapshotID == "" {
			errs = append(errs, field.Required(at.Child("sizeGiB"), "without a snapshot, whose size would be the default"))
		}
		size := v.SizeGiB
		if size == 0 { // that of the snapshot: EC2 checks the other fields against it
			size = volumeLimits[v.Type].maxSize
		}
		errs = append(errs, validateVolume(at, &RootVolume{SizeGiB: size, Type: v.Type, IOPS: v.IOPS, Throughput: v.Throughput})...)
		if len(formats["device"].Wrong(v.Device)) > 0 {
			continue
		}
		switch first, found := devices[v.Device[len(v.Device)-1]]; {
		case !found:
			devices[v.Device[len(v.Device)-1]] = v.Device
		case first != v.Device: // the same one twice is a duplicate, reported as such
			errs = append(errs, field.Invalid(at.Child("device"), v.Device, fmt.Sprintf("is the same device as %s: choose another letter", first)))
		}
	}
	return errs
}

// validateDiskKeys checks the KMS keys of disks. Plan asks KMS about them.
func validateDiskKeys(path *field.Path, p *Pool, n *Network) (errs field.ErrorList) {
	check := func(path *field.Path, key string, encrypted *bool) {
		at := path.Child("kmsKeyARN")
		parts := strings.Split(key, ":")
		if len(parts) < 4 {
			return // absent, or not an ARN, which has an error of its own
		}
		if encrypted != nil && !*encrypted {
			errs = append(errs, field.Forbidden(at, "the disk is not encrypted: remove this field, or set encrypted to true"))
		}
		if len(n.Zones) > 0 && parts[3] != regionOf(n.Zones[0]) {
			errs = append(errs, field.Invalid(at, key, "must be in the region of the zones, "+regionOf(n.Zones[0])))
		}
	}
	check(path.Child("rootVolume"), p.RootVolume.KMSKeyARN, p.RootVolume.Encrypted)
	for i := range p.Volumes {
		check(path.Child("volumes").Index(i), p.Volumes[i].KMSKeyARN, p.Volumes[i].Encrypted)
	}
	return errs
}

// DiskKeys returns the KMS keys of the pool's disks, each once and sorted.
func (p *Pool) DiskKeys() (arns []string) {
	arns = append(arns, p.RootVolume.KMSKeyARN)
	for i := range p.Volumes {
		arns = append(arns, p.Volumes[i].KMSKeyARN)
	}
	arns = slices.DeleteFunc(arns, func(arn string) bool { return arn == "" })
	slices.Sort(arns)
	return slices.Compact(arns)
}

// maxDrain is one hour less than the maximum time at a lifecycle hook, because the actions of onTimeout need time too.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
const maxDrain = 47 * time.Hour

func validateDrain(path *field.Path, d *Drain) (errs field.ErrorList) {
	within := func(name, value string, least, most time.Duration) {
		// Invalid durations have their own error.
		if duration, err := time.ParseDuration(value); err == nil && (duration < least || duration > most) {
			errs = append(errs, field.Invalid(path.Child(name), value, fmt.Sprintf("must be between %s and %s", short(least), short(most))))
		}
	}
	within("timeout", d.Timeout, time.Minute, maxDrain)
	within("podGracePeriod", d.PodGracePeriod, time.Second, maxDrain)
	within("loadBalancerWait", d.LoadBalancerWait, 0, time.Hour)
	timeout, err := time.ParseDuration(d.Timeout)
	wait, err2 := time.ParseDuration(d.LoadBalancerWait)
	if err == nil && err2 == nil && (d.OnTimeout == OnTimeoutForce || d.OnTimeout == OnTimeoutContinue) && wait >= timeout {
		errs = append(errs, field.Invalid(path.Child("loadBalancerWait"), d.LoadBalancerWait,
			fmt.Sprintf("must be less than the timeout (%s), after which onTimeout is %s: no pod would be evicted before", d.Timeout, d.OnTimeout)))
	}
	return errs
}

// short formats a duration as 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// validateLabels rejects labels that a kubelet may not set on its node, and those that it or drover sets.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
func validateLabels(path *field.Path, labels map[string]string) (errs field.ErrorList) {
	for _, key := range sortedKeys(labels) {
		prefix, _, _ := strings.Cut(key, "/")
		within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
		switch {
		case slices.Contains(kubeletLabels, key):
			errs = append(errs, field.Forbidden(path.Key(key), "the kubelet sets this label: remove it"))
		case within("kubelet.kubernetes.io"), within("node.kubernetes.io"):
		case within("kubernetes.io"), within("k8s.io"):
			errs = append(errs, field.Forbidden(path.Key(key), "a kubelet may set labels of kubernetes.io "+
				"and k8s.io only under node.kubernetes.io/ and kubelet.kubernetes.io/"))
		case within("drover.run"):
			errs = append(errs, field.Forbidden(path.Key(key), "drover reserves labels of drover.run/: choose another prefix"))
		}
	}
	return errs
}

// kubeletLabels are set by the kubelet and the cloud controller.
var kubeletLabels = []string{
	"beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
	"kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type",
	"topology.kubernetes.io/region", "topology.kubernetes.io/zone",
}

// validateFlags rejects a flag with two values.
func validateFlags(path *field.Path, flags []string) (errs field.ErrorList) {
	seen := map[string]string{}
	for i, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if first, ok := seen[name]; ok && first != flag { // the same one twice is a duplicate, reported as such
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
		seen[name] = flag
	}
	return errs
}

// validatePoolZones checks that the network has subnets in the zones of a pool.
func validatePoolZones(path *field.Path, zones []string, n *Network) (errs field.ErrorList) {
	if len(zones) > 0 && n.Existing != nil {
		return field.ErrorList{field.Forbidden(path, "spec.network.existing has subnets, and no zones: remove this field")}
	}
	for i, zone := range zones {
		if len(formats["zone"].Wrong(zone)) == 0 && !slices.Contains(n.Zones, zone) {
			errs = append(errs, field.Invalid(path.Index(i), zone, fmt.Sprintf("is none of spec.network.zones (%s): add it there, "+
				"or use one of them", strings.Join(n.Zones, ", "))))
		}
	}
	return errs
}

// validatePoolSubnets checks that the subnets are not those of a network that drover creates.
func validatePoolSubnets(path *field.Path, subnets []string, n *Network) (errs field.ErrorList) {
	if len(subnets) > 0 && n.Existing == nil {
		return field.ErrorList{field.Forbidden(path, "drover creates the subnets of this network: use zones, or spec.network.existing")}
	}
	return nil
}

// maxUserTags is how many of the 50 tags that AWS allows on a group drover does not set.
const maxUserTags = 40

// validatePoolTags checks a pool's tags together with the cluster's: resources of the pool have both.
func validatePoolTags(path *field.Path, tags, cluster map[string]string) (errs field.ErrorList) {
	errs = validateTags(path, tags)
	all := maps.Clone(cluster)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	if len(tags) > 0 && len(tags) <= maxUserTags && len(cluster) <= maxUserTags && len(all) > maxUserTags {
		errs = append(errs, field.Invalid(path, len(tags), fmt.Sprintf("the resources of the pool would have %d tags with those of spec.tags, "+
			"and AWS has room for %d in addition to drover's: remove some of either", len(all), maxUserTags)))
	}
	for _, key := range sortedKeys(tags) {
		for _, other := range sortedKeys(cluster) {
			if key != other && strings.EqualFold(key, other) {
				errs = append(errs, field.Invalid(path.Key(key), key, fmt.Sprintf("differs from %q of spec.tags by case only, which IAM does not "+
					"distinguish: write both alike", other)))
			}
		}
	}
	return errs
}

// validateTags rejects tags that differ only in case, which IAM does not allow.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html
func validateTags(path *field.Path, tags map[string]string) (errs field.ErrorList) {
	seen := map[string]string{}
	for _, key := range sortedKeys(tags) {
		folded := strings.ToLower(key)
		if other, ok := seen[folded]; ok {
			detail := fmt.Sprintf("differs from %q by case only, which IAM does not distinguish", other)
			errs = append(errs, field.Invalid(path.Key(key), key, detail))
		}
		seen[folded] = key
	}
	return errs
}
