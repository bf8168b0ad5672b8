package live

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// demoAWS answers for the stacks and the group of a cluster demo, and records the actions of calls.
type demoAWS struct {
	stacks  []string
	actions []string
}

func (d *demoAWS) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	action, code, members := form.Get("Action"), http.StatusOK, ""
	d.actions = append(d.actions, action)
	switch action {
	case "DescribeStacks":
		for _, stack := range d.stacks {
			if name := names.Stack("demo", stack); form.Get("StackName") == "" || form.Get("StackName") == name {
				members += "<member><StackName>" + name + "</StackName><StackStatus>CREATE_COMPLETE</StackStatus></member>"
			}
		}
		members = "<Stacks>" + members + "</Stacks>"
		if members == "<Stacks></Stacks>" {
			code = http.StatusBadRequest
		}
	case "DescribeAutoScalingGroups":
		members = "<AutoScalingGroups><member><AutoScalingGroupName>" + names.Group("demo", "a") + "</AutoScalingGroupName>" +
			"<MinSize>1</MinSize><MaxSize>2</MaxSize><DesiredCapacity>1</DesiredCapacity><Instances><member><InstanceId>i-1</InstanceId>" +
			"<LifecycleState>InService</LifecycleState></member></Instances></member></AutoScalingGroups>"
	}
	answer := fmt.Sprintf("<%sResponse><%sResult>%s</%sResult></%sResponse>", action, action, members, action, action)
	if code != http.StatusOK {
		answer = "<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack with id " + form.Get("StackName") +
			" does not exist</Message></Error></ErrorResponse>"
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

func TestReadStacks(t *testing.T) {
	t.Run("reads idle stacks again after a while, and changed ones at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, source := newDemo()
			cluster := status.New("demo")
			for _, name := range a.stacks {
				cluster.Status.Stacks = append(cluster.Status.Stacks, status.Stack{Name: name, Status: "CREATE_COMPLETE"})
			}
			expected := StackNames(cluster.Status)
			require.Contains(t, expected, names.Network)
			described := func() (n int) {
				mark := len(a.actions)
				read, err := source.readStacks(t.Context(), cluster, expected)
				require.NoError(t, err)
				require.Len(t, read, len(expected))
				for _, deployed := range read {
					require.True(t, stack.Settled(deployed.Status), deployed.Status)
				}
				for _, action := range a.actions[mark:] {
					if strings.HasPrefix(action, "DescribeStack") {
						n++
					}
				}
				return n
			}
			require.Equal(t, len(expected), described())
			require.Zero(t, described(), "stacks without an operation are read again after a while only")
			time.Sleep(idleStackAge)
			require.Equal(t, len(expected), described())

			cluster.Status.Stacks[0].Status = "UPDATE_IN_PROGRESS"
			require.Equal(t, 1, described(), "a stack whose recorded status changed is read at once")
		})
	})
	t.Run("reads of a new cluster the stacks that drover changes next", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, source := newDemo()
			planned := status.New("new")
			planned.Status.Phase = status.Converging
			for _, name := range []string{"network", "control-plane", "addons", "pool-a", "pool-b"} {
				planned.Status.Plan = append(planned.Status.Plan, status.Change{Stack: name, Operation: "Create"})
			}
			for _, want := range []int{5, nextStacks, nextStacks} { // the first time, all of them
				mark := len(a.actions)
				_, err := source.readStacks(t.Context(), planned, StackNames(planned.Status))
				require.NoError(t, err)
				require.Len(t, a.actions[mark:], want)
			}
		})
	})
}

func TestFleet(t *testing.T) {
	a, source := newDemo()
	live := source.Fleet(t.Context())
	require.NoError(t, live.StacksErr)
	require.NoError(t, live.GroupsErr)
	require.Len(t, live.Stacks, len(a.stacks))
	require.Len(t, live.Groups, 1)
}

// newDemo returns a source, and the AWS of a cluster demo from which it reads.
func newDemo() (*demoAWS, *Source) {
	a := &demoAWS{stacks: []string{names.Network, names.ControlPlane, names.Addons, names.PoolStack("a"), names.NodeAddons}}
	return a, New(aws.Config{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: a})
}
