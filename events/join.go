package events

import "time"

// JoinRequest asks the join function whether an instance has become a node. It returns within a minute.
type JoinRequest struct {
	Lifecycle
	// Started is when the execution started: the hook's time is counted from it.
	Started time.Time `json:"started"`
	// PausedSeconds are how much of the pool's pause is over.
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// GivenUp says why the machine itself abandoned the instance: all that is left is to tell of it.
	GivenUp string `json:"givenUp,omitempty"`
}

// JoinOutcome says what became of an instance.
type JoinOutcome string

// The outcomes of joining.
const (
	// JoinReady: the node is Ready and the hook completed with CONTINUE.
	JoinReady JoinOutcome = "Ready"
	// JoinWaiting: not yet; ask again.
	JoinWaiting JoinOutcome = "Waiting"
	// JoinGone: the instance or its hook no longer waits; nothing to do.
	JoinGone JoinOutcome = "Gone"
	// JoinAbandoned: the node will not come; the hook was completed with ABANDON and Auto Scaling replaces the instance.
	JoinAbandoned JoinOutcome = "Abandoned"
)

// JoinResult says what became of the instance, and why.
type JoinResult struct {
	Outcome JoinOutcome `json:"outcome"`
	Node    string      `json:"node,omitempty"`
	Message string      `json:"message,omitempty"`
	// WaitSeconds until it is worth asking again; PausedSeconds are how much of the pool's pause is over then.
	WaitSeconds   int64 `json:"waitSeconds"`
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
}
