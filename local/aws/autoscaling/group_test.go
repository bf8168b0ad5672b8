package autoscaling

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

func (w *world) zones() map[string]int {
	zones := map[string]int{}
	for _, m := range w.members() {
		if !m.leaving() {
			zones[m.zone]++
		}
	}
	return zones
}

func TestScaling(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 1.0, "MaxSize": 9.0, "DesiredCapacity": 6.0})
		require.Equal(t, map[string]int{"us-east-1a": 2, "us-east-1b": 2, "us-east-1c": 2}, w.zones(), "spread evenly")
		require.NoError(t, w.setDesired(w.admin, "pool", 4))
		synctest.Wait()
		for _, n := range w.zones() {
			require.LessOrEqual(t, n, 2, "scale-in takes from the fullest zone")
		}
		settle(time.Minute)
		require.Len(t, w.ids(), 4)
		requireCode(t, "ValidationError", w.setDesired(w.admin, "pool", 10))
		requireCode(t, "ValidationError", w.setDesired(w.admin, "pool", 0))
		three := 3
		require.NoError(t, w.update(w.admin, "pool", Settings{MaxSize: &three}))
		settle(time.Minute)
		require.Len(t, w.ids(), 3, "a smaller maximum moves the desired capacity")
	})
}

func TestSuccessfulEvents(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 1.0})
		synctest.Wait()
		id := w.ids()[0]
		w.mu.Lock()
		e := w.events[0]
		w.mu.Unlock()
		require.Equal(t, "EC2 Instance Launch Successful", e.detailType)
		require.Equal(t, []string{w.groups[0].arn, "arn:aws:ec2:us-east-1:111122223333:instance/" + id}, e.resources)
		for _, varies := range []string{"ActivityId", "RequestId", "StartTime", "EndTime", "Cause"} {
			require.NotEmpty(t, e.detail[varies], varies)
			delete(e.detail, varies)
		}
		require.Empty(t, cmp.Diff(map[string]any{
			"StatusCode": "InProgress", "Description": "Launching a new EC2 instance: " + id, "AutoScalingGroupName": "pool", "StatusMessage": "",
			"EC2InstanceId": id,
			"Details":       map[string]any{"Availability Zone": "us-east-1a", "Subnet ID": w.subnets[0]}, "Origin": "EC2",
			"Destination": "AutoScalingGroup",
		}, e.detail))
	})
}

func TestMixedInstances(t *testing.T) {
	for name, test := range map[string]struct{ base, percentage, onDemand float64 }{
		"all on demand":                     {0, 100, 6},
		"all spot":                          {0, 0, 0},
		"half of them":                      {0, 50, 3},
		"a base, and a quarter of the rest": {2, 25, 3},
		"a base larger than the group":      {9, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.create(map[string]any{"LaunchTemplate": nil, "MaxSize": 6.0, "MinSize": 6.0, "MixedInstancesPolicy": map[string]any{
					"LaunchTemplate": map[string]any{
						"LaunchTemplateSpecification": map[string]any{"LaunchTemplateId": w.template, "Version": "$Latest"},
						"Overrides":                   []any{map[string]any{"InstanceType": "c7i.xlarge"}, map[string]any{"InstanceType": "c6i.xlarge"}},
					},
					"InstancesDistribution": map[string]any{
						"OnDemandBaseCapacity": test.base, "OnDemandPercentageAboveBaseCapacity": test.percentage,
						"OnDemandAllocationStrategy": "prioritized", "SpotAllocationStrategy": "price-capacity-optimized",
					},
				}})
				onDemand := 0
				for _, m := range w.members() {
					require.Equal(t, "c7i.xlarge", m.typ, "the first existing type")
					i, err := w.ec2.Instance(m.id)
					require.NoError(t, err)
					if !i.Spot {
						onDemand++
					}
				}
				require.EqualValues(t, test.onDemand, onDemand)
			})
		})
	}
}

func TestVanishedInstancesAreReplaced(t *testing.T) {
	run(t, func(w *world) {
		w.create(nil)
		old := w.ids()[0]
		require.NoError(t, w.ec2.Terminate(old, "Client.UserInitiatedShutdown"))
		settle(5 * time.Minute)
		require.Equal(t, "InService InService", w.state())
		require.NotContains(t, w.ids(), old)

		require.NoError(t, w.suspend(w.admin, "pool", []string{"HealthCheck"}, true))
		old = w.ids()[0]
		require.NoError(t, w.ec2.Terminate(old, "Client.UserInitiatedShutdown"))
		settle(5 * time.Minute)
		require.Contains(t, w.ids(), old, "no health check runs")
		require.NoError(t, w.suspend(w.admin, "pool", []string{"HealthCheck"}, false))
		settle(5 * time.Minute)
		require.NotContains(t, w.ids(), old)
		require.Len(t, w.ids(), 2)
	})
}

func TestSuspendedProcesses(t *testing.T) {
	run(t, func(w *world) {
		w.create(nil)
		require.NoError(t, w.suspend(w.admin, "pool", nil, true))
		require.NoError(t, w.setDesired(w.admin, "pool", 4))
		settle(time.Minute)
		require.Len(t, w.ids(), 2, "Launch is suspended")
		require.NoError(t, w.suspend(w.admin, "pool", []string{"Launch"}, false))
		settle(time.Minute)
		require.Len(t, w.ids(), 4)
		require.NoError(t, w.setDesired(w.admin, "pool", 2))
		settle(time.Minute)
		require.Len(t, w.ids(), 4, "Terminate is suspended")
		requireCode(t, "ValidationError", w.suspend(w.admin, "pool", []string{"Lunch"}, true))
	})
}

func TestScaleInByPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		policies []any
		ended    int // of the launches, the second version's is number 2
	}{
		"by default the oldest template goes first": {nil, 0},
		"the oldest template by name":               {[]any{"OldestLaunchTemplate", "AllocationStrategy", "Default"}, 0},
		"the oldest instance":                       {[]any{"OldestInstance"}, 0},
		"the newest instance":                       {[]any{"NewestInstance"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				one := w.subnets[:1]
				more := map[string]any{"VPCZoneIdentifier": one, "MinSize": 1.0}
				if test.policies != nil {
					more["TerminationPolicies"] = test.policies
				}
				w.create(more)
				settle(time.Minute)
				require.NoError(t, w.setDesired(w.admin, "pool", 2))
				settle(time.Minute)
				w.newVersion(ec2.ImageID("1.37", "x86_64"))
				require.NoError(t, w.update(w.admin, "pool", Settings{
					LaunchTemplate: &TemplateSpecification{LaunchTemplateId: w.template, Version: "$Latest"},
				}))
				require.NoError(t, w.setDesired(w.admin, "pool", 3))
				settle(time.Minute)
				launched := w.ids()
				require.NoError(t, w.setDesired(w.admin, "pool", 2))
				settle(time.Minute)
				require.NotContains(t, w.ids(), launched[test.ended])
			})
		})
	}
}

func TestProtectedInstancesStay(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 1.0, "DesiredCapacity": 2.0, "NewInstancesProtectedFromScaleIn": true})
		require.NoError(t, w.setDesired(w.admin, "pool", 1))
		settle(time.Minute)
		require.Len(t, w.ids(), 2)
		_, err := w.terminateInstance(w.admin, w.ids()[0], false)
		require.NoError(t, err, "a request ends protected ones too")
		settle(time.Minute)
		require.Len(t, w.ids(), 1)
	})
}

// A launch that EC2 rejects is retried with growing pauses, and succeeds after the reason disappears.
func TestFailedLaunches(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 0.0})
		require.NoError(t, w.ec2.DeleteSecurityGroup(w.group))
		require.NoError(t, w.setDesired(w.admin, "pool", 1))
		settle(20 * time.Minute)
		failures := w.countEvents("EC2 Instance Launch Unsuccessful")
		require.Greater(t, failures, 4)
		require.Less(t, failures, 9)
		w.Service.mu.Lock()
		last := *w.groups[0].activities[len(w.groups[0].activities)-1]
		w.Service.mu.Unlock()
		require.Equal(t, "Failed", last.StatusCode)
		require.Contains(t, last.StatusMessage, "does not exist")
		require.Contains(t, last.StatusMessage, "Launching EC2 instance failed.")
	})
}

func TestInvalidGroups(t *testing.T) {
	run(t, func(w *world) {
		specification := func(id, version string) map[string]any {
			return map[string]any{"LaunchTemplateId": id, "Version": version}
		}
		for name, test := range map[string]struct {
			more map[string]any
			says string
		}{
			"min above max": {map[string]any{"MinSize": 5.0}, "Min bound, 5, must be less than or equal to max bound, 4"},
			"desired above max": {
				map[string]any{"DesiredCapacity": 5.0}, "Desired capacity:5 must be between the specified min size:2 and max size:4",
			},
			"no subnets": {
				map[string]any{"VPCZoneIdentifier": []any{}}, "At least one Availability Zone or VPC Subnet is required",
			},
			"an unknown subnet":   {map[string]any{"VPCZoneIdentifier": []any{"subnet-0"}}, "does not exist"},
			"an unknown template": {map[string]any{"LaunchTemplate": specification("lt-0", "1")}, "does not exist"},
			"an unknown version": {
				map[string]any{"LaunchTemplate": specification(w.template, "7")}, "Could not find launch template version 7",
			},
			"an unknown property":              {map[string]any{"MinimumSize": 1.0}, "extraneous key [MinimumSize] is not permitted"},
			"an unknown termination policy":    {map[string]any{"TerminationPolicies": []any{"Random"}}, "Unsupported termination policy: Random"},
			"a health check that is not there": {map[string]any{"HealthCheckType": "ELB"}, "does not support the health check type ELB"},
			"neither template nor policy":      {map[string]any{"LaunchTemplate": nil}, "Valid requests must contain either launchTemplate"},
			"an architecture that does not match": {map[string]any{"LaunchTemplate": nil,
				"MixedInstancesPolicy": map[string]any{"LaunchTemplate": map[string]any{
					"LaunchTemplateSpecification": specification(w.template, "1"), "Overrides": []any{map[string]any{"InstanceType": "m7g.large"}},
				}}}, "You must use a valid fully-formed launch template. The architecture 'arm64'"},
		} {
			_, err := w.provider().Create(w.Context(), w.request(w.properties(test.more)))
			require.ErrorContains(t, err, test.says, name)
			require.Equal(t, "no group", w.state(), name)
		}
		w.create(nil)
		_, err := w.provider().Create(w.Context(), w.request(w.properties(nil)))
		requireCode(t, "AlreadyExists", err)
	})
}

// A group is rejected if the image of its launch template does not exist.
func TestImageMustExist(t *testing.T) {
	run(t, func(w *world) {
		w.newVersion("ami-00000000000000000")
		_, err := w.provider().Create(w.Context(), w.request(w.properties(map[string]any{
			"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"},
		})))
		requireCode(t, "ValidationError", err)
		require.ErrorContains(t, err, "You must use a valid fully-formed launch template. The image id '[ami-00000000000000000]' does not exist")
	})
}

func TestTagsReachInstances(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"Tags": []any{
			map[string]any{
				"Key": "group", "Value": "only", "PropagateAtLaunch": false,
			}, map[string]any{"Key": "both", "Value": "yes", "PropagateAtLaunch": true},
		}})
		i, err := w.ec2.Instance(w.ids()[0])
		require.NoError(t, err)
		require.Equal(t, map[string]string{
			"aws:autoscaling:groupName": "pool", "both": "yes", "drover:cluster": "demo", "aws:cloudformation:stack-name": "drover-demo-pool",
			"aws:ec2launchtemplate:id": w.template, "aws:ec2launchtemplate:version": "1",
		}, i.Tags)
		require.Len(t, w.Tagged(w.Context()), 1)
	})
}

// The first group creates the service-linked role, if its caller may create it.
func TestPermissions(t *testing.T) {
	const groups = `"arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/drover-*"`
	describe := `{"Effect":"Allow","Action":"autoscaling:Describe*","Resource":"*"}`
	create := `{"Effect":"Allow","Action":["autoscaling:CreateAutoScalingGroup"],"Resource":` + groups +
		`,"Condition":{"StringEquals":{"aws:RequestTag/drover:cluster":"demo","autoscaling:LaunchTemplateVersionSpecified":"true"}}}`
	linked := `{"Effect":"Allow","Action":"iam:CreateServiceLinkedRole","Resource":"*",
		"Condition":{"StringEquals":{"iam:AWSServiceName":"autoscaling.amazonaws.com"}}}`
	launch := `{"Effect":"Allow","Action":"ec2:RunInstances","Resource":"*"}`
	for name, test := range map[string]struct {
		policy, group, version, missing string
	}{
		"all of it": {policy: describe + "," + create + "," + linked + "," + launch, group: "drover-pool", version: "1"},
		"a group of another name": {
			policy: describe + "," + create + "," + linked + "," + launch, group: "other", version: "1",
			missing: "autoscaling:CreateAutoScalingGroup",
		},
		"a template version that may change": {
			policy: describe + "," + create + "," + linked + "," + launch, group: "drover-pool", version: "$Latest",
			missing: "autoscaling:CreateAutoScalingGroup",
		},
		"no service-linked role": {
			policy: describe + "," + create + "," + launch, group: "drover-pool", version: "1", missing: "iam:CreateServiceLinkedRole",
		},
		"no right to launch": {
			policy: describe + "," + create + "," + linked, group: "drover-pool", version: "1",
			missing: "You are not authorized to use launch template",
		},
		"no right to look": {
			policy: create + "," + linked + "," + launch, group: "drover-pool", version: "1", missing: "autoscaling:DescribeAutoScalingGroups",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				caller := w.role("cfn", "["+test.policy+"]")
				r := w.request(w.properties(map[string]any{
					"AutoScalingGroupName": test.group, "LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": test.version},
				}))
				r.Caller = caller
				_, err := w.provider().Create(w.Context(), r)
				if test.missing == "" {
					require.NoError(t, err)
					_, err = w.iam.Role("AWSServiceRoleForAutoScaling")
					require.NoError(t, err)
					requireCode(t, "AccessDenied", w.setDesired(caller, test.group, 3))
					return
				}
				requireCode(t, "AccessDenied", err)
				require.ErrorContains(t, err, test.missing)
			})
		})
	}
}

func (w *world) role(name, policy string) iam.Caller {
	role, err := w.iam.CreateRole(iam.Role{
		Name: name, TrustDocument: `{"Version":"2012-10-17","Statement":{"Effect":"Allow",
			"Principal":{"Service":"cloudformation.amazonaws.com"},"Action":"sts:AssumeRole"}}`,
	})
	require.NoError(w, err)
	require.NoError(w, w.iam.PutRolePolicy(name, "p", `{"Version":"2012-10-17","Statement":`+policy+`}`))
	caller, _, err := w.iam.AssumeRoleAs(w.iam.RoleARN(role), "test", "cloudformation.amazonaws.com")
	require.NoError(w, err)
	return caller
}

// A hook can be completed only by callers with permission on the group's name, such as drover's join function.
func TestCompletingNeedsPermission(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": bothHooks})
		require.NoError(t, w.setDesired(w.admin, "pool", 1))
		settle(time.Minute)
		id := w.ids()[0]
		other := w.role("other", `[{"Effect":"Allow","Action":"autoscaling:CompleteLifecycleAction",
			"Resource":"arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/drover-*"}]`)
		err := w.answer(other, "pool", "launch", "", id, "CONTINUE")
		var denied *wire.Error
		require.ErrorAs(t, err, &denied)
		require.Equal(t, "AccessDenied", denied.Code)
		require.Contains(t, denied.Message, "autoScalingGroupName/pool")
		require.Equal(t, pendingWait, w.state())
	})
}
