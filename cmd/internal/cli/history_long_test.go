package cli

// Executions of every length that a state machine allows are in the history.

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// fakeExecution is an execution that began and ended at times; one without an end runs.
type fakeExecution struct {
	machine, name, input, output string
	began, ended                 time.Time
}

// fakeExecutions lists executions as Step Functions does, the newest first.
type fakeExecutions struct {
	all []*fakeExecution
}

func (f *fakeExecutions) find(arn *string) *fakeExecution {
	return f.all[slices.IndexFunc(f.all, func(x *fakeExecution) bool { return x.arn() == aws.ToString(arn) })]
}

func (x *fakeExecution) arn() string { return "arn:aws:states:::execution:" + x.machine + ":" + x.name }

func (x *fakeExecution) status() sfntypes.ExecutionStatus {
	if x.ended.IsZero() {
		return sfntypes.ExecutionStatusRunning
	}
	return sfntypes.ExecutionStatusSucceeded
}

func (f *fakeExecutions) ListExecutions(
	_ context.Context, in *sfn.ListExecutionsInput, _ ...func(*sfn.Options),
) (*sfn.ListExecutionsOutput, error) {
	out := &sfn.ListExecutionsOutput{}
	sorted := slices.SortedFunc(slices.Values(f.all), func(a, b *fakeExecution) int { return b.began.Compare(a.began) })
	for _, x := range sorted {
		ofMachine := strings.HasSuffix(aws.ToString(in.StateMachineArn), names.Prefix+x.machine)
		if !ofMachine || in.StatusFilter != "" && in.StatusFilter != x.status() {
			continue
		}
		item := sfntypes.ExecutionListItem{ExecutionArn: aws.String(x.arn()), Name: &x.name, StartDate: &x.began, Status: x.status()}
		if !x.ended.IsZero() {
			item.StopDate = &x.ended
		}
		out.Executions = append(out.Executions, item)
	}
	return out, nil
}

func (f *fakeExecutions) DescribeExecution(
	_ context.Context, in *sfn.DescribeExecutionInput, _ ...func(*sfn.Options),
) (*sfn.DescribeExecutionOutput, error) {
	x := f.find(in.ExecutionArn)
	out := &sfn.DescribeExecutionOutput{ExecutionArn: in.ExecutionArn, Name: &x.name, Input: &x.input, Status: x.status()}
	if !x.ended.IsZero() {
		out.Output, out.StopDate = &x.output, &x.ended
	}
	return out, nil
}

func (f *fakeExecutions) GetExecutionHistory(
	_ context.Context, in *sfn.GetExecutionHistoryInput, _ ...func(*sfn.Options),
) (*sfn.GetExecutionHistoryOutput, error) {
	x := f.find(in.ExecutionArn)
	events := []sfntypes.HistoryEvent{{
		Id: 1, Timestamp: &x.began, Type: sfntypes.HistoryEventTypeExecutionStarted,
		ExecutionStartedEventDetails: &sfntypes.ExecutionStartedEventDetails{Input: &x.input},
	}}
	if !x.ended.IsZero() {
		events = append(events, sfntypes.HistoryEvent{
			Id: 2, Timestamp: &x.ended, Type: sfntypes.HistoryEventTypeExecutionSucceeded,
			ExecutionSucceededEventDetails: &sfntypes.ExecutionSucceededEventDetails{Output: &x.output},
		})
	}
	return &sfn.GetExecutionHistoryOutput{Events: events}, nil
}

func TestHistoryOfLongExecutions(t *testing.T) {
	now := time.Now()
	since := now.Add(-time.Hour)
	day := 24 * time.Hour
	execution := func(machine, name string, length time.Duration) *fakeExecution {
		ended := now.Add(-time.Minute)
		return &fakeExecution{
			machine: machine, name: name, input: `{"cluster":"demo"}`, output: `{"cluster":"demo"}`, began: ended.Add(-length), ended: ended,
		}
	}
	read := func(t *testing.T, h *History) (subjects []string) {
		found, err := h.readExecutions(t.Context())
		require.NoError(t, err)
		for _, e := range found {
			subjects = append(subjects, e.String())
		}
		return subjects
	}
	history := func(all ...*fakeExecution) *History {
		h := NewHistory(&Cell{}, "demo", since)
		h.sfn = &fakeExecutions{all: all}
		return h
	}
	for machine, longest := range map[string]time.Duration{
		machineConverge: 5 * day, machineUpgrade: 14 * day, machineJoin: 49 * time.Hour, machineDrain: 49 * time.Hour,
	} {
		t.Run("shows the end of the longest execution of "+machine, func(t *testing.T) {
			require.Len(t, read(t, history(execution(machine, "a", longest), execution(machine, "b", time.Minute))), 3)
		})
		t.Run("shows the end of a followed execution of "+machine, func(t *testing.T) {
			x := execution(machine, "a", longest-time.Hour)
			ended := x.ended
			x.ended = time.Time{}
			h := history(x)
			require.Empty(t, read(t, h), "it began before the period")
			require.Equal(t, machine == machineDrain, h.Drains())
			x.ended = ended
			require.Len(t, read(t, h), 1)
			require.False(t, h.Drains())
			require.Empty(t, read(t, h), "once")
		})
	}
	t.Run("shows the end of a followed drain whose output names the cluster", func(t *testing.T) {
		x := execution(machineDrain, "a", 48*time.Hour)
		ended := x.ended
		x.input, x.ended = `{"instance-id":"i-1"}`, time.Time{}
		other := execution(machineDrain, "b", 48*time.Hour)
		other.input, other.output, other.ended = `{"instance-id":"i-2"}`, `{"cluster":"demo-two"}`, time.Time{}
		h := history(x, other)
		require.Empty(t, read(t, h))
		require.False(t, h.Drains(), "it may be another cluster's")
		x.ended, other.ended = ended, ended
		require.Equal(t, []string{"drain-node  i-1: succeeded"}, read(t, h))
		require.Empty(t, read(t, h))
	})
	t.Run("lists old executions once", func(t *testing.T) {
		var all []*fakeExecution
		for i := range 100 {
			old := execution(machineConverge, names.ConvergeExecution("other", "v", string(rune('a'+i))), time.Minute)
			old.began, old.ended = old.began.Add(-day), old.ended.Add(-day)
			all = append(all, old)
		}
		h := history(all...)
		pages := &pagedExecutions{fakeExecutions: h.sfn.(*fakeExecutions)}
		h.sfn = pages
		read(t, h)
		require.Equal(t, 10, pages.pages)
		pages.pages = 0
		read(t, h)
		require.Equal(t, 1, pages.pages, "the newest page has nothing that began since")
	})
}

// pagedExecutions lists ten executions a page, and counts the pages that have executions.
type pagedExecutions struct {
	*fakeExecutions
	pages int
}

func (p *pagedExecutions) ListExecutions(
	ctx context.Context, in *sfn.ListExecutionsInput, options ...func(*sfn.Options),
) (*sfn.ListExecutionsOutput, error) {
	out, err := p.fakeExecutions.ListExecutions(ctx, in, options...)
	from := 0
	if in.NextToken != nil {
		if err := json.Unmarshal([]byte(*in.NextToken), &from); err != nil {
			return nil, err
		}
	}
	next := min(from+10, len(out.Executions))
	if next < len(out.Executions) {
		token, _ := json.Marshal(next)
		out.NextToken = aws.String(string(token))
	}
	if next > from {
		p.pages++
	}
	out.Executions = out.Executions[from:next]
	return out, err
}

// deployedMachines returns the definitions of the state machines by name, without drover's prefix.
func deployedMachines(t *testing.T) map[string]string {
	files, err := filepath.Glob(filepath.Join(repository, "infra", "testdata", "machines", "*.asl.json"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".asl.json")] = string(body)
	}
	return all
}

func TestTimeoutsAreThoseOfTheMachines(t *testing.T) {
	deployed := map[string]time.Duration{}
	for machine, definition := range deployedMachines(t) {
		var asl struct{ TimeoutSeconds int }
		require.NoError(t, json.Unmarshal([]byte(definition), &asl))
		deployed[machine] = time.Duration(asl.TimeoutSeconds) * time.Second
	}
	require.Equal(t, deployed, timeouts)
}

// eventFunctions lists exactly the functions that no state machine invokes.
func TestEventFunctions(t *testing.T) {
	invoked := map[string]bool{}
	for _, definition := range deployedMachines(t) {
		for _, match := range regexp.MustCompile(`function:`+names.Prefix+`([a-z]+)`).FindAllStringSubmatch(definition, -1) {
			invoked[match[1]] = true
		}
	}
	want := slices.DeleteFunc(slices.Clone(functions), func(function string) bool { return invoked[function] })
	require.Less(t, len(want), len(functions))
	require.ElementsMatch(t, want, eventFunctions)
}
