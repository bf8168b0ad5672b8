package events

// Sweep is the input of the sweep function, from schedules and rules.
type Sweep struct {
	// ScheduledTime is the time of the schedule, in RFC 3339. It is absent in inputs from rules.
	ScheduledTime string `json:"scheduledTime,omitempty"`
	// Audit compares every cluster with its spec. Without it, sweep only handles missed events.
	Audit bool `json:"audit,omitempty"`
}
