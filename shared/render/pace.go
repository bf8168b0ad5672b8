package render

// How fast a pool's group replaces its nodes: parameters of its stack, because the group's desired capacity, of which they are
// made, is an autoscaler's to change and is known only when the stack changes.

import (
	"strconv"

	"github.com/drover-run/drover/shared/api"
)

// Pace is what a pool's spec says of replacing nodes. Its parameters are beside the stack's others and outside of its checksum:
// they say how a change goes, not what the stack should be.
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

// Parameters of a pool's template. CloudFormation's rolling update takes the first two, an instance refresh the next two.
const (
	MaxBatchSize          = "MaxBatchSize"
	MinInstancesInService = "MinInstancesInService"
	MaxHealthyPercentage  = "MaxHealthyPercentage"
	MinHealthyPercentage  = "MinHealthyPercentage"
	// MaxSize is the group's greatest size: the spec's, but while nodes are replaced as much as that takes.
	MaxSize = "MaxSize"
	// ReplaceNodes is "true" unless an update must leave the nodes as they are, whatever it brings them: the group has no policy then.
	ReplaceNodes = "ReplaceNodes"
)

// bounds are how many nodes less and more than desired there may be.
func (p *Pace) bounds(desired int) (unavailable, surge int) {
	return api.Update{MaxUnavailable: p.MaxUnavailable, MaxSurge: p.MaxSurge}.Bounds(desired)
}

// Replacing are the parameters for replacing the nodes of a group with that desired capacity.
//
// A rolling update first grows the group by a batch when it could not keep the instances in service that it must: to
// MinInstancesInService and MaxBatchSize together, if MaxSize lets it. It does not grow where none must stay, and then a batch is no more
// than may be out: an autoscaler may enlarge the group before CloudFormation comes to it.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (p *Pace) Replacing(desired int) map[string]string { return p.Grown(desired, desired) }

// Grown is Replacing where the group has been made larger than the desired capacity that counts, or may be by then: a refresh goes by
// percentages of what it finds, and no more nodes may go, or come, for that.
func (p *Pace) Grown(desired, grown int) map[string]string {
	desired = max(desired, p.MinSize) // what the group will have as soon as it changes
	if p.Strategy == api.InstanceRefresh {
		least, most := p.percentages(max(desired, 1), grown)
		return replacing(map[string]int{MinHealthyPercentage: least, MaxHealthyPercentage: most, MaxSize: p.MaxSize})
	}
	unavailable, surge := p.bounds(desired)
	least, batch := desired-unavailable, unavailable+surge
	if least == 0 {
		batch = unavailable
	}
	return replacing(map[string]int{MinInstancesInService: least, MaxBatchSize: max(1, batch), MaxSize: max(p.MaxSize, desired+surge)})
}

// Again is Grown where a try was rolled back, which leaves the group as large as it had made it. That counts for no more than the spec lets
// a pool have, or than the deployed room is for, or the group would grow with every try; and its room stays as it is deployed.
// https://github.com/guardian/testing-asg-rolling-update/tree/main/observations
func (p *Pace) Again(desired, grown int, deployed map[string]string) map[string]string {
	room, _ := strconv.Atoi(deployed[MaxSize])
	again := p.Grown(min(desired, max(p.MaxSize, p.fits(room))), max(desired, grown))
	most, _ := strconv.Atoi(again[MaxSize])
	again[MaxSize] = strconv.Itoa(max(most, room))
	return again
}

// fits is how many nodes, and their surge, a group has room for.
func (p *Pace) fits(room int) int {
	for desired := room; desired > 0; desired-- {
		if _, surge := p.bounds(desired); desired+surge <= room {
			return desired
		}
	}
	return 0
}

// percentages of what the group has grown to, between which an instance refresh keeps it: at most 100 apart, rounded so that neither
// lets more nodes go, or come, than the spec says of the desired capacity. Auto Scaling rounds the instances of the lower one up.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
func (p *Pace) percentages(desired, grown int) (least, most int) {
	unavailable, surge := p.bounds(desired)
	grown = max(grown, desired)
	stay := grown - unavailable
	least = stay * 100 / grown
	if (grown*least+99)/100 < stay {
		least++
	}
	most = min(200, (grown+surge)*100/grown)
	return max(least, most-100), most
}

// Grows says how large a rolling update with these parameters makes a group of that desired capacity: a rollback finds it so. Others leave
// it as it is.
func Grows(desired int, parameters map[string]string) int {
	least, _ := strconv.Atoi(parameters[MinInstancesInService])
	batch, _ := strconv.Atoi(parameters[MaxBatchSize])
	if least == 0 {
		return desired
	}
	return max(desired, least+batch)
}

// Resting are the parameters for changes that replace no node, and of a stack at rest: as they are deployed, as far as they are
// and may be beside the spec's greatest size.
func (p *Pace) Resting(deployed map[string]string) map[string]string {
	resting := p.Replacing(p.MinSize)
	for name := range resting {
		if now, ok := deployed[name]; ok {
			resting[name] = now
		}
	}
	resting[MaxSize], resting[ReplaceNodes] = strconv.Itoa(p.MaxSize), "true"
	// CloudFormation wants less than the greatest size.
	if least, err := strconv.Atoi(resting[MinInstancesInService]); err == nil {
		resting[MinInstancesInService] = strconv.Itoa(min(least, p.MaxSize-1))
	}
	return resting
}

// Deployed is the pace by the strategy of a deployed template, which may be another than the spec's is now: a rollback goes by it.
// It is nil when the template has the parameters of neither.
func (p *Pace) Deployed(parameters map[string]string) *Pace {
	for _, strategy := range []api.Strategy{api.RollingUpdate, api.InstanceRefresh} {
		deployed := *p
		deployed.Strategy = strategy
		if within(parameters, deployed.Replacing(p.MinSize)) {
			return &deployed
		}
	}
	return nil
}

// within says whether parameters has all that part has, whatever their values.
func within(parameters, part map[string]string) bool {
	for name := range part {
		if _, ok := parameters[name]; !ok {
			return false
		}
	}
	return true
}

// replacing are the parameters for replacing nodes with these numbers.
func replacing(numbers map[string]int) map[string]string {
	values := map[string]string{ReplaceNodes: "true"}
	for name, n := range numbers {
		values[name] = strconv.Itoa(n)
	}
	return values
}
