package private_test

// Relays of other versions than drover's.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// firstRelay is the relay as the first version of drover has it. It shares no type with the present one: later versions of drover must
// reach clusters through it.
func firstRelay(ctx context.Context, server http.RoundTripper, payload []byte) (io.Reader, error) {
	var in struct {
		Method string              `json:"method"`
		Path   string              `json:"path"`
		Header map[string][]string `json:"header"`
		Body   []byte              `json:"body"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, in.Method, "http://endpoint"+in.Path, bytes.NewReader(in.Body))
	if err != nil {
		return nil, err
	}
	request.Header = in.Header
	response, err := server.RoundTrip(request)
	if err != nil {
		return strings.NewReader(fmt.Sprintf(`{"error":{"reason":"Unreachable","message":%q}}`+"\n", err)), nil
	}
	head, err := json.Marshal(map[string]any{"status": response.StatusCode, "header": response.Header})
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(append(head, '\n')), response.Body), response.Body}, nil
}

// otherRelay answers with what no version of drover knows.
func otherRelay(context.Context, http.RoundTripper, []byte) (io.Reader, error) {
	return strings.NewReader(`{"version": 2}` + "\n"), nil
}

func TestRelayOfAnotherVersion(t *testing.T) {
	t.Run("works, and is updated with the control plane", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.SetRelay("demo", firstRelay)
			newer := render.RelayCode{Architecture: l.Functions.Planner.Relay.Architecture, SHA256: names.SHA256([]byte("newer"))}
			l.Functions.Planner.Relay, l.Functions.Planner.RelayFile = newer, func() ([]byte, error) { return []byte("newer"), nil }
			l.ConvergeAgain()
			current := l.Status("demo").Condition(status.RelayCurrent)
			require.NotNil(t, current)
			require.Equal(t, "False", current.Status)
			node := l.Instance()
			l.TerminateInstance()
			l.SettleAll()
			l.RequirePhase(status.Ready)
			require.NotEqual(t, node, l.Instance(), "a node was drained, and another one joined, through the relay")
			l.ChangeSpec(lives.PrivateEndpoint + "  tags: {team: a}\n")
			l.RequirePhase(status.Ready)
			require.Nil(t, l.Status("demo").Condition(status.RelayCurrent))
		})
	})

	t.Run("that drover does not understand: waits until it is updated", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.SetRelay("demo", otherRelay)
			node := l.Instance()
			l.TerminateInstance()
			time.Sleep(time.Hour)
			require.Equal(t, []string{node}, l.Group("demo", "a").Draining(), "the node stays")
			nodes := fmt.Sprintf("%+v", l.Status("demo").Nodes)
			require.Contains(t, nodes, "RelayIncompatible: drover-demo-relay")
			require.Contains(t, nodes, "update the relay: change the spec of the cluster, or upgrade it")
			l.OnStack(func(name, is string) {
				if name == names.Stack("demo", names.ControlPlane) && is == "UPDATE_COMPLETE" {
					l.SetRelay("demo", nil) // the update replaced the code
				}
			})
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.PrivateEndpoint+"  tags: {team: a}\n"))
			l.RunSchedules(1)
			l.RequirePhase(status.Ready)
			require.NotEqual(t, node, l.Instance())
		})
	})
}
