package names

import (
	"fmt"
	"strings"
)

// Keys of fleets in the state bucket. See shared/rollout for their content.

// ActiveRuns is the key of the list of runs that have not ended.
const ActiveRuns = "rollouts/active.json"

// RolloutRecords is the prefix of the records of rollouts and of their ended runs.
const RolloutRecords = "rollouts/runs/"

// RolloutRecord returns the key of the record of a rollout.
func RolloutRecord(rollout string) string { return RolloutRecords + rollout + ".json" }

// EndedRuns returns the prefix of the ended runs of a rollout.
func EndedRuns(rollout string) string { return RolloutRecords + rollout + "/" }

// EndedRun returns the key of an ended run. Keys are in the order of their numbers.
func EndedRun(rollout string, number int64) string {
	return fmt.Sprintf("%s%08d.json", EndedRuns(rollout), number)
}

// RolloutPlans is the prefix of the plans of rollouts.
const RolloutPlans = "rollouts/plans/"

// RolloutPlan returns the key of the plan of a rollout, by its digest.
func RolloutPlan(digest string) string { return RolloutPlans + digest + ".json" }

// DecisionAnswers is the prefix of the answers to decisions.
const DecisionAnswers = "rollouts/answers/"

// DecisionAnswer returns the key of the answer to a decision.
func DecisionAnswer(rollout, decision string) string {
	return DecisionAnswers + rollout + "/" + decision + ".json"
}

// Cell identifies a deployment of drover in the keys of fleets.
func Cell(account, region string) string { return account + "-" + region }

// DesiredStates is the prefix of the desired states of cells.
const DesiredStates = "fleet/desired/"

// DesiredState returns the key of the desired state of a cell, which rollouts write: see Cell.
func DesiredState(cell string) string { return DesiredStates + cell + ".json" }

// CellReports is the prefix of the reports of cells.
const CellReports = "fleet/reports/"

// CellReport returns the key of the report of a cell, with the facts of its clusters: see Cell.
func CellReport(cell string) string { return CellReports + cell + ".json" }

// Assignments is the prefix of a cell's copies of assignments.
const Assignments = "assignments/"

// Assignment returns the key of the cell's copy of a cluster's assignment.
func Assignment(cluster string) string { return Assignments + cluster + ".json" }

// CellLooks is the key of the newest observations of the clusters of a cell.
const CellLooks = "fleet/looks.json"

// CellFreezes is the key of the freezes that hold in a cell.
const CellFreezes = "fleet/freezes.json"

// RolloutStatuses is the prefix of the statuses of rollouts.
const RolloutStatuses = "status/rollouts/"

// RolloutStatus returns the key of the status of a rollout.
func RolloutStatus(rollout string) string { return RolloutStatuses + rollout + ".json" }

// RolloutOfKey returns the rollout whose key in the specs bucket this is. It inverts Rollout.
func RolloutOfKey(key string) (rollout string, ok bool) { return nameOfKey(key, Rollouts) }

// FreezeOfKey returns the freeze whose key in the specs bucket this is. It inverts Freeze.
func FreezeOfKey(key string) (freeze string, ok bool) { return nameOfKey(key, Freezes) }

// DecisionOfKey returns the rollout and the decision whose key in the specs bucket this is. It inverts Decision.
func DecisionOfKey(key string) (rollout, decision string, ok bool) {
	rest, ok := strings.CutPrefix(key, Decisions)
	rollout, file, slash := strings.Cut(rest, "/")
	decision, named := nameOfKey(file, "")
	return rollout, decision, ok && slash && named && rollout != ""
}
