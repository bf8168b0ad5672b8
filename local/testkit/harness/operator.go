package harness

// Actions and observations of an operator.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	cloudformationapi "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	localcloudformation "github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Admin returns the administrator.
func (a *Account) Admin() iam.Caller {
	admin, _ := a.Identities.Admin()
	return admin
}

// Config returns the SDK's configuration of the administrator.
func (a *Account) Config() aws.Config {
	_, admin := a.Identities.Admin()
	cfg := aws.Config{
		Region: Region, BaseEndpoint: aws.String(address), HTTPClient: a.http,
		Credentials: credentials.NewStaticCredentialsProvider(admin.AccessKeyID, admin.SecretAccessKey, ""),
	}
	if a.options.Bubble {
		a.direct(&cfg)
	}
	return cfg
}

// State returns drover's state bucket.
func (a *Account) State() *store.State {
	return store.NewState(s3.NewBucket(a.admin, StateBucket), store.Silent, time.Now)
}

// Upload writes an object to the specs bucket and returns its version.
func (a *Account) Upload(key, body string) string {
	a.t.Helper()
	bucket := SpecsBucket
	out, err := a.admin.PutObject(context.Background(), &awss3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader([]byte(body)),
	})
	require.NoError(a.t, err)
	return aws.ToString(out.VersionId)
}

// Cluster uploads Release and a Spec and waits until the cluster is Ready. It returns the spec's version.
func (a *Account) Cluster(name, more string) string {
	a.t.Helper()
	a.Upload(names.ReleaseSpec("r1"), Release())
	version := a.Upload(names.ClusterSpec(name), Spec(name, more))
	a.Settle()
	s := a.Status(name)
	require.Equal(a.t, status.Ready, s.Phase, s.Message)
	return version
}

// Remove deletes an object of the specs bucket, or one of its versions permanently.
func (a *Account) Remove(key, version string) {
	a.t.Helper()
	in := &awss3.DeleteObjectInput{Bucket: aws.String(SpecsBucket), Key: &key}
	if version != "" {
		in.VersionId = &version
	}
	_, err := a.admin.DeleteObject(context.Background(), in)
	require.NoError(a.t, err)
}

// Converge starts a converge execution, which rolls the named pools. It returns the execution's ARN.
func (a *Account) Converge(cluster string, roll ...string) string {
	a.t.Helper()
	input, err := json.Marshal(events.Converge{Cluster: cluster, Roll: roll})
	require.NoError(a.t, err)
	arn, err := a.StepFunctions.Start(context.Background(), a.Admin(), a.converge, uuid.NewString(), string(input))
	require.NoError(a.t, err)
	return arn
}

// Upgrade starts the upgrade machine and returns the execution's ARN.
func (a *Account) Upgrade(in events.Upgrade) string {
	a.t.Helper()
	input, err := json.Marshal(in)
	require.NoError(a.t, err)
	arn, err := a.StepFunctions.Start(context.Background(), a.Admin(), a.MachineARN("upgrade"), uuid.NewString(), string(input))
	require.NoError(a.t, err)
	return arn
}

// MachineARN returns the ARN of a state machine of drover.
func (a *Account) MachineARN(machine string) string {
	return strings.TrimSuffix(a.converge, "converge") + machine
}

// Group returns a pool's Auto Scaling group.
func (a *Account) Group(cluster, pool string) pool.Group {
	a.t.Helper()
	group, found, err := autoscaling.New(autoscalingapi.NewFromConfig(a.Config())).Describe(context.Background(), names.Group(cluster, pool))
	require.NoError(a.t, err)
	require.True(a.t, found)
	return group
}

// Scale sets a pool's desired capacity, as an autoscaler does. It waits until that many instances are in service.
func (a *Account) Scale(cluster, pool string, desired int) {
	a.t.Helper()
	_, err := autoscalingapi.NewFromConfig(a.Config()).SetDesiredCapacity(context.Background(), &autoscalingapi.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(names.Group(cluster, pool)), DesiredCapacity: aws.Int32(int32(desired)),
	})
	require.NoError(a.t, err)
	a.Until("the pool has its nodes", func() bool {
		now := a.Group(cluster, pool)
		return len(now.Instances) == desired && now.Serving() == desired
	})
	a.Settle()
}

// Stack returns one of a cluster's stacks as CloudFormation describes it.
func (a *Account) Stack(cluster, stack string) stack.Deployed {
	a.t.Helper()
	deployed, err := cloudformation.New(cloudformationapi.NewFromConfig(a.Config()), nil, "").Describe(context.Background(),
		names.Stack(cluster, stack))
	require.NoError(a.t, err)
	return deployed
}

// Retag changes a stack's tags by a stack update, as a user may.
func (a *Account) Retag(stackName string, change func(tags map[string]string)) error {
	for _, s := range a.CloudFormation.Stacks() {
		if s.StackName != stackName {
			continue
		}
		tags := map[string]string{}
		for _, t := range s.Tags {
			tags[t.Key] = t.Value
		}
		change(tags)
		in := &localcloudformation.UpdateStackInput{
			StackName: s.StackName, UsePreviousTemplate: true, Capabilities: []string{"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"},
		}
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			in.Tags = append(in.Tags, localcloudformation.Tag{Key: key, Value: tags[key]})
		}
		for _, p := range s.Parameters {
			in.Parameters = append(in.Parameters, localcloudformation.Parameter{ParameterKey: p.ParameterKey, UsePreviousValue: true})
		}
		_, err := a.CloudFormation.UpdateStack(context.Background(), a.Admin(), in)
		return err
	}
	return nil
}

// Administrator returns the ARN of a role with all permissions, which CloudFormation may assume.
func (a *Account) Administrator() string {
	a.t.Helper()
	role, err := a.Identities.CreateRole(iam.Role{
		Name: "administrator",
		TrustDocument: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", ` +
			`"Principal": {"Service": "cloudformation.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`,
	})
	require.NoError(a.t, err)
	everything := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`
	require.NoError(a.t, a.Identities.PutRolePolicy(role.Name, "everything", everything))
	return a.Identities.RoleARN(role)
}

// SweepNow runs the sweep.
func (a *Account) SweepNow() error {
	_, err := a.Functions.Call("sweep", events.Sweep{})
	return err
}

// AuditNow runs the audit.
func (a *Account) AuditNow() error {
	_, err := a.Functions.Call("sweep", events.Sweep{Audit: true})
	return err
}

// Execution returns an execution by ARN.
func (a *Account) Execution(arn string) stepfunctions.Execution {
	a.t.Helper()
	all := a.StepFunctions.Executions()
	i := slices.IndexFunc(all, func(x stepfunctions.Execution) bool { return x.ARN == arn })
	require.GreaterOrEqual(a.t, i, 0, arn)
	return all[i]
}

// Status returns the status of a cluster, or an empty one if drover has none.
func (a *Account) Status(cluster string) *status.Status {
	a.t.Helper()
	s := document(a, names.Status(cluster), *status.New(cluster)).Status
	return &s
}

// Lease returns the lease of a cluster.
func (a *Account) Lease(cluster string) (lease store.Lease) {
	a.t.Helper()
	return document(a, names.Lease(cluster), store.Lease{})
}

// knownDocument is a document that was read before.
type knownDocument struct {
	body []byte
	v    any
}

// document reads one of drover's documents, or returns otherwise if it does not exist. In virtual time it makes no call,
// because the checks after every step read many documents that did not change. The result is shared: do not modify it.
func document[T any](a *Account, key string, otherwise T) T {
	a.t.Helper()
	v := otherwise
	if !a.options.Bubble {
		if _, err := a.State().GetJSON(context.Background(), key, &v); !errors.Is(err, store.ErrNotFound) {
			require.NoError(a.t, err)
		}
		return v
	}
	body, found := a.objects.Peek(StateBucket, key)
	if !found {
		return v
	}
	a.mu.Lock()
	was, ok := a.documents[key]
	a.mu.Unlock()
	if ok && bytes.Equal(was.body, body) {
		return was.v.(T)
	}
	require.NoError(a.t, json.Unmarshal(body, &v))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.documents[key] = knownDocument{body, v}
	return v
}

// Stacks returns the statuses of a cluster's stacks, by name without the cluster's prefix.
func (a *Account) Stacks(cluster string) map[string]string {
	found := map[string]string{}
	for _, stack := range a.CloudFormation.Stacks() {
		if name, ours := strings.CutPrefix(stack.StackName, names.Stack(cluster, "")); ours && names.IsStack(name) {
			found[name] = stack.StackStatus
		}
	}
	return found
}

// Protected reports whether EKS refuses to delete an EKS cluster.
func (a *Account) Protected(eksCluster string) bool {
	a.t.Helper()
	out, err := a.EKS.DescribeCluster(context.Background(), a.Admin(), eks.NamedInput{Name: eksCluster})
	require.NoError(a.t, err)
	return out.Cluster.DeletionProtection
}

// Log returns what the functions have printed.
func (a *Account) Log() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.logs.String()
}

// Verdicts returns the status changes that were sent as events and are more than progress: phase and message, oldest
// first.
func (a *Account) Verdicts() (list []string) {
	for _, e := range a.BusEvents() {
		var change events.StatusChange
		if e.DetailType != events.ClusterStatusChange || json.Unmarshal(e.Detail, &change) != nil {
			continue
		}
		if phase := status.Phase(change.Phase); phase != status.Pending && phase != status.Converging && phase != status.Deleting {
			list = append(list, change.Phase+": "+change.Message)
		}
	}
	return list
}

// BusEvents returns the events on drover's bus, oldest first.
func (a *Account) BusEvents() []eventbridge.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.busEvents)
}

// Topic returns the ARN of the topic of notices.
func (a *Account) Topic() string { return a.topic }

// Notices returns the published messages, each with its subject first.
func (a *Account) Notices() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.notices)
}

// patience is the timeout of every wait. In virtual time it is virtually, because days are short.
const patience, virtually = time.Minute, 10 * 24 * time.Hour

// Until waits until done returns true. It calls done after each change.
func (a *Account) Until(what string, done func() bool) {
	a.t.Helper()
	bound := patience
	if a.options.Bubble {
		bound = virtually
	}
	deadline := time.After(bound)
	for {
		a.mu.Lock()
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		a.endIfDecided()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			require.FailNow(a.t, "waited too long until "+what, "%s", a.Log())
		}
	}
}

// endIfDecided ends the goroutine of a test whose result is certain: see Options.Decided.
func (a *Account) endIfDecided() {
	if a.options.Decided != nil && a.options.Decided() {
		runtime.Goexit()
	}
}

// Settle waits until no execution runs, no event is in flight, no stack changes, and no instance without a hook
// terminates.
func (a *Account) Settle() {
	a.t.Helper()
	a.Until("everything has ended", func() bool {
		return a.atOnce(func() bool { return a.idle() && !a.executes() && !a.AutoScaling.Terminating() })
	})
}

// executes reports whether an execution runs, or has ended and its event is not on the bus yet.
func (a *Account) executes() bool {
	a.mu.Lock()
	unannounced := a.unannounced
	a.mu.Unlock()
	return unannounced > 0 || slices.ContainsFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
		return x.Status == "RUNNING"
	})
}

// rests reports whether the only work in flight is events that wait for that.
func (a *Account) rests() bool {
	return a.atOnce(func() bool {
		a.Events.mu.Lock()
		others := a.Events.busy - a.Events.lasting
		a.Events.mu.Unlock()
		return others == 0 && a.still() && !a.executes()
	})
}

// Still reports whether nothing will happen by itself: each execution has ended or waits for a stack, of one pool at most.
func (a *Account) Still() bool {
	return a.atOnce(func() bool { return a.idle() && a.StepFunctions.PendingAnswers() == 0 && a.waiting() })
}

// waiting reports whether each execution has ended or waits for an answer.
func (a *Account) waiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !slices.ContainsFunc(a.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
		return x.Status == "RUNNING" && a.last[x.ARN] != "TaskSubmitted"
	})
}

// Ignore waits until an execution waits, and makes Still disregard it from then on.
func (a *Account) Ignore(execution string) {
	a.Until("the execution waits", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.last[execution] == "WaitStateEntered" })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[execution] = "TaskSubmitted"
}

// Running returns the number of running functions.
func (a *Account) Running() int {
	a.Functions.mu.Lock()
	defer a.Functions.mu.Unlock()
	return a.Functions.busy
}

// Idle reports whether no function runs, no event is in flight and no stack changes. Executions may wait.
func (a *Account) Idle() bool {
	a.endIfDecided()
	return a.atOnce(a.idle)
}

// idle checks the parts of the account one after the other.
func (a *Account) idle() bool {
	a.Events.mu.Lock()
	delivering := a.Events.busy
	a.Events.mu.Unlock()
	return delivering == 0 && a.still()
}

// still reports whether no stack changes and no function runs.
func (a *Account) still() bool {
	changing := slices.ContainsFunc(a.CloudFormation.Stacks(), func(s localcloudformation.Stack) bool {
		return stack.InProgress(s.StackStatus)
	})
	return !changing && a.CloudFormation.Undelivered() == 0 && a.Running() == 0
}

// atOnce reports whether calm was true for all parts of the account at the same time. Otherwise calm might miss what passes
// from one part to another during its check.
func (a *Account) atOnce(calm func() bool) bool {
	for {
		before := a.sofar()
		if !calm() {
			return false
		}
		if a.sofar() == before {
			return true
		}
	}
}

func (a *Account) sofar() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.happenings
}
