package view

import (
	"fmt"
	"strings"
)

// Frame is a text on a terminal that the next text replaces.
type Frame struct{ height int }

// Next returns the output that replaces the previous text. It cuts the text to the rows of the terminal, because lines that scroll off
// the screen cannot be replaced.
func (f *Frame) Next(text string, rows int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if maxLines := rows - 1; maxLines > 0 && len(lines) > maxLines {
		lines = append(lines[:maxLines-1:maxLines-1], fmt.Sprintf("%s (%d more lines: make the terminal taller)", ellipsis,
			len(lines)-maxLines+1))
	}
	var out strings.Builder
	if f.height > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", min(f.height, max(1, rows-1)))
	}
	out.WriteString("\r\x1b[J")
	for _, line := range lines {
		out.WriteString(line + "\n")
	}
	f.height = len(lines)
	return out.String()
}
