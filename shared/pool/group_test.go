package pool

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSuspendedByUpdateIsThatOfTheTemplate(t *testing.T) {
	body, err := os.ReadFile("../../templates/v1/pool.yaml.tmpl")
	require.NoError(t, err)
	require.Contains(t, string(body), "SuspendProcesses: ["+strings.Join(SuspendedByUpdate, ", ")+"]")
	for _, process := range NeededToReplace {
		require.NotContains(t, SuspendedByUpdate, process)
	}
}

func TestIsCurrent(t *testing.T) {
	g := Group{TemplateVersion: "5"}
	for name, test := range map[string]struct {
		version, since string
		want           bool
	}{
		"of the present version":                        {"5", "", true},
		"of another version":                            {"4", "", false},
		"of a version that made the same":               {"4", "3", true},
		"of the first such version":                     {"3", "3", true},
		"of an older version, and not compared as text": {"9", "10", false},
		"of a deleted version":                          {"", "3", false},
	} {
		require.Equal(t, test.want, g.IsCurrent(Instance{TemplateVersion: test.version}, test.since), name)
	}
}
