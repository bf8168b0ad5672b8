package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// previewAnUpgrade of the demo cluster, on which a budget that allows nothing blocks, or not; config reaches its API server.
func previewAnUpgrade(ctx context.Context, t *testing.T, config *rest.Config, blocked bool) {
	require.Contains(t, drover(t, "apply", "examples/releases/1.37-1.yaml").stdout, "uploaded release 1.37-1")
	require.NoError(t, cloud.Settle(ctx))
	nobody, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	seen := &recorder{}
	aws := cloud.Config()
	clusters := kube.NewClusters(eks.NewFromConfig(aws), sts.NewFromConfig(aws))
	clusters.Reach = func(string) http.RoundTripper { return seen.wrap(nobody) }

	var out bytes.Buffer
	mark := cloud.Calls.Mark()
	err = previewUpgrade(ctx, &out, newCell(aws, "aws", account.ID), clusters, events.Upgrade{Cluster: "demo", Release: "1.37-1"})
	require.NotEmpty(t, seen.requests)
	for _, request := range seen.requests {
		require.Regexp(t, "^GET ", request)
	}
	for _, call := range cloud.Calls.Since(mark) {
		if !strings.Contains(call.Caller, ":assumed-role/"+names.Prefix) { // drover itself may still be at the release
			require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
		}
	}
	said := out.String()
	for _, line := range []string{
		"A dry run: nothing is changed.\n\ndemo: release 1.36-1 (Kubernetes 1.36) → release 1.37-1 (Kubernetes 1.37)\n",
		"  1. control plane to 1.37\n  2. add-ons to those of the release\n", "     coredns v1.13.2-eksbuild.1 → v1.14.0-eksbuild.1\n",
		"     kube-proxy v1.36.1-eksbuild.2 → v1.37.0-eksbuild.1\n", "  3. nodes to the images of the release\n",
		"     pool workers: 2 nodes to ami-cad6f48a6f7586fe6", "     pool spot: 2 nodes to ",
	} {
		require.Contains(t, said, line)
	}
	require.NotContains(t, said, "vpc-cni v", "it does not change")
	if blocked {
		require.Contains(t, said, "drained/frozen")
	}
	if strings.Contains(said, " blocks: ") {
		require.ErrorContains(t, err, "would not begin: mend what blocks")
		return
	}
	require.NoError(t, err, said)

	// The command says the same, and what cannot be done.
	r := drover(t, "upgrade", "demo", "--to", "1.37-1", "--dry-run")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, strings.Split(said, "\n")[:3], strings.Split(r.stdout, "\n")[:3])
	require.Contains(t, drover(t, "upgrade", "demo", "--to", "1.36-1", "--dry-run").stdout, "there is nothing to upgrade")
	require.Contains(t, drover(t, "upgrade", "demo", "--to", "9.99-1", "--dry-run").stderr, "there is no release releases/9.99-1.yaml")
	require.Contains(t, drover(t, "upgrade", "demo", "--rollback", "--dry-run").stderr, "there was no upgrade of this cluster")
}
