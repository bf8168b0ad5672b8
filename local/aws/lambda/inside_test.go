package lambda

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
)

// slowly returns its text word by word, a minute apart.
type slowly struct {
	ctx   context.Context
	words []string
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.words) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(time.Minute):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	word := s.words[0]
	s.words = s.words[1:]
	return copy(p, word), nil
}

// inside is a Lambda in virtual time. Its function streams words, or fails without any.
func inside(t *testing.T) (*Service, iam.Caller) {
	t.Helper()
	identities := iam.New(account, region, nil)
	role, err := identities.CreateRole(iam.Role{Name: "function", TrustDocument: trust})
	require.NoError(t, err)
	packages := objects{"packages/fn.zip": []byte("any")}
	s := New(Config{
		Account: account, Region: region, Roles: identities, Objects: packages,
		Run: func(ctx context.Context, f Inside, payload []byte) (io.Reader, error) {
			words := strings.Fields(strings.Trim(string(payload), `"`))
			if len(words) == 0 {
				return nil, errors.New("no words for " + f.Name)
			}
			return &slowly{ctx, words}, nil
		},
	})
	admin, _ := identities.Admin()
	_, err = s.create(t.Context(), admin, settings{
		FunctionName: "fn", Role: identities.RoleARN(role), Runtime: "provided.al2023", Handler: "bootstrap", Timeout: 600,
		Architectures: []string{architectures[runtime.GOARCH]},
	}, code{S3Bucket: "packages", S3Key: "fn.zip"})
	require.NoError(t, err)
	return s, admin
}

func TestInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, admin := inside(t)
		defer s.Close()
		begin := time.Now()
		r, err := s.Invoke(t.Context(), admin, Invocation{Function: "fn", Payload: []byte(`"a b"`)})
		require.NoError(t, err)
		require.Equal(t, "ab", string(r.Payload))
		require.Equal(t, 2*time.Minute, time.Since(begin))

		r, err = s.Invoke(t.Context(), admin, Invocation{Function: "fn", Payload: []byte(`""`)})
		require.NoError(t, err)
		require.JSONEq(t, `{"errorType":"errorString","errorMessage":"no words for fn"}`, string(r.Payload))

		b, err := s.InvokeStreaming(t.Context(), admin, Invocation{Function: "fn", Payload: []byte(`"a b c d e f g h i j k l"`)})
		require.NoError(t, err)
		var out strings.Builder
		failed, _, err := b.Copy(t.Context(), &out)
		require.NoError(t, err)
		require.Equal(t, "Sandbox.Timedout", failed.Code)
		require.Contains(t, []string{"abcdefghi", "abcdefghij"}, out.String(), "ten minutes")
	})
}
