package main

// Waiting until the machine has nothing left to do, before something is measured.

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// quietFor is how long the processors must be idle, all but quietBusy of their time.
	quietFor, quietBusy = time.Second, 0.08
	// quietPatience is how long that is waited for: what else runs on a machine that is in use does not end.
	quietPatience = time.Minute
)

// waitForQuiet returns once the processors are idle, and says so, or after quietPatience. What the last trial and the
// making of this one's pods leave to controllers (events, endpoints, statuses) would otherwise be measured with it,
// for one more than for another. Where nobody tells how busy the processors are, it waits for as long as that mostly
// takes.
func waitForQuiet(ctx context.Context) (quiet bool, err error) {
	const without = 5 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, quietPatience, errBusy)
	defer cancel()
	for {
		before, told := processorTimes()
		wait := quietFor
		if !told {
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
		if !told || after.busy-before.busy <= quietBusy*(after.all-before.all) {
			return true, nil
		}
	}
}

var errBusy = fmt.Errorf("the processors are still busy after %s", quietPatience)

// processors' times since the machine started, of all of them together, in ticks.
type processors struct{ busy, all float64 }

// processorTimes are those of /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal.
// https://docs.kernel.org/filesystems/proc.html#miscellaneous-kernel-statistics-in-proc-stat
func processorTimes() (p processors, told bool) {
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
