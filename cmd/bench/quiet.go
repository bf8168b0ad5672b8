package main

// The wait for an idle machine before a measurement.

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// quietFor is the time for which the processors must be idle, except for the share quietBusy.
	quietFor, quietBusy = time.Second, 0.08
	// quietPatience bounds the wait: other work on the machine may never end.
	quietPatience = time.Minute
)

// waitForQuiet waits until the processors are idle, at most for quietPatience, and reports whether they are. Otherwise the controllers'
// remaining work (events, endpoints, statuses) from the last trial and from creating pods would distort the measurement. Where the load is
// unknown, it waits for the usual time.
func waitForQuiet(ctx context.Context) (quiet bool, err error) {
	const without = 5 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, quietPatience, errBusy)
	defer cancel()
	for {
		before, ok := processorTimes()
		wait := quietFor
		if !ok {
			wait = without
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			if context.Cause(ctx) == errBusy {
				return false, nil
			}
			return false, ctx.Err()
		}
		after, _ := processorTimes()
		if !ok || after.busy-before.busy <= quietBusy*(after.all-before.all) {
			return true, nil
		}
	}
}

var errBusy = fmt.Errorf("the processors are still busy after %s", quietPatience)

// processors has the times of all processors together since the machine started, in ticks.
type processors struct{ busy, all float64 }

// processorTimes reads /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal.
// https://docs.kernel.org/filesystems/proc.html#miscellaneous-kernel-statistics-in-proc-stat
func processorTimes() (p processors, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p, false
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var times [8]float64
	if n, err := fmt.Sscanf(line, "cpu %f %f %f %f %f %f %f %f", &times[0], &times[1], &times[2], &times[3], &times[4], &times[5], &times[6],
		&times[7]); n < len(times) || err != nil {
		return p, false
	}
	for i, t := range times {
		p.all += t
		if i != 3 && i != 4 {
			p.busy += t
		}
	}
	return p, true
}
