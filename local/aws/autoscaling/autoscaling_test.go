package autoscaling

// The world that the tests share: Auto Scaling over a local EC2, with recorded events.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

const account, region = "111122223333", "us-east-1"

type world struct {
	*testing.T
	*Service
	ec2      *ec2.Service
	iam      *iam.Service
	admin    iam.Caller
	subnets  []any
	group    string // security group
	template string

	mu     sync.Mutex
	events []event
	// onLaunch and onTerminate answer lifecycle actions: CONTINUE, ABANDON or "" for no answer.
	onLaunch, onTerminate func(instance string) string
	progress              []string
	signals               chan resource.Signal
}

type event struct {
	detailType string
	resources  []string
	detail     map[string]any
	at         time.Time
}

// run creates a world in a synctest bubble: three subnets in three zones, and one launch template.
func run(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		c := &clock.Clock{}
		w := &world{T: t, iam: iam.New(account, region, c), signals: make(chan resource.Signal, 100)}
		w.admin, _ = w.iam.Admin()
		w.ec2 = ec2.New(ec2.Config{Account: account, Region: region, Clock: c, Roles: w.iam})
		w.Service = New(Config{
			Account: account, Region: region, Clock: c, Instances: w.ec2, Roles: w.iam, Events: w,
			Readings: questions.Readings{questions.TerminateHooks: true},
		})
		defer w.ec2.Close()
		defer w.Service.Close()
		vpc := w.makeEC2("AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16"})
		for i, zone := range "abc" {
			w.subnets = append(w.subnets, w.makeEC2("AWS::EC2::Subnet", map[string]any{
				"VpcId": vpc, "CidrBlock": fmt.Sprintf("10.0.%d.0/24", i), "AvailabilityZone": region + string(zone),
			}))
		}
		var err error
		w.group, err = w.ec2.CreateSecurityGroup(vpc, "nodes", "nodes", true, nil)
		require.NoError(t, err)
		w.template = w.makeEC2("AWS::EC2::LaunchTemplate", w.templateProperties(ec2.ImageID("1.36", "x86_64")))
		test(w)
	})
}

func (w *world) templateProperties(image string) map[string]any {
	return map[string]any{
		"LaunchTemplateData": map[string]any{"ImageId": image, "InstanceType": "m6i.large", "SecurityGroupIds": []any{w.group}},
	}
}

func (w *world) makeEC2(typ string, properties map[string]any) string {
	w.Helper()
	result, err := w.ec2.Resources()[typ].Create(w.Context(), resource.Request{
		StackID: "s", LogicalID: "It", Properties: properties, Caller: w.admin,
	})
	require.NoError(w, err)
	return result.PhysicalID
}

// newVersion adds a version to the launch template, of an image for another Kubernetes version.
func (w *world) newVersion(image string) {
	w.Helper()
	_, err := w.ec2.Resources()["AWS::EC2::LaunchTemplate"].Update(w.Context(), resource.Request{
		PhysicalID: w.template, Properties: w.templateProperties(image), Old: map[string]any{"LaunchTemplateData": map[string]any{}},
		Caller: w.admin,
	})
	require.NoError(w, err)
}

// Emit records an event and answers lifecycle actions as the test requires.
func (w *world) Emit(_ context.Context, source, detailType string, resources []string, detail any) {
	encoded, _ := json.Marshal(detail)
	var d map[string]any
	_ = json.Unmarshal(encoded, &d)
	w.mu.Lock()
	w.events = append(w.events, event{detailType, resources, d, time.Now()})
	answer := ""
	switch {
	case detailType == "EC2 Instance-launch Lifecycle Action" && w.onLaunch != nil:
		answer = w.onLaunch(d["EC2InstanceId"].(string))
	case detailType == "EC2 Instance-terminate Lifecycle Action" && w.onTerminate != nil:
		answer = w.onTerminate(d["EC2InstanceId"].(string))
	}
	w.mu.Unlock()
	if answer != "" {
		_ = w.answer(w.admin, d["AutoScalingGroupName"].(string), d["LifecycleHookName"].(string), d["LifecycleActionToken"].(string), "", answer)
	}
}

// countEvents counts events of a type.
func (w *world) countEvents(detailType string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.detailType == detailType {
			n++
		}
	}
	return n
}

// properties returns the properties of a group with version 1 of the launch template, changed by more. nil removes a property.
func (w *world) properties(more map[string]any) map[string]any {
	p := map[string]any{
		"AutoScalingGroupName": "pool", "MinSize": 2.0, "MaxSize": 4.0, "VPCZoneIdentifier": w.subnets,
		"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "1"},
	}
	for k, v := range more {
		p[k] = v
		if v == nil {
			delete(p, k)
		}
	}
	return p
}

func hook(name, transition string, timeout float64, byDefault string) map[string]any {
	return map[string]any{
		"LifecycleHookName": name, "LifecycleTransition": "autoscaling:EC2_INSTANCE_" + transition, "HeartbeatTimeout": timeout,
		"DefaultResult": byDefault, "NotificationMetadata": `{"cluster":"demo","pool":"workers"}`,
	}
}

var bothHooks = []any{hook("launch", "LAUNCHING", 900, "ABANDON"), hook("terminate", "TERMINATING", 300, "CONTINUE")}

func (w *world) request(properties map[string]any) resource.Request {
	return resource.Request{
		StackName: "drover-demo-pool", StackID: "stack", LogicalID: "Group", Type: "AWS::AutoScaling::AutoScalingGroup", Properties: properties,
		Caller: w.admin,
		Tags:   map[string]string{"drover:cluster": "demo", "aws:cloudformation:stack-name": "drover-demo-pool"}, Signals: w.signals,
		Progress: func(reason string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.progress = append(w.progress, reason)
		},
	}
}

func (w *world) provider() resource.Provider {
	return w.Resources()["AWS::AutoScaling::AutoScalingGroup"]
}

// create creates the group through CloudFormation.
func (w *world) create(more map[string]any) {
	w.Helper()
	_, err := w.provider().Create(w.Context(), w.request(w.properties(more)))
	require.NoError(w, err)
}

// state of the group's instances, such as "InService Pending:Wait".
func (w *world) state() string {
	w.Service.mu.Lock()
	defer w.Service.mu.Unlock()
	g, err := w.Service.group("pool")
	if err != nil {
		return "no group"
	}
	var states []string
	for _, m := range g.members {
		states = append(states, m.state)
	}
	return strings.Join(states, " ")
}

func (w *world) members() []member {
	w.Service.mu.Lock()
	defer w.Service.mu.Unlock()
	g, err := w.Service.group("pool")
	require.NoError(w, err)
	var list []member
	for _, m := range g.members {
		list = append(list, *m)
	}
	return list
}

func (w *world) ids() (ids []string) {
	for _, m := range w.members() {
		ids = append(ids, m.id)
	}
	return ids
}

func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var known *wire.Error
	require.True(t, errors.As(err, &known), "%v is no AWS error", err)
	require.Equal(t, code, known.Code, "%v", err)
}

// settle waits for a duration of simulated time.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func answerAll(result string) func(string) string { return func(string) string { return result } }

func with(base map[string]any, more map[string]any) map[string]any {
	merged := map[string]any{}
	for k, v := range base {
		merged[k] = v
	}
	for k, v := range more {
		merged[k] = v
	}
	return merged
}
