package resume

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/stacks"
)

func TestAdvice(t *testing.T) {
	stuck := []stacks.Stuck{{Resource: "Subnet0", Reason: "it has a dependency"}, {Resource: "Vpc", Reason: "so has this"}}
	tests := map[string]struct {
		status  string
		failure stacks.Failure
		want    string
	}{
		"a stack that is there and failed for no known cause": {"UPDATE_FAILED", stacks.Failure{Reason: "no"}, ""},
		"a quota": {"UPDATE_FAILED", stacks.Failure{Reason: `Resource handler returned message: "no more" (RequestToken: 1, HandlerErrorCode: ServiceLimitExceeded)`},
			"\na quota of the account is used up: raise it in Service Quotas, or free some of it"},
		"words that only look like a code": {"UPDATE_FAILED", stacks.Failure{Reason: "HandlerErrorCode: ServiceLimitExceeded is what I fear"}, ""},
		"leftovers of a deletion": {"DELETE_FAILED", stacks.Failure{Reason: "x", Stuck: stuck},
			"\nleft over: Subnet0 (it has a dependency), Vpc (so has this)\nnext: remove what holds them; the deletion goes on with the next try"},
		"a rollback that is stuck": {"UPDATE_ROLLBACK_FAILED", stacks.Failure{Reason: "x", Stuck: stuck},
			"\nstuck at: Subnet0 (it has a dependency), Vpc (so has this)\nnext: mend that; the rollback goes on with the next try; or leave them as they are: " +
				"aws cloudformation continue-update-rollback --stack-name drover-demo-network --resources-to-skip Subnet0 Vpc"},
		"a rollback that is stuck at no resource": {"UPDATE_ROLLBACK_FAILED", stacks.Failure{Reason: "x"},
			"\nstuck at: AWS's reason\nnext: mend that; the rollback goes on with the next try"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, advice("drover-demo-network", test.status, test.failure))
		})
	}
}
