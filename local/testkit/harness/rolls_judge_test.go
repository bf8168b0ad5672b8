package harness

// What must hold in random rolls: each pool is judged by its own update policy, in every state that its group is in.

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

// judge of a pool: what may be out during the update under way.
type judge struct {
	pool    rolledPool
	rolling bool
	// refreshes says that the update is an instance refresh, or one that is rolled back by the policy that was before.
	refreshes bool
	// base is how many nodes the pool had to have when the update began, grown how many more an autoscaler has wanted since.
	base, grown int
	// beyond its greatest size are so many that the update ends at once: the room that a roll had made is taken back,
	// and an autoscaler or a rollback had filled it. They are none of those that the pool is to have.
	beyond int
	// floor is how many there have to be in service before any may be out, lost how many fewer there are as they failed.
	floor, lost int
	// served have been in service, taken went by the autoscaler. Those of leaving were drained when an update began that
	// replaces nothing, or has waited for as long as they may take, or is a rollback of what they outlasted. Those of
	// old are what is replaced.
	served, taken, leaving, old map[string]bool
	view                        autoscaling.View
	// going says that instances are on their way out. They have been since busy, but for times too short to be seen, and were until free.
	going      bool
	busy, free time.Time
	most       int // OnCluster is called for each control plane of the bubble when it starts, with the name of its EKS cluster.
}

// wrongly notes what must not be.
func (l *rolls) wrongly(format string, arguments ...any) {
	if len(l.wrong) < 10 {
		l.wrong = append(l.wrong, time.Now().UTC().Format("15:04:05 ")+fmt.Sprintf(format, arguments...))
	}
}

// begins hears of the updates of groups.
func (l *rolls) begins(step string, r resource.Request) error {
	if step != "update" || r.Type != "AWS::AutoScaling::AutoScalingGroup" {
		return nil
	}
	// The spec that is being converged. The stack's tags do not say so: an update of its parameters alone leaves them,
	// and replaces nodes too, after one that was rolled back.
	version := l.Status("demo").SpecVersion
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
		if !j.refreshes { // it goes by the numbers of the update's begin, whatever an autoscaler has wanted since
			j.grown = 0
		}
	}
	j.rolling, j.leaving, j.old = true, map[string]bool{}, map[string]bool{}
	waited := j.going && time.Since(j.busy) >= j.pool.timeout+15*time.Minute
	for _, i := range j.view.Instances {
		if leaves(i) {
			j.leaving[i.ID] = !r.Rollback || l.outlasts(i.ID)
			if j.counts(i.ID) && !l.lost[i.ID] && !(r.Rollback && j.leaving[i.ID]) && !waited && replaces(r, j.view) {
				l.wrongly("%s: a batch begins while %s of the one before is drained: %+v", r.StackName, i.ID, j.view)
			}
		} else {
			j.old[i.ID] = true
		}
	}
	return nil
}

// fits is how many nodes, and their surge, a group has room for. One that is larger than its spec lets it be has room from a roll
// before, which an autoscaler has filled: as many count as the room is for, and all of them may be out if the policy allows as many.
func (p rolledPool) fits(room int) int {
	for n := room; n > 0; n-- {
		if _, surge := p.update.Bounds(n); n+surge <= room {
			return n
		}
	}
	return 0
}

// outlasts says whether a drain goes on for longer than CloudFormation, or an instance refresh, waits for a batch: nothing holds a rollback
// back then.
func (l *rolls) outlasts(instance string) bool {
	since, drained := l.drains[instance]
	return drained && time.Since(since) >= 59*time.Minute
}

// replaces says whether an update of a group replaces any of its instances.
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

// ends hears of stacks that come to rest.
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

// leaves says whether an instance is drained, or about to be.
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

// sees a state of a group. Auto Scaling is locked meanwhile.
func (l *rolls) sees(group string, v autoscaling.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.judges[group]
	j.view = v
	going := slices.ContainsFunc(v.Instances, func(i autoscaling.InstanceView) bool { return strings.HasPrefix(i.State, "Terminating") })
	switch {
	case going && !j.going && time.Since(j.free) > 6*time.Minute: // more than the longest pause between two looks
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
	// With the last of the old ones the update is over: it takes back what an autoscaler has wanted meanwhile.
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
	if j.refreshes && j.grown > 0 { // of a refresh they are percentages of what is wanted now
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

// removed judges the end of a pod.
func (l *rolls) removed(r apiserver.Removal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, drained := l.drains[r.Instance]
	since = since.Add(-time.Second) // drains reckon in seconds
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
