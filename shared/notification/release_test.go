package notification

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
)

func TestVerdictsOnReleases(t *testing.T) {
	good := status.ReleaseStatus{Version: "v1", SHA256: "a", Usable: true}
	images := status.Check{Name: "Images", Blocks: true, Message: "ami-1 is not there", Next: "Name another."}
	bad := status.ReleaseStatus{
		Version: "v2", SHA256: "b", Checks: []status.Check{images, {Name: "SupportDates", Message: "it ends", Next: "Move."}},
	}
	for name, test := range map[string]struct {
		before, after status.ReleaseStatus
		subject       string
	}{
		"the first verdict": {status.ReleaseStatus{}, good, "drover: release 1.36-1 can be used"},
		"other content": {
			good, status.ReleaseStatus{Version: "v2", SHA256: "b", Usable: true}, "drover: release 1.36-1 can be used",
		},
		"the same content again": {good, status.ReleaseStatus{Version: "v2", SHA256: "a", Usable: true}, ""},
		"a failed check":         {good, bad, "drover: release 1.36-1 cannot be used"},
		"the same failed check":  {bad, status.ReleaseStatus{Version: "v3", SHA256: "b", Checks: bad.Checks}, ""},
		"a fixed check": {
			bad, status.ReleaseStatus{Version: "v3", SHA256: "b", Usable: true}, "drover: release 1.36-1 can be used",
		},
		"deleted":        {good, status.ReleaseStatus{Message: "it was deleted"}, ""},
		"uploaded again": {status.ReleaseStatus{Message: "it was deleted"}, good, "drover: release 1.36-1 can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := DiffRelease("1.36-1", &test.before, &test.after)
			if test.subject == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, test.subject, got[0].Subject)
			require.Equal(t, "1.36-1", got[0].Attributes["release"])
			require.Len(t, got[0].Attributes, 3)
		})
	}
	notice := DiffRelease("1.36-1", &good, &bad)[0]
	require.Equal(t, "Images: ami-1 is not there\nName another.\n\nSupportDates: it ends\nMove.", notice.Message)
	require.Equal(t, Problem, notice.Attributes["urgency"])
	require.Equal(t, events.Verdict{Release: "1.36-1", Version: "v2", Checks: []string{"Images", "SupportDates"}}, notice.Detail)
}
