package worlds

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// previewAnUpgrade tests the preview of an upgrade of the demo cluster. blocked reports whether a disruption budget blocks the drains.
// config connects to the cluster's API server.
func previewAnUpgrade(ctx context.Context, t *testing.T, config *rest.Config, blocked bool) {
	require.Contains(t, drover(t, "apply", "examples/releases/1.37-1.yaml").Stdout, "uploaded release 1.37-1")
	require.NoError(t, cloud.Settle(ctx))
	anonymous, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	seen := &recorder{}
	aws := cloud.Config()
	clusters := kube.NewClusters(aws, kube.WithTransport(func(string) http.RoundTripper {
		return seen.wrap(anonymous)
	}))

	var out bytes.Buffer
	mark := cloud.Calls.Mark()
	err = cli.PreviewUpgrade(ctx, &out, cli.NewCell(aws, "aws", account.ID), clusters, events.Upgrade{Cluster: "demo", Release: "1.37-1"})
	require.NotEmpty(t, seen.requests)
	for _, request := range seen.requests {
		require.Regexp(t, "^GET ", request)
	}
	for _, call := range cloud.Calls.Since(mark) {
		if !strings.Contains(call.Caller, ":assumed-role/"+names.Prefix) { // drover may still check the release
			require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
		}
	}
	printed := out.String()
	for _, line := range []string{
		"A dry run: nothing is changed.\n\ndemo: release 1.36-1 (Kubernetes 1.36) → release 1.37-1 (Kubernetes 1.37)\n",
		"  1. control plane to 1.37: at least 8m0s\n  2. add-ons to the versions of the release: at least 30s\n",
		"     coredns v1.13.2-eksbuild.1 → v1.14.0-eksbuild.1\n",
		"     kube-proxy v1.36.1-eksbuild.2 → v1.37.0-eksbuild.1\n", "  3. nodes to the images of the release: at least ",
		"     pool workers: 2 nodes to ami-00000000000013701, in at least ", "     pool spot: 2 nodes to ", "\nLeast time: ",
		"  passed: ControlPlaneHealthy, ",
	} {
		require.Contains(t, printed, line)
	}
	require.Regexp(t, `(?m)^       ip-\S+ (drained in at least \d|would wait for what blocks its pods: drover roll demo )`, printed)
	require.NotContains(t, printed, "vpc-cni v", "vpc-cni does not change")
	if blocked {
		require.Contains(t, printed, "drained/frozen")
	}
	if strings.Contains(printed, " blocks: ") {
		require.ErrorContains(t, err, "is blocked: fix what the checks above found")
		return
	}
	require.NoError(t, err, printed)

	// The command prints the same preview, and rejects impossible upgrades.
	r := drover(t, "upgrade", "demo", "--to", "1.37-1", "--dry-run")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, strings.Split(printed, "\n")[:3], strings.Split(r.Stdout, "\n")[:3])
	require.Contains(t, drover(t, "upgrade", "demo", "--to", "1.36-1", "--dry-run").Stdout, "there is nothing to upgrade")
	require.Contains(t, drover(t, "upgrade", "demo", "--to", "9.99-1", "--dry-run").Stderr, "there is no release releases/9.99-1.yaml")
	require.Contains(t, drover(t, "upgrade", "demo", "--rollback", "--dry-run").Stderr, "this cluster has no upgrade")
}

// A requested upgrade and its rollback, of a cluster with one pool, with the deployed state machine.
func TestUpgrade(t *testing.T) {
	needAccount(t)
	ok(t, "apply", "examples/releases/1.35-1.yaml")
	ok(t, "apply", "examples/releases/1.36-1.yaml")
	spec := example(t, "clusters/minimal.yaml", append([]string{`name: "1.36-1"`, `name: "1.35-1"`}, withAccess...)...)
	ok(t, "apply", clitest.Write(t, "minimal.yaml", spec), "--watch")

	// unchanged calls do, and fails if do changes AWS or the cluster's objects in the state bucket. The sweep may run at the same time.
	unchanged := func(t *testing.T, do func()) {
		t.Helper()
		require.NoError(t, cloud.Settle(t.Context()))
		state, mark := stateObjects(t, "minimal"), cloud.Calls.Mark()
		do()
		for _, call := range cloud.Calls.Since(mark) {
			byDrover := strings.Contains(call.Caller, ":assumed-role/"+names.Prefix)
			require.False(t, call.Mutating && !byDrover, "%s called %s %s", call.Caller, call.Service, call.Action)
		}
		require.Equal(t, state, stateObjects(t, "minimal"))
	}
	versions := func(t *testing.T) cli.ClusterVersions {
		t.Helper()
		var fleet []cli.ClusterVersions
		require.NoError(t, json.Unmarshal([]byte(ok(t, "versions", "-o", "json")), &fleet))
		for _, v := range fleet {
			if v.Cluster == "minimal" {
				return v
			}
		}
		require.Fail(t, "versions does not know the cluster")
		return cli.ClusterVersions{}
	}
	at := func(t *testing.T, release, version string) {
		t.Helper()
		require.NoError(t, cloud.Settle(t.Context()))
		v := versions(t)
		require.Equal(t, "Ready", v.Phase)
		require.JSONEq(t, `{"current":"`+release+`"}`, document(t, v.Release))
		require.JSONEq(t, `{"current":"`+version+`"}`, document(t, v.ControlPlane))
		require.Len(t, v.Pools, 1)
		require.Equal(t, version, v.Pools[0].KubernetesVersion)
		require.Len(t, v.Addons, 5)
		for _, a := range v.Addons {
			require.Empty(t, a.Target, a.Name)
			if a.Name == "kube-proxy" {
				require.Contains(t, a.Current, "v"+version+".")
			}
		}
		client, _, err := cloud.EKS.Administrator(names.EKSCluster("minimal"))
		require.NoError(t, err)
		nodes, err := account.PoolNodes(t.Context(), client, "workers")
		require.NoError(t, err)
		require.Len(t, nodes, 1, "the old node is deleted when the upgrade is done")
	}
	at(t, "1.35-1", "1.35")

	t.Run("refuses impossible requests", func(t *testing.T) {
		unchanged(t, func() {
			require.Contains(t, fails(t, "upgrade", "minimal", "--to", "1.36-1", "--rollback"), "--to and --rollback: give one of them")
			require.Contains(t, fails(t, "upgrade", "absent", "--to", "1.36-1"), "cluster absent does not exist in this account")
			require.Contains(t, fails(t, "upgrade", "minimal", "--rollback", "--dry-run"), "this cluster has no upgrade")
		})
		// The command rejects requests that the state machine would reject at once. A user would not expect such an error in the status.
		unchanged(t, func() {
			require.Contains(t, fails(t, "upgrade", "minimal", "--to", "9.99-1"),
				"the upgrade of minimal is refused: there is no release releases/9.99-1.yaml")
			require.Contains(t, fails(t, "upgrade", "minimal", "--rollback"),
				"the upgrade of minimal is refused: this cluster has no upgrade")
		})
	})
	t.Run("diff shows the upgrade to another release in the spec", func(t *testing.T) {
		unchanged(t, func() {
			next := clitest.Write(t, "minimal.yaml", strings.Replace(spec, `name: "1.35-1"`, `name: "1.36-1"`, 1))
			out := finds(t, "diff", next)
			for _, line := range []string{
				"minimal: no stack would change before the upgrade\n", "Upgrade minimal: release 1.35-1 (Kubernetes 1.35) → release 1.36-1 " +
					"(Kubernetes 1.36)\n",
				"  begins: at once; checks run first\n", "  1. control plane to 1.36\n", "  3. nodes to the images of the release: workers\n",
				": drover upgrade minimal --to 1.36-1 --dry-run\n",
			} {
				require.Contains(t, out, line)
			}
			var d struct {
				Upgrade struct {
					Begins string
					Steps  []string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(finds(t, "diff", next, "-o", "json")), &d))
			require.Equal(t, "Now", d.Upgrade.Begins)
			require.Len(t, d.Upgrade.Steps, 3)
			paused := clitest.Write(t, "minimal.yaml", strings.NewReplacer(`name: "1.35-1"`, `name: "1.36-1"`, "spec:\n", "spec:\n  paused: true\n").
				Replace(spec))
			require.Contains(t, finds(t, "diff", paused), "  1. control plane to 1.36\n")
			require.Contains(t, finds(t, "diff", paused), "note: spec.paused is true")
			missing := clitest.Write(t, "minimal.yaml", strings.Replace(spec, `name: "1.35-1"`, `name: "9.99-1"`, 1))
			require.Contains(t, fails(t, "diff", missing), "there is no release releases/9.99-1.yaml")
		})
	})
	t.Run("a dry run changes nothing", func(t *testing.T) {
		unchanged(t, func() {
			out := ok(t, "upgrade", "minimal", "--to", "1.36-1", "--dry-run")
			require.Contains(t, out, "minimal: release 1.35-1 (Kubernetes 1.35) → release 1.36-1 (Kubernetes 1.36)")
			require.Contains(t, out, "  3. nodes to the images of the release: at least 1m55s\n     pool workers: 1 nodes to ami-00000000000013601")
			require.Regexp(t, "passed: .*VolumeQuota, ClusterQuota, ", out)

			limit := cloud.Quotas.Limit(servicequotas.Clusters)
			cloud.Quotas.Set(servicequotas.Clusters, 1)
			out = ok(t, "upgrade", "minimal", "--to", "1.36-1", "--dry-run")
			cloud.Quotas.Set(servicequotas.Clusters, float64(limit))
			require.Regexp(t, `ClusterQuota.*Clusters \(L-1194D53C\): \d+ of 1 are used`, out)
		})
	})
	t.Run("--watch follows an upgrade until it ends", func(t *testing.T) {
		out := ok(t, "upgrade", "minimal", "--to", "1.36-1", "--watch")
		last := 0
		for _, line := range []string{
			"started the upgrade of cluster minimal: arn:aws:states:us-east-1:000000000000:execution:drover-upgrade:",
			"control plane to 1.36: running",
			"control plane to 1.36: done in ", "add-ons to the versions of the release: done in ", "nodes to the images of the release: done in ",
			"upgrade to 1.36-1 (Kubernetes 1.36) is Done: the cluster is at release 1.36-1 (Kubernetes 1.36)",
		} {
			require.Contains(t, out, line)
			require.GreaterOrEqual(t, strings.Index(out, line), last, out)
			last = strings.Index(out, line)
		}
		require.Contains(t, ok(t, "status", "minimal"),
			"upgrade Done: 1.35-1 (Kubernetes 1.35) → 1.36-1 (Kubernetes 1.36), requested by Command, ")
		at(t, "1.36-1", "1.36")
	})
	t.Run("a repeated upgrade starts no execution", func(t *testing.T) {
		started := len(cloud.StepFunctions.Executions())
		unchanged(t, func() {
			for _, arguments := range [][]string{{"--to", "1.36-1", "--watch"}, {"--to", "1.36-1"}} {
				out := ok(t, append([]string{"upgrade", "minimal"}, arguments...)...)
				require.Equal(t, "nothing to upgrade: the cluster is at release 1.36-1 (Kubernetes 1.36); nothing was started\n", out)
			}
		})
		require.Len(t, cloud.StepFunctions.Executions(), started)
		require.Contains(t, ok(t, "upgrade", "minimal", "--to", "1.36-1", "--dry-run"), "there is nothing to upgrade")
	})
	t.Run("--rollback starts with the nodes", func(t *testing.T) {
		unchanged(t, func() {
			out := ok(t, "upgrade", "minimal", "--rollback", "--dry-run")
			require.Contains(t, out, "minimal: release 1.36-1 (Kubernetes 1.36) → release 1.35-1 (Kubernetes 1.35)")
			require.Contains(t, out, "  1. nodes back to their previous images: at least 1m55s\n")
			require.Contains(t, out, ": at least 0s\n     the nodes stay: they were rolled back before the control plane\n")
			require.Equal(t, 1, strings.Count(out, "pool workers: 1 nodes to"), "they are replaced once")
		})
		require.Contains(t, ok(t, "upgrade", "minimal", "--rollback"), "follow it: drover status minimal")
		v := versions(t)
		for deadline := time.Now().Add(clitest.Patience); v.Due != "Running"; v = versions(t) {
			require.True(t, time.Now().Before(deadline), "the rollback is not in flight: %+v", v)
		}
		var waits strings.Builder
		require.NoError(t, cli.PrintBusy(t.Context(), &waits, cli.NewCell(cloud.Config(), "aws", account.ID), "minimal"))
		require.Contains(t, waits.String(), "An upgrade to release 1.35-1 (Kubernetes 1.35) is in flight (drover status minimal): this one "+
			"would wait for it.\n")
		require.Equal(t, "1.35-1", v.Release.Target)
		require.JSONEq(t, `{"current":"1.36","target":"1.35"}`, document(t, v.ControlPlane))
		// Nodes roll back first. They may have the previous image already.
		require.Equal(t, "ami-00000000000013501", cmp.Or(v.Pools[0].Target, v.Pools[0].Current))
		at(t, "1.35-1", "1.35")
		require.Contains(t, ok(t, "status", "minimal"), "upgrade Done: 1.36-1 (Kubernetes 1.36) → 1.35-1 (Kubernetes 1.35), "+
			"requested by Rollback, ")
		require.Contains(t, fails(t, "upgrade", "minimal", "--rollback", "--watch"), "was rolled back already")
	})
}

// stateObjects returns the ETags of a cluster's objects in the state bucket, by key.
func stateObjects(t *testing.T, cluster string) map[string]string {
	t.Helper()
	entries, err := cli.NewCell(cloud.Config(), "aws", account.ID).State.List(t.Context(), "")
	require.NoError(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		if strings.Contains(entry.Key, cluster) {
			found[entry.Key] = entry.ETag
		}
	}
	require.NotEmpty(t, found)
	return found
}
