// Package planner plans a cluster: it reads the spec and the deployed stacks, renders the desired stacks, and compares. shared/plan and
// shared/upgrade decide; this package reads what they need. It takes no lease and starts nothing. The plan function, the audit, the
// upgrade function and the command line use it.
package planner

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the bucket of specs and releases: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	GetVersion(ctx context.Context, key, version string, limit int64) (store.Object, error)
}

// State is the state bucket: a subset of store.State. A preview only reads it.
type State interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	PutOnce(ctx context.Context, key string, body []byte) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	Assignment(ctx context.Context, cluster string) (*rollout.CellAssignment, string, error)
	CellFreezes(ctx context.Context) (*rollout.CellFreezes, string, error)
	Rolls(ctx context.Context, cluster string) (map[string]time.Time, error)
	AddDue(ctx context.Context, cluster string, at time.Time) error
}

// Stacks reads the deployed stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	ListCluster(ctx context.Context, cluster string, expected []string) (map[string]stack.Deployed, error)
	Owners(ctx context.Context, arns []string) (map[string]string, error)
}

// Groups reads the Auto Scaling groups of pools: a subset of autoscaling.Groups.
type Groups interface {
	Describe(ctx context.Context, group string) (pool.Group, bool, error)
}

// EKS says which Kubernetes versions, settings and add-ons EKS offers, and whether a cluster exists: a subset of eks.Reader.
type EKS interface {
	Offered(ctx context.Context) ([]string, error)
	Exists(ctx context.Context, eksCluster string) (bool, error)
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
	SettingBounds(ctx context.Context, version, tier string) (*preflight.SettingBounds, error)
}

// Functions finds the function of a relay: a subset of lambda.Functions.
type Functions interface {
	Exists(ctx context.Context, function string) (bool, error)
}

// Account checks whether the account can take a cluster that does not exist yet: collect.Collector.
type Account interface {
	Examine(ctx context.Context, resolved *api.Cluster) ([]doctor.Finding, error)
}

// Images describes images of EC2: a subset of ec2.Capacity.
type Images interface {
	Images(ctx context.Context, ids []string) (map[string]preflight.Image, error)
}

// Capacity describes what pools name: a subset of ec2.Capacity.
type Capacity interface {
	Subnets(ctx context.Context, ids []string) (map[string]preflight.Subnet, error)
	SecurityGroups(ctx context.Context, ids []string) (map[string]preflight.SecurityGroup, error)
	InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error)
}

// Keys describes KMS keys: kms.Keys.
type Keys interface {
	// Describe returns the state of a key. found is false if it does not exist, and permitted is false if the key may not be described.
	Describe(ctx context.Context, arn string) (state string, found, permitted bool, err error)
}

// Networks reads zones, services, addresses and existing networks: a subset of ec2.Networks.
type Networks interface {
	Zones(ctx context.Context) (map[string]string, error)
	EndpointServices(ctx context.Context, services []string) (map[string]preflight.EndpointService, error)
	ElasticAddresses(ctx context.Context, allocations []string) (map[string]bool, error)
	Subnets(ctx context.Context, vpcs []string) (map[string]doctor.Subnet, error)
	PublicSubnets(ctx context.Context, subnets map[string]doctor.Subnet) (map[string]bool, error)
}

// Planner plans clusters.
type Planner struct {
	Specs  Specs
	State  State
	Stacks Stacks
	Groups Groups
	EKS    EKS
	// Account is asked before the first creation of a cluster. It is nil in previews, which create nothing.
	Account Account
	// Images is asked before a pool gets an image. It is nil in the audit, which compares only.
	Images Images
	// Capacity is asked before the control plane or a pool gets subnets or security groups, and before a pool gets local storage. It is nil
	// in previews.
	Capacity Capacity
	// Keys is asked before the disks of a pool get a KMS key. It is nil in previews.
	Keys Keys
	// Networks is asked before a network gets a zone, an endpoint or an address, and when a cluster in an existing network changes. It is nil
	// in previews.
	Networks Networks
	Cell     render.Cell
	// Settings are what the cell allows. nil does not check them: a preview's user may not be allowed to read them.
	Settings *api.CellSettings
	Now      func() time.Time
	// Relay is the code of this version's relays. RelayFile reads it; only Persist needs it. Functions finds deployed relays.
	Relay     render.RelayCode
	Functions Functions
	RelayFile func() ([]byte, error)
	// IgnorePaused plans a paused spec as if it were not paused, for previews.
	IgnorePaused bool
}

// ErrAbsent means that the cluster has no spec: it was deleted, or never uploaded.
var ErrAbsent = errors.New("there is no spec")

// Stop ends planning with a reason for the user. The plan changes no stack.
type Stop struct{ Reason, Message string }

func (s *Stop) Error() string { return s.Message }

// Fill puts the stop into the result of the plan function. A paused spec is valid, so it counts as accepted.
func (s *Stop) Fill(result *events.PlanResult) {
	result.Outcome, result.Reason, result.Message = events.OutcomeStopped, s.Reason, s.Message
	result.Accepted = result.Accepted || s.Reason == status.ReasonPaused
}

func (s *Stop) rejection() *events.Rejection {
	return &events.Rejection{Reason: s.Reason, Message: s.Message}
}

// Request is a request to plan one cluster.
type Request struct {
	Cluster string
	// If StacksOfStatus is true, planning also considers stacks that only the status names. A preview considers those of
	// the spec and of the tag index.
	StacksOfStatus bool
	// Roll names the pools that the caller wants rolled. Plan only uses it to refuse the roll if no spec applies.
	Roll []string
	// Accept is called with the spec that applies, before planning reads anything else. An error ends planning. It may be nil.
	Accept func(context.Context, *api.Cluster) error
}

// Outcome is the result of planning. After an error it holds what was found before it.
type Outcome struct {
	// Plan has the changes; none if the stacks are as desired.
	Plan plan.Plan
	// SpecVersion is the S3 version of the newest spec.
	SpecVersion string
	// Accepted reports whether the newest spec applies. If not, Rejected says why, and the last good spec applies.
	Accepted bool
	Rejected *events.Rejection
	// Upgrade is the upgrade that is in flight, pending or refused; nil if there is none.
	Upgrade *events.PlannedUpgrade
	// OverrideCleared is the number of the upgrade whose result no longer overrides the spec; 0 if there is none.
	OverrideCleared int64

	// tagProblems are the missing tags of an existing network, if tagsRead.
	tagProblems []string
	tagsRead    bool

	work work
}

// Plan plans for an execution. It requests the plans that are due later, and writes nothing else.
func (p *Planner) Plan(ctx context.Context, in Request) (o Outcome, err error) {
	o.work, err = p.read(ctx, in)
	o.SpecVersion = o.work.newest
	if err != nil {
		return o, err
	}
	o.Accepted, o.Rejected = o.work.acceptance()
	for _, at := range o.work.later {
		if err := p.State.AddDue(ctx, in.Cluster, at); err != nil {
			return o, err
		}
	}
	if o.Plan, err = p.compare(ctx, &o.work); err != nil {
		return o, err
	}
	if err = p.checkZones(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkNetworkServices(ctx, &o); err != nil {
		return o, err
	}
	if err = p.examineAccount(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkImages(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkExistingNetwork(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkControlPlaneNetwork(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkPoolNetworks(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkDiskKeys(ctx, &o); err != nil {
		return o, err
	}
	if err = p.checkLocalStorage(ctx, &o); err != nil {
		return o, err
	}
	o.Upgrade = p.plannedUpgrade(o.work)
	if o.work.decision.OverrideCleared {
		o.OverrideCleared = o.work.record.Number
	}
	if len(o.Plan.Changes) == 0 {
		o.work.rolled, err = p.drainedByRolls(ctx, o.work)
	}
	return o, err
}

// work is what planning has read and rendered.
type work struct {
	cluster string
	// version is the version of the applied spec, newest that of the newest spec. They differ if the newest was rejected.
	version, newest string
	rejected        *Stop
	// uploadedAt is when version was uploaded.
	uploadedAt time.Time
	// spec is the spec as written, resolved the spec with defaults and release.
	spec, resolved *api.Cluster
	// pin is name@sha256 of the release that applies. release is its content.
	pin     string
	release []byte
	// templates are the template versions of pools whose version differs from the cluster's.
	templates map[string]string
	// desired is what was rendered.
	desired  render.Cluster
	rendered *render.Output
	// deployed are the stacks as they were at the time readAt.
	deployed map[string]stack.Deployed
	readAt   time.Time
	// current is the release and version that the cluster has; zero before it has a control plane.
	current upgrade.Target
	// later are the times at which to plan again: future rolls of the spec, and the next upgrade.
	later []time.Time
	// decision says which release applies, given the record of the last upgrade.
	decision upgrade.Decision
	record   *upgrade.Record
	// releases are the releases that were read, by name, and by content if they are pinned.
	releases map[string]content
	// rolled are replaced nodes of rolls that are still being drained.
	rolled []status.Node
}

// acceptedUpload is the newest spec, as the status records it.
func (w *work) acceptedUpload() status.Upload {
	upload := status.Upload{Version: w.newest, UploadedAt: w.uploadedAt}
	if w.spec != nil {
		upload.Labels = w.spec.Metadata.Labels
	}
	return upload
}

// acceptance reports whether the newest spec applies and, if not, why.
func (w *work) acceptance() (accepted bool, rejected *events.Rejection) {
	if w.rejected != nil {
		return false, w.rejected.rejection()
	}
	return true, nil
}
