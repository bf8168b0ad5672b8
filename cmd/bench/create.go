package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/drover-run/drover/local/aws/lambda"
)

// maxTransitions of creating the demo cluster, with about 20 of checks of nodes that boot.
const maxTransitions = 75

// List prices of us-east-1 in dollars, without any free tier.
const (
	// https://aws.amazon.com/step-functions/pricing/, standard workflows.
	transitionPrice = 0.025 / 1000
	// https://aws.amazon.com/lambda/pricing/, arm64.
	gigabyteSecondPrice = 0.0000133334
	invocationPrice     = 0.20 / 1e6
	// https://aws.amazon.com/s3/pricing/, standard storage. Deleting is free.
	s3WritePrice = 0.005 / 1000 // PUT, COPY, POST, LIST
	s3ReadPrice  = 0.0004 / 1000
	// https://aws.amazon.com/sns/pricing/
	publishPrice = 0.50 / 1e6
)

// measureCreate creates the demo cluster and counts its calls and cost.
func measureCreate(ctx context.Context, s *settings, r *report) error {
	a, err := s.open(ctx)
	if err != nil {
		return err
	}
	if err := a.quiet(ctx); err != nil {
		return err
	}
	before, started := a.mark(), time.Now()
	if err := a.createDemo(ctx, s); err != nil {
		return err
	}
	transitions := a.transitions(started)
	r.add("state transitions", float64(sum(transitions)), "", atMost(maxTransitions), counts(transitions))
	calls := a.calls(before)
	by, mutating := map[string]int{}, 0
	for _, c := range calls {
		by[c.function]++
		if c.Mutating {
			mutating++
		}
	}
	r.add("AWS calls by drover", float64(len(calls)), "", nil, fmt.Sprintf("%d mutating; %s", mutating, counts(by)))
	invocations := a.invocations(before)
	ran := map[string]int{}
	for _, i := range invocations {
		ran[strings.TrimPrefix(i.Function, "drover-")]++
	}
	r.add("invocations of functions", float64(len(invocations)), "", nil, counts(ran))
	memory, err := a.memory(ctx, invocations)
	if err != nil {
		return err
	}
	states := float64(sum(transitions)) * transitionPrice
	local, onLambda := lambdaCost(invocations, memory, 1), lambdaCost(invocations, memory, speed)
	objects := s3Cost(calls)
	for _, c := range calls {
		if c.Action == "Publish" {
			objects += publishPrice
		}
	}
	r.add("list price of drover's part", states+local+objects, "$", nil,
		fmt.Sprintf("Step Functions $%.6f, Lambda $%.6f, S3 and SNS $%.6f", states, local, objects))
	r.add("the same, with the boot times of AWS", states+onLambda+objects, "$", nil,
		fmt.Sprintf("Lambda's time × %d; without the further transitions of join-node", speed))
	return nil
}

// memory of the functions that were invoked, in GB.
func (m *localAccount) memory(ctx context.Context, invocations []lambda.Report) (map[string]float64, error) {
	client := awslambda.NewFromConfig(m.Config())
	memory := map[string]float64{}
	for _, i := range invocations {
		if memory[i.Function] > 0 {
			continue
		}
		out, err := client.GetFunctionConfiguration(ctx, &awslambda.GetFunctionConfigurationInput{FunctionName: &i.Function})
		if err != nil {
			return nil, err
		}
		memory[i.Function] = float64(aws.ToInt32(out.MemorySize)) / 1024
	}
	return memory, nil
}

// lambdaCost of invocations. The init phase is billed as well, and each millisecond begun.
// https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/
func lambdaCost(invocations []lambda.Report, memory map[string]float64, joinPace float64) float64 {
	cost := 0.0
	for _, i := range invocations {
		billed := math.Ceil(milliseconds(i.Init + i.Duration))
		if i.Function == "drover-join" {
			billed *= joinPace
		}
		cost += invocationPrice + billed/1000*memory[i.Function]*gigabyteSecondPrice
	}
	return cost
}

// s3Cost of calls.
func s3Cost(calls []call) float64 {
	cost := 0.0
	for _, c := range calls {
		switch {
		case c.Service != "s3" || strings.HasPrefix(c.Action, "Delete"):
		case strings.HasPrefix(c.Action, "Put") || strings.HasPrefix(c.Action, "List"):
			cost += s3WritePrice
		default:
			cost += s3ReadPrice
		}
	}
	return cost
}

func sum(by map[string]int) int {
	total := 0
	for _, n := range by {
		total += n
	}
	return total
}

// counts lists numbers by name, in descending order.
func counts(by map[string]int) string {
	keys := slices.Sorted(maps.Keys(by))
	slices.SortStableFunc(keys, func(a, b string) int { return by[b] - by[a] })
	var out []string
	for _, name := range keys {
		out = append(out, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(out, ", ")
}
