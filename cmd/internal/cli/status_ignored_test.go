package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestPrintIgnored(t *testing.T) {
	var b strings.Builder
	printIgnored(&b, status.IgnoredUploads{})
	require.Empty(t, b.String())
	printIgnored(&b, status.IgnoredUploads{
		Uploads: []status.IgnoredUpload{{Key: "clusters/x.yml", DidYouMean: "clusters/x.yaml"}, {Key: "README.md"}}, More: 2,
	})
	require.Equal(t, "\nUploads that drover does not read:\n"+
		"  \"clusters/x.yml\": did you mean clusters/x.yaml?\n  \"README.md\"\n  and 2 more\n", b.String())
}
