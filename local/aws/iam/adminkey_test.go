package iam

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/clock"
)

func TestSetAdminKey(t *testing.T) {
	tests := map[string]struct{ id, secret, err string }{
		"takes a key":                           {"AKIALOCALACCOUNT0001", "local-secret/key+1", ""},
		"rejects a short id":                    {"AKIA", "local-secret", "16 to 128"},
		"rejects an id with a slash":            {"AKIA/LOCAL/ACCOUNT/01", "local-secret", "letters, digits"},
		"rejects the id of a session":           {"ASIALOCALACCOUNT0001", "local-secret", "does not start with ASIA"},
		"rejects a short secret":                {"AKIALOCALACCOUNT0001", "short", "8 to 128"},
		"rejects a secret that a shell changes": {"AKIALOCALACCOUNT0001", "local'secret", "quotes"},
		"rejects a secret of two lines":         {"AKIALOCALACCOUNT0001", "local-\nsecret", "quotes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := New("000000000000", "us-east-1", &clock.Clock{})
			_, generated := s.Admin()
			err := s.SetAdminKey(tt.id, tt.secret)
			_, got := s.Admin()
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.Equal(t, generated, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Credentials{AccessKeyID: tt.id, SecretAccessKey: tt.secret}, got)
		})
	}
}
