package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

// Blocking findings are listed first.
func TestBlockingFirst(t *testing.T) {
	found := blockingFirst([]status.Check{{Name: "a"}, {Name: "b", Blocks: true}, {Name: "c"}, {Name: "d", Blocks: true}})
	require.Equal(t, []status.Check{{Name: "b", Blocks: true}, {Name: "d", Blocks: true}, {Name: "a"}, {Name: "c"}}, found)
}
