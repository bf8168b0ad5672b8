// Package doctor decides whether an account can take clusters: named checks over facts that package collect read. It is pure. The command
// `drover doctor` shows every finding. The plan function stops the first creation of a cluster if one of them blocks.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
)

// Level of a finding.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Blocks  Level = "blocks"
)

// Finding is the result of one check.
type Finding struct {
	// Check is its name: see docs/runbook.md.
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Fix is the command or the step that fixes it; empty if the level is ok.
	Fix string `json:"fix,omitempty"`
}

// Names of checks. docs/runbook.md explains each.
const (
	Credentials        = "Credentials"
	Region             = "Region"
	Bootstrap          = "Bootstrap"
	ServiceLinkedRoles = "ServiceLinkedRoles"
	NetworkTags        = "NetworkTags"
	ClusterExists      = "ClusterExists"
	VPCQuota           = "VPCQuota"
	GatewayQuota       = "GatewayQuota"
	AddressQuota       = "AddressQuota"
	NATGatewayQuota    = "NATGatewayQuota"
	ClusterQuota       = "ClusterQuota"
	RoleQuota          = "RoleQuota"
	ProviderQuota      = "ProviderQuota"
	LambdaConcurrency  = "LambdaConcurrency"
	ZonesAccepted      = "ZonesAccepted"
	OnDemandQuota      = "OnDemandQuota"
	SpotQuota          = "SpotQuota"
	InstanceTypesExist = "InstanceTypesExist"
	VersionOffered     = preflight.VersionOffered
	AddonsCompatible   = preflight.AddonsCompatible
	Images             = preflight.Images
	PrincipalsExist    = "PrincipalsExist"
)

// Cluster is a cluster to create.
type Cluster struct {
	// Resolved has the values of its release and the defaults.
	Resolved *api.Cluster
}

// name of the cluster.
func (c Cluster) name() string { return c.Resolved.Metadata.Name }

// names of the checks, in the order of their findings.
var names = []string{
	Credentials, Region, ClusterExists, Bootstrap, ServiceLinkedRoles,
	VPCQuota, GatewayQuota, AddressQuota, NATGatewayQuota, ClusterQuota, RoleQuota, ProviderQuota, LambdaConcurrency, ZonesAccepted,
	NetworkTags, InstanceTypesExist,
	OnDemandQuota, SpotQuota, VersionOffered, AddonsCompatible, Images, PrincipalsExist,
}

// Names returns the names of the checks in the order of their findings.
func Names() []string { return slices.Clone(names) }

// Examine checks the account for clusters that do not exist yet. Without clusters, it warns where a small one would not fit. It returns the
// findings in the order of the checks.
func Examine(f *Facts, clusters []Cluster) []Finding {
	var found []Finding
	for _, name := range names {
		r := report{name: name, facts: f}
		if why, unreadable := f.Unreadable[name]; unreadable {
			r.warn("allow the call, or check it yourself", "it could not be checked: %s", why)
		} else {
			r.run(clusters)
		}
		found = append(found, r.found...)
	}
	return found
}

// run runs the check of the report.
func (r *report) run(clusters []Cluster) {
	switch r.name {
	case Credentials, Region, ClusterExists: // the command knows these before it reads facts
	case InstanceTypesExist:
		r.instanceTypes(clusters)
	case LambdaConcurrency:
		r.concurrency(len(clusters))
	case ZonesAccepted:
		r.zones(clusters)
	case NetworkTags:
		r.networkTags(clusters)
	case Bootstrap:
		r.bootstrap()
	case ServiceLinkedRoles:
		r.serviceLinkedRoles(clusters)
	case VersionOffered, AddonsCompatible, Images:
		r.checkOffered(clusters)
	case PrincipalsExist:
		r.principals(clusters)
	case VPCQuota, GatewayQuota, AddressQuota, NATGatewayQuota, ClusterQuota, RoleQuota, ProviderQuota, OnDemandQuota, SpotQuota:
		r.quotas(clusters)
	default:
		panic("no case for the check " + r.name)
	}
}

// Blocking returns the findings that block.
func Blocking(found []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Level != Blocks })
}

// report collects the findings of one check.
type report struct {
	name  string
	facts *Facts
	found []Finding
}

func (r *report) ok(format string, args ...any) { r.add(OK, "", format, args...) }

// warn adds a finding that does not prevent the creation, and what to do.
func (r *report) warn(fix, format string, args ...any) { r.add(Warning, fix, format, args...) }

// block adds a finding that prevents the creation, and what to do.
func (r *report) block(fix, format string, args ...any) { r.add(Blocks, fix, format, args...) }

func (r *report) add(level Level, fix, format string, args ...any) {
	r.found = append(r.found, Finding{Check: r.name, Level: level, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// list returns names in one line.
func list(names []string) string { return strings.Join(names, ", ") }
