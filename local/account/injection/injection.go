// Package injection carries out the faults that work the same way in the local account and in the test kit: launches
// and updates that fail, nodes with another kubelet, and executions that are killed. It also describes calls to the
// fault engine. How a call, an event, an instance or an API server fails differs between the two: local/account does
// it to real processes, and local/testkit/harness in simulated time.
package injection

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/drover-run/drover/local/account/subject"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
)

// Injector asks a fault engine.
type Injector struct {
	// Engine decides. Without an engine no fault occurs.
	Engine *faults.Engine
	// Now returns the time of faults.
	Now func() time.Time
}

// Decide returns the fault at a moment.
func (i Injector) Decide(m faults.Moment) faults.Strike {
	if i.Engine == nil {
		return faults.Strike{}
	}
	return i.Engine.Decide(i.Now(), m)
}

// Kills decides whether an execution is killed at an event of its history: when it enters a state.
func (i Injector) Kills(x stepfunctions.Execution, e asl.Event) bool {
	return strings.HasSuffix(e.Type, "StateEntered") && i.Decide(faults.Moment{
		Kind: faults.Step, Machine: strings.TrimPrefix(x.MachineName, names.Prefix), State: e.State,
	}.In([]byte(x.Input), subject.Of)).Kind == faults.Kill
}

// UpdateFails decides whether EKS fails an update of a cluster. It returns the error's code, or "".
func (i Injector) UpdateFails(cluster, kind string) string {
	return i.Decide(faults.Moment{Kind: faults.Update, Action: kind, Cluster: strings.TrimPrefix(cluster, names.Prefix)}).Code
}

// LaunchFails decides whether EC2 rejects the launch of an instance with these tags. It returns the error's code, or "".
func (i Injector) LaunchFails(tags map[string]string) string {
	return i.Decide(faults.Moment{Kind: faults.Launch}.About(tags["aws:autoscaling:groupName"], subject.Of)).Code
}

// AtLambdaLimit decides whether the account's other functions use all of Lambda's concurrency when a function is invoked.
func (i Injector) AtLambdaLimit(function string) bool {
	return i.Decide(faults.Moment{Kind: faults.Invoke, Function: strings.TrimPrefix(function, names.Prefix)}).Kind == faults.LambdaLimit
}

// Boot returns nodes that may boot another version of the kubelet.
func (i Injector) Boot(nodes ec2.Nodes) ec2.Nodes { return boot{nodes, i} }

// boot passes instances to the clusters that they join.
type boot struct {
	ec2.Nodes
	injector Injector
}

// RegisterNode may replace a node's kubelet version.
func (b boot) RegisterNode(ctx context.Context, n ec2.Node) error {
	m := faults.Moment{Kind: faults.Boot, Cluster: strings.TrimPrefix(n.Cluster, names.Prefix), Pool: n.Labels[names.LabelPool]}
	if strike := b.injector.Decide(m); strike.Code != "" {
		n.KubeletVersion = strike.Code
	}
	return b.Nodes.RegisterNode(ctx, n)
}

// Call describes a call. number counts the calls of a function's invocation from 1, and is 0 for other callers.
func Call(r *http.Request, call endpoint.Call, caller string, number int) faults.Moment {
	mutates := r.Method != http.MethodGet && r.Method != http.MethodHead
	return faults.Moment{
		Kind: faults.Call, Service: call.Service, Action: call.Action, Caller: caller, Number: number,
		Conditional: call.Service == "s3" && mutates && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != ""),
	}
}
