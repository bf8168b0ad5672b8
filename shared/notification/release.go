package notification

// Verdicts on releases.

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// DiffRelease returns the notice of a new verdict on a release. It returns none if only the time of the upload is new, or if the release
// was deleted: the user who deleted it knows.
func DiffRelease(release string, before, after *status.ReleaseStatus) []Notice {
	if after.Version == "" {
		return nil
	}
	if before.Version != "" && before.SHA256 == after.SHA256 && before.Usable == after.Usable &&
		reflect.DeepEqual(before.Checks, after.Checks) {
		return nil
	}
	n := Notice{
		DetailType: events.ReleaseVerdict,
		Subject:    fmt.Sprintf("drover: release %.63s can be used", release), Message: cmp.Or(after.Message, "all checks passed"),
		Attributes: map[string]string{"release": release, "state": "Usable", "urgency": Result},
	}
	if !after.Usable {
		n.Subject = fmt.Sprintf("drover: release %.63s cannot be used", release)
		n.Attributes["state"], n.Attributes["urgency"] = "Unusable", Problem
	}
	detail := events.Verdict{Release: release, Version: after.Version, Usable: after.Usable, Message: after.Message}
	var lines []string
	for _, c := range after.Checks {
		detail.Checks = append(detail.Checks, c.Name)
		lines = append(lines, fmt.Sprintf("%s: %s\n%s", c.Name, c.Message, c.Next))
	}
	if len(lines) > 0 {
		n.Message = strings.Join(lines, "\n\n")
	}
	n.Detail = detail
	return []Notice{n}
}
