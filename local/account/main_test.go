package account

// The account that all tests of this package share, because the S3 gateway can run once in a process. It equals that of
// make run: the compiled functions as processes, the synthesized stack, real Kubernetes control planes.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// world is the account with drover, and what tests observed of it.
type world struct {
	*Account
	root  string
	specs *s3.Bucket
	state *store.State

	// faulting is held while a test that runs with others has rules of faults.
	faulting sync.Mutex

	mu sync.Mutex
	// onCall and onDelivery intercept calls and deliveries for a test. They may be nil.
	onCall     func(accessKey string, call endpoint.Call) error
	onDelivery func(rule string, e eventbridge.Event, deliver func())
	reports    []lambda.Report
	notices    []eventbridge.Event // on drover's bus
}

var cloud *world

// patience is the timeout of operations that take seconds, or half a minute for a roll. It suffices on a machine that
// has a third of the time for them.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	w := &world{}
	if w.root, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	bin, assembly := kubernetes.BinDir(w.root), filepath.Join(w.root, "build", "cdk.out")
	if missing := kubernetes.Missing(bin); len(missing) > 0 {
		return 1, fmt.Errorf("%s lacks %s: run make local first", bin, strings.Join(missing, ", "))
	}
	if _, err := os.Stat(filepath.Join(assembly, names.CellStack+".template.json")); err != nil {
		return 1, fmt.Errorf("drover is not synthesized for this machine: run make local first: %w", err)
	}
	dir, err := os.MkdirTemp("", "drover-account-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	// The machine's proxies are for other hosts.
	os.Setenv("NO_PROXY", "127.0.0.1")
	w.Account, err = Start(Options{Dir: dir, KubernetesBin: bin, Speed: 300, Intercept: w.deliver, OnEvent: w.recordNotice})
	if err != nil {
		return 1, err
	}
	defer w.Close()
	struck := w.Endpoint.Intercept
	w.Endpoint.Intercept = func(r *http.Request, call endpoint.Call) error {
		w.mu.Lock()
		f := w.onCall
		w.mu.Unlock()
		signature, err := iam.ParseSignature(r)
		if err == nil && f != nil {
			err = f(signature.AccessKeyID, call)
		}
		if err != nil {
			return err
		}
		return struck(r, call)
	}
	w.Lambda.Observe = func(r lambda.Report) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.Deploy(ctx, assembly); err != nil {
		return 1, err
	}
	client := s3.NewClient(w.Config())
	w.specs = s3.NewBucket(client, names.SpecsBucket(ID, w.Region()))
	w.state = store.NewState(s3.NewBucket(client, names.StateBucket(ID, w.Region())), store.Silent, time.Now)
	release, err := os.ReadFile(filepath.Join(w.root, "examples", "releases", "1.36-1.yaml"))
	if err != nil {
		return 1, err
	}
	if _, err := w.specs.Put(ctx, names.ReleaseSpec("1.36-1"), release); err != nil {
		return 1, err
	}
	cloud = w
	if code = m.Run(); code != 0 {
		return code, nil
	}
	return 0, w.nobodyWasDenied()
}

// nobodyWasDenied returns an error if a call of drover was denied in the whole run.
func (w *world) nobodyWasDenied() error {
	var denied []string
	for _, call := range w.Calls.Since(0) {
		refused := strings.Contains(call.ErrorCode, "AccessDenied") || strings.Contains(call.ErrorCode, "Unauthorized") ||
			strings.Contains(call.ErrorCode, "Unsupported")
		if refused && strings.Contains(call.Caller, ":assumed-role/") && !strings.HasSuffix(call.Caller, "/"+intruder) {
			denied = append(denied, fmt.Sprintf("%s %s %s: %s", call.Caller, call.Service, call.Action, call.Error))
		}
	}
	if len(denied) > 0 {
		return fmt.Errorf("roles lack permissions:\n%s", strings.Join(denied, "\n"))
	}
	return nil
}

// recordNotice records the events on drover's bus.
func (w *world) recordNotice(bus string, e eventbridge.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bus == names.Bus {
		w.notices = append(w.notices, e)
	}
}

// deliver is the account's Intercept.
func (w *world) deliver(rule string, e eventbridge.Event, deliver func()) {
	w.mu.Lock()
	f := w.onDelivery
	w.mu.Unlock()
	if f == nil {
		deliver()
		return
	}
	f(rule, e, deliver)
}

// calls sets the interception of calls until the test ends.
func (w *world) calls(t *testing.T, f func(accessKey string, call endpoint.Call) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCall = f
	t.Cleanup(func() { w.calmCalls() })
}

func (w *world) calmCalls() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCall = nil
}

// deliveries sets the interception of deliveries until the test ends.
func (w *world) deliveries(t *testing.T, f func(rule string, e eventbridge.Event, deliver func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onDelivery = f
	t.Cleanup(func() { w.calmDeliveries() })
}

func (w *world) calmDeliveries() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onDelivery = nil
}

// invocations returns the number of a step's invocations that ended.
func (w *world) invocations(step string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.reports {
		if r.Function == names.Function(step) {
			n++
		}
	}
	return n
}

// errors returns the number of a step's invocations that failed. The alarm on its errors counts them.
func (w *world) errors(step string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.reports {
		if r.Function == names.Function(step) && r.Failed {
			n++
		}
	}
	return n
}

// upload uploads the spec of a cluster and returns its version.
func (w *world) upload(t *testing.T, cluster, spec string) string {
	t.Helper()
	_, err := w.specs.Put(t.Context(), names.ClusterSpec(cluster), []byte(spec))
	require.NoError(t, err)
	object, err := w.specs.Get(t.Context(), names.ClusterSpec(cluster), 1<<20)
	require.NoError(t, err)
	return object.Version
}

// await waits until a cluster's status satisfies a condition.
func (w *world) await(t *testing.T, cluster, what string, reached func(status.Status) bool) status.Status {
	t.Helper()
	return w.awaitWithin(t, patience, cluster, what, reached)
}

func (w *world) awaitWithin(t *testing.T, within time.Duration, cluster, what string, reached func(status.Status) bool) status.Status {
	t.Helper()
	var last *status.Cluster
	w.untilWithin(t, within, func() bool {
		var err error
		last, err = w.state.Status(t.Context(), cluster)
		return err == nil && reached(last.Status)
	}, func() string {
		text, _ := json.MarshalIndent(last, "", "  ")
		return fmt.Sprintf("%s is not %s:\n%s\n%s", cluster, what, text, w.executions(cluster))
	})
	return last.Status
}

// until waits for a condition. A timeout reports what seen returns.
func (w *world) until(t *testing.T, done func() bool, seen func() string) {
	t.Helper()
	w.untilWithin(t, patience, done, seen)
}

func (w *world) untilWithin(t *testing.T, within time.Duration, done func() bool, seen func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); !done(); {
		if time.Now().After(deadline) {
			require.Fail(t, "out of patience", seen())
		}
		require.NoError(t, w.clock.Timer(t.Context(), 50*time.Millisecond))
	}
}

// executions lists the executions of a cluster, one a line.
func (w *world) executions(cluster string) string {
	var b strings.Builder
	for _, x := range w.StepFunctions.Executions() {
		if concerns(x, cluster) {
			fmt.Fprintf(&b, "%s %s %s %s %s\n%s\n", x.MachineName, x.Name, x.Status, x.Error, x.Cause, x.Input)
		}
	}
	return b.String()
}

// ready waits until a cluster is Ready at a version of its spec and idle.
func (w *world) ready(t *testing.T, cluster, version string) status.Status {
	t.Helper()
	s := w.rest(t, cluster, version)
	require.Equal(t, status.Ready, s.Phase, "%s\n%s", s.Message, w.executions(cluster))
	return s
}

// rest waits until a version of a cluster's spec has a verdict and the cluster is idle.
func (w *world) rest(t *testing.T, cluster, version string) status.Status {
	t.Helper()
	s := w.await(t, cluster, "idle", func(s status.Status) bool {
		return s.PlannedVersion == version && (s.Phase == status.Ready || s.Phase == status.Failed || s.Phase == status.Stopped)
	})
	w.quiet(t, cluster)
	return s
}

// settle waits until the whole account is idle.
func (w *world) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, w.Settle(ctx))
}

// quiet waits until no execution for a cluster runs.
func (w *world) quiet(t *testing.T, cluster string) {
	t.Helper()
	w.until(t, func() bool {
		return !slices.ContainsFunc(w.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
			return x.Status == "RUNNING" && concerns(x, cluster)
		})
	}, func() string { return w.executions(cluster) })
}

// concerns reports whether an execution was started for a cluster, by its name or by that of one of its groups.
func concerns(x stepfunctions.Execution, cluster string) bool {
	return strings.Contains(x.Input, `"`+cluster+`"`) || strings.Contains(x.Input, names.Group(cluster, ""))
}

// mutations returns the successful mutating calls of drover's functions since a mark. It leaves out the report of the cell: the function
// fleet writes it some time after a notice, which may be from before the mark.
func (w *world) mutations(mark int) []string {
	report := names.CellReport(names.Cell(ID, "us-east-1"))
	list := []string{}
	for _, call := range w.Calls.Since(mark) {
		if strings.HasSuffix(call.Resource, "/"+report) {
			continue
		}
		if call.Mutating && call.Error == "" && strings.Contains(call.Caller, ":assumed-role/"+names.Prefix) {
			list = append(list, call.Service+":"+call.Action+" "+call.Resource)
		}
	}
	return list
}

// since returns the executions of a machine that started after a time.
func (w *world) since(machine string, start time.Time) (list []stepfunctions.Execution) {
	for _, x := range w.StepFunctions.Executions() {
		if x.MachineName == machine && x.Started.After(start) {
			list = append(list, x)
		}
	}
	return list
}

// sinceOf returns those that were started for a cluster.
func (w *world) sinceOf(cluster, machine string, start time.Time) []stepfunctions.Execution {
	return slices.DeleteFunc(w.since(machine, start), func(x stepfunctions.Execution) bool { return !concerns(x, cluster) })
}

// endedExecutions returns them once they have ended. A late event may have started one just now.
func (w *world) endedExecutions(t *testing.T, cluster, machine string, start time.Time) (list []stepfunctions.Execution) {
	t.Helper()
	w.until(t, func() bool {
		list = w.sinceOf(cluster, machine, start)
		return !slices.ContainsFunc(list, func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" })
	}, func() string { return w.executions(cluster) })
	return list
}

// retire deletes a cluster's control plane after the test, without drover, because even an idle one needs processor
// time.
func (w *world) retire(t *testing.T, cluster string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		client, name := eks.NewFromConfig(w.Config()), aws.String(names.EKSCluster(cluster))
		_, err := client.UpdateClusterConfig(ctx, &eks.UpdateClusterConfigInput{Name: name, DeletionProtection: aws.Bool(false)})
		require.NoError(t, err)
		var missing *ekstypes.ResourceNotFoundException
		for !errors.As(err, &missing) { // EKS repeats the answer while the deletion is in flight
			var busy *ekstypes.ResourceInUseException
			if _, err = client.DeleteCluster(ctx, &eks.DeleteClusterInput{Name: name}); !errors.As(err, &busy) && !errors.As(err, &missing) {
				require.NoError(t, err)
			}
			require.NoError(t, w.clock.Timer(ctx, 100*time.Millisecond))
		}
	})
}
