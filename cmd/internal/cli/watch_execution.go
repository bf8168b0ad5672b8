package cli

// Watches of executions. They print the history of a cluster until an execution ends.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// planTimeout is how long a command waits for the plan of an execution that it started. Planning takes seconds.
const planTimeout = 20 * time.Second

// planOf waits until an execution of the converge machine has planned, and returns its plan. It is nil after planTimeout, or if
// the execution failed without one.
func planOf(ctx context.Context, c *Cell, execution string) (*events.PlanResult, error) {
	client := sfn.NewFromConfig(c.cfg)
	for deadline := time.Now().Add(planTimeout); ; {
		plan, done, err := readPlan(ctx, client, execution)
		if ctx.Err() != nil {
			return nil, errUnwatched
		}
		if done || !time.Now().Before(deadline) {
			return plan, err
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}

// readPlan reads the plan of an execution. It is done if there is one, or if the execution failed without one.
func readPlan(ctx context.Context, client *sfn.Client, execution string) (plan *events.PlanResult, done bool, err error) {
	pages := sfn.NewGetExecutionHistoryPaginator(client, &sfn.GetExecutionHistoryInput{
		ExecutionArn: &execution, MaxResults: 1000,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("reading the history of execution %s: %w", execution, err)
		}
		for _, e := range page.Events {
			if plan := planIn(e); plan != nil {
				return plan, true, nil
			}
			switch e.Type {
			case sfntypes.HistoryEventTypeExecutionFailed, sfntypes.HistoryEventTypeExecutionAborted,
				sfntypes.HistoryEventTypeExecutionTimedOut:
				return nil, true, nil
			}
		}
	}
	return nil, false, nil
}

// planIn returns the plan in the output of a state, or nil.
func planIn(e sfntypes.HistoryEvent) *events.PlanResult {
	if e.Type != sfntypes.HistoryEventTypeTaskStateExited || e.StateExitedEventDetails == nil {
		return nil
	}
	var plan events.PlanResult
	if json.Unmarshal([]byte(aws.ToString(e.StateExitedEventDetails.Output)), &plan) != nil || plan.Outcome == "" {
		return nil
	}
	return &plan
}

// watcher prints new entries of a cluster's history.
type watcher struct {
	c       *Cell
	cluster string
	history eventSource
	show    *view.Progress
	polls   *polls
}

// eventSource returns the new entries of a cluster's history, as History does.
type eventSource interface {
	Read(ctx context.Context) ([]Entry, error)
	// Drains reports whether a drain of one of the cluster's nodes runs.
	Drains() bool
}

func newWatcher(out io.Writer, c *Cell, cluster string, since time.Time) *watcher {
	show := view.NewProgress(out)
	return &watcher{
		c: c, cluster: cluster, history: NewHistory(c, cluster, since), show: show,
		polls: &polls{report: func(text string) { show.Say("%s", text) }},
	}
}

// poll reads a condition and then the history, so that the history has what led to the condition.
func (w *watcher) poll(
	ctx context.Context, holds func(context.Context) (bool, error),
) (done bool, found []Entry, err error) {
	if done, err = holds(ctx); err != nil {
		return false, nil, err
	}
	found, err = w.history.Read(ctx)
	return done, found, err
}

// until prints new entries until a condition holds. An error of the condition is a failed poll.
func (w *watcher) until(ctx context.Context, holds func(context.Context) (bool, error)) error {
	for {
		done, found, err := w.poll(ctx, holds)
		if ends := w.polls.next(ctx, err); ends != nil {
			return ends
		}
		for _, e := range found {
			w.show.Say("%s", e)
		}
		if done && err == nil {
			return nil
		}
		if err := sleep(ctx, followInterval); err != nil {
			return err
		}
	}
}

// execution prints new entries until an execution ends, and returns it.
func (w *watcher) execution(ctx context.Context, arn string) (x *sfn.DescribeExecutionOutput, err error) {
	w.show.Wait(arn[strings.LastIndex(arn, ":")+1:])
	client := sfn.NewFromConfig(w.c.cfg)
	err = w.until(ctx, func(ctx context.Context) (bool, error) {
		x, err = client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		if err != nil {
			return false, fmt.Errorf("reading execution %s: %w", arn, err)
		}
		return x.Status != sfntypes.ExecutionStatusRunning, nil
	})
	return x, err
}

// verdict waits until the cluster is Ready, Stopped, Failed or Deleted. It returns an error if the cluster is Stopped or Failed.
func (w *watcher) verdict(ctx context.Context) error {
	var s status.Status
	err := w.until(ctx, func(ctx context.Context) (bool, error) {
		cluster, err := readStatus(ctx, w.c, w.cluster)
		if err != nil {
			return false, err
		}
		s = cluster.Status
		switch s.Phase {
		case status.Ready, status.Stopped, status.Failed, status.Deleted:
			return true, nil
		}
		w.show.Wait(strings.Join(pendingChanges(s), ", "))
		return false, nil
	})
	if err != nil {
		return err
	}
	w.show.Say("%s", phaseLine(w.cluster, s))
	if s.Phase == status.Stopped || s.Phase == status.Failed {
		return fmt.Errorf("%s is %s: %s", w.cluster, s.Phase, s.Message)
	}
	return nil
}

// waitForRoll waits for the end of a roll that was requested at a time: the stack's tag has that time or a later one, the cluster is
// Ready, and no drain runs.
func (w *watcher) waitForRoll(ctx context.Context, pool string, at time.Time) error {
	reader := cloudformation.New(awscloudformation.NewFromConfig(w.c.cfg), resourcegroupstaggingapi.NewFromConfig(w.c.cfg), "")
	w.show.Wait("the roll of pool " + pool)
	var refused error
	err := w.until(ctx, func(ctx context.Context) (bool, error) {
		stack, err := reader.Describe(ctx, names.Stack(w.cluster, names.PoolStack(pool)))
		if err != nil {
			return false, err
		}
		last, _ := time.Parse(time.RFC3339, stack.Tags[names.TagRollAt]) // a pool that was never rolled has none
		cluster, err := readStatus(ctx, w.c, w.cluster)
		if err != nil {
			return false, err
		}
		switch s := cluster.Status; {
		case s.Phase == status.Stopped || s.Phase == status.Failed:
			refused = fmt.Errorf("pool %s is not rolled yet: %s is %s: %s", pool, w.cluster, s.Phase, s.Message)
			return true, nil
		case s.Phase == status.Deleting || s.Phase == status.Deleted:
			refused = fmt.Errorf("pool %s was not rolled: %s is %s", pool, w.cluster, s.Phase)
			return true, nil
		case s.Phase != status.Ready || last.Before(at.Truncate(time.Second)):
			return false, nil
		}
		return !w.history.Drains(), nil
	})
	if err = cmp.Or(err, refused); err == nil {
		w.show.Say("every node of pool %s is replaced", pool)
	}
	return err
}
