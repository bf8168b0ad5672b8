package events

// Rollout is the input of the function rollout, from the functions fleet and sweep. S3 events are its other input.
type Rollout struct {
	// Rollout is the one to evaluate. Without it the function evaluates each active run.
	Rollout string `json:"rollout,omitempty"`
	// PlanAll also plans each rollout of the specs bucket again, and finds uploads without an event.
	PlanAll bool `json:"planAll,omitempty"`
}

// ObservedPhases are the phases in notices of clusters and of upgrades after which the function fleet observes the cluster. Other phases
// report progress, which changes no fact.
var ObservedPhases = []string{
	"Pending", "Converging", "Upgrading", "Ready", "Stopped", "Failed", "Deleting", "Deleted", // of clusters: status.Phase
	"Checking", "Blocked", "Done", // of upgrades: upgrade.State; Stopped too
}

// Fleet is the input of the function fleet, from the functions rollout and sweep. Events of the bus are its other input.
type Fleet struct {
	// Cluster is the one that an event is about. The function observes that one alone.
	Cluster string `json:"cluster,omitempty"`
	// Sweep observes each cluster that may have changed, so it finds what lost events were about.
	Sweep bool `json:"sweep,omitempty"`
	// Audit does that too, and observes all clusters if that was last done six hours ago.
	Audit bool `json:"audit,omitempty"`
}
