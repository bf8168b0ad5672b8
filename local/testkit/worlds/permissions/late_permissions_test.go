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
// an operator, and no key of a failed attempt is left.
func TestLateKeyPermissions(t *testing.T) {
	const late = 5 * time.Minute
	for name, c := range map[string]struct {
		roles, policies time.Duration
		passes, within  time.Duration
	}{
		"the first cluster follows the deployment at once": {roles: late, within: 40 * time.Minute},
		"new key policies are late for half an hour":       {policies: late, passes: 30 * time.Minute, within: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				began := time.Now()
				l.Keys.Delay(c.roles, c.policies)
				l.Upload(names.ReleaseSpec("r1"), harness.ReleaseOf("1.35", "r1"))
				l.ChangeSpec("")
				l.RequirePhase(status.Failed)
				require.Contains(t, l.Status("demo").Message, "is not authorized to perform: kms:CreateGrant")
				require.NotNil(t, l.Status("demo").RetryAt)
				for l.Status("demo").Phase != status.Ready {
					require.Less(t, time.Since(began), c.within, l.Status("demo").Message)
					if time.Since(began) > c.passes {
						l.Keys.Delay(c.roles, 0)
					}
					time.Sleep(5 * time.Minute)
					l.Audit()
				}
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
