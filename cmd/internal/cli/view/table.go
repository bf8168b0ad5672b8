package view

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// gap is between two columns.
const gap = "  "

// least is the width below which no column is cut.
const least = 4

// Column of a table.
type Column struct {
	Title string
	// Min is the width that a column may shrink to before the others are cut; 0 is none: names that people copy stay whole.
	Min int
	// Wrap continues a text that is too long on the next line; others are cut.
	Wrap bool
}

// Cell of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a cell without a tone, and State one with the tone of the state that it names.
func Text(text string) Cell   { return Cell{Text: text} }
func State(state string) Cell { return Cell{Text: state, Tone: ToneOf(state)} }

// Table of cells, a row for each entity.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Add a row. Cells that are missing are empty.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Write the table, no wider than width characters if that is not 0. Without a width each row is one line, for grep.
func (t *Table) Write(w io.Writer, width int, colour bool) {
	if width == 0 {
		t = t.flat()
	}
	widths := t.fit(width)
	header := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = Text(c.Title)
	}
	for _, row := range append([][]Cell{header}, t.Rows...) {
		for _, line := range t.lines(row, widths, colour) {
			_, _ = io.WriteString(w, line+"\n")
		}
	}
}

// flat has one line a cell.
func (t *Table) flat() *Table {
	flat := &Table{Columns: t.Columns}
	for _, row := range t.Rows {
		row = slices.Clone(row)
		for i := range row {
			row[i].Text = FirstLine(row[i].Text)
		}
		flat.Rows = append(flat.Rows, row)
	}
	return flat
}

// fit decides how wide each column is.
func (t *Table) fit(width int) []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Title)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			for _, line := range strings.Split(cell.Text, "\n") {
				widths[i] = max(widths[i], utf8.RuneCountInString(line))
			}
		}
	}
	if width <= 0 {
		return widths
	}
	over := len(gap)*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	over = shrink(widths, over, func(i int) int {
		if t.Columns[i].Min == 0 {
			return widths[i]
		}
		return t.Columns[i].Min
	})
	shrink(widths, over, func(int) int { return least })
	return widths
}

// shrink takes what is over from the widest columns, none below its bound, and returns what it could not take.
func shrink(widths []int, over int, bound func(column int) int) int {
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > bound(i) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return over
}

// lines of a row.
func (t *Table) lines(row []Cell, widths []int, colour bool) []string {
	columns, height := make([][]string, len(widths)), 1
	for i, cell := range row {
		if t.Columns[i].Wrap {
			columns[i] = Wrap(cell.Text, widths[i])
		} else {
			columns[i] = []string{Cut(clean(FirstLine(cell.Text)), widths[i])}
		}
		height = max(height, len(columns[i]))
	}
	var lines []string
	for n := range height {
		var line strings.Builder
		pad := 0
		for i := range widths {
			text, tone := "", Plain
			if n < len(columns[i]) {
				text, tone = columns[i][n], row[i].Tone
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", pad))
				line.WriteString(tone.paint(text, colour))
				pad = 0
			}
			pad += widths[i] - utf8.RuneCountInString(text) + len(gap)
		}
		lines = append(lines, line.String())
	}
	return lines
}
