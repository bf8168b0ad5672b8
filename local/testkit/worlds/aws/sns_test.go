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
			"drover: demo is Ready", "the cluster is\nwhat it should be", "drover: demo is Ready", "the cluster is\nwhat it should be",
		},
		"a subject beyond ASCII":    {"drover: Ünï\ncode", "m", "drover: ?n??code", "m"},
		"a subject that is long":    {strings.Repeat("x", 300), "m", strings.Repeat("x", 99), "m"},
		"a message that is long":    {"s", strings.Repeat("x", 40<<10), "s", strings.Repeat("x", 32<<10) + "\n…"},
		"cut in a character's half": {"s", "x" + strings.Repeat("ü", 20<<10), "s", "x" + strings.Repeat("ü", 16<<10-1) + "\n…"},
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
