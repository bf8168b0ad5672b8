package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/status"
)

// check is one named check.
type check struct {
	name string
	// kubernetes reports that the check needs the cluster's own API.
	kubernetes bool
	run        func(r *report, f *Facts, p *Plan)
}

// health checks run before and after an upgrade.
var health = []check{
	{name: ControlPlaneHealthy, run: controlPlane},
	{name: NodesReady, kubernetes: true, run: nodesReady},
	{name: SystemPods, kubernetes: true, run: systemPods},
	{name: AddonsHealthy, run: addonsHealthy},
	{name: AlarmsQuiet, run: alarmsQuiet},
}

// preconditions checks run only before an upgrade: they find what would stop it on its way.
var preconditions = []check{
	{name: NodesCordoned, kubernetes: true, run: nodesCordoned},
	{name: WorkloadPods, kubernetes: true, run: workloadPods},
	{name: BudgetsAllow, kubernetes: true, run: budgetsAllow},
	{name: DeprecatedAPIs, run: deprecatedAPIs},
	{name: Insights, run: insights},
	{name: KubeletSkew, kubernetes: true, run: kubeletSkew},
	{name: Webhooks, kubernetes: true, run: webhooks},
	{name: FreeAddresses, run: freeAddresses},
	{name: InstanceQuota, run: instanceQuota},
	{name: VolumeQuota, run: volumeQuota},
	{name: ClusterQuota, run: clusterQuota},
	{name: SurgeCapacity, run: surgeCapacity},
	{name: AddonsCompatible, run: addonsCompatible},
	{name: VersionOffered, run: versionOffered},
	{name: UpgradeFrom, run: upgradeFrom},
	{name: SupportDates, run: supportDates},
	{name: Images, run: images},
	{name: AlarmsSilenced, run: alarmsSilenced},
}

// Before checks whether an upgrade is possible. It returns the findings, the blocking ones first, each group in the order of BeforeNames.
// Problems may be the reason for a rollback. So before a rollback, of the health checks only the control plane's blocks.
func Before(f *Facts, p *Plan) []status.Check {
	found := run(slices.Concat(health, preconditions), f, p)
	for i := range found {
		if p.Rollback && found[i].Name != ControlPlaneHealthy && slices.Contains(namesOf(health), found[i].Name) {
			found[i].Blocks = false
		}
	}
	return blockingFirst(found)
}

// blockingFirst sorts blocking findings before others.
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

// After checks the result of an upgrade: the cluster is healthy, everything has its version, and no workload has fewer ready pods than
// before. Findings may disappear within minutes, while pods and nodes start. Repeat the checks before you rely on a finding.
func After(before Baseline, f *Facts, p *Plan) []status.Check {
	results := []check{
		{name: VersionsReached, run: versionsReached},
		{name: NodesReplaced, kubernetes: true, run: nodesReplaced},
		{WorkloadsReady, true, func(r *report, f *Facts, _ *Plan) { workloadsReady(r, before, f) }},
	}
	return blockingFirst(run(slices.Concat(health, results), f, p))
}

// BeforeNames returns the names of the checks that Before makes.
func BeforeNames() []string { return namesOf(slices.Concat(health, preconditions)) }

// AfterNames returns the names of the checks that After makes.
func AfterNames() []string {
	return append(namesOf(health), VersionsReached, NodesReplaced, WorkloadsReady)
}

// Passed returns the names of the checks of Before that ran on these facts and found nothing.
func Passed(f *Facts, found []status.Check) []string {
	return slices.DeleteFunc(BeforeNames(), func(name string) bool {
		return slices.Contains(NotRun(f), name) || slices.ContainsFunc(found, func(s status.Check) bool { return s.Name == name })
	})
}

// NotRun returns the names of the checks of Before that need the cluster's own API, if that was not read.
func NotRun(f *Facts) []string {
	if f.surveyed() {
		return nil
	}
	return namesOf(slices.DeleteFunc(slices.Concat(health, preconditions), func(c check) bool { return !c.kubernetes }))
}

func namesOf(checks []check) []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Blocks reports whether any of the checks blocks.
func Blocks(checks []status.Check) bool {
	return slices.ContainsFunc(checks, func(c status.Check) bool { return c.Blocks })
}

func run(checks []check, f *Facts, p *Plan) []status.Check {
	var found []status.Check
	for _, c := range checks {
		if c.kubernetes && !f.surveyed() {
			continue // ControlPlaneHealthy reports it, or the caller knows
		}
		r := report{name: c.name}
		c.run(&r, f, p)
		found = append(found, r.found...)
	}
	return found
}

// report collects the findings of one check: one for each action to take, with everything that it concerns.
type report struct {
	name  string
	found []status.Check
}

// block adds a finding that must be fixed before anything is changed, and how.
func (r *report) block(next, format string, args ...any) {
	r.found = append(r.found, status.Check{Name: r.name, Blocks: true, Message: fmt.Sprintf(format, args...), Next: next})
}

// warn adds a finding that does not block, and what can be done.
func (r *report) warn(next, format string, args ...any) {
	r.found = append(r.found, status.Check{Name: r.name, Message: fmt.Sprintf(format, args...), Next: next})
}

// maxShown is how many items of a list a message names. A status must be readable, and a cluster may have thousands of items.
const maxShown = 5

// list returns the first items, and how many follow.
func list(all []string) string {
	if more := len(all) - maxShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxShown], ", "), more)
	}
	return strings.Join(all, ", ")
}

// count returns "1 node" or "2 nodes".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
