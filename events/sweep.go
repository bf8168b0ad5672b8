package events

// Sweep is what the schedules and rules ask of the sweep function.
type Sweep struct {
	// ScheduledTime is when it was to happen, RFC 3339; absent when a rule asks.
	ScheduledTime string `json:"scheduledTime,omitempty"`
	// Audit compares every cluster with its spec, instead of only looking for what events missed.
	Audit bool `json:"audit,omitempty"`
}
