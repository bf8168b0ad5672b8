package account

// Fault rules: their effect on real processes, and a cluster that converges in spite of them.

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// fault calls the control API, and removes all rules when the test ends.
func (w *world) fault(t *testing.T, method, path string, rules ...string) faults.State {
	t.Helper()
	t.Cleanup(func() { w.exclusively(func() {}) })
	request, err := http.NewRequestWithContext(t.Context(), method, w.URL()+faults.Path+path, strings.NewReader(strings.Join(rules, "\n")))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
	var state faults.State
	require.NoError(t, json.Unmarshal(body, &state))
	return state
}

// exclusively runs f while no other parallel test has rules, and removes the rules that f leaves.
func (w *world) exclusively(f func()) {
	w.faulting.Lock()
	defer w.faulting.Unlock()
	defer w.Faults.Clear()
	f()
}

// struckBy waits until a rule has struck.
func (w *world) struckBy(t *testing.T, kind faults.Kind, n int) {
	t.Helper()
	w.until(t, func() bool { return w.Faults.Struck()[kind] >= n }, func() string { return fmt.Sprintf("%v", w.Faults.List(time.Now())) })
}

func (w *world) converge(t *testing.T, cluster string) (execution string) {
	t.Helper()
	out, err := sfn.NewFromConfig(w.Config()).StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String("arn:aws:states:" + w.Region() + ":" + ID + ":stateMachine:drover-converge"),
		Input:           aws.String(`{"cluster":"` + cluster + `"}`),
	})
	require.NoError(t, err)
	return *out.ExecutionArn
}

func TestFaultsByRule(t *testing.T) {
	const name = "struck"
	cloud.retire(t, name)
	spec := specOf(name, pool("one", 1))
	cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))

	t.Run("replaces a lost instance", func(t *testing.T) {
		before := cloud.nodeNames(t, name)
		cloud.fault(t, "PUT", "?seed=1", "instance-lost cluster="+name+" pool=one count=1")
		cloud.until(t, func() bool {
			now := cloud.nodeNames(t, name)
			return len(now) == 1 && now[0] != before[0] && cloud.readyNodes(t, name) == 1
		}, func() string { return fmt.Sprint(before, cloud.nodeNames(t, name), cloud.Faults.List(time.Now())) })
		require.Equal(t, 1, cloud.Faults.Struck()[faults.InstanceLost])
		cloud.settle(t)
	})
	t.Run("keeps data while an API server is down", func(t *testing.T) {
		out, err := eks.NewFromConfig(cloud.Config()).DescribeCluster(t.Context(), &eks.DescribeClusterInput{
			Name: aws.String(names.EKSCluster(name)),
		})
		require.NoError(t, err)
		at, err := url.Parse(*out.Cluster.Endpoint)
		require.NoError(t, err)
		answers := func() bool {
			c, err := net.DialTimeout("tcp", at.Host, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}
		require.True(t, answers())
		nodes := cloud.nodeNames(t, name)
		cloud.fault(t, "PUT", "?seed=1", "api-server-down=2s cluster="+name+" count=1")
		cloud.until(t, func() bool { return !answers() }, func() string { return "the API server still answers" })
		cloud.until(t, answers, func() string { return "the API server does not come back" })
		cloud.until(t, func() bool { return cloud.serving(t, name) }, func() string { return "the API server is not ready" })
		require.Equal(t, nodes, cloud.nodeNames(t, name))
	})
	t.Run("kills an execution", func(t *testing.T) {
		cloud.fault(t, "PUT", "?seed=1", "kill machine=converge cluster="+name+" count=1")
		execution := cloud.converge(t, name)
		cloud.struckBy(t, faults.Kill, 1)
		cloud.settle(t)
		out, err := sfn.NewFromConfig(cloud.Config()).DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		require.NoError(t, err)
		require.Equal(t, "ABORTED", string(out.Status))
	})
	t.Run("kills a function after its second call", func(t *testing.T) {
		state := cloud.fault(t, "PUT", "?seed=1", "crash-after=2 caller=report count=1")
		require.Equal(t, "crash-after=2 caller=report count=1", state.Rules[0].Rule)
		mark := cloud.Calls.Mark()
		execution := cloud.converge(t, name)
		cloud.struckBy(t, faults.CrashAfter, 1)
		cloud.settle(t)
		out, err := sfn.NewFromConfig(cloud.Config()).DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		require.NoError(t, err)
		require.Equal(t, "SUCCEEDED", string(out.Status), "it was tried again")
		calls, crashed := 0, 0
		for _, call := range cloud.Calls.Since(mark) {
			if strings.Contains(call.Caller, "/"+names.Role("us-east-1", "report")+"/") && crashed == 0 {
				calls++
				if call.ErrorCode == "ServiceUnavailable" {
					crashed = calls
				}
			}
		}
		require.Equal(t, 2, crashed)
	})
	t.Run("removes rules", func(t *testing.T) {
		require.Empty(t, cloud.fault(t, "DELETE", "").Rules)
	})
}

// serving reports whether a cluster's API server answers its administrator.
func (w *world) serving(t *testing.T, cluster string) bool {
	client, _, err := w.EKS.Administrator(names.EKSCluster(cluster))
	require.NoError(t, err)
	_, err = client.Resource(nodeResource).List(t.Context(), metav1.ListOptions{})
	return err == nil
}

// badDay has kinds of faults that pass within seconds or with the next sweep, a few times each.
var badDay = []string{
	"throttle service=cloudformation caller=change p=0.2 count=3",
	"throttle service=s3 caller=plan p=0.1 count=2",
	"error=InternalError status=500 service=s3 caller=report p=0.2 count=2",
	"error=ServiceUnavailable status=503 caller=stackevent p=0.2 count=2",
	"latency=150ms caller=plan p=0.1",
	"conflict caller=plan p=0.2 count=2",
	"conflict=412 caller=change p=0.3 count=2",
	"crash-before caller=change p=0.1 count=2",
	"crash-after caller=change p=0.1 count=2",
	"crash-after caller=join p=0.1 count=1",
	"drop rule=drover-stack-done p=0.5 count=2",
	"duplicate p=0.3 count=5",
	"reorder=300ms p=0.3 count=5",
	"api-server-down=1s p=0.2 count=1",
	"instance-lost p=0.2 count=1",
	"kill machine=converge p=0.05 count=1",
}

// The same faults with several seeds: a cluster that is created and then changed converges to its spec. Calls that
// fail too often make drover pause for a minute, so that other tests run at the same time: every fault is one of this
// cluster.
func TestConvergeWithFaults(t *testing.T) {
	t.Parallel()
	const name = "unlucky"
	cloud.retire(t, name)
	var rules []string
	for _, rule := range badDay {
		rules = append(rules, rule+" cluster="+name)
	}
	spec := specOf(name, pool("one", 1))
	total := map[faults.Kind]int{}
	for seed := 1; seed <= 2; seed++ {
		var version string
		cloud.exclusively(func() {
			began := time.Now()
			cloud.fault(t, "PUT", fmt.Sprintf("?seed=%d", seed), rules...)
			spec["spec"].(object)["tags"] = object{"round": fmt.Sprint(seed)}
			version = cloud.upload(t, name, text(t, spec))
			converged := func() bool {
				s, err := cloud.state.Status(t.Context(), name)
				return err == nil && s.Status.PlannedVersion == version && s.Status.Phase == status.Ready
			}
			stopSweeping := sweeping(t)
			defer stopSweeping()
			hands := 0
			cloud.until(t, func() bool {
				running := slices.ContainsFunc(cloud.sinceOf(name, "drover-converge", began), func(x stepfunctions.Execution) bool {
					return x.Status == "RUNNING"
				})
				if !running && !converged() && time.Since(began) > 5*time.Second { // the upload's event has arrived
					cloud.converge(t, name) // as an operator who resumes after a killed execution
					hands++
				}
				return !running && converged()
			}, func() string { return fmt.Sprint(cloud.executions(name), cloud.Faults.List(time.Now())) })
			for kind, n := range cloud.Faults.Struck() {
				total[kind] += n
			}
			t.Logf("seed %d: %.1f s, %d by hand, %v", seed, time.Since(began).Seconds(), hands, cloud.Faults.Struck())
		})
		cloud.quiet(t, name)
		require.Equal(t, version, tagsOf(stackOf(t, name, "pool-one"))[names.TagSpecVersion])
		cloud.until(t, func() bool { return cloud.readyNodes(t, name) == 1 }, func() string { return fmt.Sprint(cloud.nodeNames(t, name)) })
	}
	require.GreaterOrEqual(t, len(total), 9, "most of the %d kinds: %v", len(faults.Kinds()), total)
}
