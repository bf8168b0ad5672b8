package status

import "time"

// Upgrade is what people see of a cluster's upgrade: the one that is scheduled, under way, or was last.
type Upgrade struct {
	// Phase in one word: Scheduled, Delayed, Missed, then those of upgrade.State.
	Phase string `json:"phase"`
	// From and To are releases; Versions are the control plane's.
	From        string `json:"from,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	To          string `json:"to"`
	ToVersion   string `json:"toVersion,omitempty"`
	// Origin is who asked: Spec, Channel, At, Hand or Rollback.
	Origin string `json:"origin"`
	// At is when it is to begin, when it is scheduled.
	At *time.Time `json:"at,omitempty"`
	// Started and Ended are when.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Images of the pools before it began, by pool.
	Images map[string]string `json:"images,omitempty"`
	// Execution of the upgrade machine.
	Execution string        `json:"execution,omitempty"`
	Steps     []UpgradeStep `json:"steps,omitempty"`
	// Checks are those that did not pass, before or after; those that only warn, too. Checked is when they ran
	// last: what was found may have passed since.
	Checks  []Check    `json:"checks,omitempty"`
	Checked *time.Time `json:"checked,omitempty"`
	// Message says what it waits for, why it stopped, and what is next.
	Message string `json:"message,omitempty"`
}

// Phases before an upgrade begins; the others are those of upgrade.State.
const (
	// UpgradeScheduled: its time is still to come.
	UpgradeScheduled = "Scheduled"
	// UpgradeDelayed: its time came, and the cluster has been busy for half an hour.
	UpgradeDelayed = "Delayed"
	// UpgradeMissed: the cluster was busy for two hours.
	UpgradeMissed = "Missed"
)

// UpgradeStep is one step, with its times as far as it came.
type UpgradeStep struct {
	Name    string     `json:"name"`
	Started *time.Time `json:"started,omitempty"`
	// Opened is when it was begun once more, if an upgrade that had stopped went on with it.
	Opened *time.Time `json:"opened,omitempty"`
	Ended  *time.Time `json:"ended,omitempty"`
}

// Check is one of the named checks before and after an upgrade that found something.
type Check struct {
	// Name is one CamelCase word; docs/runbook.md explains each.
	Name string `json:"name"`
	// Blocks says that the upgrade does not begin, or is not done, before this is mended.
	Blocks bool `json:"blocks,omitempty"`
	// Message says what was found, and Next what to do.
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}
