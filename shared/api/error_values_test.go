package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// Statuses and notifications contain messages, so long values are cut.
func TestMessagesShowValues(t *testing.T) {
	digits, letters := strings.Repeat("7", 121), strings.Repeat("ä", 121)
	for name, test := range map[string]struct {
		edits pairs
		want  string
	}{
		"as kinds when a secret is no scalar": {
			pool("commands: [{curl: x}]"), "spec.pools[0].commands[0]: Invalid value: an object: must be a string",
		},
		"cut when a number is long": {
			pairs{"      maxSize: 3", "      maxSize: " + digits}, "Invalid value: " + digits[:120] + "…: must be a whole number",
		},
		"cut when a string is long": {
			pairs{"    zones: [us-east-1a, us-east-1b]", "    zones: " + letters}, `Invalid value: "` + letters[:240] + `…": must be a list`,
		},
		"whole up to 120 characters": {
			pairs{"    zones: [us-east-1a, us-east-1b]", "    zones: " + letters[2:]}, `Invalid value: "` + letters[2:] + `": must be a list`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := api.ReadCluster("f.yaml", edit(t, good, test.edits), options)
			require.NotEmpty(t, errs)
			require.Contains(t, errs.Error(), test.want)
		})
	}
}
