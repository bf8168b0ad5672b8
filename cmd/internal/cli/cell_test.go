package cli

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWithoutLocalAccount(t *testing.T) {
	environment := map[string]string{
		"AWS_ENDPOINT_URL": "http://" + closedAddress(t), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIALOCALACCOUNT0001",
		"AWS_SECRET_ACCESS_KEY": "x",
	}
	for _, arguments := range [][]string{
		{"status"}, {"versions"}, {"apply", "examples/clusters/demo.yaml"}, {"diff", "examples/clusters/demo.yaml"}, {"delete", "demo"},
		{"roll", "demo", "workers"}, {"drain", "demo", "node"}, {"upgrade", "demo", "--to", "1.36-1"},
	} {
		t.Run(arguments[0], func(t *testing.T) {
			began := time.Now()
			r := droverIn(t, environment, arguments...)
			require.Equal(t, 1, r.Code)
			require.Contains(t, r.Stderr, "nothing listens at "+environment["AWS_ENDPOINT_URL"]+
				", where AWS_ENDPOINT_URL leads: is the local account running?")
			require.Contains(t, r.Stderr, `eval "$(drover local env)"`)
			require.NotContains(t, r.Stderr, "operation error")
			require.Less(t, time.Since(began), 2*time.Minute)
		})
	}
	t.Run("the SDK reports a remote endpoint", func(t *testing.T) {
		away := map[string]string{"AWS_MAX_ATTEMPTS": "1"}
		for k, v := range environment {
			away[k] = v
		}
		away["AWS_ENDPOINT_URL"] = "http://192.0.2.1:1" // the tests' proxy rejects it
		require.Contains(t, droverIn(t, away, "status").Stderr, "asking AWS who you are")
	})
}

// closedAddress returns an address of this machine without a listener.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
