package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestExpression(t *testing.T) {
	for name, test := range map[string]struct {
		expression, zone string
		// start defaults to after.
		start, after string
		want         []string
	}{
		"a rate begins at its start": {
			expression: "rate(5 minutes)", start: "2026-11-20T10:00:30Z", after: "2026-11-20T09:00:00Z",
			want: []string{"2026-11-20T10:00:30Z", "2026-11-20T10:05:30Z", "2026-11-20T10:10:30Z"},
		},
		"a rate keeps its step from a start in the past": {
			expression: "rate(1 hour)", start: "2026-11-20T07:10:00Z", after: "2026-11-20T10:00:00Z",
			want: []string{"2026-11-20T10:10:00Z", "2026-11-20T11:10:00Z"},
		},
		"a rate's time itself is not after it": {
			expression: "rate(1 minute)", start: "2026-11-20T10:00:00Z", after: "2026-11-20T10:00:00Z", want: []string{"2026-11-20T10:01:00Z"},
		},
		"a rate's days are 24 hours whatever clocks do": {
			expression: "rate(1 days)", zone: "Europe/Berlin", start: "2026-10-24T00:00:00Z", after: "2026-10-24T00:00:00Z",
			want: []string{"2026-10-25T00:00:00Z", "2026-10-26T00:00:00Z"},
		},
		"at is one time in UTC": {
			expression: "at(2026-11-20T13:00:00)", after: "2026-11-20T09:00:00Z", want: []string{"2026-11-20T13:00:00Z", ""},
		},
		"at is a time of its zone": {
			expression: "at(2026-07-20T13:00:00)", zone: "America/New_York", after: "2026-01-01T00:00:00Z",
			want: []string{"2026-07-20T17:00:00Z", ""},
		},
		"at counts the first time when clocks are put back": {
			expression: "at(2026-10-25T02:30:00)", zone: "Europe/Berlin", after: "2026-01-01T00:00:00Z", want: []string{"2026-10-25T00:30:00Z", ""},
		},
		"at in the past never is": {expression: "at(2026-11-20T08:00:00)", after: "2026-11-20T09:00:00Z", want: []string{""}},

		"cron has minutes first": {
			expression: "cron(15 10 * * ? *)", after: "2026-11-20T10:14:59.5Z", want: []string{"2026-11-20T10:15:00Z", "2026-11-21T10:15:00Z"},
		},
		"a full minute is not after itself": {
			expression: "cron(* * * * ? *)", after: "2026-11-20T10:14:00Z", want: []string{"2026-11-20T10:15:00Z"},
		},
		"intervals start at a value": {
			expression: "cron(5/20 * * * ? *)", after: "2026-11-20T10:06:00Z", want: []string{
				"2026-11-20T10:25:00Z", "2026-11-20T10:45:00Z", "2026-11-20T11:05:00Z",
			},
		},
		"intervals of all values": {
			expression: "cron(*/30 * * * ? *)", after: "2026-11-20T10:06:00Z", want: []string{"2026-11-20T10:30:00Z", "2026-11-20T11:00:00Z"},
		},
		"intervals in a range": {
			expression: "cron(0-15/10 8-8 * * ? *)", after: "2026-11-20T10:06:00Z", want: []string{
				"2026-11-21T08:00:00Z", "2026-11-21T08:10:00Z", "2026-11-22T08:00:00Z",
			},
		},
		"lists of values and ranges": {
			expression: "cron(0 8,12-13 * * ? *)", after: "2026-11-20T10:06:00Z", want: []string{
				"2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z", "2026-11-21T08:00:00Z",
			},
		},
		"months by name and small letters": {
			expression: "cron(0 0 1 jan,DEC ? *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		},
		"years": {expression: "cron(0 0 1 1 ? 2028-2029)", after: "2026-11-20T00:00:00Z", want: []string{
			"2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z", "",
		}},
		"numeric days of the week start on Sunday": {
			expression: "cron(0 0 ? * 1 *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		},
		"7 is Saturday": {
			expression: "cron(0 0 ? * 7 *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-21T00:00:00Z", "2026-11-28T00:00:00Z"},
		},
		"2-6 are the working days": {
			expression: "cron(0 0 ? * 2-6 *)", after: "2026-11-19T00:00:00Z", want: []string{"2026-11-20T00:00:00Z", "2026-11-23T00:00:00Z"},
		},
		"days of the week by name": {
			expression: "cron(0 0 ? * MON-FRI *)", after: "2026-11-19T00:00:00Z", want: []string{"2026-11-20T00:00:00Z", "2026-11-23T00:00:00Z"},
		},
		"a range of one Sunday is one day": {
			expression: "cron(0 0 ? * SUN-SUN *)", after: "2026-11-19T00:00:00Z", want: []string{"2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		},
		"a whole week": {
			expression: "cron(0 0 ? * 1-7 *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		},
		"every day of the week": {
			expression: "cron(0 0 ? * * *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-21T00:00:00Z"},
		},
		"L is the last day of the month": {
			expression: "cron(0 0 L * ? *)", after: "2028-02-01T00:00:00Z", want: []string{"2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"},
		},
		"LW is the last working day of the month": {
			expression: "cron(0 0 LW * ? *)", after: "2027-01-01T00:00:00Z", want: []string{"2027-01-29T00:00:00Z"},
		},
		"W is the nearest working day": {
			expression: "cron(0 0 15W * ? *)", after: "2026-11-01T00:00:00Z", want: []string{"2026-11-16T00:00:00Z"},
		},
		"L is the last day of the week": {
			expression: "cron(0 0 ? * L *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-21T00:00:00Z"},
		},
		"6L is the last Friday": {
			expression: "cron(0 0 ? * 6L *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-11-27T00:00:00Z", "2026-12-25T00:00:00Z"},
		},
		"6#3 is the third Friday": {
			expression: "cron(0 0 ? * FRI#3 *)", after: "2026-11-20T00:00:00Z", want: []string{"2026-12-18T00:00:00Z"},
		},
		"a day that no month has never is": {expression: "cron(0 0 30 2 ? *)", after: "2026-11-20T00:00:00Z", want: []string{""}},
		"a past year never is":             {expression: "cron(0 0 1 1 ? 2020)", after: "2026-11-20T00:00:00Z", want: []string{""}},

		"cron follows its zone's clocks": {
			expression: "cron(0 9 * * ? *)", zone: "Europe/Berlin", after: "2026-10-24T00:00:00Z",
			want: []string{"2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z"},
		},
		"a zone of half an hour": {
			expression: "cron(0 9 * * ? *)", zone: "Asia/Kolkata", after: "2026-10-24T00:00:00Z", want: []string{"2026-10-24T03:30:00Z"},
		},
		"a time that spring skips is skipped": {
			expression: "cron(30 2 * * ? *)", zone: "Europe/Berlin", after: "2026-03-28T00:00:00Z",
			want: []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"},
		},
		"an interval continues after the skipped hour": {
			expression: "cron(0/30 * * * ? *)", zone: "America/New_York", after: "2026-03-08T06:15:00Z",
			want: []string{"2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"},
		},
		"a time that autumn repeats comes once": {
			expression: "cron(30 1 * * ? *)", zone: "America/New_York", after: "2026-10-31T12:00:00Z",
			want: []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"within the repeated hour it does not return": {
			expression: "cron(30 1 * * ? *)", zone: "America/New_York", after: "2026-11-01T06:10:00Z", want: []string{"2026-11-02T06:30:00Z"},
		},
		"a day without midnight begins at one o'clock": {
			expression: "cron(0 0,1 * * ? *)", zone: "America/Sao_Paulo", after: "2018-11-03T12:00:00Z",
			want: []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		},
		"half an hour is put back on Lord Howe": {
			expression: "cron(45 1 * * ? *)", zone: "Australia/Lord_Howe", after: "2026-04-04T00:00:00Z",
			want: []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseExpression(test.expression, test.zone)
			require.NoError(t, err)
			after := at(t, test.after)
			start := after
			if test.start != "" {
				start = at(t, test.start)
			}
			var got []string
			for range test.want {
				next := e.next(after, start)
				if next.IsZero() {
					got = append(got, "")
					continue
				}
				got = append(got, next.UTC().Format(time.RFC3339Nano))
				after = next
			}
			require.Empty(t, cmp.Diff(test.want, got))
		})
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return parsed
}

func TestExpressionRejects(t *testing.T) {
	for name, test := range map[string]struct{ expression, zone, err string }{
		"no kind":                            {expression: "5 minutes", err: "none of rate"},
		"an unknown kind":                    {expression: "every(5 minutes)", err: "every is none of"},
		"no closing parenthesis":             {expression: "rate(5 minutes", err: "none of rate"},
		"nothing":                            {err: "none of rate"},
		"a rate of nothing":                  {expression: "rate(0 minutes)", err: "0 is no positive number of minutes"},
		"a rate below nothing":               {expression: "rate(-5 minutes)", err: "rate needs"},
		"a fraction":                         {expression: "rate(1.5 hours)", err: "rate needs"},
		"seconds":                            {expression: "rate(30 seconds)", err: "rate needs"},
		"a rate longer than time":            {expression: "rate(999999999999 days)", err: "no positive number of days"},
		"a rate of more digits than numbers": {expression: "rate(99999999999999999999 days)", err: "no positive number of days"},
		"a time without seconds":             {expression: "at(2026-11-20T13:00)", err: "at needs"},
		"a time with an offset":              {expression: "at(2026-11-20T13:00:00Z)", err: "at needs"},
		"a day that is not there":            {expression: "at(2026-02-30T13:00:00)", err: "at needs"},
		"a time that spring skips": {
			expression: "at(2026-03-29T02:30:00)", zone: "Europe/Berlin", err: "no such time in Europe/Berlin",
		},
		"an unknown zone":                       {expression: "rate(5 minutes)", zone: "Europe/Nowhere", err: "unknown time zone Europe/Nowhere"},
		"the machine's zone":                    {expression: "rate(5 minutes)", zone: "Local", err: "unknown time zone Local"},
		"the five fields of Unix":               {expression: "cron(0 10 * * ?)", err: "it has 5"},
		"seven fields":                          {expression: "cron(0 0 10 * * ? *)", err: "it has 7"},
		"an alias":                              {expression: "cron(@daily)", err: "it has 1"},
		"no question mark":                      {expression: "cron(0 10 * * * *)", err: "exactly one"},
		"two question marks":                    {expression: "cron(0 10 ? * ? *)", err: "exactly one"},
		"a question mark for hours":             {expression: "cron(0 ? * * ? *)", err: `"?" is nothing that hours can be`},
		"a question mark in a list":             {expression: "cron(0 0 1,? * ? *)", err: `"?" is nothing that day of month can be`},
		"minute 60":                             {expression: "cron(60 10 * * ? *)", err: `"60" is nothing that minutes can be`},
		"hour 24":                               {expression: "cron(0 24 * * ? *)", err: `"24" is nothing that hours can be`},
		"day 0":                                 {expression: "cron(0 0 0 * ? *)", err: `"0" is nothing that day of month can be`},
		"day of the week 0":                     {expression: "cron(0 0 ? * 0 *)", err: `"0" is nothing that day of week can be`},
		"day of the week 8":                     {expression: "cron(0 0 ? * 8 *)", err: `"8" is nothing that day of week can be`},
		"a long name":                           {expression: "cron(0 0 ? * MONDAY *)", err: `"MONDAY" is nothing`},
		"an interval of days of the week":       {expression: "cron(0 0 ? * 2/2 *)", err: `"2/2" is nothing that day of week`},
		"an interval of nothing":                {expression: "cron(0/0 0 ? * 2 *)", err: `"0/0" is nothing that minutes`},
		"an interval of no end":                 {expression: "cron(0/ 0 ? * 2 *)", err: `"0/" is nothing that minutes`},
		"an interval longer than the field":     {expression: "cron(0/90 0 ? * 2 *)", err: "invalid interval"},
		"a signed value":                        {expression: "cron(+5 0 ? * 2 *)", err: `"+5" is nothing`},
		"a range without end":                   {expression: "cron(5- 0 ? * 2 *)", err: `"5-" is nothing`},
		"a range backwards":                     {expression: "cron(30-10 0 ? * 2 *)", err: "the range 30-10 of minutes goes backwards"},
		"a list with a gap":                     {expression: "cron(5,,6 0 ? * 2 *)", err: `"" is nothing`},
		"a sixth Friday":                        {expression: "cron(0 0 ? * 6#6 *)", err: `"6#6" is nothing`},
		"two numbered days":                     {expression: "cron(0 0 ? * 3#1,6#3 *)", err: "one # only"},
		"a working day of the week":             {expression: "cron(0 0 ? * 2W *)", err: `"2W" is nothing`},
		"a numbered day of the month":           {expression: "cron(0 0 2#1 * ? *)", err: `"2#1" is nothing`},
		"a year before all":                     {expression: "cron(0 0 1 1 ? 1969)", err: `"1969" is nothing`},
		"a year that cannot be counted up to":   {expression: "cron(0 0 1 1 ? 2150)", err: "year field"},
		"a range to a year that cannot be":      {expression: "cron(0 0 1 1 ? 2026-2150)", err: "year field"},
		"text":                                  {expression: "cron(a b c d ? f)", err: `"A" is nothing that minutes`},
		"a last day that is none of the week":   {expression: "cron(0 0 ? * XL *)", err: `"XL" is nothing`},
		"a nearest day that is none of a month": {expression: "cron(0 0 32W * ? *)", err: `"32W" is nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseExpression(test.expression, test.zone)
			require.ErrorContains(t, err, test.err)
		})
	}
}
