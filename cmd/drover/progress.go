package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/drover-run/drover/cmd/drover/view"
)

// progress prints events, a line each with the seconds since it began. On a terminal, a last line that is rewritten in place shows what it
// waits for and for how long. Elsewhere, such as in the log of CI, it prints plain lines only.
type progress struct {
	out      io.Writer
	started  time.Time
	terminal bool
	width    int

	mu      sync.Mutex
	waiting string
	since   time.Time
	stop    chan struct{}
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, started: time.Now(), stop: make(chan struct{})}
	p.width, _, p.terminal = terminalSize(out)
	if p.terminal {
		go p.tick()
	}
	return p
}

// say prints a line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
	p.draw()
}

// wait sets what the last line shows; empty removes it.
func (p *progress) wait(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if what != p.waiting {
		p.waiting, p.since = what, time.Now()
	}
	p.erase()
	p.draw()
}

// end removes the last line.
func (p *progress) end() {
	p.wait("")
	close(p.stop)
}

// tick refreshes the time in the last line.
func (p *progress) tick() {
	ticker := time.NewTicker(time.Second / 5)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.mu.Lock()
			p.erase()
			p.draw()
			p.mu.Unlock()
		case <-p.stop:
			return
		}
	}
}

func (p *progress) erase() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *progress) draw() {
	if !p.terminal || p.waiting == "" {
		return
	}
	line := fmt.Sprintf("%6.1fs  … %s (%.0fs)", time.Since(p.started).Seconds(), p.waiting, time.Since(p.since).Seconds())
	fmt.Fprint(p.out, view.Cut(line, max(1, p.width-1)))
}
