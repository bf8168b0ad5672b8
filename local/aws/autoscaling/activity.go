package autoscaling

// Scaling activities, and the events on EventBridge.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html

import (
	"encoding/json"
	"fmt"
	"time"
)

// activity is one launch or termination.
type activity struct {
	ActivityId, AutoScalingGroupName, AutoScalingGroupARN string
	Description, Cause                                    string
	StartTime                                             time.Time
	EndTime                                               *time.Time
	StatusCode                                            string
	StatusMessage                                         string `xml:",omitempty"`
	Progress                                              int
	Details                                               string

	instance, zone, subnet string
	launch                 bool
}

// explicitlySet is in the cause of launches and terminations after SetDesiredCapacity.
const explicitlySet = "explicitly set group desired capacity"

// maxActivities of a group are kept. AWS keeps six weeks.
const maxActivities = 500

func (s *Service) newActivity(g *group, description, cause string) *activity {
	a := &activity{
		ActivityId: newID(), AutoScalingGroupName: g.name, AutoScalingGroupARN: g.arn, Description: description, Cause: cause,
		StartTime: s.now(), StatusCode: "InProgress", Progress: 50, launch: description[0] == 'L',
	}
	g.activities = append(g.activities, a)
	if len(g.activities) > maxActivities {
		g.activities = g.activities[1:]
	}
	return a
}

func (a *activity) details() map[string]string {
	return map[string]string{"Availability Zone": a.zone, "Subnet ID": a.subnet}
}

// endActivity records the result and sends an event to EventBridge. m is nil for a launch without an instance. The caller holds the lock.
func (s *Service) endActivity(g *group, a *activity, m *member, status, statusMessage string) {
	now := s.now()
	a.EndTime, a.StatusCode, a.StatusMessage, a.Progress = &now, status, statusMessage, 100
	details, _ := json.Marshal(a.details()) // strings always marshal
	a.Details = string(details)

	event, outcome, code := "EC2 Instance Terminate ", "Successful", "InProgress"
	origin, destination := "AutoScalingGroup", "EC2"
	if a.launch {
		event, origin, destination = "EC2 Instance Launch ", "EC2", "AutoScalingGroup"
	}
	if status != "Successful" {
		outcome, code = "Unsuccessful", "Failed"
	}
	resources := []string{g.arn}
	if m != nil {
		resources = append(resources, s.instanceARN(m.id))
	}
	// As AWS documents it, successful events have the status code InProgress.
	s.emit(event+outcome, resources, map[string]any{
		"StatusCode": code, "Description": a.Description, "AutoScalingGroupName": g.name, "ActivityId": a.ActivityId, "Details": a.details(),
		"RequestId": a.ActivityId, "StatusMessage": statusMessage, "StartTime": stamp(a.StartTime), "EndTime": stamp(now),
		"EC2InstanceId": a.instance,
		"Cause":         a.Cause, "Origin": origin, "Destination": destination,
	})
}

func (s *Service) instanceARN(id string) string {
	return fmt.Sprintf("arn:%s:ec2:%s:%s:instance/%s", s.config.Partition, s.config.Region, s.config.Account, id)
}

// lifecycleAction is the detail of the event of an instance that waits at a hook.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html
type lifecycleAction struct {
	LifecycleActionToken string `json:",omitempty"`
	AutoScalingGroupName string
	LifecycleHookName    string
	EC2InstanceId        string
	LifecycleTransition  string `json:",omitempty"`
	NotificationMetadata string `json:",omitempty"`
	// Origin and Destination are EC2 and AutoScalingGroup, in the direction of the instance.
	Origin      string `json:",omitempty"`
	Destination string `json:",omitempty"`
}

// emitAction sends the event of an instance that waits at a hook.
func (s *Service) emitAction(g *group, m *member, a *action) {
	detail := lifecycleAction{
		LifecycleActionToken: a.token, AutoScalingGroupName: g.name, LifecycleHookName: a.hook.LifecycleHookName, EC2InstanceId: m.id,
		LifecycleTransition: a.hook.LifecycleTransition, NotificationMetadata: a.hook.NotificationMetadata, Origin: "EC2",
		Destination: "AutoScalingGroup",
	}
	name := "EC2 Instance-launch Lifecycle Action"
	if a.hook.LifecycleTransition == ending {
		name = "EC2 Instance-terminate Lifecycle Action"
		detail.Origin, detail.Destination = "AutoScalingGroup", "EC2"
	}
	s.emit(name, []string{g.arn}, detail)
}
