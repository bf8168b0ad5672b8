package storm

// Behavior that keeps the invariants.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	scaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// A node takes pods once its launch hook is continued. One that was abandoned at the hook never did.
func TestAbandonedIsNotInService(t *testing.T) {
	const group = "drover-c0-pool-a"
	for state, wrong := range map[string]int{pool.PendingWait: 0, pool.PendingProceed: 1} {
		w := &world{turns: newTurns(nil), observed: newObserved(), out: &Outcome{Checks: map[int]int{}}}
		sees := func(second string) {
			w.seeView(group, scaling.View{
				Desired: 2, Instances: []scaling.InstanceView{{ID: "i-1", State: pool.InService}, {ID: "i-2", State: second}},
			})
		}
		sees(state)
		w.observed.minInService[group] = 2
		w.seeFunctionCall(endpoint.Call{
			Caller: "arn:aws:sts::1:assumed-role/r/join", Action: "CompleteLifecycleAction",
		}, []byte(`{"EC2InstanceId": "i-2"}`))
		sees(pool.Terminating)
		require.Len(t, w.observed.violations, wrong, state)
	}
}

// Behavior that keeps the invariants breaks none, whatever it looks like for a moment.
func TestInvariantsHold(t *testing.T) {
	for name, change := range map[string]func(*plot){
		// A roll uses the desired size that change read.
		"an autoscaler wants a node more when a roll was begun": func(p *plot) {
			for _, a := range p.acts {
				pool := &a.spec.pools[0]
				pool.max, pool.unavailable = 6, 1
			}
			p.breakAtBegin = func(w *world) {
				instead(w, "change", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					answer, err := next.Invoke(ctx, payload)
					if v, ok := w.AutoScaling.View(names.Group("c0", "a")); ok && v.Desired == 3 && w.Stacks("c0")[names.PoolStack("a")] ==
						"UPDATE_IN_PROGRESS" {
						w.autoscale("c0", "a", 0.34)
					}
					return answer, err
				})
			}
			p.breakAtEnd = func(w *world) {
				require.Contains(w.t, strings.Join(w.out.Story, "\n"), "drover-c0-pool-a is scaled from 3 to 4")
			}
		},
		// Auto Scaling ends an instance whose event was lost.
		"the event of a node that goes is lost, and no sweep comes before its hook ends": func(p *plot) {
			p.faultRules, p.calmFor = []string{terminations + " after=30m for=40m", `drop event="Scheduled Event" after=30m for=40m`}, time.Hour
			p.breakAtEnd = func(w *world) {
				require.Len(w.t, w.observed.drainStarts, len(w.observed.drainCalled)+1)
			}
		},
		"the event of a node that goes is lost, and Lambda throttles every sweep until its hook ends": func(p *plot) {
			for _, a := range p.acts {
				a.spec.pools[0].min = 1
			}
			p.faultRules = []string{
				terminations + " after=30m for=10m", `drop event="Scheduled Event" after=30m for=3m`, "lambda-limit after=32m for=1h",
			}
			p.calmFor = 2 * time.Hour
			p.breakAtEnd = func(w *world) {
				require.Greater(w.t, len(w.observed.drainStarts), len(w.observed.drainCalled))
			}
		},
		"drover is removed during a drain, and Lambda throttles every sweep until the hook ends": func(p *plot) {
			p.apps["c0"][0].Start = 20 * time.Minute // slow drains
			p.faultRules, p.calmFor = []string{"lambda-limit after=40m for=1h"}, 2*time.Hour
			p.acts = append(p.acts, act{at: 40 * time.Minute, cluster: "c0", what: "remove drover", do: func(w *world) {
				require.NotEmpty(w.t, w.observed.drainCalled)
				w.removeDrover(time.Minute)
			}})
		},
		"a control plane that could not be deleted is recreated with its spec": func(p *plot) {
			comesBack(p, false)
			p.breakAtBegin = sticks
		},
		"a pool is locked by a taint, and unlocked": func(p *plot) {
			lockPool(p, act{at: 50 * time.Minute, cluster: "c0", what: "roll a by hand", converge: true, roll: "a"})
			p.breakAtEnd = func(w *world) {
				require.NotZero(w.t, w.out.Acts["last-drain"])
				require.NotZero(w.t, w.out.Acts["wait"])
			}
		},
		"a protected spec is deleted when there is a network alone, without termination protection": func(p *plot) {
			networkAlone(p)
			p.breakAtEnd = func(w *world) {
				require.Equal(w.t, map[string]string{names.Network: "CREATE_COMPLETE"}, w.Stacks("c0"))
				require.Equal(w.t, status.ReasonDeletionProtected, reasonOf(w.Status("c0")))
			}
		},
		"a spec is protected, accepted and deleted while the network is created": func(p *plot) {
			protectedDuringCreation(p)
			p.breakAtEnd = func(w *world) {
				require.Equal(w.t, map[string]string{names.Network: "CREATE_COMPLETE"}, w.Stacks("c0"))
				require.Equal(w.t, status.ReasonDeletionProtected, reasonOf(w.Status("c0")))
			}
		},
		"a spec is protected and deleted before drover accepts it": func(p *plot) {
			protectedDuringCreation(p)
			p.acts[1].at, p.acts[2].at = 6*time.Second, 7*time.Second
			p.faultRules = []string{`drop event="Object Created" after=5s for=10s`}
			p.calmFor = time.Hour
			p.breakAtEnd = func(w *world) {
				require.Empty(w.t, w.Stacks("c0"))
			}
		},
		"an instance refresh that waits for drains is locked by a taint, and an operator cancels it": func(p *plot) {
			lockedRefresh(p)
			p.hooks = true
			p.acts = append(p.acts,
				act{at: 95 * time.Minute, cluster: "c0", what: "cancel the instance refresh by hand", do: func(w *world) {
					require.Equal(w.t, "UPDATE_IN_PROGRESS", w.Stacks("c0")[names.PoolStack("a")])
					w.affectedStacks("c0")[names.PoolStack("a")] = true
					_, err := awsautoscaling.NewFromConfig(w.Config()).CancelInstanceRefresh(w.t.Context(), &awsautoscaling.CancelInstanceRefreshInput{
						AutoScalingGroupName: aws.String(names.Group("c0", "a")), WaitForTransitioningInstances: aws.Bool(false),
					})
					require.NoError(w.t, err)
				}},
				act{at: 150 * time.Minute, cluster: "c0", what: "look", do: func(w *world) {
					require.Empty(w.t, w.unsettledPart("c0"), "the rollback brought nodes without the taint")
				}})
		},
		"an instance refresh is locked by a taint, and unlocked": func(p *plot) {
			lockedRefresh(p)
			p.acts = append(p.acts, act{at: 150 * time.Minute, cluster: "c0", what: "look", do: func(w *world) {
				require.Empty(w.t, w.unsettledPart("c0"), "the drain had its hour and a quarter, and each of the nodes ten minutes")
			}})
		},
		// A deletion uses the spec that change read.
		"a spec comes back when a control plane's deletion was begun": func(p *plot) {
			p.acts[1] = act{at: 30 * time.Minute, cluster: "c0", what: "delete", remove: true}
			p.last["c0"] = p.acts[0].spec
			p.breakAtBegin = func(w *world) {
				back := false
				w.OnCall(func(call endpoint.Call) error {
					if !back && call.Action == "DeleteStack" && strings.Contains(call.Resource, names.Stack("c0", names.ControlPlane)) {
						back = true
						w.do(act{cluster: "c0", what: "create again", spec: w.plot.last["c0"]})
					}
					return w.seeCall(call)
				})
			}
			p.breakAtEnd = func(w *world) {
				require.Equal(w.t, 2, w.out.Acts["create"])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := quiet()
			change(&p)
			o := run(t, 1, p, false)
			require.Empty(t, o.Violations, strings.Join(o.Story, "\n"))
		})
	}
}

// networkAlone deletes the spec of a protected cluster just before its control plane is created. The network's
// termination protection was disabled before.
func networkAlone(p *plot) {
	p.acts = p.acts[:1]
	p.acts[0].spec.protected = true
	p.last["c0"] = nil
	p.breakAtBegin = func(w *world) {
		instead(w, "change", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
			if strings.Contains(string(payload), `"stack":"control-plane"`) && w.desired["c0"] != nil {
				w.disableTerminationProtection("c0")
				w.do(act{cluster: "c0", what: "delete", remove: true})
			}
			return next.Invoke(ctx, payload)
		})
	}
}

// protectedDuringCreation creates a cluster without protection, and uploads a protected spec while its network is
// created. That spec is deleted before it can be planned.
func protectedDuringCreation(p *plot) {
	protected := *p.acts[0].spec
	protected.protected = true
	p.acts = []act{
		p.acts[0],
		{at: 10 * time.Second, cluster: "c0", what: "protect", spec: &protected},
		{at: 15 * time.Second, cluster: "c0", what: "turn termination protection off by hand", do: func(w *world) {
			w.disableTerminationProtection("c0")
		}},
		{at: 20 * time.Second, cluster: "c0", what: "delete", remove: true},
	}
	p.last["c0"] = nil
}

// lockPool replaces the only node of a cluster by one with a taint. The spec without the taint comes an hour later.
func lockPool(p *plot, between ...act) {
	first, last := *p.acts[0].spec, *p.acts[1].spec
	first.pools, last.pools = slices.Clone(first.pools), slices.Clone(last.pools)
	first.pools[0].min, first.pools[0].motd, last.pools[0].min = 1, 1, 1
	locked := last
	locked.pools = slices.Clone(last.pools)
	locked.lock(true)
	p.acts = []act{
		{cluster: "c0", what: "create", spec: &first},
		{at: 30 * time.Minute, cluster: "c0", what: "lock all pools by a taint", spec: &locked},
	}
	p.acts = append(append(p.acts, between...), act{at: 90 * time.Minute, cluster: "c0", what: "unlock all pools", spec: &last})
	p.last["c0"] = &last
	p.apps["c0"] = systemApps()
}

// lockedRefresh is locked with two nodes that an instance refresh replaces one at a time, each ended before its
// replacement starts.
func lockedRefresh(p *plot) {
	lockPool(p)
	for _, a := range p.acts {
		a.spec.pools[0].min, a.spec.pools[0].unavailable, a.spec.pools[0].surge, a.spec.pools[0].refresh = 2, 1, 0, true
	}
}

// comesBack deletes a spec and uploads it again later.
func comesBack(p *plot, protected bool) {
	back := *p.acts[0].spec
	back.protected = protected
	p.acts[1] = act{at: 30 * time.Minute, cluster: "c0", what: "delete", remove: true}
	p.acts = append(p.acts, act{at: 3 * time.Hour, cluster: "c0", what: "create again", spec: &back})
	p.last["c0"] = &back
}

// CloudFormation sends the events of a later stack under another ID. They may be lost.
func TestHasLaterEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "drover-c0-addons"
		w := &world{turns: newTurns(nil), observed: newObserved()}
		w.seeStack(name, "DELETE_COMPLETE")
		handled := handledEvent{status: "DELETE_COMPLETE", at: time.Now().Truncate(time.Second), handled: time.Now()}
		require.False(t, w.hasLaterEvent(name, handled))
		time.Sleep(time.Minute)
		w.seeStack("drover-c0-network", "UPDATE_IN_PROGRESS")
		require.False(t, w.hasLaterEvent(name, handled), "of another stack")
		w.seeStack(name, "CREATE_IN_PROGRESS")
		require.True(t, w.hasLaterEvent(name, handled))
	})
}
