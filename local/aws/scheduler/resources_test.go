package scheduler

// The resource types, with the properties of drover's own template.

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

func TestResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		groups, schedules := w.Resources()["AWS::Scheduler::ScheduleGroup"], w.Resources()["AWS::Scheduler::Schedule"]
		request := resource.Request{
			StackName: "drover", LogicalID: "Schedules", Caller: w.admin, Tags: map[string]string{"stack": "drover"},
			Properties: map[string]any{"Name": "drover"},
		}
		group, err := groups.Create(ctx, request)
		require.NoError(t, err)
		require.Equal(t, "drover", group.PhysicalID)
		require.Equal(t, "arn:aws:scheduler:eu-central-1:111122223333:schedule-group/drover", group.Attributes["Arn"])
		require.Equal(t, "2000-01-01T00:00:00Z", group.Attributes["CreationDate"])
		request.PhysicalID, request.Properties = "drover", map[string]any{
			"Name": "drover", "Tags": []any{map[string]any{"Key": "own", "Value": "1"}},
		}
		_, err = groups.Update(ctx, request)
		require.NoError(t, err)
		require.Contains(t, w.Tagged(ctx), tagging.Tagged{
			ARN: group.Attributes["Arn"].(string), Tags: map[string]string{"stack": "drover", "own": "1"},
		})

		sweep := resource.Request{StackName: "drover", LogicalID: "SweepSchedule", Caller: w.admin, Tags: map[string]string{"stack": "drover"},
			Properties: map[string]any{
				"Description": "Finds what an event missed", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"}, "GroupName": "drover",
				"Name": "drover-sweep", "ScheduleExpression": "rate(5 minutes)",
				"Target": map[string]any{
					"Arn": function, "RoleArn": w.role, "Input": `{"scheduledTime":"<aws.scheduler.scheduled-time>"}`,
					"DeadLetterConfig": map[string]any{"Arn": letters},
					"RetryPolicy":      map[string]any{"MaximumEventAgeInSeconds": 300.0, "MaximumRetryAttempts": 3.0},
				},
			}}
		result, err := schedules.Create(ctx, sweep)
		require.NoError(t, err)
		require.Equal(t, resource.Result{
			PhysicalID: "drover-sweep", Attributes: map[string]any{
				"Arn": "arn:aws:scheduler:eu-central-1:111122223333:schedule/drover/drover-sweep",
			},
		}, result)
		time.Sleep(6 * minute)
		synctest.Wait()
		require.Empty(t, cmp.Diff([]call{
			{0, w.role, `{"scheduledTime":"2000-01-01T00:00:00Z"}`}, {5 * minute, w.role, `{"scheduledTime":"2000-01-01T00:05:00Z"}`},
		}, w.functions.calls))

		sweep.PhysicalID = "drover-sweep"
		sweep.Properties["StartDate"] = "2000-01-01T02:00:00+01:00"
		sweep.Properties["EndDate"] = "2000-01-01T01:06:00.000Z"
		_, err = schedules.Update(ctx, sweep)
		require.NoError(t, err)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.Empty(t, cmp.Diff([]time.Duration{0, 5 * minute, 60 * minute, 65 * minute}, w.functions.times()))

		require.NoError(t, schedules.Delete(ctx, sweep))
		require.NoError(t, schedules.Delete(ctx, sweep), "deleting twice succeeds")
		require.NoError(t, groups.Delete(ctx, request))
		require.NoError(t, groups.Delete(ctx, request))
		require.Len(t, w.Tagged(ctx), 1)
		_, err = groups.Update(ctx, request)
		require.ErrorContains(t, err, "ResourceNotFoundException")
		w.Close()
	})
}

func TestResourceNamesAreGenerated(t *testing.T) {
	w := newWorld(t)
	group, err := w.Resources()["AWS::Scheduler::ScheduleGroup"].Create(t.Context(), resource.Request{
		StackName: "drover", LogicalID: "Group", Caller: w.admin,
	})
	require.NoError(t, err)
	require.Regexp(t, `^drover-Group-\w{12}$`, group.PhysicalID)
	schedule, err := w.Resources()["AWS::Scheduler::Schedule"].Create(t.Context(), resource.Request{StackName: "drover", LogicalID: "Sweep",
		Caller: w.admin, Properties: map[string]any{
			"ScheduleExpression": "rate(5 minutes)", "State": "DISABLED", "FlexibleTimeWindow": map[string]any{
				"Mode": "FLEXIBLE", "MaximumWindowInMinutes": "5",
			},
			"Target": map[string]any{"Arn": function, "RoleArn": w.role},
		}})
	require.NoError(t, err)
	require.Regexp(t, `^drover-Sweep-\w{12}$`, schedule.PhysicalID)
	require.NoError(t, w.Fire(t.Context(), "", schedule.PhysicalID))
}

func TestResourcesReject(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		property string
		value    any
		err      string
	}{
		"an unknown property":       {"Sate", "ENABLED", "extraneous key [Sate]"},
		"one that only the API has": {"ActionAfterCompletion", "DELETE", "extraneous key [ActionAfterCompletion]"},
		"an unknown property of targets": {
			"Target", map[string]any{"EcsParameters": map[string]any{}}, "#/Target: extraneous key [EcsParameters]",
		},
		"a date that is none": {"StartDate", "tomorrow", `StartDate "tomorrow" is no RFC3339 timestamp`},
		"a wrong expression":  {"ScheduleExpression", "rate(5)", "Invalid Schedule Expression rate(5)"},
	} {
		t.Run(name, func(t *testing.T) {
			properties := map[string]any{
				"ScheduleExpression": "rate(5 minutes)", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
				"Target": map[string]any{"Arn": function, "RoleArn": w.role},
			}
			properties[test.property] = test.value
			_, err := w.Resources()["AWS::Scheduler::Schedule"].Create(t.Context(), resource.Request{
				StackName: "drover", LogicalID: "Sweep", Caller: w.admin, Properties: properties,
			})
			require.ErrorContains(t, err, test.err)
		})
	}
}
