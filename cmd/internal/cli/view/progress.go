package view

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress prints one line for each event, with the seconds since the start. On a terminal, it also updates a last line with the current
// wait and its duration. Elsewhere, such as in a CI log, it prints plain lines only.
type Progress struct {
	out      io.Writer
	started  time.Time
	terminal bool
	width    int

	mu      sync.Mutex
	waiting string
	since   time.Time
	stop    chan struct{}
}

// NewProgress starts a Progress. The caller must call End.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out, started: time.Now(), stop: make(chan struct{})}
	p.width, _, p.terminal = TerminalSize(out)
	if p.terminal {
		go p.tick()
	}
	return p
}

// Elapsed returns the time since the start.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.started) }

// Say prints a line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
	p.draw()
}

// Wait sets the text of the last line. An empty text removes the line.
func (p *Progress) Wait(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if what != p.waiting {
		p.waiting, p.since = what, time.Now()
	}
	p.erase()
	p.draw()
}

// End removes the last line and stops its updates.
func (p *Progress) End() {
	p.Wait("")
	close(p.stop)
}

// tick refreshes the time in the last line.
func (p *Progress) tick() {
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

func (p *Progress) erase() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *Progress) draw() {
	if !p.terminal || p.waiting == "" {
		return
	}
	line := fmt.Sprintf("%6.1fs  … %s (%.0fs)", time.Since(p.started).Seconds(), p.waiting, time.Since(p.since).Seconds())
	fmt.Fprint(p.out, Cut(line, max(1, p.width-1)))
}

// TerminalSize returns the size of a terminal in characters. ok is false if out is not a terminal.
func TerminalSize(out io.Writer) (width, height int, ok bool) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(file.Fd()))
	return width, height, err == nil && width > 0
}
