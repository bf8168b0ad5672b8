package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
)

func TestSpecCreatesACluster(t *testing.T) {
	a := Start(t)
	a.Upload("releases/r1.yaml", Release())
	a.Upload("clusters/demo.yaml", Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Len(t, a.Stacks("demo"), 5)
}
