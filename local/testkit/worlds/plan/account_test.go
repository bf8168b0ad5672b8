package plan_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/status"
)

// countingCalls returns plan's calls since a mark that read what the account has room for.
func countingCalls(a *harness.Account, mark int) (calls []string) {
	for _, call := range a.Calls.Since(mark) {
		if harness.CalledBy(call) == "plan" && (call.Service == "ec2" || call.Service == "servicequotas") {
			calls = append(calls, call.Service+":"+call.Action)
		}
	}
	return calls
}

func TestAccountIsReadBeforeTheFirstCreation(t *testing.T) {
	a := harness.Start(t)
	limit := a.Quotas.Limit(servicequotas.VPCs)
	a.Quotas.Set(servicequotas.VPCs, 0)
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Stopped, s.Phase, s.Message)
	require.Equal(t, "AccountNotReady", s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "\nVPCQuota: 0 of 0 VPCs are used; needed: 1: aws service-quotas request-service-quota-increase "+
		"--region eu-central-1 --service-code vpc --quota-code L-F678F1CE --desired-value 1\n")
	require.Equal(t, "True", s.Condition(status.SpecAccepted).Status, "the spec is valid")
	require.Empty(t, a.Stacks("demo"))
	require.Nil(t, s.Condition(status.InSync), "nothing existed, so nothing drifted")

	require.NoError(t, a.AuditNow())
	a.Settle()
	require.Equal(t, s.Message, a.Status("demo").Message)
	require.Len(t, a.Verdicts(), 1, "it is notified once")

	a.Quotas.Set(servicequotas.VPCs, float64(limit))
	a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(backoff.AuditPeriod) }
	require.NoError(t, a.AuditNow())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)

	mark := a.Calls.Mark()
	a.Converge("demo")
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {team: b}\n"))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase)
	require.Empty(t, countingCalls(a, mark), "an existing cluster costs no such call")
}

// The account loses its room after the check. The creation fails, and leaves nothing. The retry names the quota. Once the quota is raised,
// drover creates the cluster by itself.
func TestQuotaIsUsedUpAfterTheCheck(t *testing.T) {
	a := harness.Start(t)
	limit := a.Quotas.Limit(servicequotas.Addresses)
	var once sync.Once
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "ExecuteChangeSet" {
			once.Do(func() { a.Quotas.Set(servicequotas.Addresses, 0) })
		}
		return nil
	})
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Failed, s.Phase)
	require.Equal(t, "StackFailed", s.Condition(status.Converged).Reason)
	require.Contains(t, s.Message, "The maximum number of addresses has been reached.")
	require.Contains(t, s.Message, "a quota of the account is exhausted: request an increase in Service Quotas")
	require.Equal(t, map[string]string{"network": "ROLLBACK_COMPLETE"}, a.Stacks("demo"))
	require.NotNil(t, s.RetryAt)

	a.Functions.Sweep.Now = func() time.Time { return s.RetryAt.Add(time.Minute) }
	require.NoError(t, a.AuditNow())
	a.Settle()
	s = a.Status("demo")
	require.Equal(t, "AccountNotReady", s.Condition(status.Converged).Reason, s.Message)
	require.Contains(t, s.Message, "AddressQuota: 0 of 0 Elastic IP addresses are used; needed: ")

	a.Quotas.Set(servicequotas.Addresses, float64(limit))
	a.Functions.Sweep.Now = func() time.Time { return time.Now().Add(time.Hour) }
	require.NoError(t, a.AuditNow())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// What the spec and its release name is looked up before anything is created.
func TestAbsentThingsBlockTheFirstCreation(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), "v1.13.2-eksbuild.1", "v0.0.1-eksbuild.1", 1))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  controlPlane:\n    access:\n"+
		"      - {principalARN: \"arn:aws:iam::111122223333:role/absent\", groups: [x]}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "AccountNotReady", s.Condition(status.Converged).Reason, s.Message)
	require.Contains(t, s.Message, "\nAddonsCompatible: demo: coredns v0.0.1-eksbuild.1 is not a version that EKS offers "+
		"for Kubernetes 1.36: ")
	require.Contains(t, s.Message, "\nPrincipalsExist: demo: arn:aws:iam::111122223333:role/absent does not exist: ")
	require.Empty(t, a.Stacks("demo"))

	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}
