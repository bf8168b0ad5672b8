package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The wait of an upgrade may end before the next check. The message has the time of that check.
func TestMessageNamesTheNextCheck(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 26, 9, 0, time.UTC)
	waits := asOf("still being drained: i-1 of pool a", at, 108*time.Second)
	require.Equal(t, "still being drained: i-1 of pool a (at 15:26:09Z; next check at 15:27:57Z)", waits.Message)
	require.Equal(t, 108, waits.WaitSeconds)
}
