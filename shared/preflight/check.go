package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/status"
)

// check is one named check: what it found, if anything.
type check struct {
	name string
	// kubernetes says that it needs the cluster's own API.
	kubernetes bool
	run        func(r *report, f *Facts, p *Plan)
}

// health is checked before and after: what must be well for either to be said.
var health = []check{
	{ControlPlaneHealthy, false, controlPlane},
	{NodesReady, true, nodesReady},
	{SystemPods, true, systemPods},
	{AddonsHealthy, false, addonsHealthy},
	{AlarmsQuiet, false, alarmsQuiet},
}

// prospects are checked before only: what would stop the upgrade on its way.
var prospects = []check{
	{NodesCordoned, true, nodesCordoned},
	{WorkloadPods, true, workloadPods},
	{BudgetsAllow, true, budgetsAllow},
	{DeprecatedAPIs, false, deprecatedAPIs},
	{Insights, false, insights},
	{KubeletSkew, true, kubeletSkew},
	{Webhooks, true, webhooks},
	{FreeAddresses, false, freeAddresses},
	{InstanceQuota, false, instanceQuota},
	{VolumeQuota, false, volumeQuota},
	{ClusterQuota, false, clusterQuota},
	{SurgeCapacity, false, surgeCapacity},
	{AddonsCompatible, false, addonsCompatible},
	{VersionOffered, false, versionOffered},
	{UpgradeFrom, false, upgradeFrom},
	{SupportDates, false, supportDates},
	{Images, false, images},
	{AlarmsSilenced, false, alarmsSilenced},
}

// Before checks whether an upgrade can be made. It returns what was found, in the order of BeforeNames: what blocks must be mended
// first, the rest is to be known. What is not well may be why people go back: before a rollback, of the health only the control plane's
// blocks.
func Before(f *Facts, p *Plan) []status.Check {
	found := run(slices.Concat(health, prospects), f, p)
	for i := range found {
		if p.Rollback && found[i].Name != ControlPlaneHealthy && slices.Contains(namesOf(health), found[i].Name) {
			found[i].Blocks = false
		}
	}
	return blockingFirst(found)
}

// blockingFirst has what must be mended come before what is only to be known.
func blockingFirst(found []status.Check) []status.Check {
	slices.SortStableFunc(found, func(a, b status.Check) int {
		switch {
		case a.Blocks == b.Blocks:
			return 0
		case a.Blocks:
			return -1
		}
		return 1
	})
	return found
}

// After checks what an upgrade came to: that the cluster is well, that everything has its version, and that no workload has fewer
// ready pods than before. While pods and nodes settle it may find what is gone a minute later: ask again before it counts.
func After(before Baseline, f *Facts, p *Plan) []status.Check {
	results := []check{
		{VersionsReached, false, versionsReached},
		{NodesReplaced, true, nodesReplaced},
		{WorkloadsReady, true, func(r *report, f *Facts, _ *Plan) { workloadsReady(r, before, f) }},
	}
	return blockingFirst(run(slices.Concat(health, results), f, p))
}

// BeforeNames lists the checks that Before makes, and AfterNames those of After.
func BeforeNames() []string { return namesOf(slices.Concat(health, prospects)) }

// AfterNames lists the checks that After makes.
func AfterNames() []string {
	return append(namesOf(health), VersionsReached, NodesReplaced, WorkloadsReady)
}

// Passed names the checks of Before that were made of these facts and found nothing.
func Passed(f *Facts, found []status.Check) []string {
	return slices.DeleteFunc(BeforeNames(), func(name string) bool {
		return slices.Contains(Missed(f), name) || slices.ContainsFunc(found, func(s status.Check) bool { return s.Name == name })
	})
}

// Missed names the checks of Before that need the cluster's own API, when that told nothing.
func Missed(f *Facts) []string {
	if f.surveyed() {
		return nil
	}
	return namesOf(slices.DeleteFunc(slices.Concat(health, prospects), func(c check) bool { return !c.kubernetes }))
}

func namesOf(checks []check) []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Blocks says whether any of the checks does.
func Blocks(checks []status.Check) bool {
	return slices.ContainsFunc(checks, func(c status.Check) bool { return c.Blocks })
}

func run(checks []check, f *Facts, p *Plan) []status.Check {
	var found []status.Check
	for _, c := range checks {
		if c.kubernetes && !f.surveyed() {
			continue // ControlPlaneHealthy says so, or who asked knows
		}
		r := report{name: c.name}
		c.run(&r, f, p)
		found = append(found, r.found...)
	}
	return found
}

// report is what one check found: for each thing that is to be done one finding, with everything that it is about.
type report struct {
	name  string
	found []status.Check
}

// block says what must be mended before anything is changed, and how.
func (r *report) block(next, format string, args ...any) {
	r.found = append(r.found, status.Check{Name: r.name, Blocks: true, Message: fmt.Sprintf(format, args...), Next: next})
}

// warn says what is to be known, and what can be done.
func (r *report) warn(next, format string, args ...any) {
	r.found = append(r.found, status.Check{Name: r.name, Message: fmt.Sprintf(format, args...), Next: next})
}

// shownAtMost is how many of a list messages name: a status is for reading, and a cluster may have thousands of anything.
const shownAtMost = 5

// list shows the first few of what was found.
func list(all []string) string {
	if more := len(all) - shownAtMost; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:shownAtMost], ", "), more)
	}
	return strings.Join(all, ", ")
}

// count is "1 node" or "2 nodes".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
