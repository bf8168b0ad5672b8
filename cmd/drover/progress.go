package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress prints what happens, a line each with the seconds since it began. On a terminal a last line, rewritten in place, says
// what is waited for and for how long; elsewhere, in a log of CI, there are only plain lines.
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
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	width, _, err := term.GetSize(int(file.Fd()))
	p.terminal, p.width = err == nil && width > 0, width
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

// wait says what is waited for from now on; empty is nothing.
func (p *progress) wait(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if what != p.waiting {
		p.waiting, p.since = what, time.Now()
	}
	p.erase()
	p.draw()
}

// end takes the last line away.
func (p *progress) end() {
	p.wait("")
	close(p.stop)
}

// tick keeps the last line's time going.
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
	fmt.Fprintf(p.out, "%.*s", p.width-1, line)
}
