package aws_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/sns"
)

func TestTopicNotices(t *testing.T) {
	tests := map[string]struct{ subject, message, wantSubject, wantMessage string }{
		"as they are": {
			subject: "drover: demo is Ready", message: "the cluster is\nwhat it should be", wantSubject: "drover: demo is Ready",
			wantMessage: "the cluster is\nwhat it should be",
		},
		"a subject beyond ASCII": {subject: "drover: Ünï\ncode", message: "m", wantSubject: "drover: ?n??code", wantMessage: "m"},
		"a subject that is long": {subject: strings.Repeat("x", 300), message: "m", wantSubject: strings.Repeat("x", 99), wantMessage: "m"},
		"a message that is long": {
			subject: "s", message: strings.Repeat("x", 40<<10), wantSubject: "s", wantMessage: strings.Repeat("x", 32<<10) + "\n…",
		},
		"cut in a character's half": {
			subject: "s", message: "x" + strings.Repeat("ü", 20<<10), wantSubject: "s",
			wantMessage: "x" + strings.Repeat("ü", 16<<10-1) + "\n…",
		},
	}
	a := harness.Start(t)
	topic := sns.NewTopic(a.Config(), a.Topic())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, topic.Publish(t.Context(), test.subject, test.message, map[string]string{"phase": "Ready"}))
			notices := a.Notices()
			require.Equal(t, test.wantSubject+"\n"+test.wantMessage, notices[len(notices)-1])
			require.True(t, utf8.ValidString(notices[len(notices)-1]))
		})
	}
	require.ErrorContains(t, sns.NewTopic(a.Config(), a.Topic()+"x").Publish(t.Context(), "s", "m", nil),
		a.Topic()+"x")
}
