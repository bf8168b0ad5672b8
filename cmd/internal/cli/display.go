package cli

// Output of text: as wide as the terminal, with colors on a terminal.

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/view"
)

// display is the output of a view, and the time of the view.
type display struct {
	out io.Writer
	now time.Time
	// width in characters; 0 is unlimited, as in a file.
	width   int
	color   bool
	verbose bool
}

func newDisplay(out io.Writer, verbose bool) *display {
	d := &display{out: out, now: time.Now(), verbose: verbose}
	if width, _, ok := view.TerminalSize(out); ok {
		d.width, d.color = width, mayColor(os.Getenv)
	}
	return d
}

// mayColor reports whether a terminal gets colors. https://no-color.org
func mayColor(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// say prints a paragraph.
func (d *display) say(format string, args ...any) {
	for _, line := range view.Wrap(fmt.Sprintf(format, args...), d.width) {
		fmt.Fprintln(d.out, line)
	}
}

// head prints a paragraph and colors its word, a state that occurs once in it.
func (d *display) head(word, text string) {
	lines := view.Wrap(text, d.width)
	for i, line := range lines {
		if i == 0 && d.color {
			line = strings.Replace(line, word, view.Paint(word, true), 1)
		}
		fmt.Fprintln(d.out, line)
	}
}

// table prints a table below an empty line, unless it has no rows.
func (d *display) table(t *view.Table) {
	if len(t.Rows) > 0 {
		fmt.Fprintln(d.out)
		t.Write(d.out, d.width, d.color)
	}
}

// words returns a message of AWS or drover, without request identifiers unless the output is verbose.
func (d *display) words(text string) string {
	if d.verbose {
		return text
	}
	return view.WithoutRequestIDs(text)
}
