package harness

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Functions run in this process. The result of a call stays valid during later calls.
func TestResultOutlivesTheNextCall(t *testing.T) {
	type word struct{ Word string }
	echo := wrap(io.Discard, "echo", func(_ context.Context, in word) (word, error) { return in, nil })
	first, err := echo.Invoke(t.Context(), []byte(`{"Word":"a"}`))
	require.NoError(t, err)
	for range 10 {
		_, err = echo.Invoke(t.Context(), []byte(`{"Word":"b"}`))
		require.NoError(t, err)
	}
	require.JSONEq(t, `{"Word":"a"}`, string(first))
}
