package permissions_test

// Permissions that AWS knows five minutes late.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// EKS cannot create its grant on the cluster's key until KMS knows the permissions. drover creates the control plane again, without help of
// an operator. The creation that succeeds begins within five minutes after the permissions count, and no key of a failed attempt is left.
func TestLateKeyPermissions(t *testing.T) {
	const late, quick = 5 * time.Minute, 5 * time.Minute
	var creation time.Duration
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		began := time.Now()
		l.Upload(names.ReleaseSpec("r1"), harness.ReleaseOf("1.35", "r1"))
		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		for l.Status("demo").Phase != status.Ready {
			time.Sleep(10 * time.Second)
		}
		creation = time.Since(began)
	})
	for name, c := range map[string]struct{ roles, policies, passes time.Duration }{
		"the first cluster follows the deployment at once": {roles: late, passes: late},
		"new key policies are late for half an hour":       {policies: late, passes: 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				began, failed := time.Now(), false
				l.Keys.Delay(c.roles, c.policies)
				l.Upload(names.ReleaseSpec("r1"), harness.ReleaseOf("1.35", "r1"))
				l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
				for s := l.Status("demo"); s.Phase != status.Ready; s = l.Status("demo") {
					if s.Phase == status.Failed {
						failed = true
						require.Contains(t, s.Message, "is not authorized to perform: kms:CreateGrant")
						require.NotNil(t, s.RetryAt)
					}
					require.Less(t, time.Since(began), c.passes+quick+creation, s.Message)
					if time.Since(began) >= c.passes {
						l.Keys.Delay(c.roles, 0)
					}
					time.Sleep(10 * time.Second)
				}
				require.True(t, failed)
				l.SettleAll()
				var keys []string
				for _, key := range l.Keys.Tagged(t.Context()) {
					if key.Tags[names.TagCluster] == "demo" {
						keys = append(keys, key.ARN)
					}
				}
				require.Len(t, keys, 1)
			})
		})
	}
}
