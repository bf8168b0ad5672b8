package ec2

// The service: its configuration, its state, IDs, and the wait for changes.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Durations on AWS, as users report them. All of them are simulated work, which --speed shortens.
const (
	natGatewayWork = 90 * time.Second
	endpointWork   = 60 * time.Second
	pendingWork    = 10 * time.Second
	bootWork       = 45 * time.Second
	shutdownWork   = 30 * time.Second
	// A terminated instance stays visible for about an hour.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html
	graveWork = time.Hour
	// registerRetry is the interval at which a kubelet tries to register. It waits for real programs, so it is real time.
	registerRetry = 5 * time.Second
	// Spot instances are terminated two minutes after the warning. drover drains within that time, so it is real time.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
	spotNotice = 2 * time.Minute
)

// BootTakes is the time until an instance's kubelet registers.
const BootTakes = pendingWork + bootWork

// Roles is the interface to IAM: *iam.Service.
type Roles interface {
	// AssumeRoleAs returns credentials of a role for a service that the trust policy allows.
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
	InstanceProfile(nameOrARN string) (iam.InstanceProfile, error)
	ProfileARN(iam.InstanceProfile) string
	Role(name string) (iam.Role, error)
	RoleARN(iam.Role) string
}

// Nodes registers booted instances as Kubernetes nodes.
type Nodes interface {
	// RegisterNode creates the node. An error is what the kubelet would log, and the node never joins.
	RegisterNode(ctx context.Context, node Node) error
	// DeregisterNode deletes the node of a terminated instance.
	DeregisterNode(ctx context.Context, cluster, name string) error
}

// Objects is the interface to S3, from which instances read node configuration.
type Objects interface {
	// ReadObject returns an object, or a version of it, if the caller may read it.
	ReadObject(ctx context.Context, caller iam.Caller, bucket, key, version string) ([]byte, error)
}

// Keys is the interface to KMS, whose keys encrypt volumes.
type Keys interface {
	// AuthorizeVolume returns an error unless a caller may have volumes encrypted with a key, by ARN.
	AuthorizeVolume(caller iam.Caller, keyARN string) error
}

// Emitter sends events to the account's default bus: EventBridge.
type Emitter interface {
	Emit(ctx context.Context, source, detailType string, resources []string, detail any)
}

// Config of the service.
type Config struct {
	// Account is the twelve-digit ID, and Region a name such as us-east-1. Partition defaults to aws.
	Account, Region, Partition string
	// Zones defaults to the region's a, b and c.
	Zones []string
	Clock *clock.Clock
	// Images are added to the EKS images of the catalog.
	Images []Image
	// Roles, Objects and Events may be nil. Then instances have no roles and read no objects, and events are discarded.
	Roles   Roles
	Objects Objects
	Events  Emitter
	// Keys may be nil. Then every key can be used.
	Keys Keys
	// Quotas limit the networks.
	Quotas Quotas
	// VCPUs is the quota of vCPUs of running instances, spot or on-demand. nil is no limit. All types of the catalog are in the standard
	// families, which share a quota. https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
	VCPUs func(spot bool) int
	// LaunchFails returns the error code with which a launch with certain tags fails, or an empty string. It may be nil.
	LaunchFails func(tags map[string]string) (code string)
	// InstanceLimit bounds the instances that are not terminated. 0 is no limit.
	InstanceLimit int
	// MetadataTags is the account's default for access to tags in the instance metadata. A template may say otherwise.
	// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyInstanceMetadataDefaults.html
	MetadataTags bool
}

// Quotas of networks in a region. NATGateways is that of one zone. nil is AWS's default of 5.
// https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
type Quotas struct{ VPCs, InternetGateways, NATGateways, Addresses func() int }

// isReached reports whether a quota admits no further resource.
func isReached(quota func() int, used int) bool {
	if quota == nil {
		return used >= 5
	}
	return used >= quota()
}

// Service is EC2 in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	zonesMu sync.Mutex
	zones   map[string]string // ids by name

	mu      sync.Mutex
	closed  bool
	nodes   Nodes
	changes *clock.Changes
	counter int

	vpcs       table[*vpc]
	subnets    table[*subnet]
	gateways   table[*internetGateway]
	addresses  table[*address]
	nats       table[*natGateway]
	routes     table[*routeTable]
	endpoints  table[*endpoint]
	groups     table[*securityGroup]
	interfaces table[*networkInterface]
	templates  table[*launchTemplate]
	instances  table[*instance]
	volumes    table[*volume]
	snapshots  table[*snapshot]
	flowLogs   table[*flowLog]
	// tokens are the results of calls with a client token, by action and token.
	tokens map[string]string
}

// New returns an empty EC2 without a default VPC, as in accounts that deleted it. Close stops its work.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Zones == nil {
		config.Zones = []string{config.Region + "a", config.Region + "b", config.Region + "c"}
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{
		config: config, ctx: ctx, stop: stop, tokens: map[string]string{}, zones: zoneIDs(config.Region, config.Zones),
	}
	s.changes = clock.NewChanges(&s.mu)
	return s
}

// SetNodes sets the target of registrations. It is called after New, because EKS needs EC2 first.
func (s *Service) SetNodes(nodes Nodes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = nodes
}

// Close stops all running work and waits for it.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// background runs f until it ends or the service is closed. The caller holds the lock.
func (s *Service) background(f func(ctx context.Context)) {
	if s.closed {
		return
	}
	turn := s.config.Clock.Ticket("ec2: in the background")
	s.work.Go(func() {
		turn()
		f(s.ctx)
	})
}

// await waits until done returns true. It calls done with the lock held, now and after every change of state.
func (s *Service) await(ctx context.Context, done func() (bool, error)) error {
	return s.changes.Await(ctx, s.ctx, s.config.Clock, "ec2: a change", done)
}

func (s *Service) emit(ctx context.Context, detailType string, resources []string, detail any) {
	if s.config.Events != nil {
		s.config.Events.Emit(ctx, "aws.ec2", detailType, resources, detail)
	}
}

// object has the common parts of all resources.
type object struct {
	id string
	// kind as in ARNs and tag specifications, such as route-table.
	kind string
	tags map[string]string
	// stackTags are the tags that CloudFormation set.
	stackTags map[string]string
}

func (o *object) base() *object { return o }

// newObject gives a resource its ID of seventeen hex digits. The same sequence of calls returns the same IDs, so that runs can be compared.
// prefix defaults to kind.
func (s *Service) newObject(kind, prefix string, tags map[string]string) object {
	return object{id: s.newID(prefix), kind: kind, tags: tags}
}

func (s *Service) newID(prefix string) string {
	s.counter++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d", s.config.Account, s.config.Region, prefix, s.counter))
	return prefix + "-" + hex.EncodeToString(sum[:])[:17]
}

func (s *Service) arn(kind, id string) string {
	account := s.config.Account
	if kind == "image" || kind == "snapshot" {
		account = "" // Amazon owns the AMIs of the catalog
	}
	return "arn:" + s.config.Partition + ":ec2:" + s.config.Region + ":" + account + ":" + kind + "/" + id
}

// table keeps resources in the order of their creation.
type table[T any] struct {
	byID  map[string]T
	order []string
}

func (t *table[T]) put(id string, v T) {
	if t.byID == nil {
		t.byID = map[string]T{}
	}
	t.byID[id] = v
	t.order = append(t.order, id)
}

func (t *table[T]) get(id string) (T, bool) {
	v, ok := t.byID[id]
	return v, ok
}

func (t *table[T]) delete(id string) {
	if _, ok := t.byID[id]; ok {
		delete(t.byID, id)
		t.order = slices.DeleteFunc(t.order, func(x string) bool { return x == id })
	}
}

func (t *table[T]) all() []T {
	all := make([]T, 0, len(t.order))
	for _, id := range t.order {
		all = append(all, t.byID[id])
	}
	return all
}

// fail is an error of the API.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func fail(code, format string, args ...any) error {
	return &wire.Error{Code: code, Message: fmt.Sprintf(format, args...), Status: 400}
}

func dependency(kind, id string) error {
	return fail("DependencyViolation", "The %s '%s' has dependencies and cannot be deleted.", kind, id)
}
