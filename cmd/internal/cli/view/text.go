package view

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends what is cut.
const ellipsis = "…"

// clean makes control characters spaces, because a message may hold what moves the cursor. Line ends stay.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Cut a line to a width in characters; 0 is any.
func Cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return strings.TrimRight(string([]rune(line)[:width-1]), " ") + ellipsis
}

// Wrap breaks a text into lines of at most width characters, at spaces where there are any; 0 keeps its lines. What an indentation begins
// goes on below itself.
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
		for runes := []rune(current); len(runes) > width; runes = []rune(current) { // a word of more than a line
			lines, current = append(lines, string(runes[:width])), indent+string(runes[width:])
		}
	}
	return append(lines, current)
}

// FirstLine of a text, and how many lines follow.
func FirstLine(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	if more {
		line += " " + ellipsis + " (" + Count(strings.Count(rest, "\n")+1, "more line") + ")"
	}
	return line
}
