package cli

// What diff finds, as a document and as text.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// difference is what uploading a spec would change.
type difference struct {
	Cluster string `json:"cluster"`
	// Creates reports whether the cluster has no control plane yet. drover creates it at Release and KubernetesVersion.
	Creates           bool   `json:"creates,omitempty"`
	Release           string `json:"release,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Paused reports whether the spec is paused. Such an upload changes nothing until a spec without the pause is uploaded.
	Paused  bool          `json:"paused,omitempty"`
	Changes []stackChange `json:"changes"`
	// WaitsForNode names a stack that is changed once the cluster has a node.
	WaitsForNode string          `json:"waitsForNode,omitempty"`
	Upgrade      *upgradeOutlook `json:"upgrade,omitempty"`
	// Notes are further facts, such as an upgrade in flight.
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// stops reports whether the spec stops the upgrade in flight.
	stops bool
}

// stackChange is the change of a stack.
type stackChange struct {
	Stack     string          `json:"stack"`
	Operation string          `json:"operation"`
	Effect    status.Effect   `json:"effect,omitempty"`
	Reasons   []status.Reason `json:"reasons"`
	// Pool is created with the stack.
	Pool *newPool `json:"pool,omitempty"`
}

// newPool is a pool that is created.
type newPool struct {
	Name string `json:"name"`
	// Nodes that it starts with.
	Nodes         int      `json:"nodes"`
	MinSize       int      `json:"minSize"`
	MaxSize       int      `json:"maxSize"`
	InstanceTypes []string `json:"instanceTypes"`
	Architecture  string   `json:"architecture"`
	Spot          bool     `json:"spot,omitempty"`
}

// upgradeOutlook is the upgrade that a spec leads to.
type upgradeOutlook struct {
	From release `json:"from"`
	To   release `json:"to"`
	// Origin is one of upgrade.Origin.
	Origin string `json:"origin"`
	// Begins is Now, Scheduled (At, or when what Message names is over) or Never.
	Begins  string     `json:"begins"`
	At      *time.Time `json:"at,omitempty"`
	Message string     `json:"message"`
	// Steps in order. Blocked says why there are none.
	Steps   []string `json:"steps,omitempty"`
	Blocked string   `json:"blocked,omitempty"`
	// DryRun is the command that shows its checks, steps, nodes and least time.
	DryRun string `json:"dryRun"`
}

// Values of upgradeOutlook.Begins.
const (
	beginsNow       = "Now"
	beginsScheduled = "Scheduled"
	beginsNever     = "Never"
)

// release is a release with the Kubernetes version of the cluster.
type release struct {
	Release           string `json:"release"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

func (r release) String() string {
	if r.KubernetesVersion == "" {
		return "release " + r.Release
	}
	return fmt.Sprintf("release %s (Kubernetes %s)", r.Release, r.KubernetesVersion)
}

func newDifference(cluster string, f planner.Forecast, now time.Time) *difference {
	d := &difference{
		Cluster: cluster, Creates: f.Creates, Paused: f.Paused, Changes: []stackChange{}, Warnings: f.Plan.Warnings.Lines(), stops: f.Stops != "",
	}
	if f.Creates {
		d.Release, d.KubernetesVersion = f.Spec.Spec.Release.Name, f.Spec.Spec.KubernetesVersion
	}
	for _, change := range f.Plan.Changes {
		found := stackChange{Stack: change.StackName, Operation: string(change.Operation), Effect: change.Effect, Reasons: change.Reasons}
		if pool, ok := strings.CutPrefix(change.Stack, names.PoolPrefix); ok && change.Operation == plan.Create {
			found.Pool = poolOf(f.Spec, pool)
		}
		d.Changes = append(d.Changes, found)
		for _, field := range change.RemovedCapabilities() {
			d.Warnings = append(d.Warnings, field+": EKS keeps the Kubernetes objects of a capability that is removed, and nothing manages them: "+
				"delete them first")
		}
		for _, reason := range change.Reasons {
			if reason.Field == "spec.controlPlane.oidcProvider" && reason.Old == "true" {
				d.Warnings = append(d.Warnings, reason.Field+": the IAM OIDC provider is removed: roles that trust it can no longer be assumed")
			}
		}
	}
	if f.Plan.AddonsWait {
		d.WaitsForNode = names.Stack(cluster, names.NodeAddons)
	}
	if f.Upgrade != nil {
		d.Upgrade = newUpgradeOutlook(cluster, f, now)
	}
	switch r := f.InFlight; {
	case r == nil:
	case f.Stops != "":
		d.Notes = append(d.Notes, fmt.Sprintf("the upgrade to %s is in flight: uploading this spec stops it after the open step, because %s",
			r.Target, f.Stops))
	default:
		d.Notes = append(d.Notes, fmt.Sprintf("the upgrade to %s is in flight and continues: drover status %s", r.Target, cluster))
	}
	if f.ImagesUnchecked != "" {
		d.Notes = append(d.Notes, "the images of pools were not checked: "+f.ImagesUnchecked)
	}
	if f.Override != "" {
		d.Notes = append(d.Notes, "the release that the spec names does not apply: "+f.Override)
	}
	if f.Paused {
		d.Notes = append(d.Notes, "spec.paused is true: uploading this spec changes nothing; "+
			"the changes shown apply when you upload it without that")
	}
	return d
}

// poolOf returns a pool of a resolved spec as drover creates it, with its minimum number of nodes.
func poolOf(spec *api.Cluster, name string) *newPool {
	i := slices.IndexFunc(spec.Spec.Pools, func(p api.Pool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	p := spec.Spec.Pools[i]
	return &newPool{
		Name: name, Nodes: p.MinSize, MinSize: p.MinSize, MaxSize: p.MaxSize, InstanceTypes: p.InstanceTypes,
		Architecture: string(p.Architecture), Spot: p.Spot != nil,
	}
}

func newUpgradeOutlook(cluster string, f planner.Forecast, now time.Time) *upgradeOutlook {
	u := f.Upgrade
	outlook := &upgradeOutlook{
		From: release{u.From.Release, u.From.KubernetesVersion}, To: release{u.To.Release, u.To.KubernetesVersion},
		Origin: string(u.Origin), Begins: beginsScheduled, Message: u.Message,
		DryRun: fmt.Sprintf("drover upgrade %s --to %s --dry-run", cluster, u.To.Release),
	}
	if version := u.Request.KubernetesVersion; version != "" {
		outlook.DryRun = fmt.Sprintf("drover upgrade %s --to %s --kubernetes-version %s --dry-run", cluster, u.To.Release, version)
	}
	if u.At.After(now) {
		at := u.At.UTC()
		outlook.At = &at
	}
	switch {
	case u.Now:
		outlook.Begins, outlook.Message = beginsNow, "checks run first"
	case u.Never:
		outlook.Begins = beginsNever
	case u.At.After(now) && u.Message == upgrade.WaitsForWindow:
		outlook.Message = "when the window of spec.upgrade opens: " + windowInShort(f.Spec.Spec.Upgrade.Window)
	}
	return outlook
}

// windowInShort describes a window by its fields; nil is a window that notBefore or an exclusion closes.
func windowInShort(w *api.Window) string {
	switch {
	case w == nil:
		return "at any time that notBefore and exclusions allow"
	case w.Cron != "":
		return fmt.Sprintf("cron %s for %s, %s", w.Cron, w.Duration, w.TimeZone)
	case len(w.Days) == 0:
		return fmt.Sprintf("every day from %s for %s, %s", w.Start, w.Duration, w.TimeZone)
	}
	return fmt.Sprintf("%s from %s for %s, %s", strings.Join(w.Days, ", "), w.Start, w.Duration, w.TimeZone)
}

// stepsInShort names the steps of an upgrade that change something, with the add-ons and pools that they change.
func stepsInShort(p *preflight.Plan) []string {
	var steps []string
	for _, step := range p.Steps {
		name := route.StepName(step)
		var parts []string
		switch step.Kind {
		case upgrade.StepAddons:
			for _, addon := range p.After.Spec.Addons {
				if addon.Version != versionIn(p.Before.Spec.Addons, addon.Name) {
					parts = append(parts, addon.Name)
				}
			}
		case upgrade.StepNodes:
			for _, pool := range p.After.Spec.Pools {
				if replaced(p, pool) {
					parts = append(parts, pool.Name)
				}
			}
		default:
			steps = append(steps, name)
			continue
		}
		if len(parts) > 0 {
			steps = append(steps, name+": "+strings.Join(parts, ", "))
		}
	}
	return steps
}

// differs reports whether the spec, without its pause, changes anything.
func (d *difference) differs() bool { return len(d.Changes) > 0 || d.Upgrade != nil || d.stops }

func (d *difference) print(w io.Writer) {
	switch n := len(d.Changes); {
	case n == 0 && d.Upgrade != nil:
		fmt.Fprintf(w, "%s: no stack would change before the upgrade\n", d.Cluster)
	case n == 0:
		fmt.Fprintf(w, "%s: no changes\n", d.Cluster)
	case d.Creates:
		fmt.Fprintf(w, "%s would be created at %s: %d stacks would change, in this order:\n", d.Cluster, release{
			d.Release, d.KubernetesVersion,
		}, n)
	case n == 1:
		fmt.Fprintf(w, "%s: 1 stack would change:\n", d.Cluster)
	default:
		fmt.Fprintf(w, "%s: %d stacks would change, in this order:\n", d.Cluster, n)
	}
	for _, change := range d.Changes {
		fmt.Fprintf(w, "\n%s %s%s\n", change.Operation, change.Stack, change.Effect.Words())
		if p := change.Pool; p != nil {
			fmt.Fprintf(w, "  %s\n", p)
			continue
		}
		for _, reason := range change.Reasons {
			fmt.Fprintf(w, "  %s: %s → %s\n", reason.Field, quote(reason.Old), quote(reason.New))
		}
	}
	if d.WaitsForNode != "" {
		fmt.Fprintf(w, "\n%s waits for the first node: no pool has one, and none has a minSize above 0\n", d.WaitsForNode)
	}
	if d.Upgrade != nil {
		d.Upgrade.print(w, d.Cluster, len(d.Changes) > 0)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", note)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "\nwarning: %s\n", warning)
	}
}

func (p *newPool) String() string {
	spot := ""
	if p.Spot {
		spot = ", with spot instances"
	}
	return fmt.Sprintf("pool %s: nodes %d (min %d, max %d), %s, %s%s", p.Name, p.Nodes, p.MinSize, p.MaxSize,
		strings.Join(p.InstanceTypes, " or "),
		p.Architecture, spot)
}

func (u *upgradeOutlook) print(w io.Writer, cluster string, after bool) {
	fmt.Fprintf(w, "\nUpgrade %s: %s → %s\n", cluster, u.From, u.To)
	fmt.Fprintf(w, "  requested by: %s\n", map[string]string{
		string(upgrade.OriginSpec): "the spec's release and Kubernetes version", string(upgrade.OriginChannel): "the channel of spec.upgrade",
		string(upgrade.OriginAt): "spec.upgrade.at", string(upgrade.OriginRollout): "a run of a rollout",
		string(upgrade.OriginRollback): "a run of a rollout, as a rollback",
	}[u.Origin])
	switch {
	case u.Begins == beginsNow && after:
		fmt.Fprintf(w, "  begins: at once after the changes above; %s\n", u.Message)
	case u.Begins == beginsNow:
		fmt.Fprintf(w, "  begins: at once; %s\n", u.Message)
	case u.Begins == beginsNever:
		fmt.Fprintf(w, "  does not begin: %s\n", u.Message)
	case u.At != nil:
		fmt.Fprintf(w, "  begins: within five minutes of %s (in %s): %s\n", u.At.Format(time.RFC3339), roughly(time.Until(*u.At)), u.Message)
	default:
		fmt.Fprintf(w, "  waits: %s\n", u.Message)
	}
	if u.Blocked != "" {
		fmt.Fprintf(w, "  is blocked: %s\n", u.Blocked)
	}
	for i, step := range u.Steps {
		fmt.Fprintf(w, "  %d. %s\n", i+1, step)
	}
	fmt.Fprintf(w, "  checks, nodes and least time: %s\n", u.DryRun)
}

// roughly formats a duration in its two largest units, to the minute.
func roughly(d time.Duration) string {
	d = d.Round(time.Minute)
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	}
	return fmt.Sprintf("%dm", minutes)
}

func quote(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}
