// Package plan compares what a cluster should be with what is deployed and says what to change, in order, and why. It is
// pure: it neither reads nor changes anything.
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

// Change of one stack: everything the change function needs, and why.
type Change struct {
	Stack       string    `json:"stack"`
	StackName   string    `json:"stackName"`
	Operation   Operation `json:"operation"`
	TemplateKey string    `json:"templateKey,omitempty"`
	// FirstKey is the template that the stack is created from, if that is another: see render.Stack.
	FirstKey     string             `json:"firstKey,omitempty"`
	Parameters   []render.Parameter `json:"parameters,omitempty"`
	Tags         map[string]string  `json:"tags,omitempty"`
	Capabilities []string           `json:"capabilities,omitempty"`
	Protected    bool               `json:"protected,omitempty"`
	// Pace gives the parameters that depend on the pool's size at the moment of the change.
	Pace *render.Pace `json:"pace,omitempty"`
	// ByTag says that drover may change the stack only while it carries names.TagCluster: see Untagged.
	ByTag bool `json:"byTag,omitempty"`
	// Order of a pool: see api.Update.
	Order int `json:"order,omitempty"`
	// First says that it goes before all others.
	First    bool            `json:"first,omitempty"`
	Checksum string          `json:"checksum,omitempty"`
	Reasons  []status.Reason `json:"reasons"`
	// Moving says that an operation on the stack was under way when this was planned. Its outputs said what it was, and its tags what it was
	// to be: what is wanted of it can be told only once that is over.
	Moving bool `json:"moving,omitempty"`
}

// Plan is what takes a cluster from deployed to desired.
type Plan struct {
	Cluster     string `json:"cluster"`
	SpecVersion string `json:"specVersion"`
	// Rejected is the version of a newer spec that cannot be used, and so supersedes nothing.
	Rejected string `json:"rejected,omitempty"`
	// Changes in order.
	Changes []Change `json:"changes"`
	// AddonsWait says that the add-ons that need nodes are left as they are until there is one.
	AddonsWait bool `json:"-"`
	// Warnings of the spec that is planned, with its release: see api.Warnings.
	Warnings []string `json:"-"`
	// Refused are the replacements that the plan would need and drover does not do, and changes that it may not make. If
	// there is one, nothing is changed.
	Refused []status.Reason `json:"-"`
}

// Input of planning.
type Input struct {
	Cluster     string
	SpecVersion string
	// Rejected is the version of a newer spec that cannot be used, if there is one.
	Rejected string
	// Release pins the cluster to a release by content: the value of names.TagRelease.
	Release string
	// New is the spec as rendered. Old is the spec that last changed each stack, by stack name; absent ones are not known.
	New *api.Cluster
	Old map[string]*api.Cluster
	// Desired stacks in order, Deployed by name.
	Desired  []render.Stack
	Deployed map[string]stack.Deployed
}

// Compute plans. A stack that is what it should be is not in the plan; an empty plan costs nothing.
func Compute(in Input) Plan {
	p := Plan{Cluster: in.Cluster, SpecVersion: in.SpecVersion, Rejected: in.Rejected}
	wanted := map[string]bool{}
	for _, desired := range in.Desired {
		wanted[desired.Name] = true
		tags := maps.Clone(desired.Tags)
		if desired.Name == names.ControlPlane {
			// The pin is kept where a cluster always has a stack.
			tags[names.TagRelease] = in.Release
		}
		checksum := Checksum(desired, tags)
		deployed, exists := in.Deployed[desired.Name]
		change := Change{
			Stack: desired.Name, StackName: desired.StackName, TemplateKey: desired.TemplateKey, Parameters: desired.Parameters,
			Tags: tags, Capabilities: desired.Capabilities, Protected: desired.Protected, Pace: desired.Pace, Order: orderOf(in.New, desired.Name),
			Checksum: checksum,
			ByTag:    byTag(desired.Name, in.New),
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
			change.Reasons = []status.Reason{{Field: "status." + desired.Name, Old: deployed.Status, New: "CREATE_COMPLETE"}}
		default:
			change.Operation, change.Moving = Update, stack.InProgress(deployed.Status)
			change.Reasons = in.whyUpdate(desired, deployed, checksum, tags)
			p.Refused = append(p.Refused, refused(desired.Name, in.Old[desired.Name], in.New)...)
			if lost, is := change.Untagged(deployed); is && len(change.Reasons) > 0 {
				p.Refused = append(p.Refused, lost)
			}
		}
		if len(change.Reasons) > 0 {
			p.Changes = append(p.Changes, change)
		}
	}
	p.Changes = append(p.Changes, in.removals(wanted)...)
	p.Changes = in.orphans(p.Changes)
	slices.SortStableFunc(p.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.stage(), b.stage()), cmp.Compare(a.Order, b.Order))
	})
	return p
}

// orderOf is the order of a pool's stack among those of the other pools; one that the spec no longer has goes with the last.
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

// whyUpdate lists the reasons to update a stack; none means that it is what it should be.
func (in Input) whyUpdate(desired render.Stack, deployed stack.Deployed, checksum string, wanted map[string]string) []status.Reason {
	var reasons []status.Reason
	if old := deployed.Tags[names.TagChecksum]; old != checksum {
		reasons = Diff(desired.Name, in.Old[desired.Name], in.New)
		// Whoever took the checksum's tag away took this one with it: that is no roll.
		if before, now := deployed.Tags[names.TagRollAt], desired.Tags[names.TagRollAt]; before != now && (old != "" || before != "") {
			field := source(desired.Name) + ".rollAt" // the spec's own, or that of somebody who asked by hand
			reasons = slices.DeleteFunc(reasons, func(r status.Reason) bool { return r.Field == field })
			reasons = append(reasons, status.Reason{Field: field, Old: before, New: now})
		}
		if len(reasons) == 0 {
			reasons = []status.Reason{{Field: "checksum." + desired.Name, Old: old, New: checksum}}
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, lostTags(desired.Name, deployed, wanted)...)
	}
	for _, parameter := range desired.Parameters {
		if now := deployed.Parameters[parameter.Name]; parameter.AtFirst != "" && now != parameter.Value {
			reasons = append(reasons, status.Reason{Field: desired.Name + ".parameters." + parameter.Name, Old: now, New: parameter.Value})
		}
		if parameter.From == nil {
			continue
		}
		from, there := in.Deployed[parameter.From.Stack]
		if now := from.Outputs[parameter.From.Output]; there && now != "" && now != deployed.Parameters[parameter.Name] {
			reasons = append(reasons, status.Reason{
				Field: parameter.From.Stack + ".outputs." + parameter.From.Output, Old: deployed.Parameters[parameter.Name], New: now,
			})
		}
	}
	if desired.Pace != nil {
		// While nodes are replaced it may have been more than the spec says: then it is put back.
		want := desired.Pace.Resting(nil)[render.MaxSize]
		field := source(desired.Name) + ".maxSize"
		known := slices.ContainsFunc(reasons, func(r status.Reason) bool { return r.Field == field })
		if now, there := deployed.Parameters[render.MaxSize]; there && now != want && !known {
			reasons = append(reasons, status.Reason{Field: field, Old: now, New: want})
		}
	}
	if desired.Protected != deployed.TerminationProtection {
		reasons = append(reasons, status.Reason{
			Field: "terminationProtection." + desired.Name, Old: text(deployed.TerminationProtection), New: text(desired.Protected),
		})
	}
	if len(reasons) == 0 && !stack.Settled(deployed.Status) {
		reasons = []status.Reason{{Field: "status." + desired.Name, Old: deployed.Status, New: "UPDATE_COMPLETE"}}
	}
	return reasons
}

// lostTags lists the tags that somebody took from a stack, or changed, and left the checksum as it was.
func lostTags(stack string, deployed stack.Deployed, wanted map[string]string) []status.Reason {
	var reasons []status.Reason
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if now := deployed.Tags[key]; now != wanted[key] && key != names.TagSpecVersion {
			reasons = append(reasons, status.Reason{Field: "tags." + stack + "." + key, Old: now, New: wanted[key]})
		}
	}
	return reasons
}

// removals deletes the stacks of pools and add-ons that the spec no longer has, also those that were never more than a change set. A
// network or control plane is never deleted by leaving something out of a spec.
func (in Input) removals(wanted map[string]bool) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(in.Deployed)) {
		is := in.Deployed[name].Status
		if wanted[name] || stack.Absent(is) && is != stack.InReview || name == names.Network || name == names.ControlPlane {
			continue
		}
		changes = append(changes, Change{
			Stack: name, StackName: names.Stack(in.Cluster, name), Operation: Delete, Order: orderOf(in.New, name),
			Reasons: []status.Reason{{Field: source(name), Old: "present", New: "absent"}},
		})
	}
	return changes
}

// Checksum identifies what a stack should be: its template, its known parameters and its tags, less those that only say
// who changed it last.
func Checksum(stack render.Stack, tags map[string]string) string {
	kept := maps.Clone(tags)
	delete(kept, names.TagChecksum)
	delete(kept, names.TagSpecVersion)
	delete(kept, names.TagTemplate)
	// A struct of strings, slices and a map, whose keys encoding/json sorts, always marshals, and always to the same bytes.
	body, _ := json.Marshal(struct {
		Template   string
		Parameters []render.Parameter
		Tags       map[string]string
	}{stack.TemplateKey, stack.Parameters, kept})
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
	case stack == names.Addons:
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

// source is the field of the spec that a stack comes from.
func source(stack string) string {
	if pool, ok := strings.CutPrefix(stack, names.PoolPrefix); ok {
		return "spec.pools[" + pool + "]"
	}
	return map[string]string{
		names.Network: "spec.network", names.ControlPlane: "spec.controlPlane",
		names.Addons: "spec.addons", names.NodeAddons: "spec.addons",
	}[stack]
}

// Token is the ClientRequestToken of a change, which CloudFormation echoes in every event: the same for every try of one
// holder of the lease at one version of the spec, and another for each later one.
// [a-zA-Z0-9][-a-zA-Z0-9]*, at most 128 characters.
func (c Change) Token(specVersion string, fence int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", c.StackName, c.Checksum, specVersion, fence))
	return strings.ToLower(string(c.Operation)) + "-" + hex.EncodeToString(sum[:16])
}

// Find returns the change of a stack.
func (p Plan) Find(stack string) (Change, bool) {
	for _, change := range p.Changes {
		if change.Stack == stack {
			return change, true
		}
	}
	return Change{}, false
}

// Stages are the stacks to change, by stage, as the converge machine maps over them.
func (p Plan) Stages() events.Stages {
	lists := [5][]string{{}, {}, {}, {}, {}} // never null in JSON
	pools, last := [][]string{}, -1
	for _, change := range p.Changes {
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

// droverToken matches the ClientRequestTokens of drover: those of changes, with what functions/change puts before and after them.
var droverToken = regexp.MustCompile(
	`^((then|settle|rollback)-)*(create|update|delete)-[0-9a-f]{32}(-[0-9a-f]{12})?$|^(delete|pace)-[0-9a-f]{40}$`)

// IsToken says whether a ClientRequestToken is one of drover's.
func IsToken(token string) bool { return droverToken.MatchString(token) }
