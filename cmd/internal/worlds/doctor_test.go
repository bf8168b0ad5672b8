package worlds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/status"
)

// diagnosis is the output of `drover doctor -o json`.
type diagnosis struct {
	Account, Region string
	Blocks          bool
	Findings        []doctor.Finding
}

// blocking returns the checks that block.
func (d diagnosis) blocking() (checks []string) {
	for _, f := range doctor.Blocking(d.Findings) {
		checks = append(checks, f.Check)
	}
	return checks
}

func diagnose(t *testing.T, code int, arguments ...string) diagnosis {
	t.Helper()
	r := drover(t, append([]string{"doctor", "-o", "json"}, arguments...)...)
	require.Equal(t, code, r.Code, "%s\n%s", r.Stdout, r.Stderr)
	require.Empty(t, r.Stderr)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &d))
	return d
}

// lower sets a quota until the test ends.
func lower(t *testing.T, code string, value float64) {
	t.Helper()
	before := cloud.Quotas.Limit(code)
	require.True(t, cloud.Quotas.Set(code, value))
	t.Cleanup(func() { cloud.Quotas.Set(code, float64(before)) })
}

// examineEmptyAccount examines an account that has no bucket of drover.
func examineEmptyAccount(t *testing.T) {
	const demo = "examples/clusters/demo.yaml"
	mark := cloud.Calls.Mark()
	first := finds(t, "doctor", demo)
	require.Contains(t, first, "ok       Credentials          you are arn:aws:iam::000000000000:user/")
	require.Contains(t, first, "ok       VPCQuota             0 of 1000 VPCs are used; needed: 1\n")
	require.Contains(t, first, "blocks   Bootstrap            the CDK is not bootstrapped in this region, and make deploy needs it\n")
	require.Contains(t, first, "warning  ServiceLinkedRoles   AWSServiceRoleForAmazonEKS does not exist: ")
	require.Contains(t, first, "ok       Images               the images of the pools exist and fit\n")
	require.Equal(t, first, finds(t, "doctor", demo), "the output repeats")
	d := diagnose(t, exitFindings)
	require.Equal(t, []string{doctor.Bootstrap}, d.blocking())
	require.Equal(t, []string{"000000000000", "us-east-1"}, []string{d.Account, d.Region})
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating, "doctor called %s %s", call.Service, call.Action)
		require.NotEqual(t, "s3", call.Service)
	}
	t.Run("names the command that raises a quota", func(t *testing.T) {
		lower(t, servicequotas.VPCs, 0)
		d := diagnose(t, exitFindings, demo)
		require.True(t, d.Blocks)
		require.Contains(t, d.Findings, doctor.Finding{
			Check: doctor.VPCQuota, Level: doctor.Blocks, Message: "0 of 0 VPCs are used; needed: 1",
			Fix: "aws service-quotas request-service-quota-increase --region us-east-1 --service-code vpc --quota-code L-F678F1CE --desired-value 1",
		})
		require.Equal(t, []string{doctor.Bootstrap}, diagnose(t, exitFindings).blocking(), "without a cluster it warns")
	})
	t.Run("reports a missing region and a wrong key", func(t *testing.T) {
		environment := cloud.Environment()
		environment["AWS_SECRET_ACCESS_KEY"] = "wrong"
		r := runWith(t, environment, "doctor")
		require.Equal(t, exitFindings, r.Code, r.Stderr)
		require.Regexp(t, `(?m)^blocks +Credentials `, r.Stdout)
		delete(environment, "AWS_REGION")
		delete(environment, "AWS_DEFAULT_REGION")
		r = runWith(t, environment, "doctor")
		require.Equal(t, exitFindings, r.Code, r.Stderr)
		require.Regexp(t, `(?m)^blocks +Region +no region is set$`, r.Stdout)
	})
	t.Run("refuses an invalid spec", func(t *testing.T) {
		require.Contains(t, fails(t, "doctor", "examples/releases/1.36-1.yaml"), "1.36-1.yaml")
	})
}

// createWithoutRoom uploads a spec to an account whose quota is used up. drover creates the cluster once the quota is raised.
func createWithoutRoom(t *testing.T) {
	lower(t, servicequotas.VPCs, 0)
	r := drover(t, "apply", "examples/clusters/demo.yaml", "--watch")
	require.Equal(t, 1, r.Code, r.Stdout)
	require.Contains(t, r.Stderr, "demo is Stopped: the account cannot take this cluster, so nothing was created:\nVPCQuota: "+
		"0 of 0 VPCs are used")
	var one status.Cluster
	require.NoError(t, json.Unmarshal([]byte(ok(t, "status", "demo", "-o", "json")), &one))
	require.Equal(t, status.ReasonAccountNotReady, one.Status.Condition(status.Converged).Reason)
	require.Empty(t, one.Status.Stacks)
}
