package view

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// clean replaces control characters with spaces, because a message may contain sequences that move the cursor. It keeps line ends.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Cut shortens a line to a width in characters. If width is 0, it returns the line unchanged.
func Cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return strings.TrimRight(string([]rune(line)[:width-1]), " ") + ellipsis
}

// Wrap breaks a text into lines of at most width characters, at spaces if possible. Continuation lines keep the indentation. If width
// is 0, it keeps the lines of the text.
func Wrap(text string, width int) []string {
	var lines []string
	for _, line := range strings.Split(clean(text), "\n") {
		lines = append(lines, wrapLine(line, width)...)
	}
	return lines
}

func wrapLine(line string, width int) []string {
	line = strings.TrimRight(line, " ")
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if width <= 0 || utf8.RuneCountInString(line) <= width || len(indent) >= width {
		return []string{line}
	}
	var lines []string
	current := indent
	for _, word := range strings.Fields(line) {
		if current != indent && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width {
			lines, current = append(lines, current), indent
		}
		if current != indent {
			current += " "
		}
		current += word
		for runes := []rune(current); len(runes) > width; runes = []rune(current) { // the word is longer than a line
			lines, current = append(lines, string(runes[:width])), indent+string(runes[width:])
		}
	}
	return append(lines, current)
}

// FirstLine returns the first line of a text and the number of further lines.
func FirstLine(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	if more {
		line += " " + ellipsis + " (" + Count(strings.Count(rest, "\n")+1, "more line") + ")"
	}
	return line
}
