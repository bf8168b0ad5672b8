package stack

import "strings"

// drover compares whole statuses. A part of one would mislead: UPDATE_ROLLBACK_COMPLETE ends in "COMPLETE" too.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html

// Absent reports whether the stack does not exist and must be created.
func Absent(status string) bool {
	switch status {
	case "", "DELETE_COMPLETE", InReview:
		return true
	}
	return false
}

// InReview is the status of a stack that has only a change set. Its creation never started.
const InReview = "REVIEW_IN_PROGRESS"

// MustRecreate reports whether the creation or deletion of a stack failed, so that it must be deleted and created again.
func MustRecreate(status string) bool {
	switch status {
	case "CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED":
		return true
	}
	return false
}

// Settled reports whether the last operation on a stack ended and succeeded.
func Settled(status string) bool {
	switch status {
	case "CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE":
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
