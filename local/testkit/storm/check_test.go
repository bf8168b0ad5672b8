package storm

// A storm that cannot fail is worthless: each check finds the violation that it exists for.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	stacks "github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// quiet returns a cluster of three nodes that is created and whose nodes are replaced once, without faults.
func quiet() plot {
	first := wish{
		name: "c0", minor: firstMinor, pools: []wishedPool{{name: "a", min: 3, max: 4, timeout: time.Hour, onTimeout: "Wait", surge: 1}},
	}
	second := first
	second.pools = []wishedPool{first.pools[0]}
	second.pools[0].motd = 1
	return plot{
		acts: []act{{cluster: "c0", what: "create", spec: &first}, {at: 30 * time.Minute, cluster: "c0", what: "replace", spec: &second}},
		last: map[string]*wish{"c0": &second},
		apps: map[string][]apiserver.App{
			"c0": {{Name: "web", Replicas: 6, MaxUnavailable: 1, Start: time.Minute, Stop: 10 * time.Second, Grace: 30 * time.Second}},
		},
	}
}

// longerThanOperators is longer than operators help a cluster that does not converge: three times, with patience between. Every
// violation of these worlds shows by then, so they do not wait for maxSettleTime.
const longerThanOperators = 4 * patience

// terminations is the rule of a fault: the events of instances to drain are lost.
const terminations = `drop event="EC2 Instance-terminate Lifecycle Action"`

// instead replaces a function, or runs before it.
func instead(w *world, step string, do func(ctx context.Context, cfg aws.Config, payload []byte, next awslambda.Handler) ([]byte, error)) {
	w.Functions.Around(step, func(cfg aws.Config, next awslambda.Handler) awslambda.Handler {
		return harness.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) { return do(ctx, cfg, payload, next) })
	})
}

// everything has each function.
type everything struct{}

func (everything) Exists(context.Context, string) (bool, error) { return true, nil }

func TestEveryCheckCanFail(t *testing.T) {
	tests := map[string]struct {
		invariant int
		change    func(*plot)
		says      string
	}{
		"the event of a spec is lost": {0, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				for _, step := range []string{"admit", "sweep"} {
					instead(w, step, func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
				}
			}
		}, "not converged"},
		"a deleted relay is not recreated": {0, func(p *plot) {
			for _, a := range p.acts {
				a.spec.private = true
			}
			p.acts = append(p.acts, act{at: 25 * time.Minute, cluster: "c0", what: "delete the relay", do: func(w *world) { w.deleteRelay("c0") }})
			p.sortActs()
			p.breakAtBegin = func(w *world) { w.Functions.Planner.Functions = everything{} }
		}, "not converged"},
		"nothing continues after drover was removed": {0, func(p *plot) {
			p.acts = append(p.acts, act{
				at: 32 * time.Minute, cluster: "c0", what: "remove drover", do: func(w *world) { w.removeDrover(time.Minute) },
			})
			p.breakAtBegin = func(w *world) {
				instead(w, "sweep", func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
			}
		}, "not converged"},
		"the access of a recreated role is not restored": {0, func(p *plot) {
			p.acts = append(p.acts, act{at: 29 * time.Minute, cluster: "c0", what: "recreate a role", do: func(w *world) { w.RecreateRole("join") }})
			p.sortActs()
		}, "not converged"},
		"KMS never learns new permissions": {0, func(p *plot) {
			p.breakAtBegin = func(w *world) { w.Keys.Delay(5*time.Minute, 5*time.Minute) }
		}, "not converged"},
		"a template is written twice": {1, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				list, err := w.State().List(context.Background(), "templates/")
				require.NoError(w.t, err)
				_, err = w.State().Put(context.Background(), list[0].Key, []byte("other"))
				require.NoError(w.t, err)
			}
		}, "is not what its address says"},
		"a plan writes without a change": {2, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				instead(w, "plan", func(ctx context.Context, cfg aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					_, err := s3adapter.NewClient(cfg).PutObject(ctx, putObject("status/clusters/other.json"))
					require.NoError(w.t, err)
					return next.Invoke(ctx, payload)
				})
			}
		}, "nothing has changed, and plan called PutObject"},
		"each plan removes a next upgrade, and none ended": {2, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", nextUpgrade))
				afterPlan(w, nextUpgrade)
			}
		}, "nothing has changed, and plan called PutObject"},
		"a cluster is Ready too early": {2, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				instead(w, "plan", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					answer, err := next.Invoke(ctx, payload)
					return bytes.Replace(answer, []byte(`"outcome":"Changes"`), []byte(`"outcome":"Unchanged"`), 1), err
				})
			}
		}, "became Ready and would be changed"},
		"an upgrade begins outside its window": {2, func(p *plot) {
			for _, a := range p.acts {
				a.spec.gate = gate{notBefore: 100 * day}
			}
			p.breakAtEnd = func(w *world) {
				w.Upgrade(events.Upgrade{Cluster: "c0", Release: release(firstMinor, 1), Origin: string(upgrade.OriginSpec), Key: "spec early"})
				w.wait(time.Since(w.began) + time.Hour)
			}
		}, "no spec let it"},
		"an upgrade is announced for later than its window": {2, func(p *plot) {
			p.acts[1].spec.gate = gate{opens: 3 * time.Hour, lasts: time.Hour}
			p.breakAtEnd = func(w *world) {
				at := w.began.Add((time.Since(w.began) + 2*day).Truncate(day) + 3*time.Hour)
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", func(s *status.Status) {
					s.Upgrade = &status.Upgrade{
						Phase: status.UpgradeScheduled, To: release(firstMinor+1, 0), At: &at, Message: "it waits for the window of spec.upgrade",
					}
				}))
			}
		}, "and the window opens at 3h0m0s"},
		"a preview omits an upgrade": {3, func(p *plot) {
			p.acts[1].spec.minor++
			p.last["c0"] = p.acts[1].spec
			p.changeForecast = func(f *planner.Forecast) { f.Upgrade = nil }
		}, "before the upload no upgrade begins, and then an upgrade to "},
		"a preview omits a stack": {3, func(p *plot) {
			p.changeForecast = func(f *planner.Forecast) { f.Plan.Changes = nil }
		}, "before the upload these stacks would change: []"},
		"a control plane is deleted": {3, func(p *plot) {
			p.breakAtEnd = func(w *world) { w.deleteProtectedStack("drover-c0-control-plane") }
		}, "is deleted without a request"},
		"a control plane is deleted although its spec was restored": {3, func(p *plot) {
			p.acts[1] = act{at: 30 * time.Minute, cluster: "c0", what: "delete", remove: true}
			p.last["c0"] = p.acts[0].spec
			p.breakAtBegin = func(w *world) {
				instead(w, "change", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					var in events.ChangeRequest
					require.NoError(w.t, json.Unmarshal(payload, &in))
					if in.Stack != names.ControlPlane || w.desired["c0"] != nil {
						return next.Invoke(ctx, payload)
					}
					w.do(act{cluster: "c0", what: "create again", spec: w.plot.last["c0"]})
					name := names.Stack("c0", names.ControlPlane) // without reading the spec again
					_, err := w.CloudFormation.DeleteStack(ctx, w.Admin(), &stacks.DeleteStackInput{StackName: name})
					return []byte("{}"), err
				})
			}
		}, "is deleted without a request"},
		"a control plane is deleted although its spec was restored since the last read": {3, func(p *plot) {
			p.acts[1] = act{at: 30 * time.Minute, cluster: "c0", what: "delete", remove: true}
			p.last["c0"] = p.acts[0].spec
			p.breakAtBegin = func(w *world) {
				tried := false
				instead(w, "change", func(ctx context.Context, cfg aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					var in events.ChangeRequest
					require.NoError(w.t, json.Unmarshal(payload, &in))
					switch {
					case in.Stack != names.ControlPlane || !tried && w.desired["c0"] != nil:
						return next.Invoke(ctx, payload)
					case !tried:
						tried = true
						w.OnCall(func(call endpoint.Call) error {
							if call.Action == "DeleteStack" {
								return &wire.Error{Code: "InternalFailure", Message: "not now", Status: 500}
							}
							return w.seeCall(call)
						})
						answer, err := next.Invoke(ctx, payload)
						w.OnCall(w.seeCall)
						w.do(act{cluster: "c0", what: "create again", spec: w.plot.last["c0"]})
						return answer, err
					}
					return []byte("{}"), deleteControlPlane(ctx, cfg)
				})
			}
		}, "is deleted without a request"},
		"a half deleted control plane is deleted although its protected spec was restored": {3, func(p *plot) {
			comesBack(p, true)
			p.breakAtBegin = func(w *world) {
				sticks(w)
				instead(w, "change", func(ctx context.Context, cfg aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					var in events.ChangeRequest
					require.NoError(w.t, json.Unmarshal(payload, &in))
					if in.Stack != names.ControlPlane || w.Stacks("c0")[names.ControlPlane] != "DELETE_FAILED" || w.desired["c0"] == nil {
						return next.Invoke(ctx, payload)
					}
					return []byte("{}"), deleteControlPlane(ctx, cfg)
				})
			}
		}, "is deleted without a request"},
		"a second network is created for a cluster": {3, func(p *plot) {
			p.acts[1].spec.protected = true
			p.breakAtEnd = func(w *world) {
				w.deleteLiveStack("c0", names.Network)
				w.wait(time.Since(w.began) + 10*time.Minute)
				_, err := w.CloudFormation.CreateStack(context.Background(), w.Admin(), &stacks.CreateStackInput{
					StackName:    "drover-c0-network",
					TemplateBody: `{"Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}}`,
				})
				require.NoError(w.t, err)
				w.wait(time.Since(w.began) + 10*time.Minute)
			}
		}, "is created next to the EKS cluster"},
		"a status does not follow a stack": {9, func(p *plot) {
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "forge a stack's status", do: func(w *world) {
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", func(s *status.Status) {
					s.Stacks[0].Status = "UPDATE_IN_PROGRESS"
				}))
			}})
		}, "but an event reported CREATE_COMPLETE"},
		"an execution writes the status of a name without a spec": {9, func(p *plot) {
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "forge a status", do: func(w *world) {
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), unknownCluster, func(s *status.Status) { s.Phase = status.Stopped }))
			}})
		}, "has neither a spec nor stacks, and a status"},
		"a missing network is not reported": {0, func(p *plot) {
			p.acts[1].spec.protected = true
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "lose the network", do: func(w *world) {
				silent := func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil }
				instead(w, "stackevent", silent)
				instead(w, "sweep", silent)
				w.deleteLiveStack("c0", names.Network)
			}})
		}, "it lost its network"},
		"an external version change is not reported": {0, func(p *plot) {
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "move", do: func(w *world) {
				w.changeVersion("c0", firstMinor+1)
				instead(w, "sweep", func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
			}})
		}, "its control plane was moved"},
		"a protected cluster is deleted with its spec": {11, func(p *plot) {
			p.acts[1].spec.protected = true
			p.breakAtEnd = func(w *world) {
				w.do(act{cluster: "c0", what: "delete", remove: true})
				w.deleteProtectedStack("drover-c0-control-plane")
			}
		}, "and it is protected"},
		"a protected cluster is deleted because termination protection is off": {11, func(p *plot) {
			p.acts[1].spec.protected = true
			p.breakAtEnd = func(w *world) {
				w.disableTerminationProtection("c0")
				w.do(act{cluster: "c0", what: "delete", remove: true})
				w.deleteProtectedStack("drover-c0-control-plane")
			}
		}, "and it is protected"},
		"a protected network without a control plane is deleted": {11, func(p *plot) {
			networkAlone(p)
			p.breakAtEnd = func(w *world) {
				w.deleteProtectedStack("drover-c0-network")
			}
		}, "and it is protected"},
		"a network is deleted although its protected spec was accepted before it was planned": {11, func(p *plot) {
			protectedDuringCreation(p)
			p.breakAtEnd = func(w *world) {
				w.deleteProtectedStack("drover-c0-network")
			}
		}, "and it is protected"},
		"a volume is deleted after the control plane that used it": {11, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				w.createKubernetesResources("c0")
				nothing := func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil }
				instead(w, "sweep", nothing) // an audit would recreate the control plane
				w.deleteLiveStack("c0", names.ControlPlane)
				w.wait(time.Since(w.began) + time.Hour)
				instead(w, "clean", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					err := w.State().UpdateStatus(ctx, "c0", func(s *status.Status) { s.Deletion = &status.Deletion{RetainListed: true} })
					require.NoError(w.t, err)
					return next.Invoke(ctx, payload)
				})
				w.do(act{cluster: "c0", what: "delete", remove: true})
				w.wait(time.Since(w.began) + 2*time.Hour)
			}
		}, "its API was never asked which to retain"},
		"a lease is never released": {4, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				_, err := w.State().Put(context.Background(), names.Lease("c0"), []byte(`{"execution": "arn:deleted", "fence": 9}`))
				require.NoError(w.t, err)
			}
		}, "the lease is still held"},
		"an execution without the lease changes a stack": {4, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				instead(w, "change", func(ctx context.Context, cfg aws.Config, _ []byte, _ awslambda.Handler) ([]byte, error) {
					_, err := w.State().Put(ctx, names.Lease("c0"), []byte(`{"execution": "arn:another", "fence": 9}`))
					require.NoError(w.t, err)
					_, err = cloudformation.NewFromConfig(cfg).DeleteStack(ctx, &cloudformation.DeleteStackInput{
						StackName: aws.String("drover-c0-network"),
					})
					return []byte("{}"), err
				})
			}
		}, "and the lease is of arn:another"},
		"a deleted cluster has leftovers": {11, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				w.do(act{cluster: "c0", what: "delete", remove: true})
				w.wait(time.Since(w.began) + 2*time.Hour)
				_, err := w.EC2.CreateVolume(harness.Region+"a", 10, map[string]string{names.OwnershipTag("c0"): "owned"})
				require.NoError(w.t, err)
			}
		}, "is left of c0"},
		"a pool changes without a new spec": {5, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				other := *w.desired["c0"]
				other.pools = []wishedPool{{name: "a", min: 2, max: 3, motd: 7, timeout: time.Hour, onTimeout: "Wait", surge: 1}}
				w.recordAffectedStacks("c0", w.desired["c0"], w.desired["c0"])
				w.versions["c0"] = w.Upload(names.ClusterSpec("c0"), other.yaml(w.began))
				w.wait(time.Since(w.began) + time.Hour)
			}
		}, "no change was about it"},
		"a node is newer than its control plane": {6, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				client, _, err := w.EKS.Administrator(names.EKSCluster("c0"))
				require.NoError(w.t, err)
				addNode(w.t, client, "v1.99.0")
			}
		}, "newer than its control plane"},
		"a control plane is downgraded": {6, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				name := names.Stack("c0", names.ControlPlane)
				was, err := w.CloudFormation.GetTemplate(context.Background(), w.Admin(), &stacks.GetTemplateInput{StackName: name})
				require.NoError(w.t, err)
				older := strings.Replace(was.TemplateBody, fmt.Sprintf("1.%d", firstMinor), fmt.Sprintf("1.%d", firstMinor-1), 1)
				require.NotEqual(w.t, was.TemplateBody, older)
				in := &stacks.UpdateStackInput{StackName: name, TemplateBody: older, Capabilities: []string{"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"}}
				for parameter := range w.Stack("c0", names.ControlPlane).Parameters {
					in.Parameters = append(in.Parameters, stacks.Parameter{ParameterKey: parameter, UsePreviousValue: true})
				}
				_, err = w.CloudFormation.UpdateStack(context.Background(), w.Admin(), in)
				require.NoError(w.t, err)
				w.wait(time.Since(w.began) + 10*time.Minute)
			}
		}, "is rolled back from 1.34 to 1.33 without a rollback"},
		"pods are deleted instead of evicted": {7, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				instead(w, "drain", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					client, _, err := w.EKS.Administrator(names.EKSCluster("c0"))
					require.NoError(w.t, err)
					deletePods(w.t, client, w.API(names.EKSCluster("c0")))
					return next.Invoke(ctx, payload)
				})
			}
		}, "before its drain's time was over"},
		"nodes are terminated with their pods": {7, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				instead(w, "drain", func(ctx context.Context, cfg aws.Config, payload []byte, _ awslambda.Handler) ([]byte, error) {
					var in events.DrainRequest
					require.NoError(w.t, json.Unmarshal(payload, &in))
					_, err := autoscaling.New(awsautoscaling.NewFromConfig(cfg)).Complete(ctx, *in.Lifecycle, pool.Continue)
					return []byte(`{"outcome": "Done"}`), err
				})
			}
		}, "went with"},
		"a node is not drained despite the sweep": {7, func(p *plot) {
			p.faultRules, p.calmFor = []string{terminations + " after=30m"}, time.Hour
			p.acts = append(p.acts, act{at: 30 * time.Minute, cluster: "c0", what: "stop looking", do: func(w *world) {
				instead(w, "sweep", func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
			}})
		}, "went with"},
		"a drain is not continued after drover was removed": {7, func(p *plot) {
			p.apps["c0"][0].Start = 20 * time.Minute // slow drains
			p.calmFor = 2 * time.Hour
			p.acts = append(p.acts, act{at: 40 * time.Minute, cluster: "c0", what: "remove drover", do: func(w *world) {
				instead(w, "sweep", func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
				w.removeDrover(time.Minute)
			}})
		}, "went with"},
		// join-node keeps a hook open for a day.
		"a healthy node is abandoned, because the account is at its Lambda limit for 30 hours": {13, func(p *plot) {
			p.faultRules, p.calmFor = []string{"lambda-limit after=1h for=30h"}, 32*time.Hour
			p.acts = append(p.acts, act{at: time.Hour + time.Minute, cluster: "c0", what: "scale", do: func(w *world) {
				w.autoscale("c0", "a", 1)
			}})
		}, "and its node is Ready"},
		"nodes are signalled before old ones have been drained": {8, func(p *plot) {
			p.apps["c0"][0].Start = 20 * time.Minute // slow drains
			p.breakAtBegin = func(w *world) {
				instead(w, "join", func(ctx context.Context, cfg aws.Config, payload []byte, _ awslambda.Handler) ([]byte, error) {
					var in events.JoinRequest
					require.NoError(w.t, json.Unmarshal(payload, &in))
					_, err := cloudformation.NewFromConfig(cfg).SignalResource(ctx, &cloudformation.SignalResourceInput{
						StackName: &in.AutoScalingGroupName, LogicalResourceId: aws.String(names.GroupResource), UniqueId: &in.EC2InstanceID,
						Status: "SUCCESS",
					})
					if err == nil {
						_, err = autoscaling.New(awsautoscaling.NewFromConfig(cfg)).Complete(ctx, in.Lifecycle, pool.Continue)
					}
					return []byte(`{"outcome": "Ready"}`), err
				})
			}
		}, "in service during its update"},
		"an autoscaler's nodes are removed": {5, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				w.autoscale("c0", "a", 1)
				w.wait(time.Since(w.began) + 10*time.Minute)
				_, err := awsautoscaling.NewFromConfig(w.Config()).SetDesiredCapacity(context.Background(), &awsautoscaling.SetDesiredCapacityInput{
					AutoScalingGroupName: aws.String("drover-c0-pool-a"), DesiredCapacity: aws.Int32(3),
				})
				require.NoError(w.t, err)
				w.wait(time.Since(w.began) + 10*time.Minute)
			}
		}, "an autoscaler chose 4 for drover-c0-pool-a, and it has 3"},
		"the audit replaces all nodes at once": {8, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				for _, i := range w.observed.groupViews["drover-c0-pool-a"].Instances {
					require.NoError(w.t, w.Functions.Sweep.Groups.MarkUnhealthy(context.Background(), i.ID))
				}
				w.wait(time.Since(w.began) + time.Minute)
			}
		}, "the audit has 2 instances of drover-c0-pool-a replaced at once"},
		"a release gets no verdict": {0, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				for _, step := range []string{"publish", "sweep"} {
					instead(w, step, func(context.Context, aws.Config, []byte, awslambda.Handler) ([]byte, error) { return []byte("{}"), nil })
				}
				w.uploadRelease(firstMinor, 1)
			}
		}, "is not about what is there"},
		"a roll is lost": {9, func(p *plot) {
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "roll a by hand", roll: "a"})
			p.breakAtBegin = func(w *world) {
				instead(w, "plan", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					return next.Invoke(ctx, bytes.ReplaceAll(payload, []byte(`"roll":["a"]`), []byte(`"roll":[]`)))
				})
			}
		}, "of pool a is lost"},
		"a paused cluster accepts a roll": {9, func(p *plot) {
			paused := *p.acts[1].spec
			paused.paused = true
			again := paused
			again.paused = false
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "pause", spec: &paused},
				act{at: 2*time.Hour + time.Minute, cluster: "c0", what: "roll a by hand", roll: "a"},
				act{at: 3 * time.Hour, cluster: "c0", what: "continue", spec: &again})
			p.last["c0"] = &again
			p.breakAtBegin = func(w *world) {
				instead(w, "plan", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					return next.Invoke(ctx, bytes.ReplaceAll(payload, []byte(`"roll":["a"]`), []byte(`"roll":[]`)))
				})
			}
		}, "is paused, and the roll"},
		"an upgrade with nothing to do is recorded": {2, func(p *plot) {
			p.acts = append(p.acts, act{at: 2 * time.Hour, cluster: "c0", what: "upgrade by hand to the deployed version",
				do: func(w *world) { w.upgrade(events.Upgrade{Cluster: "c0", Release: release(firstMinor, 0)}) }})
			p.breakAtBegin = func(w *world) {
				instead(w, "upgrade", func(ctx context.Context, cfg aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					var in events.UpgradeRequest
					if err := json.Unmarshal(payload, &in); err != nil {
						return nil, err
					}
					body, err := json.Marshal(upgrade.Record{Number: 1, Execution: in.Execution, State: upgrade.Done})
					if err != nil {
						return nil, err
					}
					if _, err := s3adapter.NewBucket(s3adapter.NewClient(cfg), harness.StateBucket).Put(ctx, names.Upgrade("c0"), body); err != nil {
						return nil, err
					}
					return []byte(`{"outcome":"Nothing","message":"done"}`), nil
				})
			}
		}, "is answered with Nothing, and recorded"},
		"a waiter is not deleted": {9, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				_, err := w.State().Put(context.Background(), names.Waiter("drover-c0-network"), []byte("{}"))
				require.NoError(w.t, err)
			}
		}, "waiters are left"},
		"the actions of an alarm stay disabled": {9, func(p *plot) {
			p.acts[0].spec.alarm = true
			p.breakAtEnd = func(w *world) {
				_, err := w.cloudwatch().DisableAlarmActions(context.Background(), &cloudwatch.DisableAlarmActionsInput{
					AlarmNames: []string{alarmOf("c0")},
				})
				require.NoError(w.t, err)
			}
		}, "the actions of alarm c0-is-down are off"},
		"a deleted stack has leftovers": {11, func(p *plot) {
			p.breakAtEnd = func(w *world) {
				of := map[string]string{"aws:cloudformation:stack-id": "arn:deleted"}
				_, err := w.EC2.CreateVolume(harness.Region+"a", 10, of)
				require.NoError(w.t, err)
			}
		}, "is left of arn:deleted"},
		"a late function shows an upgrade in flight after its end": {9, func(p *plot) {
			p.acts[1].spec.minor++
			p.last["c0"] = p.acts[1].spec
			p.breakAtEnd = func(w *world) {
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", func(s *status.Status) {
					late := s.Upgrades[0]
					late.Phase, late.Ended = string(upgrade.Running), nil
					s.Phase, s.Upgrade = status.Upgrading, &late
				}))
				w.wait(time.Since(w.began) + time.Minute)
			}
		}, "c0 is Upgrading, and the upgrade that it shows has ended"},
		"an upload extends the wait for a drain": {9, func(p *plot) {
			lockPool(p, act{at: 50 * time.Minute, cluster: "c0", what: "roll a by hand", converge: true, roll: "a"})
			p.breakAtBegin = func(w *world) {
				instead(w, "change", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					answer, err := next.Invoke(ctx, payload)
					require.NoError(w.t, w.State().UpdateStatus(ctx, "c0", func(s *status.Status) {
						for i, stack := range s.Stacks {
							if stack.Delay != nil && !stack.Delay.Until.IsZero() { // as if the drain had begun with this execution
								s.Stacks[i].Delay = &status.Delay{Message: stack.Delay.Message, Until: time.Now().Add(time.Hour + waitGrace)}
							}
						}
					}))
					return answer, err
				})
			}
		}, "and the drains have had their time at"},
		"a Ready cluster does not report a blocked drain": {9, func(p *plot) {
			lockPool(p)
			p.breakAtBegin = func(w *world) {
				instead(w, "report", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
					require.NoError(w.t, w.State().UpdateStatus(ctx, "c0", func(s *status.Status) { s.Nodes = nil }))
					return next.Invoke(ctx, payload)
				})
			}
		}, "is still being drained"},
		"a Ready message omits a drain of its status": {9, func(p *plot) {
			lockPool(p, act{at: 50 * time.Minute, cluster: "c0", what: "forget", do: func(w *world) {
				require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", func(s *status.Status) { s.Message = status.AsSpecified }))
			}})
		}, "its message does not agree with its nodes"},
		"a change that a plan calls in place replaces nodes": {14, func(p *plot) {
			p.breakAtBegin = func(w *world) {
				afterPlan(w, func(s *status.Status) {
					for i := range s.Plan {
						s.Plan[i].Effect = status.InPlace
					}
				})
			}
		}, "is in place, and these instances are replaced"},
		"a function lacks a permission": {12, func(p *plot) {
			p.identities = func(written *iam.Definitions) { forbid(written, "eks:DescribeClusterVersions") }
		}, "may not eks DescribeClusterVersions"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var o *Outcome
			for seed := range uint64(20) { // the placement of pods and the order of arrivals are random
				p := quiet()
				p.settleTime = longerThanOperators
				test.change(&p)
				o = run(t, 1+seed, p, false)
				if len(o.Violations) > 0 && strings.Contains(o.Violations[0].What, test.says) {
					require.Equal(t, test.invariant, o.Violations[0].Invariant, o.Violations)
					return
				}
			}
			require.Fail(t, "not reported: "+test.says, "%v\n%s", o.Violations, strings.Join(o.Story, "\n"))
		})
	}
	t.Run("a quiet world breaks none", func(t *testing.T) {
		o := run(t, 1, quiet(), false)
		require.Empty(t, o.Violations, strings.Join(o.Story, "\n"))
		for _, invariant := range []int{1, 2, 4, 5, 6, 7, 8, 9, 12} {
			require.NotZero(t, o.Checks[invariant], invariant)
		}
	})
}
