package calendar

// The six fields of an AWS cron expression. They are checked and translated to cronexpr, which numbers the days of the week from 0.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// Cron is an AWS cron expression, in wall clock time.
// Cron is a cron expression of AWS's: of times that clocks on the wall show.
type Cron struct{ parsed cronexpr.Expression }

// ParseCron reads the six fields: minutes, hours, day of month, month, day of week (1 is Sunday) and year. It rejects what AWS rejects.
// not take.
func ParseCron(text string) (Cron, error) {
	fields := strings.Fields(strings.ToUpper(text))
	if len(fields) != len(cronFields) {
		return Cron{}, fmt.Errorf("cron needs six fields: minutes, hours, day of month, month, day of week and year; it has %d", len(fields))
	}
	if (fields[dayOfMonth] == "?") == (fields[dayOfWeek] == "?") {
		return Cron{}, errors.New("exactly one of day of month and day of week must be ?")
	}
	for i, f := range cronFields {
		if fields[i] == "?" && (i == dayOfMonth || i == dayOfWeek) {
			continue
		}
		if strings.Contains(fields[i], "#") && strings.Contains(fields[i], ",") {
			return Cron{}, errors.New("day of week can have one # only, and no list with it")
		}
		entries := strings.Split(fields[i], ",")
		for j, entry := range entries {
			translated, err := f.translate(entry)
			if err != nil {
				return Cron{}, err
			}
			entries[j] = translated
		}
		fields[i] = strings.Join(entries, ",")
	}
	parsed, err := cronexpr.Parse(strings.Join(fields, " "))
	if err != nil {
		return Cron{}, err
	}
	return Cron{*parsed}, nil
}

// Next returns the first time after a given one at which the clocks of a zone show a time of the expression. It returns the zero time
// if there is none. A wall clock time that is skipped never matches. One that occurs twice matches the first time.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
func (c Cron) Next(after time.Time, zone *time.Location) time.Time {
	// Count in wall clock time first, and then find each in the zone. Next changes the expression, so it gets a copy.
	expression, wall := c.parsed, wallOf(after.In(zone))
	for {
		wall = expression.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if t, exists := Instant(wall, zone); exists && t.After(after) {
			return t
		}
	}
}

type cronField struct {
	name     string
	min, max int
	// names of the values from min on.
	names []string
	// shift from AWS's number to cronexpr's.
	shift int
	// special translates forms that only this field has.
	special func(f cronField, entry string) (translated string, ok bool)
}

var cronFields = []cronField{
	{name: "minutes", max: 59},
	{name: "hours", max: 23},
	{name: "day of month", min: 1, max: 31, special: specialDay},
	{name: "month", min: 1, max: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of week", min: 1, max: 7, names: []string{
		"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT",
	}, shift: -1, special: specialWeekday},
	{name: "year", min: 1970, max: 2199},
}

const dayOfMonth, dayOfWeek = 2, 4

// translate one entry of a list: *, a value or a range, each with or without an interval.
func (f cronField) translate(entry string) (string, error) {
	if f.special != nil {
		if translated, ok := f.special(f, entry); ok {
			return translated, nil
		}
	}
	wrong := fmt.Errorf("%q is not valid for %s", entry, f.name)
	span, interval, hasInterval := strings.Cut(entry, "/")
	if hasInterval {
		n, err := strconv.Atoi(interval)
		if err != nil || n < 1 || f.name == "day of week" {
			return "", wrong
		}
		interval = "/" + strconv.Itoa(n)
	}
	if span == "*" {
		return span + interval, nil
	}
	low, high, isRange := strings.Cut(span, "-")
	from, ok := f.value(low)
	if !ok {
		return "", wrong
	}
	if !isRange {
		return strconv.Itoa(from) + interval, nil
	}
	to, ok := f.value(high)
	switch {
	case !ok:
		return "", wrong
	case to < from:
		return "", fmt.Errorf("the range %s of %s goes backwards: write it as a list of two", span, f.name)
	case to == from: // which cronexpr takes for a whole week when it is 0-0; an interval starts only at it
		return strconv.Itoa(from), nil
	}
	return fmt.Sprintf("%d-%d%s", from, to, interval), nil
}

func (f cronField) value(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	if i := slices.Index(f.names, text); i >= 0 {
		n, err = f.min+i, nil
	}
	return n + f.shift, err == nil && n >= f.min && n <= f.max && !strings.ContainsAny(text, "+-")
}

// specialDay: L is the last day of the month, LW its last weekday, 15W the weekday nearest to the 15th.
func specialDay(f cronField, entry string) (string, bool) {
	if entry == "L" || entry == "LW" {
		return entry, true
	}
	day, nearest := strings.CutSuffix(entry, "W")
	n, ok := f.value(day)
	return strconv.Itoa(n) + "W", nearest && ok
}

// specialWeekday: L is the last day of the week, 6L the month's last Friday, 6#3 its third.
func specialWeekday(f cronField, entry string) (string, bool) {
	if entry == "L" {
		return "6", true
	}
	if day, ok := strings.CutSuffix(entry, "L"); ok {
		n, ok := f.value(day)
		return strconv.Itoa(n) + "L", ok
	}
	day, week, ok := strings.Cut(entry, "#")
	n, isDay := f.value(day)
	return strconv.Itoa(n) + "#" + week, ok && isDay && len(week) == 1 && week >= "1" && week <= "5"
}
