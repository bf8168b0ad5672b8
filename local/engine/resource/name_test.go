package resource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedName(t *testing.T) {
	long := strings.Repeat("x", 60)
	for name, test := range map[string]struct {
		request Request
		limit   int
		prefix  string
	}{
		"short names stay whole":   {Request{StackName: "drover", LogicalID: "AdmitRole"}, 64, "drover-AdmitRole-"},
		"a long stack name is cut": {Request{StackName: long, LogicalID: "Role"}, 64, strings.Repeat("x", 46) + "-Role-"},
		"a long logical id is cut": {Request{StackName: "drover", LogicalID: long}, 64, "drover-" + strings.Repeat("x", 44) + "-"},
		"both are cut when both are long": {
			Request{StackName: long, LogicalID: long}, 64, strings.Repeat("x", 25) + "-" + strings.Repeat("x", 25) + "-",
		},
		"no two dashes follow each other where": {Request{StackName: strings.Repeat("ab-", 20), LogicalID: long}, 40, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.request.GeneratedName(test.limit)
			require.LessOrEqual(t, len(got), test.limit)
			require.True(t, strings.HasPrefix(got, test.prefix), got)
			require.NotContains(t, got, "--")
			require.NotEqual(t, got, test.request.GeneratedName(test.limit))
		})
	}
}
