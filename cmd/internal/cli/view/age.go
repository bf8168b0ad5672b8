// Package view formats text for people: ages, colours, and tables that fit a terminal. It is pure: the time, the width and whether
// there is colour are arguments.
package view

import (
	"fmt"
	"time"
)

// Duration in its largest unit: "45s", "3m", "2h", "5d", "2y". Negative ones are "0s".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 2*365*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// Age of what began at t; "-" when that is not known.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Duration(now.Sub(t))
}

// Relative says when t is: "in 3m", "3m ago" or "now".
func Relative(now, t time.Time) string {
	switch d := t.Sub(now).Round(time.Second); {
	case d > 0:
		return "in " + Duration(d)
	case d < 0:
		return Duration(-d) + " ago"
	}
	return "now"
}
