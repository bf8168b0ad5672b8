package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/shared/names"
)

// measureUnchanged converges the demo cluster again, by a manual execution and by uploading the same spec, and runs a sweep.
func measureUnchanged(ctx context.Context, s *settings, r *report) error {
	a, err := s.open(ctx)
	if err != nil {
		return err
	}
	if !a.demo {
		if err := a.createDemo(ctx, s); err != nil {
			return err
		}
	}
	converge := "arn:aws:states:" + a.Region() + ":" + account.ID + ":stateMachine:drover-converge"
	err = a.again(ctx, r, "converge started by hand", atMost(0), func() error {
		_, err := sfn.NewFromConfig(a.Config()).StartExecution(ctx, &sfn.StartExecutionInput{
			StateMachineArn: &converge, Input: aws.String(`{"cluster":"` + demo + `"}`),
		})
		return err
	})
	if err != nil {
		return err
	}
	err = a.again(ctx, r, "the same spec uploaded again", nil, func() error {
		spec, err := os.ReadFile(filepath.Join(s.root, demoSpec))
		if err != nil {
			return err
		}
		_, err = a.specs.Put(ctx, names.ClusterSpec(demo), spec)
		return err
	})
	if err != nil {
		return err
	}
	err = a.again(ctx, r, "a sweep", atMost(0), func() error {
		_, err := lambda.NewFromConfig(a.Config()).Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(names.Function("sweep"))})
		return err
	})
	if err != nil {
		return err
	}
	// These functions do more than starting: they render templates, call the cluster's API server, or read images from EC2.
	return a.measureStarts(ctx, s, r, []function{
		{"plan", false, events.PlanRequest{Cluster: demo, Execution: "by hand"}, "reads, renders and compares 6 stacks: Unchanged", false},
		{"prepare", true, events.PrepareRequest{Cluster: demo}, "asks the cluster's API server for drover's roles", false},
		{"publish", false, uploadEvent(names.ReleaseSpec("1.36-1")), "checks the release of the cluster, with calls to EKS and EC2", false},
	}, nil)
}

// again counts the calls and transitions of another round.
func (m *localAccount) again(ctx context.Context, r *report, what string, l *limit, begin func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.quiet(ctx); err != nil {
		return err
	}
	before, started := m.mark(), time.Now()
	if err := begin(); err != nil {
		return err
	}
	if err := m.quiet(ctx); err != nil {
		return err
	}
	mutating, reading := map[string]int{}, map[string]int{}
	for _, c := range m.calls(before) {
		by := reading
		if c.Mutating {
			by = mutating
		}
		by[fmt.Sprintf("%s:%s by %s", c.Service, c.Action, c.function)]++
	}
	transitions := m.transitions(started)
	if len(m.invocations(before)) == 0 {
		return fmt.Errorf("%s: nothing ran", what)
	}
	r.add(what+": mutating calls", float64(sum(mutating)), "", l, counts(mutating))
	r.add(what+": reading calls", float64(sum(reading)), "", nil, counts(reading))
	r.add(what+": state transitions", float64(sum(transitions)), "", nil, "")
	return nil
}
