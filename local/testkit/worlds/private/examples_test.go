package private_test

// The examples whose endpoints exclude drover's functions.

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	prepare "github.com/drover-run/drover/functions/prepare/handler"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// exampleEndpoint is the endpoint of an example, as a part of a spec.
func exampleEndpoint(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "clusters", name+".yaml"))
	require.NoError(t, err)
	var example struct {
		Spec struct {
			ControlPlane struct{ Endpoint map[string]any } `yaml:"controlPlane"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &example))
	require.NotEmpty(t, example.Spec.ControlPlane.Endpoint)
	endpoint, err := json.Marshal(example.Spec.ControlPlane.Endpoint)
	require.NoError(t, err)
	return "  controlPlane: {endpoint: " + string(endpoint) + "}\n"
}

// unrelayed is the function prepare without relays: it connects to the endpoint itself.
func (l *life) unrelayed(cfg aws.Config) awslambda.Handler {
	clusters := kube.NewClusters(cfg, kube.WithTransport(l.Reach))
	h := &prepare.Handler{
		Clusters: kube.Opener[prepare.Cluster]{Clusters: clusters, As: func(c *kube.Cluster) prepare.Cluster { return c }},
		Timeout:  79 * time.Second, Pause: 2 * time.Second,
	}
	return harness.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return awslambda.NewHandler(lambdaruntime.WrapTo(io.Discard, "prepare", h.Handle)).Invoke(ctx, payload)
	})
}

// Without the relay, drover does not reach the API servers of these examples, and the status says so. With the relay, they become Ready.
func TestEndpointsOfExamples(t *testing.T) {
	for _, name := range []string{"everything", "existing-network"} {
		t.Run(name, func(t *testing.T) {
			spec := harness.Spec("demo", exampleEndpoint(t, name))
			run(t, func(l *life) {
				var relayed awslambda.Handler
				l.Functions.Around("prepare", func(cfg aws.Config, next awslambda.Handler) awslambda.Handler {
					relayed = next
					return l.unrelayed(cfg)
				})
				l.Upload(names.ReleaseSpec("r1"), harness.Release())
				l.Upload(names.ClusterSpec("demo"), spec)
				l.SettleAll()
				l.RequirePhase(status.Failed)
				require.Regexp(t, `^ClusterUnreachable: preparing demo for 1m19s: .*: dial tcp: context deadline exceeded \(step "Prepare the cluster"`,
					l.Status("demo").Message)
				require.NotContains(t, l.Stacks("demo"), names.PoolPrefix+"a", "a pool is created after the cluster is prepared")

				l.Functions.Replace("prepare", relayed)
				l.ConvergeAgain()
				l.RequirePhase(status.Ready)
			})
		})
	}
}
