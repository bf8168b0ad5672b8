package handler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// fake is a state of one cluster.
type fake struct {
	status    *status.Status
	waiter    *store.Waiter
	calls     []string
	inspected []string
}

func (f *fake) Waiter(context.Context, string) (store.Waiter, error) {
	f.calls = append(f.calls, "waiter")
	if f.waiter == nil {
		return store.Waiter{}, store.ErrNotFound
	}
	return *f.waiter, nil
}

func (f *fake) AmendStatus(_ context.Context, _ string, change func(*status.Status)) error {
	f.calls = append(f.calls, "amend")
	if f.status == nil {
		return store.ErrNotFound
	}
	change(f.status)
	return nil
}

func (f *fake) RequestInspection(_ context.Context, cluster, _ string) error {
	f.inspected = append(f.inspected, cluster)
	return nil
}

func (f *fake) Resume(context.Context, store.Waiter, string) error {
	f.calls = append(f.calls, "resume")
	return nil
}

func TestHandle(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ours := plan.Change{StackName: "s", Operation: plan.Update}.Token("v", 1)
	ready := func() *status.Status {
		return &status.Status{
			Phase: status.Ready, Stacks: []status.Stack{{Name: "network", Status: "UPDATE_COMPLETE", ReportedAt: at.Add(-time.Minute)}},
		}
	}
	for name, test := range map[string]struct {
		fake          fake
		status, token string
		calls         []string
		inspected     bool
		want          string
	}{
		"progress is recorded without a look at waiters": {
			fake{status: ready()}, "UPDATE_IN_PROGRESS", ours, []string{"amend"}, false, "UPDATE_IN_PROGRESS",
		},
		"the end that a step waits for resumes it": {
			fake{status: ready(), waiter: &store.Waiter{ClientRequestToken: ours}}, "UPDATE_COMPLETE", ours, []string{"waiter", "resume"}, false,
			"UPDATE_COMPLETE",
		},
		"the end of another operation is recorded": {
			fake{status: ready(), waiter: &store.Waiter{ClientRequestToken: ours}}, "DELETE_FAILED", "t", []string{"waiter", "amend"},
			true, "DELETE_FAILED",
		},
		"the end of drover's own operation is no drift": {
			fake{status: ready()}, "UPDATE_ROLLBACK_COMPLETE", ours, []string{"waiter", "amend"}, false, "UPDATE_ROLLBACK_COMPLETE",
		},
		"the beginning of an external operation is no drift": {
			fake{status: ready()}, "DELETE_IN_PROGRESS", "", []string{"amend"}, false, "DELETE_IN_PROGRESS",
		},
		"the end of an external operation is": {
			fake{status: ready()}, "DELETE_COMPLETE", "", []string{"waiter", "amend"}, true, "DELETE_COMPLETE",
		},
		"a cluster without a status stays without": {fake{}, "DELETE_COMPLETE", "", []string{"waiter", "amend"}, false, ""},
		"a step that waits for any operation goes on with it": {
			fake{status: ready(), waiter: &store.Waiter{}}, "UPDATE_COMPLETE", "t", []string{"waiter", "resume"}, false, "UPDATE_COMPLETE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler.Handler{State: &test.fake, Resume: &test.fake, Now: func() time.Time { return at }}
			in := events.Event[events.StackStatus]{Time: at}
			in.Detail.StackID = "arn:aws:cloudformation:r:1:stack/drover-demo-network/1"
			in.Detail.StatusDetails.Status, in.Detail.ClientRequestToken = test.status, test.token
			_, err := h.Handle(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, test.calls, test.fake.calls)
			require.Equal(t, test.inspected, len(test.fake.inspected) > 0)
			if test.want == "" {
				require.Nil(t, test.fake.status)
				return
			}
			require.Equal(t, test.want, test.fake.status.Stacks[0].Status)
			require.Equal(t, test.inspected, test.fake.status.Condition(status.InSync) != nil)
		})
	}
}
