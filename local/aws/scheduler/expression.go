package scheduler

// Schedule expressions and their due times. Pure functions of their arguments.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// expression is a rate, cron or at expression in its time zone.
type expression struct {
	every time.Duration  // of rate
	at    time.Time      // of at
	cron  cron           // of cron
	zone  *time.Location // of cron
}

var rateForm = regexp.MustCompile(`^(\d+)\s+(minute|hour|day)s?$`)

var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// parseExpression reads an expression. An empty zone is UTC. An error states the problem.
func parseExpression(text, zone string) (expression, error) {
	location, err := zoneOf(zone)
	if err != nil {
		return expression{}, err
	}
	kind, rest, _ := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return expression{}, errors.New("it is none of rate(value unit), cron(fields) and at(yyyy-mm-ddThh:mm:ss)")
	}
	switch kind {
	case "rate":
		every, err := parseRate(inner)
		return expression{every: every}, err
	case "cron":
		fields, err := parseCron(inner)
		return expression{cron: fields, zone: location}, err
	case "at":
		wall, err := time.Parse("2006-01-02T15:04:05", inner)
		if err != nil {
			return expression{}, errors.New("at needs a time as yyyy-mm-ddThh:mm:ss")
		}
		at, exists := instant(wall, location)
		if !exists {
			return expression{}, fmt.Errorf("there is no such time in %s: clocks are put forward over it", location)
		}
		return expression{at: at}, nil
	}
	return expression{}, fmt.Errorf("%s is none of rate, cron and at", kind)
}

func parseRate(text string) (time.Duration, error) {
	m := rateForm.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("rate needs a positive number and minutes, hours or days")
	}
	unit := units[m[2]]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%s is no positive number of %ss that a schedule can wait", m[1], m[2])
	}
	return time.Duration(n) * unit, nil
}

// oneTime reports whether this is an at expression.
func (e expression) oneTime() bool { return !e.at.IsZero() }

// next returns the first due time after a given time, for a schedule that begins at start. It returns the zero time if
// the schedule is never due again. A rate is first due at start. Its days are 24 hours each.
func (e expression) next(after, start time.Time) time.Time {
	switch {
	case e.oneTime():
		if e.at.After(after) {
			return e.at
		}
		return time.Time{}
	case e.every > 0:
		if start.After(after) {
			return start
		}
		return start.Add((after.Sub(start)/e.every + 1) * e.every)
	}
	return e.cron.next(after, e.zone)
}
