package stack

import "strings"

// The statuses of a stack. drover compares whole statuses where a part would mislead: UPDATE_ROLLBACK_COMPLETE ends in "COMPLETE" too.
// WasCreated and InProgress compare a part, which means the same in every status that contains it.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
const (
	CreateInProgress         = "CREATE_IN_PROGRESS"
	CreateComplete           = "CREATE_COMPLETE"
	CreateFailed             = "CREATE_FAILED"
	RollbackInProgress       = "ROLLBACK_IN_PROGRESS"
	RollbackComplete         = "ROLLBACK_COMPLETE"
	RollbackFailed           = "ROLLBACK_FAILED"
	UpdateInProgress         = "UPDATE_IN_PROGRESS"
	UpdateCleanup            = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateComplete           = "UPDATE_COMPLETE"
	UpdateFailed             = "UPDATE_FAILED"
	UpdateRollbackInProgress = "UPDATE_ROLLBACK_IN_PROGRESS"
	UpdateRollbackCleanup    = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateRollbackComplete   = "UPDATE_ROLLBACK_COMPLETE"
	UpdateRollbackFailed     = "UPDATE_ROLLBACK_FAILED"
	DeleteInProgress         = "DELETE_IN_PROGRESS"
	DeleteComplete           = "DELETE_COMPLETE"
	DeleteFailed             = "DELETE_FAILED"
	ImportInProgress         = "IMPORT_IN_PROGRESS"
	ImportComplete           = "IMPORT_COMPLETE"
	ImportRollbackInProgress = "IMPORT_ROLLBACK_IN_PROGRESS"
	ImportRollbackComplete   = "IMPORT_ROLLBACK_COMPLETE"
	ImportRollbackFailed     = "IMPORT_ROLLBACK_FAILED"
	// InReview is the status of a stack that has only a change set. Its creation never started.
	InReview = "REVIEW_IN_PROGRESS"
)

// Terminal returns the statuses that end an operation. A waiting execution continues.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html#cfn-console-view-stack-data-resources-status-codes
func Terminal() []string {
	return []string{
		CreateComplete, CreateFailed,
		RollbackComplete, RollbackFailed,
		UpdateComplete, UpdateFailed,
		UpdateRollbackComplete, UpdateRollbackFailed,
		DeleteComplete, DeleteFailed,
		ImportComplete, ImportRollbackComplete, ImportRollbackFailed,
	}
}

// Progress returns the statuses during an operation. InReview is not one of them: only a change set exists then.
func Progress() []string {
	return []string{
		CreateInProgress, RollbackInProgress,
		UpdateInProgress, UpdateCleanup,
		UpdateRollbackInProgress, UpdateRollbackCleanup,
		DeleteInProgress,
		ImportInProgress, ImportRollbackInProgress,
	}
}

// Absent reports whether the stack does not exist and must be created.
func Absent(status string) bool {
	switch status {
	case "", DeleteComplete, InReview:
		return true
	}
	return false
}

// MustRecreate reports whether the creation or deletion of a stack failed, so that it must be deleted and created again.
func MustRecreate(status string) bool {
	switch status {
	case CreateFailed, RollbackComplete, RollbackFailed, DeleteFailed:
		return true
	}
	return false
}

// NothingCreated reports whether no stack exists that holds resources: each is absent, or its creation was rolled back.
func NothingCreated(stacks map[string]Deployed) bool {
	for _, deployed := range stacks {
		if !Absent(deployed.Status) && deployed.Status != RollbackComplete {
			return false
		}
	}
	return true
}

// Settled reports whether the last operation on a stack ended and succeeded.
func Settled(status string) bool {
	switch status {
	case CreateComplete, UpdateComplete, ImportComplete:
		return true
	}
	return false
}

// WasCreated reports whether a stack was created successfully, even if later updates failed.
func WasCreated(status string) bool { return Settled(status) || strings.HasPrefix(status, "UPDATE_") }

// InProgress reports whether an operation is in flight. The cleanup after an update or a rollback counts: CloudFormation rejects other
// operations until it ends. A stack in review has no operation in flight.
func InProgress(status string) bool {
	return strings.HasSuffix(status, "_IN_PROGRESS") && status != InReview
}
