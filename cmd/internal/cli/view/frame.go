package view

import (
	"fmt"
	"strings"
)

// Frame is a picture on a terminal that the next one replaces.
type Frame struct{ height int }

// Next returns what replaces the last picture by a text, of which no more is shown than fits: what scrolls away cannot be replaced.
func (f *Frame) Next(text string, rows int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if most := rows - 1; most > 0 && len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("%s (%d more lines: make the terminal higher)", ellipsis, len(lines)-most+1))
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
