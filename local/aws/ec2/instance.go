package ec2

// Instances: launch, run, terminate. boot.go has the boot.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// The states of an instance.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
)

type instance struct {
	object
	image                    Image
	typ                      InstanceType
	vpc, subnet, zone        string
	state, reasonCode, cause string
	launched                 time.Time
	nics, volumes            []string
	address, dnsName         string
	publicAddress            string
	profileARN, roleARN      string
	spot                     bool
	groups                   []string
	metadata                 MetadataOptions
	monitoring               bool
	userData                 []byte
	console                  strings.Builder
	cluster                  string // set after it becomes a node
	interrupted              bool
	cancel                   context.CancelFunc // ends its life
	dead                     chan struct{}      // closed when its life has ended
	refusedKey               string             // why KMS does not let its volumes be created, or ""
}

type volume struct {
	object
	zone, instance, device, typ string
	size, iops, throughput      int
	key                         string
	encrypted, dies             bool
	created                     time.Time
}

// Instance is the view of an instance for other services.
type Instance struct {
	ID, State, Type, ImageID, SubnetID, Zone string
	PrivateAddress, PrivateDNSName           string
	// Reason of the last change of state, such as "Server.SpotInstanceTermination".
	Reason   string
	Spot     bool
	Launched time.Time
	Tags     map[string]string
}

func (i *instance) view() Instance {
	return Instance{
		i.id, i.state, i.typ.Name, i.image.ID, i.subnet, i.zone, i.address, i.dnsName, i.reasonCode, i.spot, i.launched, clone(i.tags),
	}
}

// LaunchRequest is a RunInstances call for one instance.
type LaunchRequest struct {
	Template Template
	// InstanceType and ImageID override the template's if set.
	InstanceType, ImageID string
	SubnetID              string
	Spot                  bool
	// Tags of the instance, in addition to the template's.
	Tags map[string]string
	// RoleARN is the service-linked role of the service that launches it, and Principal that service. KMS checks the role.
	RoleARN, Principal string
}

// launch is a LaunchRequest with its resolved references.
type launch struct {
	data                TemplateData
	image               Image
	typ                 InstanceType
	subnet              *subnet
	groups              []string
	publicAddress       bool
	profileARN, roleARN string
	tags                map[string]map[string]string // by resource type
}

// plan resolves a request, or returns the reason why it cannot be launched. The caller holds the lock.
func (s *Service) plan(r LaunchRequest) (launch, error) {
	l := launch{data: r.Template.Data, tags: map[string]map[string]string{}}
	var err error
	if l.image, err = s.image(cmp.Or(r.ImageID, l.data.ImageId)); err != nil {
		return l, err
	}
	if l.typ, err = instanceType(cmp.Or(r.InstanceType, l.data.InstanceType)); err != nil {
		return l, err
	}
	if l.typ.Architecture != l.image.Architecture {
		return l, fail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' "+
			"of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again. "+
			"You can use 'describe-instance-types' or 'describe-images' to discover the architecture of the instance type or AMI.",
			l.typ.Architecture, l.image.Architecture)
	}
	subnetID := r.SubnetID
	l.groups = l.data.SecurityGroupIds
	for _, nic := range l.data.NetworkInterfaces {
		if nic.DeviceIndex != nil && *nic.DeviceIndex != 0 {
			continue
		}
		l.groups = nic.Groups
		subnetID = cmp.Or(r.SubnetID, nic.SubnetId)
		l.publicAddress = nic.AssociatePublicIpAddress != nil && *nic.AssociatePublicIpAddress
	}
	if subnetID == "" {
		return l, fail("VPCIdNotSpecified", "No default VPC for this user")
	}
	if l.subnet, err = s.subnet(subnetID); err != nil {
		return l, err
	}
	l.publicAddress = l.publicAddress || l.subnet.mapPublic
	if len(l.groups) == 0 {
		v, err := s.vpc(l.subnet.vpc)
		if err != nil {
			return l, err
		}
		l.groups = []string{v.defaultGroupID}
	}
	for _, id := range l.groups {
		g, err := s.group(id)
		if err != nil {
			return l, err
		}
		if g.vpc != l.subnet.vpc {
			return l, fail("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, subnetID)
		}
	}
	if p := l.data.IamInstanceProfile; p != nil && s.config.Roles != nil {
		profile, err := s.config.Roles.InstanceProfile(cmp.Or(p.Arn, p.Name))
		if err != nil {
			field := "arn"
			if p.Arn == "" {
				field = "name"
			}
			return l, fail("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile %s",
				cmp.Or(p.Arn, p.Name), field, field)
		}
		l.profileARN = s.config.Roles.ProfileARN(profile)
		if profile.Role != "" {
			role, err := s.config.Roles.Role(profile.Role)
			if err != nil {
				return l, err
			}
			l.roleARN = s.config.Roles.RoleARN(role)
		}
	}
	if err := s.checkSnapshots(l.data.BlockDeviceMappings); err != nil {
		return l, err
	}
	for _, spec := range l.data.TagSpecifications {
		tags := l.tags[spec.ResourceType]
		if tags == nil {
			tags = map[string]string{}
			l.tags[spec.ResourceType] = tags
		}
		for _, tag := range spec.Tags {
			tags[tag.Key] = tag.Value
		}
	}
	return l, nil
}

// CheckLaunch returns an error unless a caller could launch such an instance. The named resources must exist. The caller must be allowed to
// run instances, to tag them, and to pass the role of their instance profile. Auto Scaling calls it when a group is created or gets another
// template.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-launch-template-permissions.html
func (s *Service) CheckLaunch(caller iam.Caller, r LaunchRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.plan(r)
	if err != nil {
		return err
	}
	return s.allowLaunch(caller, r, l)
}

func (s *Service) allowLaunch(caller iam.Caller, r LaunchRequest, l launch) error {
	instanceContext := map[string]string{"ec2:InstanceType": l.typ.Name, "ec2:AvailabilityZone": l.subnet.zone}
	if l.profileARN != "" {
		instanceContext["ec2:InstanceProfile"] = l.profileARN
	}
	if o := l.data.MetadataOptions; o != nil {
		instanceContext["ec2:MetadataHttpTokens"] = o.HttpTokens
		if o.HttpPutResponseHopLimit != nil {
			instanceContext["ec2:MetadataHttpPutResponseHopLimit"] = strconv.Itoa(*o.HttpPutResponseHopLimit)
		}
	}
	ofTemplate := map[string]string{}
	targets := []target{
		{kind: "instance", id: "*", requestTags: l.tags["instance"], context: instanceContext},
		{kind: "image", id: l.image.ID, context: ofTemplate},
		{kind: "network-interface", id: "*", requestTags: l.tags["network-interface"], context: ofTemplate},
		{kind: "volume", id: "*", requestTags: l.tags["volume"], context: ofTemplate},
		on(l.subnet.object),
	}
	for _, b := range l.data.BlockDeviceMappings {
		if b.Ebs != nil && b.Ebs.SnapshotId != "" {
			targets = append(targets, target{kind: "snapshot", id: b.Ebs.SnapshotId, context: ofTemplate})
		}
	}
	for _, id := range l.groups {
		g, _ := s.groups.get(id)
		targets = append(targets, on(g.object))
	}
	if t, ok := s.templates.get(r.Template.ID); ok {
		arn := s.arn("launch-template", t.id)
		instanceContext["ec2:LaunchTemplate"], ofTemplate["ec2:LaunchTemplate"] = arn, arn
		targets = append(targets, on(t.object))
	}
	if err := s.allow(caller, "RunInstances", targets...); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(l.tags)) {
		if err := s.allowTagging(caller, "RunInstances", kind, l.tags[kind]); err != nil {
			return err
		}
	}
	if l.roleARN != "" {
		return unauthorized(caller.PassRole(l.roleARN, "ec2.amazonaws.com"))
	}
	return nil
}

// Launch starts an instance for another service. The instance is pending when Launch returns.
func (s *Service) Launch(r LaunchRequest) (Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launch(r)
}

func (s *Service) launch(r LaunchRequest) (Instance, error) {
	l, err := s.plan(r)
	if err != nil {
		return Instance{}, err
	}
	if s.config.LaunchFails != nil {
		if code := s.config.LaunchFails(r.Tags); code != "" {
			return Instance{}, launchError(code, l)
		}
	}
	if limit := s.config.InstanceLimit; limit > 0 && s.living() >= limit {
		return Instance{}, noVCPUs(limit * l.typ.VCPUs)
	}
	if s.config.VCPUs != nil {
		if limit := s.config.VCPUs(r.Spot); s.vCPUs(r.Spot)+l.typ.VCPUs > limit {
			if r.Spot {
				return Instance{}, fail("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
			}
			return Instance{}, noVCPUs(limit)
		}
	}
	tags := clone(l.tags["instance"])
	maps.Copy(tags, r.Tags)
	if r.Template.ID != "" {
		tags["aws:ec2launchtemplate:id"] = r.Template.ID
		tags["aws:ec2launchtemplate:version"] = strconv.Itoa(r.Template.Version)
	}
	if err := checkTags(tags); err != nil {
		return Instance{}, err
	}
	if err := s.checkMetadataTags(l.data.MetadataOptions, tags); err != nil {
		return Instance{}, err
	}
	i := &instance{
		object: s.newObject("instance", "i", tags), image: l.image, typ: l.typ, vpc: l.subnet.vpc, subnet: l.subnet.id, zone: l.subnet.zone,
		state: Pending, launched: s.config.Clock.Now(), profileARN: l.profileARN, roleARN: l.roleARN, spot: r.Spot, groups: l.groups,
		dead: make(chan struct{}), refusedKey: s.refusedKey(r, l.data.BlockDeviceMappings),
	}
	if o := l.data.MetadataOptions; o != nil {
		i.metadata = *o
	}
	i.monitoring = l.data.Monitoring != nil && l.data.Monitoring.Enabled != nil && *l.data.Monitoring.Enabled
	if i.userData, err = base64.StdEncoding.DecodeString(l.data.UserData); err != nil {
		return Instance{}, fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	nic, err := s.newInterface(l.subnet, l.groups, "interface", "", i.id, clone(l.tags["network-interface"]))
	if err != nil {
		return Instance{}, err
	}
	i.nics, i.address, i.dnsName = []string{nic.id}, nic.address.String(), s.privateDNSName(nic.address.String())
	if l.publicAddress {
		i.publicAddress = fmt.Sprintf("203.0.113.%d", s.counter%256) // TEST-NET-3
	}
	s.addVolumes(i, l)
	s.instances.put(i.id, i)
	ctx, cancel := context.WithCancel(s.ctx)
	i.cancel = cancel
	s.changes.Announce()
	if s.closed {
		close(i.dead)
	}
	s.background(func(context.Context) {
		defer close(i.dead)
		s.live(ctx, i)
	})
	return i.view(), nil
}

// launchError returns an error with EC2's message.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
func launchError(code string, l launch) error {
	switch code {
	case "InsufficientInstanceCapacity":
		return fail(code, "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). "+
			"Our system will be working on provisioning additional capacity.", l.typ.Name, l.subnet.zone)
	case "VcpuLimitExceeded":
		return noVCPUs(0)
	}
	return fail(code, "struck by a fault rule of the local account")
}

func noVCPUs(limit int) error {
	return fail("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit "+
		"of %d allows for the instance bucket that the specified instance type belongs to. "+
		"Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", limit)
}

// vCPUs of running and pending instances, as quotas count them.
func (s *Service) vCPUs(spot bool) int {
	n := 0
	for _, i := range s.instances.all() {
		if i.spot == spot && (i.state == Pending || i.state == Running) {
			n += i.typ.VCPUs
		}
	}
	return n
}

func (s *Service) living() int {
	n := 0
	for _, i := range s.instances.all() {
		if i.state != Terminated {
			n++
		}
	}
	return n
}

// addVolumes creates the disks: those of the image, of 20 GiB each, with the changes and additions of the template.
func (s *Service) addVolumes(i *instance, l launch) {
	add := func(device string) *volume {
		v := &volume{
			object: s.newObject("volume", "vol", clone(l.tags["volume"])), zone: i.zone, instance: i.id, device: device, typ: "gp2", size: 20,
			dies: true, created: i.launched,
		}
		s.volumes.put(v.id, v)
		i.volumes = append(i.volumes, v.id)
		return v
	}
	devices := l.data.BlockDeviceMappings
	for _, own := range l.image.devices() {
		if !slices.ContainsFunc(devices, func(b BlockDevice) bool { return b.DeviceName == own }) {
			add(own)
		}
	}
	for _, b := range devices {
		v := add(b.DeviceName)
		if b.Ebs == nil {
			continue
		}
		v.typ = cmp.Or(b.Ebs.VolumeType, v.typ)
		snap, fromSnapshot := s.snapshots.get(b.Ebs.SnapshotId)
		if fromSnapshot {
			v.size = snap.size
		}
		for from, to := range map[*int]*int{b.Ebs.VolumeSize: &v.size, b.Ebs.Iops: &v.iops, b.Ebs.Throughput: &v.throughput} {
			if from != nil {
				*to = *from
			}
		}
		v.key = b.Ebs.KmsKeyId
		v.encrypted = b.Ebs.Encrypted != nil && *b.Ebs.Encrypted || fromSnapshot && snap.encrypted
		v.dies = b.Ebs.DeleteOnTermination == nil || *b.Ebs.DeleteOnTermination
	}
}

// live runs an instance until it is terminated.
func (s *Service) live(ctx context.Context, i *instance) {
	s.emitState(ctx, i.id, Pending)
	if s.config.Clock.Work(ctx, pendingWork) != nil {
		return
	}
	s.mu.Lock()
	if i.state != Pending {
		s.mu.Unlock()
		return
	}
	if i.refusedKey != "" {
		s.terminate(i, i.refusedKey)
		s.mu.Unlock()
		return
	}
	i.state = Running
	s.changes.Announce()
	s.mu.Unlock()
	s.emitState(ctx, i.id, Running)
	s.boot(ctx, i)
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html
func (s *Service) emitState(ctx context.Context, id, state string) {
	s.emit(ctx, "EC2 Instance State-change Notification", []string{s.arn("instance", id)},
		map[string]any{"instance-id": id, "state": state})
}

// Terminate terminates an instance for another service. A terminating instance is no error.
func (s *Service) Terminate(id, reasonCode string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(id)
	if err != nil {
		return err
	}
	s.terminate(i, reasonCode)
	return nil
}

func (s *Service) terminate(i *instance, reasonCode string) {
	if i.state == ShuttingDown || i.state == Terminated {
		return
	}
	i.state, i.reasonCode = ShuttingDown, reasonCode
	i.cancel()
	s.changes.Announce()
	s.background(func(ctx context.Context) {
		<-i.dead
		s.emitState(ctx, i.id, ShuttingDown)
		if s.config.Clock.Work(ctx, shutdownWork) != nil {
			return
		}
		s.bury(ctx, i)
		s.emitState(ctx, i.id, Terminated)
		if s.config.Clock.Work(ctx, graveWork) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.instances.delete(i.id)
		}
	})
}

// look is the pause before the cloud controller retries an unreachable API server, and looks the number of attempts, which outlast every
// simulated outage.
const (
	look  = 5 * time.Minute
	looks = 24
)

// deregister returns a function that deletes the node of a terminated instance, like the cloud controller of EKS. If the cluster no longer
// exists, it does nothing.
// https://kubernetes.io/docs/concepts/architecture/cloud-controller/#node-controller
func (s *Service) deregister(i *instance) func(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, cluster, node := s.nodes, i.cluster, i.dnsName // the name is deleted with the interface
	return func(ctx context.Context) error {
		if nodes == nil || cluster == "" {
			return nil
		}
		err := nodes.DeregisterNode(ctx, cluster, node)
		if err != nil {
			s.log(i, "cloud-controller", err.Error())
		}
		return err
	}
}

// bury releases the resources of an instance and deletes its node.
func (s *Service) bury(ctx context.Context, i *instance) {
	deregister := s.deregister(i)
	asked := deregister(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked != nil {
		s.background(func(ctx context.Context) {
			for range looks {
				if s.config.Clock.Timer(ctx, look) != nil || deregister(ctx) == nil {
					return
				}
			}
		})
	}
	for _, nic := range i.nics {
		s.freeInterface(nic)
	}
	for _, id := range i.volumes {
		if v, ok := s.volumes.get(id); ok {
			v.instance = ""
			if v.dies {
				s.volumes.delete(id)
			}
		}
	}
	i.state, i.address, i.dnsName, i.publicAddress = Terminated, "", "", ""
	s.changes.Announce()
}

func (s *Service) instance(id string) (*instance, error) {
	i, ok := s.instances.get(id)
	if !ok {
		return nil, fail("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return i, nil
}

// Instance returns an instance by ID, including those terminated within the last hour.
func (s *Service) Instance(id string) (Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(id)
	if err != nil {
		return Instance{}, err
	}
	return i.view(), nil
}

// Living returns the instances that are not terminated, oldest first.
func (s *Service) Living() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Instance
	for _, i := range s.instances.all() {
		if i.state != ShuttingDown && i.state != Terminated {
			all = append(all, i.view())
		}
	}
	slices.SortStableFunc(all, func(a, b Instance) int { return a.Launched.Compare(b.Launched) })
	return all
}

// AwaitInstance waits until an instance is in one of the states, and returns it.
func (s *Service) AwaitInstance(ctx context.Context, id string, states ...string) (Instance, error) {
	var seen Instance
	err := s.await(ctx, func() (bool, error) {
		i, err := s.instance(id)
		if err != nil {
			return false, err
		}
		seen = i.view()
		return slices.Contains(states, i.state), nil
	})
	return seen, err
}

// InterruptSpot interrupts a spot instance like EC2: a warning event now, and termination two minutes later.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
func (s *Service) InterruptSpot(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(id)
	switch {
	case err != nil:
		return err
	case !i.spot:
		return fail("InvalidParameterValue", "The instance %s is no Spot Instance", id)
	case i.interrupted || i.state == ShuttingDown || i.state == Terminated:
		return nil
	}
	i.interrupted = true
	arn := fmt.Sprintf("arn:%s:ec2:%s:instance/%s", s.config.Partition, i.zone, id)
	s.background(func(ctx context.Context) {
		s.emit(ctx, "EC2 Spot Instance Interruption Warning", []string{arn}, map[string]any{"instance-id": id, "instance-action": "terminate"})
		if s.config.Clock.Timer(ctx, spotNotice) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.terminate(i, "Server.SpotInstanceTermination")
	})
	return nil
}
