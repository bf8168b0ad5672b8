package scheduler

// Due times and deliveries, in synthetic time. It begins at midnight of 2000-01-01 UTC.

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/resource"
)

const minute = time.Minute

func TestDueTimes(t *testing.T) {
	midnight := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change         func(*settings)
		until          time.Duration
		want           []time.Duration
		ignoreNotFound bool
	}{
		"a rate at once and then at its pace": {until: 11 * minute, want: []time.Duration{0, 5 * minute, 10 * minute}},
		"a rate from its start date on": {change: func(c *settings) {
			c.StartDate = midnight.Add(3 * minute)
		}, until: 9 * minute, want: []time.Duration{3 * minute, 8 * minute}},
		"a rate in step with a start date in the past": {change: func(c *settings) {
			c.StartDate = midnight.Add(-7 * minute)
		}, until: 9 * minute, want: []time.Duration{3 * minute, 8 * minute}},
		"until the end date, and the schedule stays": {change: func(c *settings) {
			c.EndDate = midnight.Add(5 * minute)
		}, until: time.Hour, want: []time.Duration{0, 5 * minute}},
		"until the end date, and the schedule is deleted": {change: func(c *settings) {
			c.EndDate, c.ActionAfterCompletion = midnight.Add(6*minute), "DELETE"
		}, until: time.Hour, want: []time.Duration{0, 5 * minute}, ignoreNotFound: true},
		"cron in its zone": {change: func(c *settings) {
			c.ScheduleExpression, c.ScheduleExpressionTimezone = "cron(30 9 ? * 1 *)", "Asia/Tokyo"
		}, until: 48 * time.Hour, want: []time.Duration{24*time.Hour + 30*minute}},
		"cron not before the start date": {change: func(c *settings) {
			c.ScheduleExpression, c.StartDate = "cron(0/30 * * * ? *)", midnight.Add(31*minute)
		}, until: 91 * minute, want: []time.Duration{60 * minute, 90 * minute}},
		"once, ignoring dates, and the schedule is deleted": {change: func(c *settings) {
			c.ScheduleExpression, c.EndDate, c.ActionAfterCompletion = "at(2000-01-01T00:10:00)", midnight.Add(minute), "DELETE"
		}, until: time.Hour, want: []time.Duration{10 * minute}, ignoreNotFound: true},
		"once, and the schedule stays": {change: func(c *settings) {
			c.ScheduleExpression = "at(2000-01-01T00:10:00)"
		}, until: time.Hour, want: []time.Duration{10 * minute}},
		"never while disabled": {change: func(c *settings) { c.State = "DISABLED" }, until: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.create(t, test.change)
				time.Sleep(test.until)
				synctest.Wait()
				require.Empty(t, cmp.Diff(test.want, w.functions.times()))
				_, err := w.get(defaultGroup, "sweep")
				require.Equal(t, test.ignoreNotFound, err != nil)
				w.Close()
			})
		})
	}
}

func TestFlexibleWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(c *settings) {
			c.ScheduleExpression, c.FlexibleTimeWindow = "rate(1 hour)", window{Mode: "FLEXIBLE", MaximumWindowInMinutes: 15}
		})
		time.Sleep(24*time.Hour - minute)
		synctest.Wait()
		times := w.functions.times()
		require.Len(t, times, 24)
		spread := map[time.Duration]bool{}
		for i, at := range times {
			within := at - time.Duration(i)*time.Hour
			require.True(t, within >= 0 && within < 15*minute, "%s after it was due", within)
			spread[within] = true
		}
		require.Greater(t, len(spread), 1, "all at the same place in the window")
		w.Close()
	})
}

func TestChangedSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(c *settings) { c.ScheduleExpression = "cron(0/10 * * * ? *)" })
		time.Sleep(11 * minute)
		put := func(change func(*settings)) {
			t.Helper()
			_, err := w.put(w.admin, w.sweep(change), "scheduler:UpdateSchedule", "")
			require.NoError(t, err)
		}
		put(func(c *settings) { c.ScheduleExpression = "cron(5/30 * * * ? *)" })
		time.Sleep(30 * minute) // 00:41
		put(func(c *settings) { c.ScheduleExpression, c.State = "cron(* * * * ? *)", "DISABLED" })
		time.Sleep(30 * minute) // 01:11
		put(func(c *settings) { c.ScheduleExpression = "cron(0 * * * ? *)" })
		time.Sleep(time.Hour) // 02:11
		require.NoError(t, w.remove(w.admin, "", "sweep"))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Empty(t, cmp.Diff([]time.Duration{0, 10 * minute, 35 * minute, 2 * time.Hour}, w.functions.times()))
		w.Close()
	})
}

func TestDeletedScheduleInItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(c *settings) { c.FlexibleTimeWindow = window{Mode: "FLEXIBLE", MaximumWindowInMinutes: 1440} })
		synctest.Wait() // it is due, and waits within its window
		require.NoError(t, w.remove(w.admin, "", "sweep"))
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		require.Empty(t, w.functions.times())
		w.Close()
	})
}

func TestInput(t *testing.T) {
	const arn = "arn:aws:scheduler:eu-central-1:111122223333:schedule/default/sweep"
	t.Run("replaces keywords", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.functions.failures = 1
			w.create(t, func(c *settings) {
				c.Target.Input =
					`{"a":"<aws.scheduler.schedule-arn>","t":"<aws.scheduler.scheduled-time>","n":"<aws.scheduler.attempt-number>",` +
						`"x":"<aws.scheduler.else>"}`
				c.StartDate = time.Date(2000, 1, 1, 2, 0, 0, 0, time.FixedZone("", 3600))
			})
			time.Sleep(62 * minute)
			synctest.Wait()
			require.Empty(t, cmp.Diff([]call{
				{time.Hour, w.role, `{"a":"` + arn + `","t":"2000-01-01T01:00:00Z","n":"1","x":"<aws.scheduler.else>"}`},
				{time.Hour + time.Second, w.role, `{"a":"` + arn + `","t":"2000-01-01T01:00:00Z","n":"2","x":"<aws.scheduler.else>"}`},
			}, w.functions.calls))
			w.Close()
		})
	})
	t.Run("keeps the execution's ID in all attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.functions.failures = 1
			w.create(t, func(c *settings) { c.Target.Input = `"<aws.scheduler.execution-id>"` })
			time.Sleep(6 * minute)
			synctest.Wait()
			require.Len(t, w.functions.calls, 3)
			require.Equal(t, w.functions.calls[0].Payload, w.functions.calls[1].Payload)
			require.NotEqual(t, w.functions.calls[0].Payload, w.functions.calls[2].Payload)
			require.Greater(t, len(w.functions.calls[0].Payload), 10)
			w.Close()
		})
	})
	t.Run("is AWS's default event when the target has none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.create(t, func(c *settings) { c.Target.Input = "" })
			synctest.Wait()
			id := w.functions.calls[0].Payload
			require.Contains(t, id, `"detail":"{}"`)
			require.Contains(t, id, `"detail-type":"Scheduled Event"`)
			require.Contains(t, id, `"resources":["`+arn+`"]`)
			require.Contains(t, id, `"time":"2000-01-01T00:00:00Z"`)
			w.Close()
		})
	})
	t.Run("is plain text for a queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.create(t, func(c *settings) { c.Target.Arn, c.Target.Input = queue, "it is <aws.scheduler.scheduled-time>" })
			synctest.Wait()
			got := w.receiveMessages(t, queue)
			require.Len(t, got, 1)
			require.Equal(t, "it is 2000-01-01T00:00:00Z", got[0].Body)
			w.Close()
		})
	})
	t.Run("is the input of a state machine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			machine, err := w.machines.Resources()["AWS::StepFunctions::StateMachine"].Create(t.Context(), resource.Request{Caller: w.admin,
				Properties: map[string]any{
					"StateMachineName": "m", "DefinitionString": `{"QueryLanguage":"JSONata","StartAt":"Done","States":{"Done":{"Type":"Succeed"}}}`,
					"RoleArn": w.newRole(t, "machine",
						`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"states.amazonaws.com"},`+
							`"Action":"sts:AssumeRole"}]}`, grants),
				}})
			require.NoError(t, err)
			w.create(t, func(c *settings) { c.Target.Arn = machine.Attributes["Arn"].(string) })
			synctest.Wait()
			executions := w.machines.Executions()
			require.Len(t, executions, 1)
			require.JSONEq(t, `{"scheduledTime":"2000-01-01T00:00:00Z"}`, executions[0].Input)
			w.Close()
			w.machines.Close()
		})
	})
}

func TestDeadLetters(t *testing.T) {
	three, age := 3, 60
	for name, test := range map[string]struct {
		failures   int
		policy     map[string]*int
		change     func(w *world, c *settings)
		calls      int
		attributes map[string]string
	}{
		"after the last retry": {
			failures: 10, policy: map[string]*int{"attempts": &three}, calls: 4,
			attributes: map[string]string{
				"EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts", "RETRY_ATTEMPTS": "3", "ERROR_MESSAGE": "ServiceException: out of order",
				"ERROR_CODE": "ServiceException",
			},
		},
		"when it is too old": {
			failures: 1000, policy: map[string]*int{"age": &age}, calls: 6, // at 0, 1, 3, 7, 15 and 31 s; the next would be at 63 s
			attributes: map[string]string{"EXHAUSTED_RETRY_CONDITION": "MaximumEventAgeInSeconds", "RETRY_ATTEMPTS": "5"},
		},
		"at once when the role may not": {
			change:     func(_ *world, c *settings) { c.Target.Arn = function + "-of-others" },
			calls:      1,
			attributes: map[string]string{"EXHAUSTED_RETRY_CONDITION": "", "RETRY_ATTEMPTS": "0", "ERROR_CODE": "NO_PERMISSIONS"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.functions.failures = test.failures
				w.create(t, func(c *settings) {
					c.ScheduleExpression = "rate(1 day)"
					c.Target.DeadLetterConfig = &deadLetters{Arn: letters}
					if test.policy != nil {
						c.Target.RetryPolicy = retries(test.policy["attempts"], test.policy["age"])
					}
					if test.change != nil {
						test.change(w, c)
					}
				})
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Len(t, w.functions.calls, test.calls)
				dead := w.receiveMessages(t, letters)
				require.Len(t, dead, 1)
				require.JSONEq(t, `{"scheduledTime":"2000-01-01T00:00:00Z"}`, dead[0].Body)
				require.Equal(t, "2000-01-01T00:00:00Z", dead[0].Attributes["SCHEDULED_TIME"])
				require.Equal(t, "false", dead[0].Attributes["IS_PAYLOAD_TRUNCATED"])
				require.Equal(t, w.arn(defaultGroup, "sweep"), dead[0].Attributes["SCHEDULE_ARN"])
				require.NotEmpty(t, dead[0].Attributes["EXECUTION_ID"])
				for name, want := range test.attributes {
					require.Equal(t, want, dead[0].Attributes[name], name)
				}
				w.Close()
			})
		})
	}
}

func TestRetryDelaysNoLaterInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.functions.failures = 9 // the first is delivered at 511 s, after the second is due
		w.create(t, nil)
		time.Sleep(5*minute + time.Second)
		synctest.Wait()
		require.Contains(t, w.functions.times(), 5*minute)
		w.Close()
	})
}

func TestFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(t, func(c *settings) { c.State, c.Target.Input = "DISABLED", `"<aws.scheduler.attempt-number>"` })
		require.NoError(t, w.Fire(t.Context(), "", "sweep"))
		require.NoError(t, w.Fire(t.Context(), "default", "sweep"))
		require.Empty(t, cmp.Diff([]call{{0, w.role, `"1"`}, {0, w.role, `"1"`}}, w.functions.calls))

		require.ErrorContains(t, w.Fire(t.Context(), "", "sweeep"), "Schedule sweeep does not exist")
		w.functions.failures = 1
		require.ErrorContains(t, w.Fire(t.Context(), "", "sweep"), "out of order")
		require.NoError(t, w.identities.DeleteRolePolicy("schedules", "all"))
		require.ErrorContains(t, w.Fire(t.Context(), "", "sweep"), "lambda:InvokeFunction")
		require.NoError(t, w.identities.DeleteRole("schedules"))
		require.ErrorContains(t, w.Fire(t.Context(), "", "sweep"), "sts:AssumeRole")
		w.Close()
	})
}

func TestIntercept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		var held []func()
		w.config.Intercept = func(schedule string, deliver func()) {
			mu.Lock()
			if schedule == "sweep" {
				held = append(held, deliver)
			}
			mu.Unlock()
			time.Sleep(time.Hour) // delays no other
		}
		w.create(t, nil)
		time.Sleep(6 * minute)
		synctest.Wait()
		require.Len(t, held, 2)
		require.Empty(t, w.functions.times())
		held[1]()
		held[1]()
		synctest.Wait()
		require.Empty(t, cmp.Diff([]time.Duration{6 * minute, 6 * minute}, w.functions.times()))
		w.Close()
		held[0]() // has no effect after the end
		require.Len(t, w.functions.times(), 2)
		time.Sleep(2 * time.Hour) // until the interceptors return
	})
}

func TestSleepingMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.sweep(func(c *settings) {
			c.ScheduleExpression, c.Target.Input = "rate(1 minute)", `"<aws.scheduler.scheduled-time>"`
		})
		x, err := c.complete()
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		go w.loop(ctx, schedule{settings: c, expression: x, modified: time.Now().Add(-time.Hour)})
		time.Sleep(minute)
		synctest.Wait()
		var due []string
		for _, c := range w.functions.calls {
			due = append(due, c.Payload)
		}
		require.ElementsMatch(t, []string{`"1999-12-31T23:00:00Z"`, `"2000-01-01T00:00:00Z"`, `"2000-01-01T00:01:00Z"`}, due)
		stop()
		w.Close()
	})
}
