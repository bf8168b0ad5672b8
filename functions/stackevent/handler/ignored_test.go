package handler_test

// Events that change nothing, and those that are retried.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// failing is a state whose calls may fail.
type failing struct {
	*fake
	waiter, amend, request error
}

func (f failing) Waiter(ctx context.Context, stackName string) (store.Waiter, error) {
	w, err := f.fake.Waiter(ctx, stackName)
	if f.waiter != nil {
		err = f.waiter
	}
	return w, err
}

func (f failing) AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	err := f.fake.AmendStatus(ctx, cluster, change)
	if f.amend != nil {
		err = f.amend
	}
	return err
}

func (f failing) RequestInspection(ctx context.Context, cluster, why string) error {
	_ = f.fake.RequestInspection(ctx, cluster, why) // never fails
	return f.request
}

func TestStackEventIsIgnoredOrRetried(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	throttled := errors.New("throttled")
	for name, test := range map[string]struct {
		stack                  string
		at                     time.Time
		known                  status.Stack
		waiter, amend, request error
		calls                  []string
		recorded, inspected    bool
		err                    error
	}{
		"recorded": {
			"drover-demo-network", at, status.Stack{}, nil, nil, nil, []string{"waiter", "amend"}, true, true, nil,
		},
		"ignored of another stack": {"website", at, status.Stack{}, nil, nil, nil, nil, false, false, nil},
		"ignored without a time": {
			"drover-demo-network", time.Time{}, status.Stack{}, nil, nil, nil, []string{"waiter", "amend"}, false, false, nil,
		},
		"ignored when it is known": {
			"drover-demo-network", at, status.Stack{Status: "DELETE_COMPLETE", ReportedAt: at}, nil, nil, nil, []string{"waiter", "amend"},
			false, false, nil,
		},
		"ignored when it is older": {
			"drover-demo-network", at, status.Stack{ReportedAt: at.Add(time.Minute)}, nil, nil, nil, []string{"waiter", "amend"}, false, false, nil,
		},
		"retried when waiters are not read": {
			"drover-demo-network", at, status.Stack{}, throttled, nil, nil, []string{"waiter"}, false, false, throttled,
		},
		"retried when it is not recorded": {
			"drover-demo-network", at, status.Stack{}, nil, throttled, nil, []string{"waiter", "amend"}, true, false, throttled,
		},
		"retried when no audit follows": {
			"drover-demo-network", at, status.Stack{}, nil, nil, throttled, []string{"waiter", "amend"}, true, true, throttled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.known.Name = "network"
			known := &status.Status{Phase: status.Ready, Stacks: []status.Stack{test.known}}
			f := failing{&fake{status: known}, test.waiter, test.amend, test.request}
			h := &handler.Handler{State: f, Resume: f, Now: func() time.Time { return at }}
			in := events.Event[events.StackStatus]{Time: test.at}
			in.Detail.StackID = "arn:aws:cloudformation:r:1:stack/" + test.stack + "/1"
			in.Detail.StatusDetails.Status = "DELETE_COMPLETE"
			_, err := h.Handle(t.Context(), in)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.calls, f.calls)
			require.Equal(t, test.recorded, f.status.Stacks[0] != test.known)
			require.Equal(t, test.inspected, len(f.inspected) > 0)
		})
	}
}
