package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLambdaConcurrency(t *testing.T) {
	increase := "aws service-quotas request-service-quota-increase --region eu-central-1 --service-code lambda --quota-code L-B99A9384 " +
		"--desired-value "
	for name, test := range map[string]struct {
		limit, unreserved, clusters int
		want                        Finding
	}{
		"is enough": {
			1000, 900, 1, Finding{LambdaConcurrency, OK, "900 of 1000 concurrent executions of Lambda are not reserved; needed: 20", ""},
		},
		"is that of a new account": {
			10, 10, 1, Finding{LambdaConcurrency, Warning,
				"10 of 10 concurrent executions of Lambda are not reserved; needed: 10, and 20 for full speed", increase + "20"},
		},
		"is too low for several clusters": {
			1000, 20, 2, Finding{LambdaConcurrency, Warning,
				"20 of 1000 concurrent executions of Lambda are not reserved; needed: 10, and 30 for full speed", increase + "1010"},
		},
		"is reserved by others": {
			1000, 9, 1, Finding{LambdaConcurrency, Blocks, "9 of 1000 concurrent executions of Lambda are not reserved; needed: 10",
				increase + "1011"},
		},
		"is not reported": {
			0, 0, 1, Finding{LambdaConcurrency, Warning, "Lambda does not report its limit",
				"check it yourself: `aws lambda get-account-settings --region eu-central-1`"},
		},
		"is enough for drover without clusters": {
			20, 20, 0, Finding{LambdaConcurrency, OK, "20 of 20 concurrent executions of Lambda are not reserved; needed: 20", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Concurrency, f.Unreserved = test.limit, test.unreserved
			var clusters []Cluster
			for range test.clusters {
				clusters = append(clusters, demo(nil))
			}
			require.Equal(t, []Finding{test.want}, of(Examine(f, clusters), LambdaConcurrency))
		})
	}
}

func TestRolesAreRequestedWhereIAMIs(t *testing.T) {
	for region, fix := range map[string]string{
		"eu-central-1": "aws service-quotas request-service-quota-increase --region us-east-1 --service-code iam --quota-code L-FE177D64 " +
			"--desired-value 1002",
		"cn-north-1":    "request a quota of 1002 IAM roles from AWS Support, or delete unused ones",
		"us-gov-west-1": "request a quota of 1002 IAM roles from AWS Support, or delete unused ones",
	} {
		f := roomy()
		f.Region, f.Used["L-FE177D64"] = region, 1000
		require.Equal(t, fix, of(Examine(f, []Cluster{demo(nil)}), RoleQuota)[0].Fix)
	}
}
