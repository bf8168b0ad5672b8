package roll_test

// Invariants of random rolls: each pool is checked against its own update policy, in every state of its group.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// judge checks how many nodes of a pool are out of service during an update.
type judge struct {
	pool    rolledPool
	rolling bool
	// refreshes reports whether the update is an instance refresh, or the rollback of one.
	refreshes bool
	// base is the desired size when the update began. grown is how much an autoscaler has raised it since.
	base, grown int
	// beyond is how many nodes exceed the maximum. The update terminates them at once, because it reduces a maximum that a roll
	// had raised. They do not count as nodes of the pool.
	beyond int
	// floor is the required number of nodes in service. lost is how many failed.
	floor, lost int
	// served have been in service. taken were removed by the autoscaler. leaving were drained before the update, which replaces
	// nothing, or has waited for them long enough, or is a rollback that they outlasted. old are the nodes that are replaced.
	served, taken, leaving, old map[string]bool
	view                        autoscaling.View
	// going reports whether instances are being drained. That began at busy, ignoring short gaps, and ended at free.
	going      bool
	busy, free time.Time
	most       int // OnCluster is called for each control plane of the bubble when it starts, with the name of its EKS cluster.
}

// wrongly records a violation.
func (l *rolls) wrongly(format string, arguments ...any) {
	if len(l.wrong) < 10 {
		l.wrong = append(l.wrong, time.Now().UTC().Format("15:04:05 ")+fmt.Sprintf(format, arguments...))
	}
}

// begins is called when the update of a group begins.
func (l *rolls) begins(step string, r resource.Request) error {
	if step != "update" || r.Type != "AWS::AutoScaling::AutoScalingGroup" {
		return nil
	}
	// The spec of the update. The tags of the stack may have an older one: an update of parameters alone keeps them, and
	// replaces nodes too after a rollback.
	version := l.Status("demo").PlannedVersion
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.judges[r.StackName]
	if j == nil {
		return nil
	}
	_, j.refreshes = r.UpdatePolicy["AutoScalingInstanceRefresh"]
	if !r.Rollback {
		for _, p := range l.specs[version] {
			if names.Group("demo", p.name) == r.StackName {
				j.pool = p
			}
		}
		j.base, j.grown, j.lost, j.beyond = min(j.view.Desired, j.pool.most), 0, 0, 0
		if most, err := strconv.Atoi(fmt.Sprint(r.Properties["MaxSize"])); err == nil {
			j.beyond = max(0, j.view.Desired-most)
			j.base = min(j.view.Desired, max(j.pool.most, j.pool.fits(most)))
		}
		for _, i := range j.view.Instances { // no health checks run during the update
			if l.lost[i.ID] {
				j.lost++
			}
		}
		j.floor = min(j.base, j.serving())
	} else {
		j.floor = min(j.floor, j.base)
		if !j.refreshes { // a rolling update uses the sizes from its begin, whatever an autoscaler sets later
			j.grown = 0
		}
	}
	j.rolling, j.leaving, j.old = true, map[string]bool{}, map[string]bool{}
	waited := j.going && time.Since(j.busy) >= j.pool.timeout+15*time.Minute
	for _, i := range j.view.Instances {
		if leaves(i) {
			j.leaving[i.ID] = !r.Rollback || l.outlasts(i.ID)
			if j.counts(i.ID) && !l.lost[i.ID] && !(r.Rollback && j.leaving[i.ID]) && !waited && replaces(r, j.view) {
				l.wrongly("%s: a batch begins while %s of the one before is being drained: %+v", r.StackName, i.ID, j.view)
			}
		} else {
			j.old[i.ID] = true
		}
	}
	return nil
}

// fits limits a number of nodes and its surge to the maximum of a group. A group above the maximum of its spec still has the room of an
// earlier roll, which an autoscaler has filled: those nodes count too.
func (p rolledPool) fits(room int) int {
	for n := room; n > 0; n-- {
		if _, surge := p.update.Bounds(n); n+surge <= room {
			return n
		}
	}
	return 0
}

// outlasts reports whether a drain takes longer than CloudFormation, or an instance refresh, waits for a batch. The rollback then begins
// during the drain.
func (l *rolls) outlasts(instance string) bool {
	since, drained := l.drains[instance]
	return drained && time.Since(since) >= 59*time.Minute
}

// replaces reports whether an update of a group replaces instances.
func replaces(r resource.Request, v autoscaling.View) bool {
	version := func(properties map[string]any) string {
		policy, _ := properties["MixedInstancesPolicy"].(map[string]any)
		template, _ := policy["LaunchTemplate"].(map[string]any)
		specification, _ := template["LaunchTemplateSpecification"].(map[string]any)
		return fmt.Sprint(specification["Version"])
	}
	return slices.ContainsFunc(v.Instances, func(i autoscaling.InstanceView) bool {
		return !strings.HasPrefix(i.State, "Terminating") && strconv.Itoa(i.TemplateVersion) != version(r.Properties)
	})
}

// counts reports whether the termination of an instance counts for its pool's update policy: it served, and no fault took it away.
func (j *judge) counts(id string) bool { return j.served[id] && !j.taken[id] }

// ends is called when an operation of a stack ends.
func (l *rolls) ends(stackName, is string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.judges[stackName]; j != nil && !strings.HasSuffix(is, "_IN_PROGRESS") {
		if j.rolling {
			l.rolled++
		}
		j.rolling = false
	}
}

// leaves reports whether an instance is being drained, or will be.
func leaves(i autoscaling.InstanceView) bool {
	return i.State == "Terminating" || i.State == "Terminating:Wait"
}

func (j *judge) serving() (n int) {
	for _, i := range j.view.Instances {
		if i.State == "InService" {
			n++
		}
	}
	return n
}

// sees checks a state of a group, while Auto Scaling is locked.
func (l *rolls) sees(group string, v autoscaling.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.judges[group]
	j.view = v
	going := slices.ContainsFunc(v.Instances, func(i autoscaling.InstanceView) bool { return strings.HasPrefix(i.State, "Terminating") })
	switch {
	case going && !j.going && time.Since(j.free) > 6*time.Minute: // more than the longest pause between two polls
		j.busy = time.Now()
	case !going && j.going:
		j.free = time.Now()
	}
	j.going = going
	out := 0
	for _, i := range v.Instances {
		if _, drained := l.drains[i.ID]; i.State == "Terminating:Wait" && !drained {
			l.drains[i.ID] = time.Now()
		}
		if i.State == "InService" {
			j.served[i.ID] = true
		}
		if leaves(i) && j.counts(i.ID) && !l.lost[i.ID] && !j.leaving[i.ID] {
			out++
		}
	}
	// The update ends with the last old node. It then reverts the size that an autoscaler has set.
	if !j.rolling || j.grown > 0 && !slices.ContainsFunc(v.Instances, func(i autoscaling.InstanceView) bool {
		return j.old[i.ID] && !strings.HasPrefix(i.State, "Terminating")
	}) {
		return
	}
	serving := j.serving()
	if serving >= v.Desired {
		j.floor = j.base + j.grown
	}
	unavailable, surge := j.pool.update.Bounds(j.base)
	if j.refreshes && j.grown > 0 { // a refresh uses percentages of the current size
		scale := func(n int) int { return (n*(j.base+j.grown) + j.base - 1) / j.base }
		unavailable, surge = scale(unavailable), scale(surge)
	}
	batch := max(1, unavailable+surge)
	if unavailable+surge < 1 {
		unavailable = 1
	}
	states := func() string {
		var list []string
		for _, i := range v.Instances {
			list = append(list, fmt.Sprintf("%s:%s(%d)", i.ID[len(i.ID)-4:], i.State, i.TemplateVersion))
		}
		return fmt.Sprintf("%s with %+v, %d wanted and %d since, floor %d: desired %d: %s", group, j.pool.update, j.base, j.grown, j.floor,
			v.Desired, strings.Join(list, " "))
	}
	if serving+j.lost < min(j.floor, v.Desired)-unavailable {
		l.wrongly("%d in service: %s", serving, states())
	}
	if out > batch+j.beyond {
		l.wrongly("%d out: %s", out, states())
	}
	j.most = max(j.most, out)
}

// checkRemoval checks the end of a pod.
func (l *rolls) checkRemoval(r apiserver.Removal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, drained := l.drains[r.Instance]
	since = since.Add(-time.Second) // drains count whole seconds
	over := func(policies ...string) bool {
		for _, j := range l.judges {
			if drained && slices.Contains(policies, j.pool.onTimeout) && r.At.Sub(since) >= j.pool.timeout {
				return true
			}
		}
		return false
	}
	switch r.How {
	case "evicted":
		if r.Healthy < r.Desired {
			l.wrongly("%s was evicted, which leaves %d of %d", r.Pod, r.Healthy, r.Desired)
		}
	case "deleted":
		if !over("Force") {
			l.wrongly("%s was deleted before its drain's time was over", r.Pod)
		}
	default:
		if r.Healthy < r.Desired && !l.lost[r.Instance] && !over("Force", "Continue") {
			l.wrongly("%s went with its node, which leaves %d of %d", r.Pod, r.Healthy, r.Desired)
		}
	}
}
