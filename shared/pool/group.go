// Package pool describes the Auto Scaling group and the nodes of a pool as data. It is pure: shared/aws/autoscaling
// and shared/kube read them.
package pool

import (
	"slices"
	"strings"
	"time"
)

// Lifecycle states of instances.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
const (
	Pending            = "Pending"
	PendingWait        = "Pending:Wait"
	PendingProceed     = "Pending:Proceed"
	InService          = "InService"
	Terminating        = "Terminating"
	TerminatingWait    = "Terminating:Wait"
	TerminatingProceed = "Terminating:Proceed"
)

// Group is an Auto Scaling group.
type Group struct {
	Name string
	// Min and Max bound Desired, which an autoscaler may have changed since the stack was.
	Min, Max, Desired int
	Instances         []Instance
	// TemplateVersion is the version of the launch template that the group launches now.
	TemplateVersion string
	// Suspended names the processes that are suspended, such as AZRebalance.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
	Suspended []string
	// SuspendedAt says when each was, to the second.
	SuspendedAt map[string]time.Time
	// Subnets by id, in which it launches, and their availability zones.
	Subnets, Zones []string
	// Types of instances that it launches. Empty if the launch template alone says so.
	Types []string
}

// Instance of a group.
type Instance struct {
	ID string
	// State is the lifecycle state, such as InService.
	State string
	// TemplateVersion is the number of the launch template's version that it was launched with; "" when that is gone.
	TemplateVersion string
	// Zone is the availability zone.
	Zone string
	// Type is the instance type.
	Type string
}

// IsInService reports whether the instance serves: it is neither launching nor terminating.
func (i Instance) IsInService() bool { return i.State == InService }

// Outdated lists the instances that a refresh of the group would still replace: they are not on their way out, and differ in launch
// template version, instance type or zone from what the group launches now.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-instance-refresh-skip-matching.html
func (g Group) Outdated() []string {
	var ids []string
	for _, i := range g.Instances {
		matches := i.TemplateVersion != "" && i.TemplateVersion == g.TemplateVersion &&
			(len(g.Types) == 0 || slices.Contains(g.Types, i.Type)) && (len(g.Zones) == 0 || slices.Contains(g.Zones, i.Zone))
		if !matches && !strings.HasPrefix(i.State, Terminating) {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Leaving lists the instances that wait at the terminate hook, or are about to: they are being drained.
func (g Group) Leaving() []string {
	var ids []string
	for _, i := range g.Instances {
		if i.State == Terminating || i.State == TerminatingWait {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Going lists those of Leaving, and the instances whose drain is over and that are not gone yet.
func (g Group) Going() []string {
	ids := g.Leaving()
	for _, i := range g.Instances {
		if i.State == TerminatingProceed {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Coming lists the instances that are on their way into service.
func (g Group) Coming() []string {
	var ids []string
	for _, i := range g.Instances {
		if strings.HasPrefix(i.State, Pending) {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Serving counts the instances in service.
func (g Group) Serving() (n int) {
	for _, i := range g.Instances {
		if i.State == InService {
			n++
		}
	}
	return n
}

// Serves says whether an instance of the group is in service.
func (g Group) Serves(instance string) bool {
	return slices.ContainsFunc(g.Instances, func(i Instance) bool { return i.ID == instance && i.State == InService })
}
