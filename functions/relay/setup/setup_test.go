package setup

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

func TestNewHandler(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer server.Close()
	authority := base64.StdEncoding.EncodeToString(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))

	t.Run("trusts the authority of the cluster", func(t *testing.T) {
		h, err := newHandler(server.URL, authority)
		require.NoError(t, err)
		out, err := h.Handle(t.Context(), events.RelayRequest{Method: "GET", Path: "/"})
		require.NoError(t, err)
		all, err := io.ReadAll(out)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(all), "\nok"), string(all))
	})

	t.Run("trusts no other authority", func(t *testing.T) {
		h, err := newHandler(server.URL, base64.StdEncoding.EncodeToString([]byte(otherAuthority)))
		require.NoError(t, err)
		out, err := h.Handle(t.Context(), events.RelayRequest{Method: "GET", Path: "/"})
		require.NoError(t, err)
		var head events.RelayResponse
		require.NoError(t, json.NewDecoder(out).Decode(&head))
		require.Equal(t, events.RelayUntrusted, head.Error.Reason)
	})

	t.Run("refuses an environment that it cannot use", func(t *testing.T) {
		for _, bad := range [][2]string{
			{"http://api.example", authority}, {"api.example", authority}, {"https://", authority},
			{server.URL, "%"}, {server.URL, base64.StdEncoding.EncodeToString([]byte("no certificate"))},
		} {
			_, err := newHandler(bad[0], bad[1])
			require.Error(t, err, bad)
		}
	})
}

// otherAuthority is a self-signed certificate that signed nothing else.
const otherAuthority = `-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUEm0jSSc5MgqOXHpqMFFFeJZnlH0wCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHYW5vdGhlcjAgFw0yNjExMjYyMTQ0NDdaGA8yMTI2MTEwMjIx
NDQ0N1owEjEQMA4GA1UEAwwHYW5vdGhlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABAiKC+c6MjGZhjp6xLCHYRVCng43ISjpO2fl49EcJmmHPFNk4C/IuE2UQuZW
f5NAGXZiMt7y21Vn+MqMHhEG28WjUzBRMB0GA1UdDgQWBBRIw4EeMaxZX4xXPt/f
dPGMqNRZ5TAfBgNVHSMEGDAWgBRIw4EeMaxZX4xXPt/fdPGMqNRZ5TAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIFjEQqMqyjGx1Km1HXzTWCSI9TjF
/l3cTUVhXY6pt70iAiEApjcXkdFmktEeWz5jVIv32L/AdP77N+MOWFLWXkwe9GE=
-----END CERTIFICATE-----`
