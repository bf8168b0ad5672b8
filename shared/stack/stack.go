// Package stack describes a CloudFormation stack as data: what is deployed, its status, and why an operation failed.
// shared/aws/cloudformation reads stacks. The package is pure.
package stack

import (
	"regexp"
	"time"
)

// Deployed is one stack as CloudFormation describes it.
type Deployed struct {
	// Name without the cluster's prefix.
	Name string
	// ID is the stack's ARN. A recreated stack has another one.
	ID           string
	Status       string
	StatusReason string
	Tags         map[string]string
	Outputs      map[string]string
	Parameters   map[string]string
	// TerminationProtection as CloudFormation reports it now.
	TerminationProtection bool
	// Drifted reports that the last drift detection found differences. CloudFormation runs it only on request.
	Drifted bool
}

// API is how the API server of a cluster is reached.
type API struct {
	// Endpoint is the URL. Authority is the certificate authority, in base64.
	Endpoint, Authority string
	// Relayed reports that requests go through the cluster's relay function.
	Relayed bool
}

// Outputs of the control plane's stack. Only a cluster with a relay has the third, and only one that kept the security group of a relay
// has the fourth.
const (
	OutputEndpoint   = "ClusterEndpoint"
	OutputAuthority  = "ClusterCertificateAuthority"
	OutputRelay      = "RelayCode"
	OutputRelayGroup = "RelaySecurityGroupId"
)

// API returns how the API server of a deployed control plane is reached. Its endpoint is empty if there is none yet.
func (d Deployed) API() API {
	return API{Endpoint: d.Outputs[OutputEndpoint], Authority: d.Outputs[OutputAuthority], Relayed: d.Outputs[OutputRelay] != ""}
}

// Failure is why an operation on a stack failed: the resource that failed first, and the reason that AWS gave.
type Failure struct {
	Resource, Reason string
	// StackARN is the ARN of the stack.
	StackARN string
	// Stuck are the resources at which the last attempt of a rollback or a deletion stopped.
	Stuck []Stuck
	// Began is when the operation began. RollbackBegan is when its rollback began, or zero.
	Began, RollbackBegan time.Time
}

// missedSignals is CloudFormation's reason if no instance sent a failure, but not all sent a success in time.
// https://repost.aws/knowledge-center/cloudformation-failed-signal
var missedSignals = regexp.MustCompile(`\bReceived \d+ SUCCESS signal\(s\) out of \d+`)

// MissedSignals reports whether an update failed only because signals of new instances were missing.
func (f Failure) MissedSignals() bool { return missedSignals.MatchString(f.Reason) }

// Stuck is a resource that a rollback or a deletion could not change. Resource is its logical id, ID its physical id.
type Stuck struct{ Resource, Reason, Type, ID string }

func (f Failure) String() string {
	if f.Resource == "" {
		return f.Reason
	}
	return f.Resource + ": " + f.Reason
}
