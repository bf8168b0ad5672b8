// Package view formats output for a terminal: ages, colors, tables, refreshed frames and progress lines. It reads no state of drover.
// Formatting is pure: the time, the width and the use of color are arguments. Progress and TerminalSize use the terminal.
package view

import (
	"fmt"
	"time"
)

// Duration formats a duration in its largest unit: "45s", "3m", "2h", "5d", "2y". A negative duration is "0s".
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

// Age formats the time since t, or "-" if t is zero.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Duration(now.Sub(t))
}

// Relative formats t relative to now: "in 3m", "3m ago" or "now".
func Relative(now, t time.Time) string {
	switch d := t.Sub(now).Round(time.Second); {
	case d > 0:
		return "in " + Duration(d)
	case d < 0:
		return Duration(-d) + " ago"
	}
	return "now"
}
