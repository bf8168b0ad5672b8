package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

const (
	maxZip       = 15.0 // MB, of a function without the Kubernetes client
	maxZipClient = 30.0 // MB, of one with it
	maxCold      = 100  // ms, of 95 of 100 cold starts
	megabyte     = 1 << 20
)

// function is one of drover's functions with an event that it handles quickly with calls to AWS. Without a connection, the cold start would
// look too good.
type function struct {
	step       string
	kubernetes bool
	event      any
	// answers describes the response. fails reports whether it is an error.
	answers string
	fails   bool
}

// absent is a cluster that does not exist.
const absent = "absent"

// functions in an account without clusters.
func functions() []function {
	var stack events.Event[events.StackStatus]
	stack.Detail.StackID = "arn:aws:cloudformation:us-east-1:000000000000:stack/" + names.Stack(absent, names.Network) + "/1"
	stack.Detail.StatusDetails.Status = "CREATE_COMPLETE"
	join := events.JoinRequest{Lifecycle: events.Lifecycle{
		AutoScalingGroupName: names.Group(absent, "workers"), LifecycleHookName: "launch", EC2InstanceID: "i-0123456789abcdef0",
		NotificationMetadata: `{"cluster":"` + absent + `","pool":"workers"}`,
	}}
	// Not the cluster of admit, or each would write a status that the other had changed.
	const stranger = "stranger"
	stopped := events.PlanResult{Cluster: stranger, Outcome: events.OutcomeStopped, Reason: "SpecAbsent", Message: "there is no spec"}
	upgrade := events.UpgradeRequest{Upgrade: events.Upgrade{Cluster: absent}, Action: events.UpgradeNext, Execution: "by hand"}
	return []function{
		{step: "admit", event: uploadEvent(names.ClusterSpec(absent)), answers: "a spec was deleted"},
		{step: "plan", event: events.PlanRequest{Cluster: absent}, answers: "a cluster without a spec: Stopped"},
		{
			step: "change", event: events.ChangeRequest{Cluster: absent, PlanKey: "plans/none.json"}, answers: "an absent plan: an error",
			fails: true,
		},
		{step: "stackevent", event: stack, answers: "a stack without a waiter"},
		{
			step: "prepare", kubernetes: true, event: events.PrepareRequest{Cluster: absent}, answers: "an absent EKS cluster: an error",
			fails: true,
		},
		{step: "join", kubernetes: true, event: join, answers: "an instance without a hook: Gone"},
		{
			step: "report", event: events.ReportRequest{Cluster: stranger, Execution: "by hand", Plan: &stopped},
			answers: "a cluster that stays Stopped",
		},
		{step: "sweep", kubernetes: true, event: struct{}{}, answers: "no waiting task, no spec"},
		{step: "drain", kubernetes: true, event: events.DrainRequest{InstanceID: join.EC2InstanceID}, answers: "an instance of no pool"},
		{
			step: "clean", event: events.CleanRequest{Cluster: absent, Execution: "by hand"}, answers: "a cluster without a lease: an error",
			fails: true,
		},
		{step: "publish", event: uploadEvent(names.ReleaseSpec(absent)), answers: "a release was deleted"},
		{step: "upgrade", kubernetes: true, event: upgrade, answers: "a cluster without an upgrade: an error", fails: true},
	}
}

// uploadEvent is S3's event for a key.
func uploadEvent(key string) (event events.Event[events.Object]) {
	event.Detail.Object.Key = key
	return event
}

// measureFunctions measures packages, and cold and warm invocations by Lambda's reports.
func measureFunctions(ctx context.Context, s *settings, r *report) error {
	all := functions()
	for _, f := range all {
		l := atMost(maxZip)
		if f.kubernetes {
			l = atMost(maxZipClient)
		}
		arch, size, err := s.zipSize(f.step)
		if err != nil {
			return err
		}
		r.add("zip of "+f.step, size, "MB", l, arch)
	}
	a, err := s.open(ctx)
	if err != nil {
		return err
	}
	if err := a.quiet(ctx); err != nil {
		return err
	}
	return a.measureStarts(ctx, s, r, all, atMost(maxCold))
}

// zipSize returns the size of a package as cdk deploy uploads it, preferably for the deployed architecture.
func (s *settings) zipSize(step string) (arch string, megabytes float64, err error) {
	var program *os.File
	for _, arch = range []string{"arm64", "amd64"} {
		if program, err = os.Open(filepath.Join(s.build, "functions", arch, step, "bootstrap")); err == nil {
			break
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("%w (make local builds it)", err)
	}
	defer program.Close()
	var size counter
	archive := zip.NewWriter(&size)
	w, err := archive.Create("bootstrap")
	if err != nil {
		return "", 0, err
	}
	if _, err := io.Copy(w, program); err != nil {
		return "", 0, err
	}
	return arch, float64(size) / megabyte, archive.Close()
}

// counter counts what is written to it, in bytes.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// starts are the invocations of one function, in milliseconds, and its memory in MB.
type starts struct {
	init, cold, warm, memory []float64
}

// measureStarts invokes each function cold and then warm, in rounds over all functions. The reported p95 is that of the median round: if a
// shared machine is busy for a second, it slows down all functions in that second.
func (m *localAccount) measureStarts(ctx context.Context, s *settings, r *report, all []function, l *limit) error {
	client := lambda.NewFromConfig(m.Config())
	whole, p95 := map[string]*starts{}, map[string][]float64{}
	for _, f := range all {
		whole[f.step] = &starts{}
	}
	for range s.count {
		round := map[string]*starts{}
		for _, f := range all {
			round[f.step] = &starts{}
		}
		for range s.starts {
			for _, f := range all {
				if err := m.start(ctx, client, f, round[f.step]); err != nil {
					return err
				}
			}
		}
		for step, one := range round {
			p95[step] = append(p95[step], quantile(one.cold, 0.95))
			whole[step].add(one)
		}
	}
	for _, f := range all {
		one := whole[f.step]
		r.add("cold start of "+f.step+", p95", median(p95[f.step]), "ms", l, fmt.Sprintf(
			"worst round %s ms; p50 %s ms, of which init %s ms; warm p50 %s ms; peak memory %s MB; %s",
			number(quantile(p95[f.step], 1)), number(median(one.cold)), number(median(one.init)), number(median(one.warm)),
			number(quantile(one.memory, 1)), f.answers))
	}
	return nil
}

func (s *starts) add(other *starts) {
	s.init, s.cold = append(s.init, other.init...), append(s.cold, other.cold...)
	s.warm, s.memory = append(s.warm, other.warm...), append(s.memory, other.memory...)
}

// start starts a function cold, and invokes it again warm.
func (m *localAccount) start(ctx context.Context, client *lambda.Client, f function, into *starts) error {
	// A changed configuration ends the existing environments.
	_, err := client.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String(names.Function(f.step)), Description: aws.String("starts cold"),
	})
	if err == nil {
		err = m.invoke(ctx, client, f, true, into)
	}
	if err == nil {
		err = m.invoke(ctx, client, f, false, into)
	}
	return err
}

// invoke invokes a function once. A cold start is from before its process starts to the end of its first invocation.
func (m *localAccount) invoke(ctx context.Context, client *lambda.Client, f function, cold bool, into *starts) error {
	payload, err := json.Marshal(f.event)
	if err != nil {
		return err
	}
	before := m.mark()
	out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(names.Function(f.step)), Payload: payload})
	if err != nil {
		return err
	}
	if failed := out.FunctionError != nil; failed != f.fails {
		return fmt.Errorf("%s answered %s, which is not: %s", f.step, out.Payload, f.answers)
	}
	reports := m.invocations(before)
	if len(reports) != 1 || reports[0].Cold != cold {
		return fmt.Errorf("%s: want one invocation, cold: %t; got %d", f.step, cold, len(reports))
	}
	report := reports[0]
	into.memory = append(into.memory, float64(report.Memory))
	if cold {
		into.init = append(into.init, milliseconds(report.Init))
		into.cold = append(into.cold, milliseconds(report.Init+report.Duration))
	} else {
		into.warm = append(into.warm, milliseconds(report.Duration))
	}
	return nil
}
