// Package deploy tests the deployment and the removal of drover in a local account, with the commands that a user runs: the pinned CDK
// command behind cmd/deploy, and drover. It needs what `make local` builds.
package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/names"
)

// world is an account without drover, and the commands.
type world struct {
	t           *testing.T
	environment map[string]string
	cfg         aws.Config
	root        string
	// deploy and verify are the commands.
	deploy, verify string
	home, assembly string
	cloud          *cloudformation.Client
	machines       *sfn.Client
}

// commands builds the commands once for all accounts, and returns their folder. Debug information would double the time of linking.
var commands = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "drover-deploy-commands-"); err != nil {
		return "", err
	}
	built = dir
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", dir, "./cmd/deploy", "./cmd/verify")
	build.Dir = filepath.Join("..", "..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the commands: %w\n%s", err, out)
	}
	return dir, nil
})

// built is the folder of the commands. TestMain removes it.
var built string

// start starts an account. otherReadings are the open questions about AWS that the account does not read strictly: see facts.Parse.
func start(t *testing.T, otherReadings string) *world {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	assembly := filepath.Join(root, "build", "cdk.out")
	require.FileExists(t, filepath.Join(assembly, names.CellStack+".template.json"), "drover is not synthesized: run make local first")
	require.Empty(t, kubernetes.Missing(kubernetes.BinDir(root)), "programs of Kubernetes are missing: run make local first")
	require.DirExists(t, filepath.Join(root, "infra", "node_modules"), "the CDK command is not installed: run make node_modules first")
	dir, err := commands()
	require.NoError(t, err)
	environment := startAccount(t, accountOptions{KubernetesBin: kubernetes.BinDir(root), OtherReadings: otherReadings})
	cfg := configOf(environment)
	return &world{
		t: t, environment: environment, cfg: cfg, root: root, deploy: filepath.Join(dir, "deploy"), verify: filepath.Join(dir, "verify"),
		home: t.TempDir(), assembly: assembly, cloud: cloudformation.NewFromConfig(cfg), machines: sfn.NewFromConfig(cfg),
	}
}

// run runs a command with the credentials of the account's administrator, and returns its output and whether it succeeded.
func (w *world) run(program string, args ...string) (string, bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.root, &out, &out
	// No AWS configuration of this machine, and only the loopback network.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "AWS_EC2_METADATA_DISABLED=true", "CI=1", "YES=1",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1,localhost",
	}
	for key, value := range w.environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	err := cmd.Run()
	return out.String(), err == nil
}

// must runs a command that succeeds.
func (w *world) must(program string, args ...string) string {
	w.t.Helper()
	out, ok := w.run(program, args...)
	require.True(w.t, ok, "%s %s:\n%s", filepath.Base(program), strings.Join(args, " "), out)
	return out
}

func (w *world) drover(args ...string) string {
	w.t.Helper()
	return w.must(filepath.Join(w.root, "build", "drover"), args...)
}

func (w *world) up() string {
	w.t.Helper()
	return w.must(w.deploy, "deploy", "--approval", "never", "--app", w.assembly)
}

// stack describes a stack, or returns nil.
func (w *world) stack(name string) *types.Stack {
	w.t.Helper()
	out, err := w.cloud.DescribeStacks(w.t.Context(), &cloudformation.DescribeStacksInput{})
	require.NoError(w.t, err)
	for _, s := range out.Stacks {
		if aws.ToString(s.StackName) == name {
			return &s
		}
	}
	return nil
}

// changes are the times of the last operations on the stacks of clusters.
func (w *world) changes() map[string]time.Time {
	w.t.Helper()
	times := map[string]time.Time{}
	out, err := w.cloud.DescribeStacks(w.t.Context(), &cloudformation.DescribeStacksInput{})
	require.NoError(w.t, err)
	for _, s := range out.Stacks {
		if _, _, ok := names.SplitStack(aws.ToString(s.StackName)); ok {
			times[aws.ToString(s.StackName)] = aws.ToTime(s.CreationTime)
			if s.LastUpdatedTime != nil {
				times[aws.ToString(s.StackName)] = *s.LastUpdatedTime
			}
		}
	}
	return times
}

// The CDK command deploys drover. A failed first deployment is repeated. drover is removed and deployed again while a cluster runs, also
// during a roll.
func TestDeploy(t *testing.T) {
	t.Parallel()
	w := start(t, "")
	w.must(w.deploy, "bootstrap")

	// A name of the base stack is taken, so the first deployment fails after other resources exist.
	objects := s3.NewFromConfig(w.cfg, func(o *s3.Options) { o.UsePathStyle = true })
	bucket := names.StateBucket(account.ID, w.cfg.Region)
	_, err := objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket})
	require.NoError(t, err)
	out, ok := w.run(w.deploy, "deploy", "--approval", "never", "--app", w.assembly)
	require.False(t, ok)
	require.Contains(t, out, "run make deploy again")
	require.Equal(t, types.StackStatusRollbackComplete, w.stack(names.BaseStack).StackStatus)
	_, err = objects.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &bucket})
	require.NoError(t, err)

	// Then a name of the cell stack.
	queues := sqs.NewFromConfig(w.cfg)
	queue, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("drover-dead-letters")})
	require.NoError(t, err)
	out, ok = w.run(w.deploy, "deploy", "--approval", "never", "--app", w.assembly)
	require.False(t, ok)
	require.NotNil(t, w.stack(names.CellStack), out)
	require.Equal(t, types.StackStatusRollbackComplete, w.stack(names.CellStack).StackStatus)
	_, err = queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl})
	require.NoError(t, err)
	w.up()
	for _, name := range []string{names.BaseStack, names.CellStack} {
		require.True(t, aws.ToBool(w.stack(name).EnableTerminationProtection), name)
		_, err := w.cloud.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &name})
		require.ErrorContains(t, err, "TerminationProtection")
	}

	w.drover("apply", "examples/releases/1.36-1.yaml")
	example, err := os.ReadFile(filepath.Join(w.root, "examples", "clusters", "minimal.yaml"))
	require.NoError(t, err)
	spec := filepath.Join(t.TempDir(), "minimal.yaml")
	require.NoError(t, os.WriteFile(spec, append(example, "  deletionProtection: false\n"...), 0o644))
	w.drover("apply", spec, "--watch")
	before := w.changes()
	require.NotEmpty(t, before)
	out, ok = w.run(w.deploy, "destroy-all", "--app", w.assembly)
	require.False(t, ok)
	require.Contains(t, out, "clusters exist: minimal")

	require.Contains(t, w.must(w.deploy, "destroy", "--app", w.assembly), "these clusters stay and run without drover: minimal")
	require.Nil(t, w.stack(names.CellStack))
	require.NotNil(t, w.stack(names.BaseStack))
	require.Equal(t, before, w.changes(), "a removal changes no cluster")

	w.up()
	require.Contains(t, w.drover("status"), "minimal")
	require.Contains(t, w.drover("converge", "minimal", "--watch"), "nothing differs")
	require.Equal(t, before, w.changes(), "a deployment changes no cluster")
	// The functions still have access: they join and drain nodes.
	w.drover("roll", "minimal", "workers", "--watch")
	w.removeDuringARoll()

	w.drover("delete", "minimal", "--watch")
	w.must(w.deploy, "destroy-all", "--app", w.assembly)
	require.Nil(t, w.stack(names.BaseStack))
	for _, bucket := range []string{names.SpecsBucket(account.ID, w.cfg.Region), names.StateBucket(account.ID, w.cfg.Region)} {
		_, err := objects.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &bucket})
		require.Error(t, err, bucket)
	}
	// A next deployment meets no leftovers.
	w.up()
}

// removeDuringARoll removes drover while a roll waits for a drain, and deploys it again. drover continues the work.
func (w *world) removeDuringARoll() {
	w.t.Helper()
	w.faults(http.MethodPut, "throttle caller=drain")
	w.drover("roll", "minimal", "workers")
	w.until("a drain runs", func() bool {
		out, err := w.machines.ListExecutions(w.t.Context(), &sfn.ListExecutionsInput{
			StateMachineArn: aws.String("arn:aws:states:" + w.cfg.Region + ":" + account.ID + ":stateMachine:drover-drain-node"),
			StatusFilter:    sfntypes.ExecutionStatusRunning,
		})
		require.NoError(w.t, err)
		return len(out.Executions) > 0
	})
	out := w.must(w.deploy, "destroy", "--app", w.assembly)
	require.Contains(w.t, out, "This stops work in flight, which the next deployment continues: ")
	require.Contains(w.t, out, "of drover-drain-node")
	require.Contains(w.t, out, "stopped execution ")
	w.faults(http.MethodDelete, "")
	w.up()
	w.until("the cluster is Ready", func() bool {
		out, ok := w.run(filepath.Join(w.root, "build", "drover"), "status", "minimal", "-o", "json")
		var s struct{ Status struct{ Phase string } }
		return ok && json.Unmarshal([]byte(out), &s) == nil && s.Status.Phase == "Ready"
	})
	w.drover("roll", "minimal", "workers", "--watch")
}

// faults changes the rules of faults.
func (w *world) faults(method, rules string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.environment["AWS_ENDPOINT_URL"]+faults.Path, strings.NewReader(rules))
	require.NoError(w.t, err)
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	require.NoError(w.t, err)
	defer response.Body.Close()
	require.Equal(w.t, http.StatusOK, response.StatusCode)
}

// until waits for a condition.
func (w *world) until(what string, met func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !met(); time.Sleep(200 * time.Millisecond) {
		require.True(w.t, time.Now().Before(deadline), "%s: not within five minutes: %s", what, w.drover("status", "minimal"))
	}
}
