package storm

import (
	"context"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// An upgrade that waited begins and ends during the checks of a settled world. Its end leaves the next upgrade in the status until the next
// plan, although the start of that one was withdrawn.
func TestUpgradeEndsInASettledWorld(t *testing.T) {
	p := quiet()
	p.breakAtEnd = func(w *world) {
		require.NoError(w.t, w.State().UpdateStatus(context.Background(), "c0", nextUpgrade))
		plans := 0
		afterPlan(w, func(s *status.Status) {
			if plans++; plans > 1 {
				return
			}
			nextUpgrade(s)
			at := w.began
			s.AddHistory(status.Upgrade{Phase: string(upgrade.Done), To: s.Release, Started: &at, Ended: &at, Execution: "ended"})
		})
	}
	o := run(t, 1, p, false)
	require.Empty(t, o.Violations, story(o))
}

// nextUpgrade records an upgrade that a rollout requests and a check refuses.
func nextUpgrade(s *status.Status) {
	s.NextUpgrade = &status.Upgrade{Phase: string(upgrade.Blocked), To: release(firstMinor-1, 0), Origin: string(upgrade.OriginRollout)}
}

// afterPlan changes the status of c0 after each plan.
func afterPlan(w *world, change func(*status.Status)) {
	instead(w, "plan", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
		answer, err := next.Invoke(ctx, payload)
		require.NoError(w.t, w.State().UpdateStatus(ctx, "c0", change))
		return answer, err
	})
}
