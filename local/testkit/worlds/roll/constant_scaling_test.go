package roll_test

// An autoscaler that changes the size of the pool after each change set.

import (
	"context"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	change "github.com/drover-run/drover/functions/change/handler"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
)

// Each pace is computed for a size that is outdated at once. The roll starts nevertheless, and no invocation creates more
// change sets than it has time for.
func TestRollStartsDespiteConstantScaling(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const pool = "minSize: 1, maxSize: 4"
		l.CreatePool(pool)
		l.SetPoolSize(2)
		time.Sleep(10 * time.Minute)
		before, paces, all, one, most := l.Group("demo", "a"), map[string]bool{}, 0, 0, 0
		l.Functions.Around("change", func(_ aws.Config, next awslambda.Handler) awslambda.Handler {
			return harness.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
				one = 0
				out, err := next.Invoke(ctx, payload)
				most = max(most, one)
				return out, err
			})
		})
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) != "change" || call.Action != "CreateChangeSet" {
				return nil
			}
			one++
			if note := l.Stack("demo", "pool-a").Tags[names.TagPace]; note != "" {
				paces[note] = true
			}
			if all++; all < 200 && len(l.batches(lives.PoolGroup)) == 0 {
				l.SetPoolSize(2 + all%3)
			}
			return nil
		})
		l.ChangePool(pool + larger)
		l.SettleAll()
		l.OnCall(nil)
		require.Less(t, all, 100, "it waited until the autoscaler rested")
		require.Len(t, paces, 10)
		require.LessOrEqual(t, most, change.MaxChangeSets)
		time.Sleep(10 * time.Minute)
		l.RequireRenewed(before, l.Group("demo", "a").Desired)
		require.Equal(t, 4, l.Group("demo", "a").Max)
	})
}
