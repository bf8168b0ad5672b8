package asl

// The paths of drover's machines, as the CDK app synthesized them.

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func definitionOf(t *testing.T, machine string) string {
	t.Helper()
	raw, err := os.ReadFile("../../../infra/testdata/machines/" + machine + ".asl.json")
	require.NoError(t, err)
	return string(raw)
}

// cluster plays drover's functions around the converge machine.
type cluster struct {
	world
	// plans are the answers of plan in order; the last one stays.
	plans []map[string]any
	// fails gives a function's errors in order, by function and stack ("plan", "change pool-a"), then it works.
	fails map[string][]string
	// outcomes gives the task's answers of a stack in order ("again", "failed", "silent"), then it succeeds.
	outcomes map[string][]string
	// reports are the answers of report in order; the last one stays.
	reports []map[string]any
	seen    []map[string]any // what report was sent
}

func newCluster() *cluster {
	c := &cluster{fails: map[string][]string{}, outcomes: map[string][]string{}}
	c.tasks = map[string]func(context.Context, map[string]any) (any, error){
		"drover-plan": c.plan, "drover-change": c.change, "drover-prepare": c.prepare, "drover-report": c.report,
	}
	return c
}

func next[T any](list []T) (T, []T) {
	if len(list) > 1 {
		return list[0], list[1:]
	}
	return list[0], list
}

func (c *cluster) failed(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.fails[what]; len(left) > 0 {
		c.fails[what] = left[1:]
		return &Failure{Name: left[0], Cause: what}
	}
	return nil
}

func (c *cluster) plan(_ context.Context, p map[string]any) (any, error) {
	if err := c.failed("plan"); err != nil {
		return nil, err
	}
	if p["cluster"] != "demo" || !strings.HasPrefix(p["execution"].(string), "arn:") {
		return nil, &Failure{Name: "BadRequest"}
	}
	var answer map[string]any
	answer, c.plans = next(c.plans)
	return answer, nil
}

func (c *cluster) prepare(context.Context, map[string]any) (any, error) {
	return map[string]any{}, c.failed("prepare")
}

func (c *cluster) report(_ context.Context, p map[string]any) (any, error) {
	if err := c.failed("report"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, p)
	if len(c.reports) == 0 {
		return map[string]any{"again": false, "failed": p["error"] != "", "reason": p["error"]}, nil
	}
	var answer map[string]any
	answer, c.reports = next(c.reports)
	return answer, nil
}

// change answers through the token half an hour later.
func (c *cluster) change(_ context.Context, p map[string]any) (any, error) {
	stack := p["stack"].(string)
	if err := c.failed("change " + stack); err != nil {
		return nil, err
	}
	if p["fence"] != 3.0 || p["planKey"] != "plans/demo" {
		return nil, &Failure{Name: "BadRequest"}
	}
	c.mu.Lock()
	outcome := "done"
	if left := c.outcomes[stack]; len(left) > 0 {
		outcome, c.outcomes[stack] = left[0], left[1:]
	}
	c.mu.Unlock()
	token := p["taskToken"].(string)
	time.AfterFunc(20*time.Minute, func() {
		switch outcome {
		case "failed":
			must(c.tokens.Fail(token, "StackFailed", `{"stack":"`+stack+`"}`))
		case "silent":
		default:
			must(c.tokens.Succeed(token, encode(map[string]any{"stack": stack, "again": outcome == "again", "status": "UPDATE_COMPLETE"})))
		}
	})
	return nil, nil
}

func changes(stages ...string) map[string]any {
	all := map[string][]string{"network": {}, "controlPlane": {}, "addons": {}, "pools": {}, "nodeAddons": {}}
	for _, s := range stages {
		stage, stack, _ := strings.Cut(s, " ")
		all[stage] = append(all[stage], stack)
	}
	outcome := "Changes"
	if len(stages) == 0 {
		outcome = "Unchanged"
	}
	return map[string]any{"cluster": "demo", "outcome": outcome, "fence": 3, "planKey": "plans/demo", "stages": all}
}

var (
	create = []string{"network network", "controlPlane control-plane", "addons addons", "pools pool-a", "pools pool-b", "nodeAddons node-addons"}
	// rest of a round after a stage that changes nothing.
	stages = []string{"Change the network", "Change the control plane", "Prepare the cluster", "Change the add-ons", "Change the pools", "Change the node add-ons", "Did every stack succeed?"}
)

func TestConverge(t *testing.T) {
	quiet := changes()
	for name, test := range map[string]struct {
		set    func(c *cluster)
		path   []string // of the states outside of the maps
		status Status
		fault  string
		check  func(t *testing.T, c *cluster, o Outcome)
	}{
		"an unchanged cluster is reported": {
			set:    func(c *cluster) { c.plans = []map[string]any{quiet} },
			path:   []string{"Read the input", "Plan", "What is to be done?", "Report", "A newer spec?", "Done"},
			status: Succeeded,
		},
		"another execution is at it": {
			set:    func(c *cluster) { c.plans = []map[string]any{{"outcome": "Busy", "stages": map[string]any{}}} },
			path:   []string{"Read the input", "Plan", "What is to be done?", "Another execution converges this cluster"},
			status: Succeeded,
		},
		"a stopped plan is reported as the report says": {
			set: func(c *cluster) {
				c.plans = []map[string]any{{"outcome": "Stopped", "reason": "Invalid", "stages": map[string]any{}}}
				c.reports = []map[string]any{{"again": false, "failed": true, "reason": "the spec is invalid"}}
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Report", "A newer spec?", "The cluster did not converge"},
			status: Failed, fault: "NotConverged: the spec is invalid",
		},
		"a new cluster: all stages, then a plan that proves it": {
			set:    func(c *cluster) { c.plans = []map[string]any{changes(create...), quiet} },
			path:   slices.Concat([]string{"Read the input", "Plan", "What is to be done?"}, stages, []string{"Plan", "What is to be done?", "Report", "A newer spec?", "Done"}),
			status: Succeeded,
			check: func(t *testing.T, c *cluster, o Outcome) {
				require.Len(t, c.seen, 1)
				require.Len(t, c.seen[0]["results"], 6)
				require.Equal(t, "", c.seen[0]["error"])
				require.LessOrEqual(t, o.Transitions, 36, "join-node of four nodes comes to it: 60 is the goal for all")
			},
		},
		"throttles and transient faults are retried": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes("network network"), quiet}
				c.fails = map[string][]string{
					"plan": {"Throttled", "Transient", "Lambda.TooManyRequestsException"}, "change network": {"Lambda.ServiceException"}, "prepare": {"Throttled"},
					"report": slices.Repeat([]string{"Transient"}, 10),
				}
			},
			path:   slices.Concat([]string{"Read the input", "Plan", "What is to be done?"}, stages, []string{"Plan", "What is to be done?", "Report", "A newer spec?", "Done"}),
			status: Succeeded,
		},
		"a plan that fails is reported without a plan": {
			set:    func(c *cluster) { c.plans = []map[string]any{quiet}; c.fails["plan"] = []string{"Forbidden"} },
			path:   []string{"Read the input", "Plan", "Report", "A newer spec?", "The cluster did not converge"},
			status: Failed, fault: "NotConverged: Forbidden",
			check: func(t *testing.T, c *cluster, _ Outcome) {
				require.Nil(t, c.seen[0]["plan"])
				require.Equal(t, "Forbidden", c.seen[0]["error"])
				require.Equal(t, "plan", c.seen[0]["cause"])
			},
		},
		"a failed network ends the round": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes(create...)}
				c.outcomes["network"] = []string{"failed"}
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Change the network", "Report", "A newer spec?", "The cluster did not converge"},
			status: Failed, fault: "NotConverged: StackFailed",
			check: func(t *testing.T, c *cluster, _ Outcome) {
				require.Equal(t, `{"stack":"network"}`, c.seen[0]["cause"])
			},
		},
		"a network that is never heard of is a timeout": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes(create...)}
				c.outcomes["network"] = []string{"silent"}
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Change the network", "Report", "A newer spec?", "The cluster did not converge"},
			status: Failed, fault: "NotConverged: States.Timeout",
			check: func(t *testing.T, c *cluster, _ Outcome) { require.Equal(t, "", c.seen[0]["cause"]) },
		},
		"a failed preparation keeps pools from coming": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes(create...)}
				c.fails["prepare"] = []string{"Forbidden"}
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Change the network", "Change the control plane", "Prepare the cluster", "Report", "A newer spec?", "The cluster did not converge"},
			status: Failed, fault: "NotConverged: Forbidden",
		},
		"a stack in the way is changed once more": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes("controlPlane control-plane"), quiet}
				c.outcomes["control-plane"] = []string{"again", "again"}
			},
			path:   slices.Concat([]string{"Read the input", "Plan", "What is to be done?"}, stages, []string{"Plan", "What is to be done?", "Report", "A newer spec?", "Done"}),
			status: Succeeded,
			check: func(t *testing.T, c *cluster, _ Outcome) {
				require.Equal(t, 3, count(c.path, "Change control plane stack"))
				require.Equal(t, 3, count(c.path, "Change control plane stack once more?"))
			},
		},
		"a failed pool holds up no other, nor the node add-ons": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes(create...)}
				c.outcomes["pool-a"] = []string{"failed"}
				c.reports = []map[string]any{{"again": false, "failed": true, "reason": "pool-a failed"}}
			},
			path:   slices.Concat([]string{"Read the input", "Plan", "What is to be done?"}, stages, []string{"Report", "A newer spec?", "The cluster did not converge"}),
			status: Failed, fault: "NotConverged: pool-a failed",
			check: func(t *testing.T, c *cluster, _ Outcome) {
				results := map[string]any{}
				for _, r := range c.seen[0]["results"].([]any) {
					results[r.(map[string]any)["stack"].(string)] = r.(map[string]any)["error"]
				}
				require.Equal(t, map[string]any{"network": nil, "control-plane": nil, "addons": nil, "pool-a": "StackFailed", "pool-b": nil, "node-addons": nil}, results)
			},
		},
		"a newer spec starts another round": {
			set: func(c *cluster) {
				c.plans = []map[string]any{quiet}
				c.reports = []map[string]any{{"again": true}, {"again": false, "failed": false}}
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Report", "A newer spec?", "Plan", "What is to be done?", "Report", "A newer spec?", "Done"},
			status: Succeeded,
		},
		"a template that never settles is given up": {
			set: func(c *cluster) {
				c.plans = []map[string]any{changes("pools pool-a")}
				c.reports = []map[string]any{{"again": false, "failed": true, "reason": "it never settles"}}
			},
			path: slices.Concat([]string{"Read the input"}, slices.Repeat(slices.Concat([]string{"Plan", "What is to be done?"}, stages), 10),
				[]string{"The plan never settles", "Report", "A newer spec?", "The cluster did not converge"}),
			status: Failed, fault: "NotConverged: it never settles",
			check: func(t *testing.T, c *cluster, _ Outcome) { require.Equal(t, "NotConverged", c.seen[0]["error"]) },
		},
		"a status that cannot be written ends with both reasons": {
			set: func(c *cluster) {
				c.plans = []map[string]any{quiet}
				c.fails["report"] = slices.Repeat([]string{"Throttled"}, 15)
			},
			path:   []string{"Read the input", "Plan", "What is to be done?", "Report", "The status could not be written"},
			status: Failed, fault: "NotConverged: Throttled: report",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				test.set(c)
				o := c.run(t, definitionOf(t, "converge"), `{"cluster":"demo"}`)
				require.Equal(t, test.status, o.Status, "%s: %s", o.Error, o.Cause)
				if test.fault != "" {
					require.Equal(t, test.fault, o.Error+": "+o.Cause)
				}
				outside := slices.DeleteFunc(slices.Clone(c.path), func(s string) bool {
					return strings.Contains(s, "stack") && !slices.Contains(stages, s)
				})
				require.Equal(t, test.path, outside)
				if test.check != nil {
					test.check(t, c, o)
				}
				time.Sleep(25 * time.Hour) // late answers find their tokens closed
			})
		})
	}
}

func count(list []string, s string) int {
	n := 0
	for _, e := range list {
		if e == s {
			n++
		}
	}
	return n
}

func TestConvergeWithoutAClusterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newCluster().run(t, definitionOf(t, "converge"), `{}`)
		require.Equal(t, Failed, o.Status)
		require.Equal(t, "States.QueryEvaluationError", o.Error)
	})
}

func TestJoinNode(t *testing.T) {
	const input = `{"LifecycleActionToken":"t","AutoScalingGroupName":"drover-demo-pool-a","LifecycleHookName":"launch","EC2InstanceId":"i-1","LifecycleTransition":"autoscaling:EC2_INSTANCE_LAUNCHING"}`
	for name, test := range map[string]struct {
		answers []string // of join: an outcome, or an error behind "!"
		abandon []string // errors of CompleteLifecycleAction
		path    []string
		status  Status
		fault   string
	}{
		"the node is Ready":   {[]string{"Ready"}, nil, []string{"Wait for the node", "Has it joined?", "The node is Ready"}, Succeeded, ""},
		"it takes its time":   {[]string{"Waiting", "Waiting", "Ready"}, nil, []string{"Wait for the node", "Has it joined?", "Wait for the node", "Has it joined?", "Wait for the node", "Has it joined?", "The node is Ready"}, Succeeded, ""},
		"nothing waits":       {[]string{"Gone"}, nil, []string{"Wait for the node", "Has it joined?", "Nothing waits"}, Succeeded, ""},
		"it will not come":    {[]string{"Abandoned"}, nil, []string{"Wait for the node", "Has it joined?", "The node did not join"}, Failed, "NodeFailed: said so"},
		"throttles retried":   {[]string{"!Throttled", "!Transient", "Ready"}, nil, []string{"Wait for the node", "Has it joined?", "The node is Ready"}, Succeeded, ""},
		"the function fails":  {[]string{"!Broken"}, nil, []string{"Wait for the node", "Abandon the instance", "The node did not join"}, Failed, "NodeFailed: Broken: why"},
		"the function hangs":  {[]string{"hang"}, nil, []string{"Wait for the node", "Abandon the instance", "The node did not join"}, Failed, "NodeFailed: States.Timeout: no cause given"},
		"abandoning is tried": {[]string{"!Broken"}, []string{"AutoScaling.AutoScalingException", "AutoScaling.AutoScalingException"}, []string{"Wait for the node", "Abandon the instance", "The node did not join"}, Failed, "NodeFailed: Broken: why"},
		"and given up":        {[]string{"!Broken"}, slices.Repeat([]string{"AutoScaling.AutoScalingException"}, 20), []string{"Wait for the node", "Abandon the instance", "The node did not join"}, Failed, "NodeFailed: Broken: why"},
		"an unknown outcome":  {[]string{"Confused"}, nil, []string{"Wait for the node", "Has it joined?", "Abandon the instance", "The node did not join"}, Failed, "NodeFailed: said so"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var sent []map[string]any
				answers, errors := test.answers, test.abandon
				w := &world{}
				w.tasks = map[string]func(context.Context, map[string]any) (any, error){
					"drover-join": func(ctx context.Context, p map[string]any) (any, error) {
						mu.Lock()
						defer mu.Unlock()
						if p["EC2InstanceId"] != "i-1" || p["started"] != "2000-01-01T00:00:00.000Z" {
							return nil, &Failure{Name: "BadRequest"}
						}
						var answer string
						answer, answers = next(answers)
						if fault, failed := strings.CutPrefix(answer, "!"); failed {
							return nil, &Failure{Name: fault, Cause: "why"}
						}
						if answer == "hang" {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						time.Sleep(50 * time.Second)
						return map[string]any{"outcome": answer, "message": "said so"}, nil
					},
					"completeLifecycleAction": func(_ context.Context, p map[string]any) (any, error) {
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, p)
						if len(errors) > 0 {
							fault := errors[0]
							errors = errors[1:]
							return nil, &Failure{Name: fault}
						}
						return map[string]any{}, nil
					},
				}
				o := w.run(t, definitionOf(t, "join-node"), input)
				require.Equal(t, test.status, o.Status, "%s: %s", o.Error, o.Cause)
				require.Equal(t, test.path, w.path)
				if test.fault != "" {
					require.Equal(t, test.fault, o.Error+": "+o.Cause)
				}
				if slices.Contains(test.path, "Abandon the instance") {
					require.NotEmpty(t, sent)
					require.Equal(t, map[string]any{
						"AutoScalingGroupName": "drover-demo-pool-a", "LifecycleHookName": "launch", "InstanceId": "i-1", "LifecycleActionResult": "ABANDON",
					}, sent[0])
				}
			})
		})
	}
}
