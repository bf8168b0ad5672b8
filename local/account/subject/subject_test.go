package subject_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/account/subject"
	"github.com/drover-run/drover/local/engine/faults"
)

func TestAbout(t *testing.T) {
	tests := map[string]struct{ name, cluster, stack, pool string }{
		"a stack":                  {name: "drover-demo-network", cluster: "demo", stack: "drover-demo-network"},
		"a pool's stack, or group": {name: "drover-demo-pool-a-b", cluster: "demo", stack: "drover-demo-pool-a-b", pool: "a-b"},
		"a stack's ARN": {
			name: "arn:aws:cloudformation:us-east-1:1:stack/drover-my-own-addons-on-nodes/uuid", cluster: "my-own",
			stack: "drover-my-own-addons-on-nodes",
		},
		"a status":           {name: "status/clusters/demo.json", cluster: "demo"},
		"a spec, by its ARN": {name: "arn:aws:s3:::drover-specs-1-us-east-1/clusters/demo.yaml", cluster: "demo"},
		"a lease":            {name: "leases/demo.json", cluster: "demo"},
		"a waiter": {
			name: "arn:aws:s3:::drover-state-1-us-east-1/waiters/drover-demo-pool-a.json", cluster: "demo", stack: "drover-demo-pool-a",
			pool: "a",
		},
		"a relay":                   {name: "drover-my-own-relay", cluster: "my-own"},
		"a relay's ARN":             {name: "arn:aws:lambda:us-east-1:1:function:drover-demo-relay", cluster: "demo"},
		"drover's own function":     {name: "drover-join"},
		"a pool called relay":       {name: "drover-demo-pool-a-relay", cluster: "demo", stack: "drover-demo-pool-a-relay", pool: "a-relay"},
		"drover's own stack":        {name: "drover"},
		"a bucket":                  {name: "arn:aws:s3:::drover-specs-1-us-east-1"},
		"another owner's":           {name: "other-demo-network"},
		"a stack of no known kind":  {name: "drover-demo-database"},
		"nothing":                   {},
		"a template, no cluster's":  {name: "arn:aws:s3:::b/templates/abc.yaml"},
		"a pool that has no name":   {name: "drover-demo-pool-"},
		"one dash after the prefix": {name: "drover-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, faults.Moment{Cluster: test.cluster, Stack: test.stack, Pool: test.pool}, faults.Moment{}.About(test.name, subject.Of))
		})
	}
	documents := map[string]struct {
		text string
		want faults.Moment
	}{
		"a stack's event": {
			`{"stack-id": "arn:aws:cloudformation:us-east-1:1:stack/drover-demo-network/u"}`,
			faults.Moment{
				Cluster: "demo", Stack: "drover-demo-network",
			},
		},
		"an object's event": {`{"object": {"key": "clusters/demo.yaml"}}`, faults.Moment{Cluster: "demo"}},
		"a group's event": {
			`{"AutoScalingGroupName": "drover-demo-pool-a"}`, faults.Moment{Cluster: "demo", Stack: "drover-demo-pool-a", Pool: "a"},
		},
		"an input": {`{"cluster": "demo"}`, faults.Moment{Cluster: "demo"}},
		"an event as input": {
			`{"detail": {"AutoScalingGroupName": "drover-demo-pool-a"}}`, faults.Moment{Cluster: "demo", Stack: "drover-demo-pool-a", Pool: "a"},
		},
		"text":                {`hello`, faults.Moment{}},
		"something else":      {`{"cluster": 1}`, faults.Moment{}},
		"a detail that is no": {`{"cluster": "demo", "detail": 1}`, faults.Moment{Cluster: "demo"}},
	}
	for name, test := range documents {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, faults.Moment{}.In([]byte(test.text), subject.Of)) })
	}
}
