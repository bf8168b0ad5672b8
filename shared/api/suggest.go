package api

import (
	"fmt"
	"strings"
)

// didYouMean suggests the field that was probably meant by an unknown one: one that differs by two letters at most.
func didYouMean(name string, fields []Rules) string {
	best, distance := "", 3
	for _, f := range fields {
		if n := editDistance(strings.ToLower(name), strings.ToLower(f.Name)); n < distance && n < len(f.Name)/2 {
			best, distance = f.Name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(`, did you mean "%s"?`, best)
}

// editDistance counts the letters to add, drop or exchange to get from a to b.
func editDistance(a, b string) int {
	if len(a) > 100 {
		return len(a) // nobody's typing error, and not worth the time
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
