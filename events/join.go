package events

import "time"

// JoinRequest asks the join function whether an instance is a Ready node. The function looks once and returns at once.
type JoinRequest struct {
	Lifecycle
	// Started is when the execution started. The hook's timeout counts from then.
	Started time.Time `json:"started"`
	// PausedSeconds, MissingSince and Node are those of the result of the call before, unless that call failed.
	PausedSeconds int64     `json:"pausedSeconds,omitempty"`
	MissingSince  time.Time `json:"missingSince,omitzero"`
	Node          string    `json:"node,omitempty"`
	// GivenUp is why the machine itself abandoned the instance. join then only records it.
	GivenUp string `json:"givenUp,omitempty"`
}

// JoinOutcome is the result of one check of an instance.
type JoinOutcome string

// The outcomes of joining.
const (
	// JoinReady: the node is Ready, and the hook was completed with CONTINUE.
	JoinReady JoinOutcome = "Ready"
	// JoinWaiting: the node is not Ready yet. The machine checks again.
	JoinWaiting JoinOutcome = "Waiting"
	// JoinGone: the instance or its hook no longer waits. There is nothing to do.
	JoinGone JoinOutcome = "Gone"
	// JoinAbandoned: the node was not Ready in time. The hook was completed with ABANDON, and Auto Scaling replaces the instance.
	JoinAbandoned JoinOutcome = "Abandoned"
)

// JoinResult is the result of one check of an instance, with the reason.
type JoinResult struct {
	Outcome JoinOutcome `json:"outcome"`
	Node    string      `json:"node,omitempty"`
	Message string      `json:"message,omitempty"`
	// WaitSeconds is the pause before the next check. PausedSeconds is how much of the pool's pause has passed after it.
	WaitSeconds   int64 `json:"waitSeconds"`
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// MissingSince is since when each call has found that the node is not Ready. It is zero if the node is Ready, and if the cluster does
	// not answer.
	MissingSince time.Time `json:"missingSince,omitzero"`
}
