package view

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// gap separates two columns.
const gap = "  "

// minWidth is the least width of a column.
const minWidth = 4

// Column is a column of a table.
type Column struct {
	Title string
	// Min is the width to which the column shrinks before columns without Min shrink. It is 0 for names that users copy.
	Min int
	// Wrap continues a long text on the next line. Without Wrap, the table cuts the text.
	Wrap bool
}

// Cell is a cell of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text returns a cell without a tone. State returns a cell with the tone of the state.
func Text(text string) Cell   { return Cell{Text: text} }
func State(state string) Cell { return Cell{Text: state, Tone: ToneOf(state)} }

// Table has a row of cells for each entity.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Add adds a row. Missing cells are empty.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Write writes the table with at most width characters a line. If width is 0, each row is one line, for grep.
func (t *Table) Write(w io.Writer, width int, color bool) {
	if width == 0 {
		t = t.flat()
	}
	widths := t.fit(width)
	header := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = Text(c.Title)
	}
	for _, row := range append([][]Cell{header}, t.Rows...) {
		for _, line := range t.lines(row, widths, color) {
			_, _ = io.WriteString(w, line+"\n")
		}
	}
}

// flat returns a copy of the table with one line a cell.
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

// fit returns the width of each column.
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
	excess := len(gap)*(len(widths)-1) - width
	for _, w := range widths {
		excess += w
	}
	excess = shrink(widths, excess, func(i int) int {
		if t.Columns[i].Min == 0 {
			return widths[i]
		}
		return t.Columns[i].Min
	})
	shrink(widths, excess, func(int) int { return minWidth })
	return widths
}

// shrink reduces the widest columns by excess characters in total, no column below its bound. It returns the remaining excess.
func shrink(widths []int, excess int, bound func(column int) int) int {
	for ; excess > 0; excess-- {
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
	return excess
}

// lines formats a row.
func (t *Table) lines(row []Cell, widths []int, color bool) []string {
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
				line.WriteString(tone.paint(text, color))
				pad = 0
			}
			pad += widths[i] - utf8.RuneCountInString(text) + len(gap)
		}
		lines = append(lines, line.String())
	}
	return lines
}
