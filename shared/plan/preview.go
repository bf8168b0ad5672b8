package plan

import (
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/status"
)

// Preview is what planning would do, and why.
type Preview struct {
	Plan Plan
	// Reason, a CamelCase word, and Message are why drover does nothing until a user acts. They are empty without such a reason. Plan then
	// has the refusals, if any.
	Reason, Message string
	// Unused is why the newest spec is not used and Plan is that of the last good one. It is nil if the newest spec is used.
	Unused *events.Rejection
	// Next is the upgrade that planning would begin or schedule. It is nil if there is none, if there is a Reason, or if the newest spec is
	// not used.
	Next *status.Upgrade
	// Access is the access to the API endpoint that the deployed control plane should have. It is nil if the plan changes the control plane.
	Access *api.Access
	// Accepted is the newest spec, as the status records it. It is nil if there is a Reason, or if the newest spec is not used.
	Accepted *status.Upload
	// ImagesUnchecked is why the images of pools could not be described, if the caller may not. It is "" if they were checked.
	ImagesUnchecked string
}
