package notification

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

// DiffIgnored returns the notices of new uploads that drover does not read, although they look like specs.
func DiffIgnored(before, after []status.IgnoredUpload) (notices []Notice) {
	for _, upload := range after {
		if upload.DidYouMean == "" || slices.Contains(before, upload) {
			continue
		}
		notices = append(notices, Notice{
			DetailType: events.UploadIgnored, Detail: events.IgnoredUpload{Key: upload.Key, DidYouMean: upload.DidYouMean},
			Subject: fmt.Sprintf("drover: upload %.60q is not read", upload.Key),
			Message: fmt.Sprintf("drover does not read %q: specs are clusters/NAME.yaml, releases are releases/NAME.yaml; did you mean %s?",
				upload.Key, upload.DidYouMean),
			Attributes: map[string]string{"state": "Ignored", "urgency": Problem},
		})
	}
	return notices
}
