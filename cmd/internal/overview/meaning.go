package overview

import "github.com/drover-run/drover/shared/rollout"

// meaning is a state of a member with its reason.
type meaning struct {
	state  rollout.State
	reason rollout.Reason
}

// Meaning says what a state and a reason of a member mean, and which decision helps. docs/fleet.md has the same sentences.
func Meaning(state rollout.State, reason rollout.Reason) string {
	return meanings[meaning{state, reason}]
}

// Meanings returns the sentences by state and reason: "Waiting Paused", or "Good" for a state without reasons. The page shows them.
func Meanings() map[string]string {
	all := map[string]string{}
	for m, text := range meanings {
		key := string(m.state)
		if m.reason != "" {
			key += " " + string(m.reason)
		}
		all[key] = text
	}
	return all
}

var meanings = map[meaning]string{
	{rollout.Waiting, rollout.ReasonPaused}: "A decision paused the run. Decision: Resume.",
	{rollout.Waiting, rollout.ReasonHalted}: "The run is halted: a stage exceeded its budget, an alarm was in ALARM for ten minutes, or " +
		"a decision halted it. Decision: Retry, Skip or Resume.",
	{rollout.Waiting, rollout.ReasonStage}:         "An earlier stage has not passed.",
	{rollout.Waiting, rollout.ReasonApproval}:      "The stage needs an approval. Decision: Approve.",
	{rollout.Waiting, rollout.ReasonAlarm}:         "An alarm of the stage is in ALARM, or does not exist.",
	{rollout.Waiting, rollout.ReasonWindow}:        "The window of the stage is closed.",
	{rollout.Waiting, rollout.ReasonUnreported}:    "No fact of the cluster is younger than an hour.",
	{rollout.Waiting, rollout.ReasonClusterPaused}: "The spec of the cluster has `paused: true`.",
	{rollout.Waiting, rollout.ReasonFreeze}:        "A freeze holds the cluster. Decision: Override.",
	{rollout.Waiting, rollout.ReasonClusterWindow}: "The window of the cluster (`spec.upgrade`) is closed.",
	{rollout.Waiting, rollout.ReasonIncompatibleVersion}: "The Kubernetes version of the cluster does not fit the release. Decision: " +
		"Skip.",
	{rollout.Waiting, rollout.ReasonReleaseUnusable}: "The cell cannot use the release.",
	{rollout.Waiting, rollout.ReasonBusy}:            "Other work is in flight on the cluster. Decision, if it does not end: Skip.",
	{rollout.Waiting, rollout.ReasonNotReady}:        "The cluster is not Ready. Decision, if it stays so: Skip.",
	{rollout.Waiting, rollout.ReasonSlots}:           "`maxConcurrency` members are at risk.",
	{rollout.Waiting, rollout.ReasonBudget}:          "A further failure could exceed `maxFailures`.",
	{rollout.Waiting, rollout.ReasonCellLimit}:       "The cell works on as many clusters as its limit allows.",
	{rollout.Started, ""}:                            "The record has the start, and the cell has not begun.",
	{rollout.Withdrawing, ""}:                        "The start is withdrawn, and the cell has not confirmed it.",
	{rollout.Changing, ""}:                           "The upgrade has begun.",
	{rollout.Settling, ""}:                           "The upgrade is done. The cluster has not been well for `settle`.",
	{rollout.Good, ""}:                               "The cluster has been well for `settle`.",
	{rollout.Failed, rollout.ReasonDeadline}: "The member was not Good within its deadline. Decision: Retry or " +
		"Skip.",
	{rollout.Failed, rollout.ReasonUpgrade}: "The upgrade stopped. Decision: Retry or Skip.",
	{rollout.Failed, rollout.ReasonHealth}: "More than a tenth of the nodes were not Ready for an hour (or 4 × `settle`, if that is longer) " +
		"after the upgrade, or at the deadline. Decision: Retry or Skip.",
	{rollout.Failed, rollout.ReasonAlarm}: "An alarm of the cluster (`spec.upgrade.alarms`) was in ALARM for an hour (or 4 × `settle`, if " +
		"that is longer) after the upgrade, or at the deadline. Decision: Retry or Skip.",
	{rollout.Failed, rollout.ReasonRegressed}: "The member was Good, and then not well for longer than `settle` (at least ten minutes). " +
		"Decision: Retry or Skip.",
	{rollout.Failed, rollout.ReasonRollback}: "The rollback did not succeed.",
	{rollout.Blocked, rollout.ReasonCheck}: "A check before the upgrade refused it. Nothing was changed. Decision: Retry or " +
		"Skip.",
	{rollout.Skipped, rollout.ReasonPinned}:   "The spec of the cluster opts out of rollouts.",
	{rollout.Skipped, rollout.ReasonUpToDate}: "The cluster has the release.",
	{rollout.Skipped, rollout.ReasonOvertaken}: "The spec of the cluster names another release, which takes " +
		"precedence.",
	{rollout.Skipped, rollout.ReasonDecision}:   "A decision took the member out, or ended the run.",
	{rollout.Skipped, rollout.ReasonSuperseded}: "A newer plan ended the run.",
	{rollout.Skipped, rollout.ReasonDeleted}:    "The cluster was deleted or recreated after the plan was made.",
	{rollout.RolledBack, ""}:                    "A rollback returned the cluster to its previous release.",
	{rollout.NotRolledBack, rollout.ReasonNotPossible}: "EKS does not allow a rollback, or no longer allows one. The cluster keeps the " +
		"release.",
}
