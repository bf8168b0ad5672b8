package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCountWritesOneLine(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Count(&out, time.UnixMilli(1_700_000_000_123), "ClusterPhase", "phase", "a \"b\"\nc"))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.JSONEq(t, `{"ClusterPhase": 1, "phase": "a \"b\"\nc", "_aws": {"Timestamp": 1700000000123, "CloudWatchMetrics": [
		{"Namespace": "drover", "Dimensions": [["phase"]], "Metrics": [{"Name": "ClusterPhase", "Unit": "Count"}]}]}}`, out.String())
}

func TestTookWritesSeconds(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Took(&out, time.UnixMilli(1_700_000_000_123), "UpgradeDuration", 90*time.Second, "phase", "Done"))
	require.JSONEq(t, `{"UpgradeDuration": 90, "phase": "Done", "_aws": {"Timestamp": 1700000000123, "CloudWatchMetrics": [
		{"Namespace": "drover", "Dimensions": [["phase"]], "Metrics": [{"Name": "UpgradeDuration", "Unit": "Seconds"}]}]}}`, out.String())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestCountReturnsWriteErrors(t *testing.T) {
	require.EqualError(t, Count(full{}, time.Now(), "m", "d", "v"), "full")
}
