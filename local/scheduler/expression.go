package scheduler

// Schedule expressions. https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // schedules name zones wherever this runs

	"github.com/hashicorp/cronexpr"
)

// expression says when a schedule is due.
type expression struct {
	every time.Duration        // rate
	at    time.Time            // at
	cron  *cronexpr.Expression // cron
	zone  *time.Location
}

var (
	rateForm = regexp.MustCompile(`^rate\((\d+) (minute|minutes|hour|hours|day|days)\)$`)
	atForm   = regexp.MustCompile(`^at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)$`)
	cronForm = regexp.MustCompile(`^cron\(([^()]+)\)$`)
)

// parseExpression reads rate(5 minutes), at(2026-01-02T03:04:05) or cron(0 12 ? * MON-FRI *). zone is an IANA name, empty
// for UTC.
func parseExpression(text, zone string) (expression, error) {
	x := expression{zone: time.UTC}
	if zone != "" {
		var err error
		if x.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
			return x, fmt.Errorf("invalid ScheduleExpressionTimezone %s", zone)
		}
	}
	wrong := func(why string) (expression, error) {
		return x, fmt.Errorf("invalid Schedule Expression %s: %s", text, why)
	}
	if m := rateForm.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 {
			return wrong("the value must be positive")
		}
		if (n == 1) == strings.HasSuffix(m[2], "s") {
			return wrong("the unit of 1 is singular, of more plural")
		}
		unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[m[2][0]]
		if n > int(100*365*24*time.Hour/unit) {
			return wrong("the rate is too large")
		}
		x.every = time.Duration(n) * unit
		return x, nil
	}
	if m := atForm.FindStringSubmatch(text); m != nil {
		at, err := time.ParseInLocation("2006-01-02T15:04:05", m[1], x.zone)
		if err != nil {
			return wrong("there is no such time")
		}
		x.at = at
		return x, nil
	}
	m := cronForm.FindStringSubmatch(text)
	if m == nil {
		return wrong("it is none of rate(value unit), cron(fields) and at(yyyy-mm-ddThh:mm:ss)")
	}
	line, err := cronLine(m[1])
	if err != nil {
		return wrong(err.Error())
	}
	if x.cron, err = cronexpr.Parse(line); err != nil {
		return wrong(err.Error())
	}
	return x, nil
}

var (
	cronField = regexp.MustCompile(`^[0-9A-Za-z*?,/#-]+$`)
	weekday   = regexp.MustCompile(`\d+`)
)

// cronLine turns AWS's six fields into cronexpr's. The fields and their order are the same; days of the week count from
// SUN = 1 in one and from 0 in the other, and exactly one of the two kinds of day must be a question mark.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
func cronLine(text string) (string, error) {
	fields := strings.Fields(text)
	if len(fields) != 6 {
		return "", fmt.Errorf("a cron expression has six fields: minutes, hours, day of month, month, day of week, year")
	}
	for _, f := range fields {
		if !cronField.MatchString(f) {
			return "", fmt.Errorf("the field %s has a character that no field has", f)
		}
	}
	if (fields[2] == "?") == (fields[4] == "?") {
		return "", fmt.Errorf("exactly one of day of month and day of week must be ?")
	}
	for i, f := range fields {
		if strings.Contains(f, "?") && (f != "?" || i != 2 && i != 4) {
			return "", fmt.Errorf("? stands alone, as day of month or day of week")
		}
	}
	days, err := cronWeekdays(fields[4])
	if err != nil {
		return "", err
	}
	fields[4] = days
	return strings.Join(fields, " "), nil
}

// cronWeekdays renumbers days: 1 to 7 become 0 to 6. What stands behind # or / is no day.
func cronWeekdays(field string) (string, error) {
	var parts []string
	for _, part := range strings.Split(field, ",") {
		days, rest := part, ""
		if i := strings.IndexAny(part, "#/"); i >= 0 {
			days, rest = part[:i], part[i:]
		}
		bad := false
		days = weekday.ReplaceAllStringFunc(days, func(digits string) string {
			n, err := strconv.Atoi(digits)
			bad = bad || err != nil || n < 1 || n > 7
			return strconv.Itoa(n - 1)
		})
		if bad {
			return "", fmt.Errorf("days of the week are 1 (SUN) to 7 (SAT): %s", field)
		}
		if days == "L" { // the last day of the week
			days = "6"
		}
		parts = append(parts, days+rest)
	}
	return strings.Join(parts, ","), nil
}

// next time after a time; zero for none. start is where rates count from.
func (x expression) next(after, start time.Time) time.Time {
	switch {
	case x.every > 0:
		if after.Before(start) {
			return start
		}
		return start.Add(after.Sub(start)/x.every*x.every + x.every)
	case x.cron != nil:
		t := x.cron.Next(after.In(x.zone))
		if t.IsZero() {
			return t
		}
		return t.UTC()
	case x.at.After(after):
		return x.at.UTC()
	}
	return time.Time{}
}
