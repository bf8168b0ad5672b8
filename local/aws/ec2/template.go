package ec2

// Launch templates: versioned configurations of instances. EC2 validates their form on creation. Whether the named resources exist is
// checked at launch.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-launch-templates.html

import (
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
)

// maxUserData is the maximum size of user data in bytes, before base64.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
const maxUserData = 16 << 10

// TemplateData is the content of a launch template, with the names of the template reference. The local account rejects other fields.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-ec2-launchtemplate-launchtemplatedata.html
type TemplateData struct {
	ImageId, InstanceType, KeyName, UserData string
	InstanceInitiatedShutdownBehavior        string
	EbsOptimized, DisableApiTermination      *bool
	IamInstanceProfile                       *ProfileReference
	BlockDeviceMappings                      []BlockDevice
	NetworkInterfaces                        []InterfaceSpecification
	SecurityGroupIds                         []string
	MetadataOptions                          *MetadataOptions
	Monitoring                               *struct{ Enabled *bool }
	CreditSpecification                      *struct{ CpuCredits string }
	PrivateDnsNameOptions                    *struct {
		HostnameType                                                  string
		EnableResourceNameDnsARecord, EnableResourceNameDnsAAAARecord *bool
	}
	TagSpecifications []TagSpecification
}

// ProfileReference names an instance profile by ARN or name.
type ProfileReference struct{ Arn, Name string }

// BlockDevice is a disk of an instance.
type BlockDevice struct {
	DeviceName string
	Ebs        *struct {
		VolumeType, KmsKeyId, SnapshotId string
		VolumeSize, Iops, Throughput     *int
		Encrypted, DeleteOnTermination   *bool
	}
}

// InterfaceSpecification is a network interface of an instance.
type InterfaceSpecification struct {
	DeviceIndex              *int
	Description, SubnetId    string
	Groups                   []string
	AssociatePublicIpAddress *bool
	DeleteOnTermination      *bool
}

// MetadataOptions of the instance metadata service.
type MetadataOptions struct {
	HttpTokens, HttpEndpoint, HttpProtocolIpv6, InstanceMetadataTags string
	HttpPutResponseHopLimit                                          *int
}

// TagSpecification has tags for the resources of a launch.
type TagSpecification struct {
	ResourceType string
	Tags         []resource.Tag
}

type launchTemplate struct {
	object
	name      string
	versions  []templateVersion
	byDefault int
	created   time.Time
}

type templateVersion struct {
	number      int
	description string
	created     time.Time
	data        TemplateData
}

func (t *launchTemplate) latest() templateVersion { return t.versions[len(t.versions)-1] }

// checkTemplate validates a template like EC2 on creation.
func checkTemplate(d TemplateData) error {
	if d.UserData != "" {
		decoded, err := base64.StdEncoding.DecodeString(d.UserData)
		if err != nil {
			return fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
		}
		if len(decoded) > maxUserData {
			return fail("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
		}
	}
	if o := d.MetadataOptions; o != nil {
		if o.HttpTokens != "" && o.HttpTokens != "required" && o.HttpTokens != "optional" {
			return fail("InvalidParameterValue", "Value (%s) for parameter MetadataOptions.HttpTokens is invalid.", o.HttpTokens)
		}
		if hops := o.HttpPutResponseHopLimit; hops != nil && (*hops < 1 || *hops > 64) {
			return fail("InvalidParameterValue", "Value (%d) for parameter MetadataOptions.HttpPutResponseHopLimit is invalid. "+
				"It must be between 1 and 64.", *hops)
		}
	}
	if len(d.NetworkInterfaces) > 0 && len(d.SecurityGroupIds) > 0 {
		return fail("InvalidParameterCombination", "Network interfaces and an instance-level security groups may not be specified "+
			"on the same request")
	}
	for _, b := range d.BlockDeviceMappings {
		if err := checkVolume(b); err != nil {
			return err
		}
	}
	return nil
}

// https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html
func checkVolume(b BlockDevice) error {
	if b.DeviceName == "" {
		return fail("MissingParameter", "The request must contain the parameter deviceName")
	}
	if b.Ebs == nil {
		return nil
	}
	if err := checkKeys(b); err != nil {
		return err
	}
	typ, size := b.Ebs.VolumeType, b.Ebs.VolumeSize
	limits := map[string]struct{ sizeMin, sizeMax, iopsMin, iopsMax int }{
		"":    {sizeMin: 1, sizeMax: 16384},
		"gp2": {sizeMin: 1, sizeMax: 16384},
		"gp3": {sizeMin: 1, sizeMax: 65536, iopsMin: 3000, iopsMax: 80000},
		"io1": {sizeMin: 4, sizeMax: 16384, iopsMin: 100, iopsMax: 64000},
		"io2": {sizeMin: 4, sizeMax: 65536, iopsMin: 100, iopsMax: 256000},
	}
	limit, ok := limits[typ]
	if !ok {
		return fail("InvalidParameterValue", "Invalid volume type: %s", typ)
	}
	if size != nil && (*size < limit.sizeMin || *size > limit.sizeMax) {
		return fail("InvalidParameterValue", "Volume of %dGiB is not between %d and %dGiB for the volume type %s", *size, limit.sizeMin,
			limit.sizeMax, typ)
	}
	if iops := b.Ebs.Iops; iops != nil && (limit.iopsMax == 0 || *iops < limit.iopsMin || *iops > limit.iopsMax) {
		return fail("InvalidParameterCombination", "The parameter iops with %d is not supported for %s volumes", *iops, typ)
	}
	if (typ == "io1" || typ == "io2") && b.Ebs.Iops == nil {
		return fail("MissingParameter", "The parameter iops must be specified for %s volumes.", typ)
	}
	if throughput := b.Ebs.Throughput; throughput != nil && (typ != "gp3" || *throughput < 125 || *throughput > 2000) {
		return fail("InvalidParameterCombination", "The parameter throughput with %d is not supported for %s volumes", *throughput, typ)
	}
	return nil
}

func (s *Service) createTemplate(caller iam.Caller, name, description string, data TemplateData, tags map[string]string) (*launchTemplate,
	error) {
	if err := s.allowMaking(caller, "CreateLaunchTemplate", "launch-template", tags); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	if len(name) < 3 || len(name) > 128 {
		return nil, fail("InvalidLaunchTemplateName.MalformedException", "The specified launch template name '%s' is not valid: "+
			"it must be between 3 and 128 characters", name)
	}
	if err := checkTemplate(data); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.templates.all() {
		if t.name == name {
			return nil, fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
	}
	now := s.config.Clock.Now()
	t := &launchTemplate{object: s.newObject("launch-template", "lt", tags), name: name, byDefault: 1, created: now}
	t.versions = []templateVersion{{1, description, now, data}}
	s.templates.put(t.id, t)
	s.changes.Announce()
	return t, nil
}

func (s *Service) addTemplateVersion(caller iam.Caller, id, description string, data TemplateData) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(id, "")
	if err != nil {
		return 0, err
	}
	if err := s.allow(caller, "CreateLaunchTemplateVersion", on(t.object)); err != nil {
		return 0, err
	}
	if err := checkTemplate(data); err != nil {
		return 0, err
	}
	number := t.latest().number + 1
	t.versions = append(t.versions, templateVersion{number, description, s.config.Clock.Now(), data})
	s.changes.Announce()
	return number, nil
}

func (s *Service) deleteTemplate(caller iam.Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(id, "")
	if err != nil {
		return err
	}
	if err := s.allow(caller, "DeleteLaunchTemplate", on(t.object)); err != nil {
		return err
	}
	s.templates.delete(t.id)
	s.changes.Announce()
	return nil
}

func (s *Service) template(id, name string) (*launchTemplate, error) {
	if id == "" && name != "" {
		for _, t := range s.templates.all() {
			if t.name == name {
				return t, nil
			}
		}
		return nil, fail("InvalidLaunchTemplateName.NotFoundException",
			"At least one of the launch templates specified in the request does not exist.")
	}
	t, ok := s.templates.get(id)
	if !ok {
		return nil, fail("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	return t, nil
}

// version returns a version of a template by number, $Latest or $Default. "" is $Default.
func (t *launchTemplate) version(version string) (templateVersion, error) {
	switch version {
	case "$Latest":
		return t.latest(), nil
	case "", "$Default":
		version = strconv.Itoa(t.byDefault)
	}
	index := slices.IndexFunc(t.versions, func(v templateVersion) bool { return strconv.Itoa(v.number) == version })
	if index < 0 {
		return templateVersion{}, fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s for %s.",
			version, t.id)
	}
	return t.versions[index], nil
}

// Template is a launch template at one version.
type Template struct {
	ID, Name string
	// Version is its number, and LatestVersion the newest one's.
	Version, LatestVersion int
	Data                   TemplateData
}

// LaunchTemplate finds a version ($Latest, $Default or a number) of a template given by id or, if that is empty, name.
func (s *Service) LaunchTemplate(id, name, version string) (Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.template(id, name)
	if err != nil {
		return Template{}, err
	}
	v, err := t.version(version)
	if err != nil {
		return Template{}, err
	}
	return Template{ID: t.id, Name: t.name, Version: v.number, LatestVersion: t.latest().number, Data: v.data}, nil
}
