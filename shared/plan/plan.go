// Package plan compares the desired stacks of a cluster with the deployed ones. It returns the changes in order, each with its reasons. It
// is pure: other packages read the stacks and make the changes.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Operation on a stack.
type Operation string

// The operations.
const (
	Create Operation = "Create"
	Update Operation = "Update"
	Delete Operation = "Delete"
)

// Change of one stack: everything that the change function needs.
type Change struct {
	Stack       string    `json:"stack"`
	StackName   string    `json:"stackName"`
	Operation   Operation `json:"operation"`
	TemplateKey string    `json:"templateKey,omitempty"`
	// FirstKey is the template for the creation, if it differs: see render.Stack.
	FirstKey string `json:"firstKey,omitempty"`
	// RepairKey is the template of a first update, which removes what was deleted outside drover: see render.Stack.
	RepairKey    string             `json:"repairKey,omitempty"`
	Parameters   []render.Parameter `json:"parameters,omitempty"`
	Tags         map[string]string  `json:"tags,omitempty"`
	Capabilities []string           `json:"capabilities,omitempty"`
	Protected    bool               `json:"protected,omitempty"`
	// Pace computes the parameters that depend on the pool's size at the time of the change.
	Pace *render.Pace `json:"pace,omitempty"`
	// Nodes is what the nodes of a pool are made of.
	Nodes *render.Fingerprint `json:"nodes,omitempty"`
	// Effect is what an update does to running nodes. It is "" if planning cannot know it, and for creations and deletions.
	Effect status.Effect `json:"effect,omitempty"`
	// ByTag reports that drover may change the stack only while it has names.TagCluster: see MissingTag.
	ByTag bool `json:"byTag,omitempty"`
	// Order of a pool: see api.Update.
	Order int `json:"order,omitempty"`
	// After is the stack from which this one gets service accounts: see orderMoves. "" if there is none.
	After string `json:"after,omitempty"`
	// First reports that the change precedes all others.
	First    bool            `json:"first,omitempty"`
	Checksum string          `json:"checksum,omitempty"`
	Reasons  []status.Reason `json:"reasons"`
	// InFlight reports that an operation on the stack was in flight during planning. Its outputs were the old ones, its tags the new ones.
	// Only a plan after that operation is reliable.
	InFlight bool `json:"inFlight,omitempty"`
}

// Plan holds the changes from the deployed to the desired cluster.
type Plan struct {
	Cluster     string `json:"cluster"`
	SpecVersion string `json:"specVersion"`
	// Rejected is the version of a newer spec that cannot be used. It does not supersede this plan.
	Rejected string `json:"rejected,omitempty"`
	// Accepted is the last accepted version of the spec when a deletion was planned. A newer one may protect the cluster.
	Accepted string `json:"accepted,omitempty"`
	// Changes in order.
	Changes []Change `json:"changes"`
	// AddonsWait reports that the add-ons that need nodes stay unchanged until there is one.
	AddonsWait bool `json:"-"`
	// Warnings about the spec and its release: see api.Warnings.
	Warnings api.SpecWarnings `json:"-"`
	// RelayOutdated is the warning about a relay with the code of another version of drover, one line or none.
	RelayOutdated []string `json:"-"`
	// Refused are replacements that drover does not do, and changes that it may not make. If there is one, drover changes nothing.
	Refused []status.Reason `json:"-"`
}

// RelayFunction is the field of the reason to recreate the function of a relay.
const RelayFunction = "relay.function"

// Input of planning.
type Input struct {
	Cluster     string
	SpecVersion string
	// Rejected is the version of a newer spec that cannot be used, if any.
	Rejected string
	// Release pins the cluster to a release by content: the value of names.TagRelease.
	Release string
	// New is the spec as rendered. Old is the spec that last changed each stack, by stack name. Unknown ones are absent.
	New *api.Cluster
	Old map[string]*api.Cluster
	// Desired stacks in order. Deployed stacks by name.
	Desired  []render.Stack
	Deployed map[string]stack.Deployed
}

// Compute returns the plan. It contains only stacks that differ. An empty plan needs no lease and no change set.
func Compute(in Input) Plan {
	p := Plan{Cluster: in.Cluster, SpecVersion: in.SpecVersion, Rejected: in.Rejected}
	wanted := map[string]bool{}
	for _, desired := range in.Desired {
		wanted[desired.Name] = true
		tags := maps.Clone(desired.Tags)
		if desired.Name == names.ControlPlane {
			// The pin is on the control plane because every cluster has that stack.
			tags[names.TagRelease] = in.Release
		}
		checksum := Checksum(desired, tags)
		deployed, exists := in.Deployed[desired.Name]
		change := Change{
			Stack: desired.Name, StackName: desired.StackName, TemplateKey: desired.TemplateKey, Parameters: desired.Parameters,
			Tags: tags, Capabilities: desired.Capabilities, Protected: desired.Protected, Pace: desired.Pace, Nodes: desired.Nodes,
			Order: orderOf(in.New, desired.Name), Checksum: checksum, ByTag: byTag(desired.Name, in.New),
		}
		if desired.Pace != nil {
			tags[names.TagTemplate] = desired.TemplateKey
		}
		tags[names.TagChecksum] = checksum
		tags[names.TagSpecVersion] = in.SpecVersion
		switch {
		case !exists || stack.Absent(deployed.Status):
			change.Operation, change.FirstKey = Create, desired.FirstKey
			change.Reasons = []status.Reason{{Field: source(desired.Name), Old: "absent", New: "present"}}
		case stack.MustRecreate(deployed.Status):
			change.Operation, change.FirstKey = Create, desired.FirstKey
			change.Reasons = []status.Reason{{Field: "status." + desired.Name, Old: deployed.Status, New: stack.CreateComplete}}
		default:
			change.Operation, change.InFlight, change.RepairKey = Update, stack.InProgress(deployed.Status), desired.RepairKey
			if change.Reasons = in.whyUpdate(desired, deployed, checksum, tags); len(change.Reasons) > 0 {
				change.Effect = in.effectOf(desired, deployed, change.Reasons)
			}
			p.Refused = append(p.Refused, refusedReasons(desired.Name, in.Old[desired.Name], in.New)...)
			if reason, missing := change.MissingTag(deployed); missing {
				p.Refused = append(p.Refused, reason)
			}
		}
		if len(change.Reasons) > 0 {
			p.Changes = append(p.Changes, change)
		}
	}
	p.Changes = append(p.Changes, in.removals(wanted)...)
	p.Changes = in.orphans(p.Changes)
	in.orderMoves(&p)
	slices.SortStableFunc(p.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.stage(), b.stage()), cmp.Compare(a.Order, b.Order))
	})
	return p
}

// orderOf returns the order of a pool's stack. A pool that the spec no longer has is in the last group.
func orderOf(c *api.Cluster, stack string) (last int) {
	for i := range c.Spec.Pools {
		pool := &c.Spec.Pools[i]
		if names.PoolStack(pool.Name) == stack {
			return pool.Update.Order
		}
		last = max(last, pool.Update.Order)
	}
	return last
}

// whyUpdate returns the reasons to update a stack. There are none if the stack matches.
func (in Input) whyUpdate(desired render.Stack, deployed stack.Deployed, checksum string, wanted map[string]string) []status.Reason {
	var reasons []status.Reason
	if old := deployed.Tags[names.TagChecksum]; old != checksum {
		reasons = Diff(desired.Name, in.Old[desired.Name], in.New)
		// If the checksum's tag was removed, this one was removed with it. That is no roll.
		if before, now := deployed.Tags[names.TagRollAt], desired.Tags[names.TagRollAt]; before != now && (old != "" || before != "") {
			field := source(desired.Name) + ".rollAt" // from the spec, or from drover roll
			reasons = slices.DeleteFunc(reasons, func(r status.Reason) bool { return r.Field == field })
			reasons = append(reasons, status.Reason{Field: field, Old: before, New: now})
		}
		if len(reasons) == 0 {
			reasons = []status.Reason{{Field: "checksum." + desired.Name, Old: old, New: checksum}}
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, changedTags(desired.Name, deployed, wanted)...)
	}
	for _, parameter := range desired.Parameters {
		if now := deployed.Parameters[parameter.Name]; parameter.AtFirst != "" && now != parameter.Value {
			reasons = append(reasons, status.Reason{Field: desired.Name + ".parameters." + parameter.Name, Old: now, New: parameter.Value})
		}
		if parameter.From == nil {
			continue
		}
		if now := in.valueOf(parameter.From); now != "" && now != deployed.Parameters[parameter.Name] {
			reasons = append(reasons, status.Reason{
				Field: parameter.From.Stack + ".outputs." + parameter.From.Output, Old: deployed.Parameters[parameter.Name], New: now,
			})
		}
	}
	if desired.Pace != nil {
		// While nodes are replaced, the maximum may exceed the spec's. Afterwards it is reset.
		want := desired.Pace.WithoutReplacement(nil)[render.MaxSize]
		field := source(desired.Name) + ".maxSize"
		listed := slices.ContainsFunc(reasons, func(r status.Reason) bool { return r.Field == field })
		if now, ok := deployed.Parameters[render.MaxSize]; ok && now != want && !listed {
			reasons = append(reasons, status.Reason{Field: field, Old: now, New: want})
		}
	}
	if desired.RepairKey != "" {
		reasons = append(reasons, status.Reason{Field: RelayFunction, Old: "absent", New: "present"})
	}
	if desired.Protected != deployed.TerminationProtection {
		reasons = append(reasons, status.Reason{
			Field: "terminationProtection." + desired.Name, Old: text(deployed.TerminationProtection), New: text(desired.Protected),
		})
	}
	if len(reasons) == 0 && !stack.Settled(deployed.Status) {
		reasons = []status.Reason{{Field: "status." + desired.Name, Old: deployed.Status, New: stack.UpdateComplete}}
	}
	return reasons
}

// changedTags returns the tags of a stack that were removed or changed, while its checksum was not.
func changedTags(stack string, deployed stack.Deployed, wanted map[string]string) []status.Reason {
	var reasons []status.Reason
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if now := deployed.Tags[key]; now != wanted[key] && key != names.TagSpecVersion {
			reasons = append(reasons, status.Reason{Field: "tags." + stack + "." + key, Old: now, New: wanted[key]})
		}
	}
	return reasons
}

// removals returns the deletions of stacks of pools and add-ons that the spec no longer has. They include stacks that only have a change
// set. Removing something from a spec never deletes a network or control plane.
func (in Input) removals(wanted map[string]bool) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(in.Deployed)) {
		current := in.Deployed[name].Status
		if wanted[name] || stack.Absent(current) && current != stack.InReview || name == names.Network || name == names.ControlPlane {
			continue
		}
		changes = append(changes, Change{
			Stack: name, StackName: names.Stack(in.Cluster, name), Operation: Delete, Order: orderOf(in.New, name),
			Reasons: []status.Reason{{Field: source(name), Old: "present", New: "absent"}},
		})
	}
	return changes
}

// Checksum identifies a desired stack: its template, its known parameters and its tags. It leaves out the tags that only record who
// changed the stack last.
func Checksum(stack render.Stack, tags map[string]string) string {
	identity := maps.Clone(tags)
	delete(identity, names.TagChecksum)
	delete(identity, names.TagSpecVersion)
	delete(identity, names.TagTemplate)
	// A struct of strings, slices and a map always marshals to the same bytes: encoding/json sorts the keys of the map.
	body, _ := json.Marshal(struct {
		Template   string
		Parameters []render.Parameter
		Tags       map[string]string
	}{stack.TemplateKey, stack.Parameters, identity})
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

const poolStage = 3

// stage is the place of a stack in the order of changes.
func stage(stack string) int {
	switch {
	case stack == names.Network:
		return 0
	case stack == names.ControlPlane:
		return 1
	case stack == names.Addons, stack == names.Identities, stack == names.Capabilities:
		return 2
	case strings.HasPrefix(stack, names.PoolPrefix):
		return poolStage
	default:
		return 4
	}
}

func (c Change) stage() int {
	if c.First {
		return stage(names.Network)
	}
	return stage(c.Stack)
}

// source returns the field of the spec from which a stack is rendered.
func source(stack string) string {
	if pool, ok := strings.CutPrefix(stack, names.PoolPrefix); ok {
		return "spec.pools[" + pool + "]"
	}
	return map[string]string{
		names.Network: "spec.network", names.ControlPlane: "spec.controlPlane",
		names.Addons: "spec.addons", names.NodeAddons: "spec.addons", names.Identities: "spec.podIdentities",
		names.Capabilities: "spec.capabilities",
	}[stack]
}

// Token returns the ClientRequestToken of a change, which CloudFormation echoes in every event. All attempts of one lease holder at one
// spec version have the same token. Each later holder has another.
// [a-zA-Z0-9][-a-zA-Z0-9]*, at most 128 characters.
func (c Change) Token(specVersion string, fence int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", c.StackName, c.Checksum, specVersion, fence))
	return strings.ToLower(string(c.Operation)) + "-" + hex.EncodeToString(sum[:16])
}

// Find returns the change of a stack.
func (p Plan) Find(stack string) (change Change, found bool) {
	for _, change := range p.Changes {
		if change.Stack == stack {
			return change, true
		}
	}
	return Change{}, false
}

// Stages returns the stacks to change, by stage, for the maps of the converge machine. It leaves out those that wait for another change:
// the machine plans again after a round.
func (p Plan) Stages() events.Stages {
	lists := [5][]string{{}, {}, {}, {}, {}} // never null in JSON
	pools, last := [][]string{}, -1
	for _, change := range p.Changes {
		if p.waits(change) {
			continue
		}
		at := change.stage()
		if at != poolStage {
			lists[at] = append(lists[at], change.Stack)
			continue
		}
		if change.Order != last {
			pools, last = append(pools, nil), change.Order
		}
		pools[len(pools)-1] = append(pools[len(pools)-1], change.Stack)
	}
	return events.Stages{Network: lists[0], ControlPlane: lists[1], Addons: lists[2], Pools: pools, NodeAddons: lists[4]}
}

func text(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// droverToken matches drover's ClientRequestTokens: those of Token, with the prefixes and suffixes of functions/change.
var droverToken = regexp.MustCompile(
	`^((then|settle|rollback|repair)-)*(create|update|delete)-[0-9a-f]{32}(-repeated(-[0-9]+)?)?(-[0-9a-f]{12})?$|` +
		`^(delete|pace)-[0-9a-f]{40}$`)

// IsToken reports whether a ClientRequestToken is drover's.
func IsToken(token string) bool { return droverToken.MatchString(token) }
