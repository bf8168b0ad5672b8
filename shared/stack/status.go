package stack

import "strings"

// Stack statuses, as drover reads them. Never by a part of the word: "COMPLETE" is in UPDATE_ROLLBACK_COMPLETE too.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html

// Absent says that there is no stack: it must be created.
func Absent(status string) bool {
	switch status {
	case "", "DELETE_COMPLETE", InReview:
		return true
	}
	return false
}

// InReview is a stack of which there is nothing but a change set: it was to be created, and was not.
const InReview = "REVIEW_IN_PROGRESS"

// MustRecreate says that a stack never came to be and must be deleted and created again.
func MustRecreate(status string) bool {
	switch status {
	case "CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED":
		return true
	}
	return false
}

// Settled says that a stack is at rest and is what was last asked of it.
func Settled(status string) bool {
	switch status {
	case "CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE":
		return true
	}
	return false
}

// WasCreated says that a stack was made once, whatever became of what was asked of it since.
func WasCreated(status string) bool { return Settled(status) || strings.HasPrefix(status, "UPDATE_") }

// InProgress says that an operation is under way. Cleaning up after an update or a rollback is part of it, as CloudFormation
// refuses other operations until it is over. A stack in review is not: nothing is under way there.
func InProgress(status string) bool {
	return strings.HasSuffix(status, "_IN_PROGRESS") && status != InReview
}
