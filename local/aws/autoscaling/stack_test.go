package autoscaling

// Groups in stacks: CloudFormation's update policies with a template's parameters, and rollbacks.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/clock"
)

// poolTemplate has an update policy with parameters, like a pool's template.
const poolTemplate = `{
  "Parameters": {
    "Image": {"Type": "String"}, "Subnets": {"Type": "CommaDelimitedList"}, "Security": {"Type": "String"},
    "Max": {"Type": "Number"}, "Batch": {"Type": "Number"}, "Least": {"Type": "Number"}, "LowPercent": {"Type": "Number"},
	"HighPercent": {"Type": "Number"}
  },
  "Resources": {
    "Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": {"ImageId": {"Ref": "Image"},
	"InstanceType": "m6i.large", "SecurityGroupIds": [{"Ref": "Security"}]}}},
    "Group": {
      "Type": "AWS::AutoScaling::AutoScalingGroup",
      "CreationPolicy": {"ResourceSignal": {"Count": 4, "Timeout": "PT15M"}},
      "UpdatePolicy": {%s},
      "Properties": {
        "AutoScalingGroupName": "pool", "MinSize": "4", "MaxSize": {"Ref": "Max"}, "VPCZoneIdentifier": {"Ref": "Subnets"},
        "LaunchTemplate": {"LaunchTemplateId": {"Ref": "Template"}, "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}},
        "LifecycleHookSpecificationList": [
          {"LifecycleHookName": "launch", "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "HeartbeatTimeout": 900,
	"DefaultResult": "ABANDON"},
          {"LifecycleHookName": "terminate", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", ` +
	`"HeartbeatTimeout": 1800, "DefaultResult": "CONTINUE"}]
      }
    }
  }
}`

const (
	rollingPolicy = `"AutoScalingRollingUpdate": {"MinInstancesInService": {"Ref": "Least"}, "MaxBatchSize": {"Ref": "Batch"},
		"PauseTime": "PT1H",
		"WaitOnResourceSignals": true, "SuspendProcesses": ["HealthCheck", "ReplaceUnhealthy", "AZRebalance", "AlarmNotification", ` +
		`"ScheduledActions"]}`
	refreshPolicy = `"AutoScalingInstanceRefresh": {"Strategy": "Rolling", "Preferences": {
		"MinHealthyPercentage": {"Ref": "LowPercent"}, "MaxHealthyPercentage": {"Ref": "HighPercent"}, "SkipMatching": true}}`
)

// inStack is a pool in a stack. The test sets how its instances join and drain.
type inStack struct {
	*world
	stacks *cloudformation.Service
	policy string
	given  map[string]string
	// joins decides about the nth instance after creation: it joins and sends SUCCESS, or it does not join, and sends FAILURE or nothing.
	joins    func(n int, image string) string
	launched int
	nodes    map[string]bool
	// drains is the time that each termination hook is held.
	drains time.Duration
	*extremes
	suspended []string // the longest list of suspended processes
}

func runStack(t *testing.T, policy string, test func(p *inStack)) {
	for kind, waits := range map[string]bool{"waiting for terminate hooks": true, "not waiting": false} {
		t.Run(kind, func(t *testing.T) {
			run(t, func(w *world) {
				w.Service.WaitForTerminateHooks(waits)
				p := &inStack{world: w, policy: policy, nodes: map[string]bool{}, drains: 10 * time.Minute, joins: func(int, string) string {
					return "SUCCESS"
				}}
				p.stacks = cloudformation.New(cloudformation.Config{Region: region, Account: account, Clock: &clock.Clock{}, Roles: w.iam})
				defer p.stacks.Close()
				p.stacks.Register(w.ec2.Resources())
				p.stacks.Register(w.Resources())
				var subnets []string
				for _, s := range w.subnets {
					subnets = append(subnets, s.(string))
				}
				p.given = map[string]string{
					"Image": ec2.ImageID("1.36", "x86_64"), "Subnets": strings.Join(subnets, ","), "Security": w.group,
					"Max": "4", "Least": "3", "Batch": "1", "LowPercent": "75", "HighPercent": "100",
				}
				w.onLaunch = func(id string) string { go p.join(id, "SUCCESS"); return "" }
				w.onTerminate = func(id string) string { go p.drain(id); return "" }
				_, err := p.stacks.CreateStack(w.Context(), w.admin, &cloudformation.CreateStackInput{
					StackName: "pool", TemplateBody: fmt.Sprintf(poolTemplate, policy), Parameters: p.parameters(),
				})
				require.NoError(t, err)
				require.Equal(t, "CREATE_COMPLETE", p.await())
				w.mu.Lock()
				w.onLaunch = func(id string) string {
					p.launched++
					go p.join(id, p.joins(p.launched, p.imageOf(id)))
					return ""
				}
				w.mu.Unlock()
				settle(time.Minute)
				p.extremes = w.extremes()
				defer p.stop()
				defer w.Watch("pool", func(v View) {
					if len(v.Suspended) > len(p.suspended) {
						p.suspended = v.Suspended
					}
				})()
				test(p)
				settle(3 * time.Hour)
				synctest.Wait()
				require.Empty(t, w.groups[0].suspended, "what was suspended is resumed, whatever came")
			})
		})
	}
}

// join acts like drover's join function: it completes the launch hook of a Ready node and, when no other node is being drained, sends the
// signal. An instance refresh has no signals: join holds the launch hook for the same time.
func (p *inStack) join(id, status string) {
	time.Sleep(time.Minute)
	quiet := func() bool {
		return !slices.ContainsFunc(p.members(), func(m member) bool { return m.state == terminating || m.state == terminatingWait })
	}
	refreshes := p.policy == refreshPolicy
	for refreshes && !quiet() {
		time.Sleep(time.Second)
	}
	switch status {
	case "SUCCESS":
		p.world.mu.Lock()
		p.nodes[id] = true
		p.world.mu.Unlock()
		_ = p.answer(p.admin, "pool", "launch", "", id, "CONTINUE")
	default:
		_ = p.answer(p.admin, "pool", "launch", "", id, "ABANDON")
	}
	for time.Sleep(time.Second); !quiet(); { // until Auto Scaling has it in service
		time.Sleep(time.Second)
	}
	if status == "" {
		return
	}
	_, _ = p.stacks.SignalResource(p.Context(), p.admin, &cloudformation.SignalResourceInput{
		StackName: "pool", LogicalResourceId: "Group", UniqueId: id, Status: status,
	})
}

func (p *inStack) imageOf(id string) string {
	i, err := p.ec2.Instance(id)
	require.NoError(p, err)
	return i.ImageID
}

// drain holds the termination hook of a node.
func (p *inStack) drain(id string) {
	p.world.mu.Lock()
	was := p.nodes[id]
	p.world.mu.Unlock()
	if was {
		time.Sleep(p.drains)
	}
	_ = p.answer(p.admin, "pool", "terminate", "", id, "CONTINUE")
}

func (p *inStack) parameters() (list []cloudformation.Parameter) {
	for _, key := range slices.Sorted(maps.Keys(p.given)) {
		list = append(list, cloudformation.Parameter{ParameterKey: key, ParameterValue: p.given[key]})
	}
	return list
}

// change updates the stack's parameters. begin only starts the update.
func (p *inStack) change(given map[string]string) string {
	p.Helper()
	p.begin(given)
	return p.await()
}

func (p *inStack) begin(given map[string]string) {
	p.Helper()
	maps.Copy(p.given, given)
	_, err := p.stacks.UpdateStack(p.Context(), p.admin, &cloudformation.UpdateStackInput{
		StackName: "pool", UsePreviousTemplate: true, Parameters: p.parameters(),
	})
	require.NoError(p, err)
}

func (p *inStack) await() string {
	p.Helper()
	st, err := p.stacks.Wait(p.Context(), "pool")
	require.NoError(p, err)
	return st.StackStatus
}

func (p *inStack) versions() (list []int) {
	for _, m := range p.members() {
		if !m.leaving() {
			list = append(list, m.template.Version)
		}
	}
	slices.Sort(list)
	return list
}

var newImage = ec2.ImageID("1.37", "x86_64")

// The parameters of an update apply to it, including the maximum size: the group grows beyond its previous maximum.
func TestParametersOfAnUpdateHoldForIt(t *testing.T) {
	for name, test := range map[string]struct {
		policy      string
		given       map[string]string
		least, most int
		out         int
		suspended   int
	}{
		"surge 2 of a group at its maximum size": {
			policy: rollingPolicy, given: map[string]string{"Max": "6", "Least": "4", "Batch": "2"}, least: 4, most: 6, out: 2, suspended: 5,
		},
		"one may be out": {
			policy: rollingPolicy, given: map[string]string{"Least": "3", "Batch": "1"}, least: 3, most: 4, out: 1, suspended: 5,
		},
		"two out and one more": {
			policy: rollingPolicy, given: map[string]string{"Max": "5", "Least": "2", "Batch": "3"}, least: 2, most: 5, out: 3, suspended: 5,
		},
		"a refresh, surge 2": {
			policy: refreshPolicy, given: map[string]string{"Max": "6", "LowPercent": "100", "HighPercent": "150"}, least: 4, most: 6, out: 2,
		},
		"a refresh with one out": {
			policy: refreshPolicy, given: map[string]string{"LowPercent": "75", "HighPercent": "100"}, least: 3, most: 4, out: 1,
		},
		"a refresh with one out and one more": {
			policy: refreshPolicy, given: map[string]string{"Max": "5", "LowPercent": "75", "HighPercent": "125"}, least: 3, most: 5, out: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			runStack(t, test.policy, func(p *inStack) {
				require.Equal(p, "UPDATE_COMPLETE", p.change(with2(test.given, "Image", newImage)))
				settle(time.Hour)
				require.Equal(p, []int{2, 2, 2, 2}, p.versions())
				require.Equal(p, []int{
					test.least, test.most, test.out,
				}, []int{p.least, p.most, p.out}, "in service at least, there at most, out at most")
				require.Len(p, p.suspended, test.suspended)
				// The size is restored without replacing an instance.
				before := p.ids()
				if p.given["Max"] != "4" {
					require.Equal(p, "UPDATE_COMPLETE", p.change(map[string]string{"Max": "4"}))
					settle(time.Hour)
				}
				require.Equal(p, before, p.ids())
			})
		})
	}
}

func with2(base map[string]string, key, value string) map[string]string {
	m := maps.Clone(base)
	m[key] = value
	return m
}

// failsAfter makes instances of an image fail after the first n.
func failsAfter(n int, image string) func(int, string) string {
	return func(launched int, of string) string {
		if launched > n && of == image {
			return "FAILURE"
		}
		return "SUCCESS"
	}
}

// A rollback uses the stack's previous policy, parameters and maximum size. It replaces only the instances that the update launched.
func TestRollbackGoesByWhatWas(t *testing.T) {
	t.Run("rolling, the first new instance fails, the maximum size having been raised before", func(t *testing.T) {
		runStack(t, rollingPolicy, func(p *inStack) {
			old := p.ids()
			require.Equal(p, "UPDATE_COMPLETE", p.change(map[string]string{"Max": "6", "Least": "4", "Batch": "2"}))
			p.joins = failsAfter(0, newImage)
			require.Equal(p, "UPDATE_ROLLBACK_COMPLETE", p.change(map[string]string{"Image": newImage}))
			settle(2 * time.Hour)
			require.Equal(p, 4, p.least)
			require.Subset(p, p.ids(), old)
			require.Equal(p, []int{1, 1, 1, 1, 1, 1}, p.versions(), "the desired capacity stays as the update had raised it")
			require.Equal(p, []int{4, 6, 6}, []int{p.groups[0].min, p.groups[0].desired, p.groups[0].max})
		})
	})
	t.Run("rolling, the update itself had raised the maximum size", func(t *testing.T) {
		runStack(t, rollingPolicy, func(p *inStack) {
			p.joins = failsAfter(0, newImage)
			require.Equal(p, "UPDATE_ROLLBACK_COMPLETE", p.change(map[string]string{"Max": "6", "Least": "4", "Batch": "2", "Image": newImage}))
			settle(2 * time.Hour)
			require.Equal(p, []int{1, 1, 1, 1}, p.versions())
			require.Equal(p, []int{4, 4, 4}, []int{p.groups[0].min, p.groups[0].desired, p.groups[0].max})
			require.Less(p, p.least, 4, "the rollback comes first, and the group shrinks by its own rules: the oldest instances end")
		})
	})
	t.Run("rolling, a later one fails", func(t *testing.T) {
		runStack(t, rollingPolicy, func(p *inStack) {
			p.joins = failsAfter(2, newImage)
			require.Equal(p, "UPDATE_ROLLBACK_COMPLETE", p.change(map[string]string{"Image": newImage}))
			settle(2 * time.Hour)
			require.Equal(p, []int{
				1, 1, 1, 1,
			}, p.versions(), "the version that the group had, not the new one of the launch template that was rolled back")
			require.Equal(p, []int{3, 4, 1}, []int{p.least, p.most, p.out})
		})
	})
	t.Run("a refresh whose instances fail", func(t *testing.T) {
		runStack(t, refreshPolicy, func(p *inStack) {
			old := p.ids()
			p.joins = failsAfter(0, newImage)
			require.Equal(p, "UPDATE_ROLLBACK_COMPLETE", p.change(map[string]string{
				"Max": "5", "LowPercent": "100", "HighPercent": "125", "Image": newImage,
			}))
			settle(time.Hour)
			require.ElementsMatch(p, old, p.ids())
			require.Equal(p, []int{4, 5}, []int{p.least, p.most})
		})
	})
	t.Run("reports a failed rollback and resumes suspended processes", func(t *testing.T) {
		runStack(t, rollingPolicy, func(p *inStack) {
			require.Equal(p, "UPDATE_COMPLETE", p.change(map[string]string{"Max": "6", "Least": "4", "Batch": "2", "Image": newImage}))
			require.Equal(p, "UPDATE_COMPLETE", p.change(map[string]string{
				"Max": "4",
			}), "no instance is replaced, so the impossible policy does not matter")
			p.joins = failsAfter(0, ec2.RebuiltImageID("1.37", "x86_64"))
			require.Equal(p, "UPDATE_ROLLBACK_FAILED", p.change(map[string]string{"Image": ec2.RebuiltImageID("1.37", "x86_64"), "Max": "6"}))
		})
	})
}

// A cancelled update is rolled back at any batch.
func TestCancelledUpdatesAreRolledBack(t *testing.T) {
	for name, policy := range map[string]string{"rolling": rollingPolicy, "refresh": refreshPolicy} {
		t.Run(name, func(t *testing.T) {
			runStack(t, policy, func(p *inStack) {
				p.begin(map[string]string{"Image": newImage})
				settle(5 * time.Minute)
				_, err := p.stacks.CancelUpdateStack(p.Context(), p.admin, &cloudformation.CancelUpdateStackInput{StackName: "pool"})
				require.NoError(p, err)
				require.Equal(p, "UPDATE_ROLLBACK_COMPLETE", p.await())
				settle(2 * time.Hour)
				require.Equal(p, []int{1, 1, 1, 1}, p.versions())
			})
		})
	}
}
