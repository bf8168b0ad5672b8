package render

// How fast a pool's group replaces its nodes. These values are stack parameters. They depend on the group's desired capacity, which an
// autoscaler may change, so they are known only when the stack changes.

import (
	"strconv"

	"github.com/drover-run/drover/shared/api"
)

// Pace is the part of a pool's spec about replacing nodes. Its parameters are not part of the stack's checksum: they determine how a
// change proceeds, not the desired state.
type Pace struct {
	// Group is the Auto Scaling group.
	Group          string       `json:"group"`
	Strategy       api.Strategy `json:"strategy"`
	MaxUnavailable api.Amount   `json:"maxUnavailable"`
	MaxSurge       api.Amount   `json:"maxSurge"`
	MinSize        int          `json:"minSize"`
	MaxSize        int          `json:"maxSize"`
	// DrainSeconds is the pool's drain.timeout.
	DrainSeconds int64 `json:"drainSeconds,omitempty"`
}

// Parameters of a pool's template. CloudFormation's rolling update uses the first two, an instance refresh the next two.
const (
	MaxBatchSize          = "MaxBatchSize"
	MinInstancesInService = "MinInstancesInService"
	MaxHealthyPercentage  = "MaxHealthyPercentage"
	MinHealthyPercentage  = "MinHealthyPercentage"
	// MaxSize is the group's maximum size: the spec's, or more while nodes are replaced.
	MaxSize = "MaxSize"
	// ReplaceNodes is "true", unless an update must not replace nodes, whatever it changes. The group then has no update policy.
	ReplaceNodes = "ReplaceNodes"
)

// bounds returns how many nodes fewer and more than desired there may be.
func (p *Pace) bounds(desired int) (unavailable, surge int) {
	return api.Update{MaxUnavailable: p.MaxUnavailable, MaxSurge: p.MaxSurge}.Bounds(desired)
}

// ForReplacement returns the parameters for replacing the nodes of a group with a desired capacity.
//
// A rolling update first grows the group by a batch if it could not keep MinInstancesInService. It grows to MinInstancesInService plus
// MaxBatchSize, if MaxSize allows it. It does not grow if no instance must stay. Then a batch has at most maxUnavailable nodes, because
// an autoscaler may enlarge the group before the update starts.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (p *Pace) ForReplacement(desired int) map[string]string {
	return p.ForReplacementAtSize(desired, desired)
}

// ForReplacementAtSize is ForReplacement for a group that has, or may soon have, more instances than its desired
// capacity. An instance refresh uses percentages of the actual size. They must not let more nodes leave, or join,
// than the desired capacity allows.
func (p *Pace) ForReplacementAtSize(desired, size int) map[string]string {
	desired = max(desired, p.MinSize) // the group's capacity once the stack changes
	if p.Strategy == api.InstanceRefresh {
		least, most := p.percentages(max(desired, 1), size)
		return replacing(map[string]int{MinHealthyPercentage: least, MaxHealthyPercentage: most, MaxSize: p.MaxSize})
	}
	unavailable, surge := p.bounds(desired)
	least, batch := desired-unavailable, unavailable+surge
	if least == 0 {
		batch = unavailable
	}
	return replacing(map[string]int{MinInstancesInService: least, MaxBatchSize: max(1, batch), MaxSize: max(p.MaxSize, desired+surge)})
}

// ForReplacementAfterRollback is ForReplacementAtSize after a rollback, which leaves the group as large as the failed
// attempt made it. Otherwise each attempt would enlarge the group. Of that size, it counts at most the spec's
// maximum, or what fits into the deployed maximum. It keeps the deployed maximum.
// https://github.com/guardian/testing-asg-rolling-update/tree/main/observations
func (p *Pace) ForReplacementAfterRollback(desired, size int, deployed map[string]string) map[string]string {
	room, _ := strconv.Atoi(deployed[MaxSize])
	again := p.ForReplacementAtSize(min(desired, max(p.MaxSize, p.fits(room))), max(desired, size))
	most, _ := strconv.Atoi(again[MaxSize])
	again[MaxSize] = strconv.Itoa(max(most, room))
	return again
}

// fits returns the largest desired capacity that, with its surge, fits into a maximum size.
func (p *Pace) fits(room int) int {
	for desired := room; desired > 0; desired-- {
		if _, surge := p.bounds(desired); desired+surge <= room {
			return desired
		}
	}
	return 0
}

// percentages returns the bounds of an instance refresh, in percent of the group's actual size and at most 100 apart. They are rounded so
// that neither lets more nodes leave, or join, than the spec allows. Auto Scaling rounds the instances of the lower bound up.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
func (p *Pace) percentages(desired, size int) (least, most int) {
	unavailable, surge := p.bounds(desired)
	size = max(size, desired)
	stay := size - unavailable
	least = stay * 100 / size
	if (size*least+99)/100 < stay {
		least++
	}
	most = min(200, (size+surge)*100/size)
	return max(least, most-100), most
}

// GrownSize returns the size to which a rolling update with these parameters grows a group. A rollback finds the group at that size. Other
// updates do not change the size.
func GrownSize(desired int, parameters map[string]string) int {
	least, _ := strconv.Atoi(parameters[MinInstancesInService])
	batch, _ := strconv.Atoi(parameters[MaxBatchSize])
	if least == 0 {
		return desired
	}
	return max(desired, least+batch)
}

// WithoutReplacement returns the parameters for changes that replace no nodes, and for a stack without an operation.
// They are the deployed values, as far as they exist and fit the spec's maximum size.
func (p *Pace) WithoutReplacement(deployed map[string]string) map[string]string {
	resting := p.ForReplacement(p.MinSize)
	for name := range resting {
		if now, ok := deployed[name]; ok {
			resting[name] = now
		}
	}
	resting[MaxSize] = strconv.Itoa(p.MaxSize)
	// CloudFormation requires less than the maximum size.
	if least, err := strconv.Atoi(resting[MinInstancesInService]); err == nil {
		resting[MinInstancesInService] = strconv.Itoa(min(least, p.MaxSize-1))
	}
	return resting
}

// Deployed returns the pace with the strategy of the deployed template, which may differ from the spec's. A rollback uses that strategy.
// It returns nil if the template has the parameters of neither strategy.
func (p *Pace) Deployed(parameters map[string]string) *Pace {
	for _, strategy := range []api.Strategy{api.RollingUpdate, api.InstanceRefresh} {
		deployed := *p
		deployed.Strategy = strategy
		if hasKeys(parameters, deployed.ForReplacement(p.MinSize)) {
			return &deployed
		}
	}
	return nil
}

// hasKeys reports whether parameters has all names of part, with any values.
func hasKeys(parameters, part map[string]string) bool {
	for name := range part {
		if _, ok := parameters[name]; !ok {
			return false
		}
	}
	return true
}

// replacing returns the parameters for replacing nodes with these numbers.
func replacing(numbers map[string]int) map[string]string {
	values := map[string]string{ReplaceNodes: "true"}
	for name, n := range numbers {
		values[name] = strconv.Itoa(n)
	}
	return values
}
