// Package pool describes the Auto Scaling group and the nodes of a pool as data. shared/aws/autoscaling and shared/kube read them. The
// package is pure.
package pool

import (
	"slices"
	"strconv"
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
	// Min and Max bound Desired. An autoscaler may have changed Desired since the last stack update.
	Min, Max, Desired int
	Instances         []Instance
	// TemplateVersion is the version of the launch template that the group launches now.
	TemplateVersion string
	// Suspended names the processes that are suspended, such as AZRebalance.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
	Suspended []string
	// SuspendedAt holds the time at which each was suspended, to the second.
	SuspendedAt map[string]time.Time
	// Subnets are the ids of the subnets in which the group launches. Zones are their availability zones.
	Subnets, Zones []string
	// Types are the instance types that the group launches. It is empty if only the launch template names one.
	Types []string
}

// Two lists of processes of Auto Scaling that may be suspended. They have no process in common: an update suspends only processes without
// which a group still launches and terminates instances.
var (
	// SuspendedByUpdate are the processes that a rolling update suspends until it ends: SuspendProcesses of the pool's template. The sweep
	// resumes them if an update left them suspended. They are no finding.
	SuspendedByUpdate = []string{"HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", "ScheduledActions"}
	// NeededToReplace are the processes without which a group replaces no instance. drover never suspends them and does not resume them.
	// The checks before an upgrade report them.
	NeededToReplace = []string{"Launch", "Terminate"}
)

// Instance of a group.
type Instance struct {
	ID string
	// State is the lifecycle state, such as InService.
	State string
	// TemplateVersion is the launch template version that it was launched with. It is "" if that version no longer exists.
	TemplateVersion string
	// Zone is the availability zone.
	Zone string
	// Type is the instance type.
	Type string
}

// IsInService reports whether the instance is neither launching nor terminating.
func (i Instance) IsInService() bool { return i.State == InService }

// IsCurrent reports whether an instance is what the group launches now. since is the first version of the launch template that makes the
// same nodes as the present one. Without it, only instances of the present version are current.
func (g Group) IsCurrent(i Instance, since string) bool {
	first, err := strconv.Atoi(since)
	if err != nil {
		return i.TemplateVersion == g.TemplateVersion
	}
	version, err := strconv.Atoi(i.TemplateVersion)
	return err == nil && version >= first
}

// ToRefresh returns the instances that an instance refresh would still replace. They are not terminating, and differ from what the group
// launches now in launch template version, instance type or zone.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-instance-refresh-skip-matching.html
func (g Group) ToRefresh() []string {
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

// Draining returns the instances that wait at the terminate hook, or are about to. drover drains them.
func (g Group) Draining() []string {
	var ids []string
	for _, i := range g.Instances {
		if i.State == Terminating || i.State == TerminatingWait {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// AllTerminating returns the instances of Draining, and those that have been drained and are not terminated yet.
func (g Group) AllTerminating() []string {
	ids := g.Draining()
	for _, i := range g.Instances {
		if i.State == TerminatingProceed {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Launching returns the instances that are launching.
func (g Group) Launching() []string {
	var ids []string
	for _, i := range g.Instances {
		if strings.HasPrefix(i.State, Pending) {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// Serving returns the number of instances in service.
func (g Group) Serving() (n int) {
	for _, i := range g.Instances {
		if i.State == InService {
			n++
		}
	}
	return n
}

// IsInService reports whether an instance of the group is in service.
func (g Group) IsInService(instance string) bool {
	return slices.ContainsFunc(g.Instances, func(i Instance) bool { return i.ID == instance && i.State == InService })
}
