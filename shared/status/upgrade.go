package status

import "time"

// Upgrade is a cluster's upgrade as users see it: scheduled, in flight, or the last one.
type Upgrade struct {
	// Phase in one word: Scheduled, Delayed, Missed, then those of upgrade.State.
	Phase string `json:"phase"`
	// From and To are releases. The versions are those of the control plane.
	From        string `json:"from,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	To          string `json:"to"`
	ToVersion   string `json:"toVersion,omitempty"`
	// Origin is what requested it: Spec, Channel, At, Rollout, Command or Rollback.
	Origin string `json:"origin"`
	// At is when it should begin, if it is scheduled.
	At *time.Time `json:"at,omitempty"`
	// Started and Ended are absent until it begins and ends.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Images of the pools before it began, by pool.
	Images map[string]string `json:"images,omitempty"`
	// Execution of drover-upgrade.
	Execution string        `json:"execution,omitempty"`
	Steps     []UpgradeStep `json:"steps,omitempty"`
	// Checks are those that did not pass, before or after the upgrade, including warnings. Checked is when they ran last: the causes may be
	// fixed since.
	Checks  []Check    `json:"checks,omitempty"`
	Checked *time.Time `json:"checked,omitempty"`
	// Message says what it waits for or why it stopped, and what is next.
	Message string `json:"message,omitempty"`
}

// Phases before an upgrade begins. The others are those of upgrade.State.
const (
	// UpgradeScheduled: its time has not come.
	UpgradeScheduled = "Scheduled"
	// UpgradeDelayed: it did not begin within half an hour of its time.
	UpgradeDelayed = "Delayed"
	// UpgradeMissed: it did not begin within two hours of its time.
	UpgradeMissed = "Missed"
)

// UpgradeStep is one step with its times so far.
type UpgradeStep struct {
	Name    string     `json:"name"`
	Started *time.Time `json:"started,omitempty"`
	// Opened is when a continued upgrade opened the step again.
	Opened *time.Time `json:"opened,omitempty"`
	Ended  *time.Time `json:"ended,omitempty"`
}

// Check is one of the named checks before and after an upgrade that found something.
type Check struct {
	// Name is one CamelCase word; docs/runbook.md explains each.
	Name string `json:"name"`
	// Blocks reports whether the upgrade does not begin, or does not end, until this is fixed.
	Blocks bool `json:"blocks,omitempty"`
	// Message says what was found, and Next what to do.
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}
