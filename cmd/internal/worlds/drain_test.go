package worlds

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// withAccess replaces text in an example to give the account's administrator read access to the cluster.
var withAccess = []string{"  pools:\n", `  controlPlane:
    access:
      - principalARN: arn:aws:iam::000000000000:user/admin
        policies:
          - name: AmazonEKSAdminViewPolicy
  pools:
`}

// recorder records the requests to an API server.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.requests = append(r.requests, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Previews of drains, rolls and upgrades, and a requested drain and roll, on the demo cluster with workloads.
func TestDrain(t *testing.T) {
	needAccount(t)
	demo := example(t, "clusters/demo.yaml")
	ok(t, "apply", "examples/releases/1.36-1.yaml")
	ok(t, "apply", clitest.Write(t, "demo.yaml", demo), "--watch")
	client, kubeconfig, err := cloud.EKS.Administrator(names.EKSCluster("demo"))
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*clitest.Patience)
	defer cancel()
	run, err := workload.Connect(config)
	require.NoError(t, err)
	watcher, err := run.Watch(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, watcher.Close()) }()
	web := workload.Workload{
		Namespace: "drained", Name: "web", Kind: workload.Deployment, Replicas: 12, MaxUnavailable: "1", Grace: 20 * time.Second,
		EndsAfter: 100 * time.Millisecond,
	}
	frozen := workload.Workload{Namespace: "drained", Name: "frozen", Kind: workload.Deployment, Replicas: 12, MaxUnavailable: "0"}
	agent := workload.Workload{Namespace: "drained", Name: "agent", Kind: workload.DaemonSet}
	require.NoError(t, run.Deploy(ctx, web, frozen, agent))
	require.NoError(t, watcher.Wait(ctx, "the workloads", func() bool { return watcher.Settled(web, frozen) }))
	require.NoError(t, run.Budgeted(ctx, web, frozen))
	instances, err := account.PoolNodes(ctx, client, "workers")
	require.NoError(t, err)
	require.Len(t, instances, 2)
	var node string
	for name := range instances {
		if node == "" || len(watcher.On("drained", name)) > len(watcher.On("drained", node)) {
			node = name
		}
	}

	t.Run("CheckRolled finds nodes that were not replaced", func(t *testing.T) {
		require.ErrorContains(t, cloud.CheckRolled(ctx, client, "workers", ec2.ImageID("1.36", "amd64"), instances), "is still there")
		require.ErrorContains(t, cloud.CheckRolled(ctx, client, "workers", ec2.RebuiltImageID("1.36", "amd64"), nil), "on image "+
			ec2.ImageID("1.36", "amd64"))
		require.ErrorContains(t, cloud.CheckRolled(ctx, client, "absent", ec2.ImageID("1.36", "amd64"), instances), "has 0 nodes after the roll")
		require.NoError(t, cloud.CheckRolled(ctx, client, "workers", ec2.ImageID("1.36", "amd64"), map[string]string{"a": "i-1", "b": "i-2"}))
	})
	t.Run("a dry run reports a missing access entry", func(t *testing.T) {
		require.Contains(t, drover(t, "apply", "examples/releases/1.37-1.yaml").Stdout, "uploaded release 1.37-1")
		require.NoError(t, cloud.Settle(ctx))
		var entries []string
		for _, arguments := range [][]string{{"drain", "demo", node}, {"roll", "demo", "workers"}, {"upgrade", "demo", "--to", "1.37-1"}} {
			r := drover(t, append(arguments, "--dry-run")...)
			require.Equal(t, 2, r.Code, "nothing blocks, and not everything was seen: %s%s", r.Stdout, r.Stderr)
			before, entry, found := strings.Cut(r.Stderr, "\n\n")
			require.True(t, found, r.Stderr)
			require.Contains(t, before, "cluster demo does not allow you to read its nodes, pods and disruption budgets (")
			require.Contains(t, before, "You are "+cloud.Principal()+". drover itself is not affected")
			entries = append(entries, entry)
			if arguments[0] != "upgrade" {
				require.Empty(t, r.Stdout)
				continue
			}
			require.NotContains(t, r.Stdout, "blocks")
			require.Regexp(t, `\d+ of \d+ checks ran, `, r.Stdout)
			require.Regexp(t,
				`skipped, because the cluster does not let you read it: NodesReady, `+
					`.*BudgetsAllow.*; ControlPlaneHealthy and SurgeCapacity used data of AWS only`, r.Stdout)
			require.Contains(t, r.Stdout, "  3. nodes to the images of the release: at least ")
			require.Contains(t, r.Stdout, "and pods leave at once: they could not be read")
		}
		require.Equal(t, []string{cli.AccessEntry(cloud.Principal())}, slices.Compact(entries))
	})
	ok(t, "apply", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml")+cli.AccessLine(cloud.Principal())+"\n"), "--watch")
	t.Run("kubeconfig", signIn)

	requirePreview := func(t *testing.T, out string) {
		t.Helper()
		require.Contains(t, out, "A dry run: nothing is changed.")
		require.Contains(t, out, "node "+node+" of pool workers, instance "+instances[node])
		for _, pod := range watcher.On("drained", node) {
			require.Contains(t, out, "drained/"+pod)
		}
		require.Regexp(t, `drained/frozen-\S+ +30s +BLOCKED: its disruption budget allows no disruption now \(drained/frozen\)`, out)
		require.Regexp(t, `drained/web-\S+ +20s +leaves at once`, out)
		require.Regexp(t, `drained/web-\S+ +20s +leaves in its turn, under the disruption budget drained/web`, out)
		require.Regexp(t, `drained/agent-\S+ +30s +stays: a DaemonSet's`, out)
		require.Contains(t, out, "The drain would wait for what blocks: by the pool's policy as long as that takes.")
	}
	t.Run("a dry run only reads", func(t *testing.T) {
		seen, mark := &recorder{}, cloud.Calls.Mark()
		watched := rest.CopyConfig(config)
		watched.WrapTransport = seen.wrap
		api, err := kube.Connect(watched)
		require.NoError(t, err)
		cell := cli.NewCell(cloud.Config(), "aws", account.ID)
		var out bytes.Buffer
		require.NoError(t, cli.PreviewDrain(ctx, &out, api, cell, "demo", "", node))
		requirePreview(t, out.String())
		require.NoError(t, cli.PreviewDrain(ctx, &out, api, cell, "demo", "workers", ""))
		require.NotEmpty(t, seen.requests)
		for _, request := range seen.requests {
			require.Regexp(t, "^GET ", request)
		}
		for _, call := range cloud.Calls.Since(mark) {
			require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
		}
	})
	t.Run("the commands", func(t *testing.T) {
		mark := cloud.Calls.Mark()
		requirePreview(t, ok(t, "drain", "demo", node, "--dry-run"))
		out := ok(t, "roll", "demo", "workers", "--dry-run")
		requirePreview(t, out)
		for name := range instances {
			require.Contains(t, out, "node "+name)
		}
		require.Contains(t, out, "A roll of pool workers replaces 2 nodes, 1 at a time: its update policy allows 0 unavailable nodes, and "+
			"1 additional ones. It would wait for what blocks.")
		requirePreview(t, ok(t, "drain", "demo", instances[node], "--dry-run"))
		require.Contains(t, fails(t, "drain", "demo", "absent", "--dry-run"), "cluster demo has no node absent")
		for _, arguments := range [][]string{
			{"demo", "absent"}, {"absent", node}, {"demo", "i-00000000000000000"}, {"absent", instances[node], "--dry-run"},
		} {
			require.Contains(t, fails(t, append([]string{"drain"}, arguments...)...), "no pool of cluster "+arguments[0]+" has a node "+arguments[1]+
				": `kubectl get nodes` names them")
		}
		r := drover(t, "roll", "demo", "absent", "--dry-run")
		require.Equal(t, 1, r.Code)
		require.Equal(t, "A roll would be refused now: nothing was rolled: cluster demo has no pool absent: its pools are workers, spot\n",
			r.Stdout)
		require.Contains(t, r.Stderr, "cluster demo has no node of a pool absent")
		require.Contains(t, fails(t, "roll", "absent", "workers", "--dry-run"), "cluster absent does not exist")
		require.Contains(t, fails(t, "drain", "absent", node, "--dry-run"), "drover-absent: the EKS cluster does not exist")
		for _, call := range cloud.Calls.Since(mark) {
			require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
		}
	})
	t.Run("a blocked upgrade", func(t *testing.T) { previewAnUpgrade(ctx, t, config, true) })
	t.Run("a dry run prints the least time if no pod blocks", func(t *testing.T) {
		require.NoError(t, run.Remove(ctx, frozen))
		on := 0
		for _, pod := range watcher.On("drained", node) {
			if len(pod) > 4 && pod[:4] == "web-" {
				on++
			}
		}
		require.NotZero(t, on)
		// The budget allows one eviction at a time.
		require.Contains(t, ok(t, "drain", "demo", node, "--dry-run"), "Least time: "+(time.Duration(on)*20*time.Second).String()+",")
		// The first node boots before a drain starts. The second node boots during the drain of the node with more pods.
		less := time.Duration(web.Replicas-on) * 20 * time.Second
		more := time.Duration(on) * 20 * time.Second
		const boot = 55 * time.Second
		require.Contains(t, ok(t, "roll", "demo", "workers", "--dry-run"), "Least time: "+(boot+max(boot, more)+less).String()+
			", when a node takes 55s until it is Ready")
	})
	t.Run("an upgrade that is not blocked", func(t *testing.T) { previewAnUpgrade(ctx, t, config, false) })
	t.Run("a requested drain", func(t *testing.T) {
		watcher.Forget()
		out := ok(t, "drain", "demo", instances[node], "--watch")
		require.Contains(t, out, ":execution:drover-drain-node:")
		require.Regexp(t, "node "+node+` has been drained: \d+ pods were evicted`, out)
		require.Contains(t, out, "kubectl uncordon "+node)
		require.NoError(t, cloud.Settle(ctx))
		drains := slices.DeleteFunc(cloud.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
			return x.MachineName != "drover-drain-node"
		})
		require.NotEmpty(t, drains)
		last := drains[len(drains)-1]
		require.Contains(t, last.Input, node)
		require.Equal(t, "SUCCEEDED", last.Status)
		remaining := slices.DeleteFunc(watcher.On("drained", node), func(pod string) bool { return pod[:4] != "web-" })
		require.Empty(t, remaining)
		_, least := watcher.Healthy("drained", "web")
		require.GreaterOrEqual(t, least, web.Replicas-1)
		require.Contains(t, ok(t, "drain", "demo", node, "--dry-run"), "cordoned already: 0 of ")
		require.NoError(t, run.Remove(ctx, web, agent))
		require.NoError(t, run.Reset(ctx, true, node))
	})
	t.Run("a refused roll starts no execution", func(t *testing.T) {
		ok(t, "apply", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "spec:\n", "spec:\n  paused: true\n")))
		require.NoError(t, cloud.Settle(ctx))
		mark := cloud.Calls.Mark()
		require.Contains(t, fails(t, "roll", "demo", "workers"),
			"nothing was rolled: cluster demo is paused: spec.paused is true; upload its spec with paused: false, then roll again")
		require.Contains(t, fails(t, "converge", "demo"), "cluster demo is paused: spec.paused is true; upload its spec with paused: false")
		require.Contains(t, fails(t, "roll", "absent", "workers"), "cluster absent does not exist in this account")
		require.Contains(t, fails(t, "converge", "absent"), "cluster absent does not exist in this account")
		for _, call := range cloud.Calls.Since(mark) {
			if !strings.Contains(call.Caller, ":assumed-role/"+names.Prefix) { // drover itself may still report the pause
				require.False(t, call.Mutating, "%s %s", call.Service, call.Action)
			}
		}
		ok(t, "apply", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml")+cli.AccessLine(cloud.Principal())+"\n"), "--watch")
		require.Contains(t, fails(t, "roll", "demo", "absent"),
			"nothing was rolled: cluster demo has no pool absent: its pools are workers, spot")
	})
	t.Run("converging an unchanged cluster", func(t *testing.T) {
		require.Contains(t, ok(t, "converge", "demo"), "nothing differs: cluster demo matches its spec")
	})
	t.Run("a roll", func(t *testing.T) {
		rolling, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		defer cancel()
		out := ok(t, "roll", "demo", "workers", "--watch")
		require.Contains(t, out,
			"started the roll of pool workers of cluster demo: arn:aws:states:us-east-1:000000000000:execution:drover-converge:")
		require.Regexp(t, `converge    \S+: started: roll workers\n`, out)
		require.Regexp(t, `drain-node  i-\S+: started: the instance is at its terminate hook\n`, out)
		require.Regexp(t, `stack       pool-workers: UPDATE_COMPLETE\n`, out)
		require.Contains(t, out, "every node of pool workers is replaced")
		require.NoError(t, cloud.AwaitRolled(rolling, client, "workers", ec2.ImageID("1.36", "amd64"), instances),
			"all of them have left")
		require.Contains(t, ok(t, "status", "demo"), "demo is Ready")
	})
	t.Run("the history and the logs", func(t *testing.T) { showHistory(t) })
	t.Run("deleting the cluster", func(t *testing.T) {
		// Without this, the add-ons' budgets block the last pods for five minutes.
		budgets := client.Resource(schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}).
			Namespace("kube-system")
		require.NoError(t, budgets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		out := ok(t, "delete", "demo", "--watch")
		require.Contains(t, out, "/clusters/demo.yaml")
		require.Contains(t, out, "demo is Deleting: ")
		require.Contains(t, out, "demo is Deleted: the cluster is deleted")
		for _, stack := range cloud.CloudFormation.Stacks() {
			require.NotContains(t, stack.StackName, "drover-demo-", "%s", stack.StackStatus)
		}
		require.Contains(t, fails(t, "delete", "demo"), "was deleted before: the cluster is Deleted")
		require.Contains(t, ok(t, "status", "demo"), "demo is Deleted")
	})
}
