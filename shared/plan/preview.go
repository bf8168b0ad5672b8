package plan

import (
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// Preview is what planning would come to, and why.
type Preview struct {
	Plan Plan
	// Reason, a CamelCase word, and Message say why there is nothing to do before people act; empty when there is no
	// such reason. Plan then has what is refused, if anything is.
	Reason, Message string
	// Unused is why the newest spec is not used, where Plan is that of the last good one; nil when it is.
	Unused *events.Rejection
	// Next is the upgrade that planning would begin, or tell to be to come; nil when there is none, a Reason, or the newest spec is not used.
	Next *status.Upgrade
}
