package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// minEfficacy is the smallest share of mutants, in percent, that a package's tests must notice.
const minEfficacy = 90.0

// count is the result of one package. Efficacy ignores mutants that are not covered, time out or do not compile.
type count struct {
	name                                           string
	killed, lived, notCovered, timedOut, notViable int
	// unnoticed are the mutants that lived or are not covered.
	unnoticed []string
}

// efficacy is the share of mutants that the tests notice, of those that they notice or not, in percent.
func (c count) efficacy() float64 {
	if c.killed+c.lived == 0 {
		return 0
	}
	return 100 * float64(c.killed) / float64(c.killed+c.lived)
}

// parse counts the mutants in gremlins' output.
func parse(name string, output []byte) (count, error) {
	var result struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(output, &result); err != nil {
		return count{}, fmt.Errorf("reading the output of gremlins: %w", err)
	}
	c := count{name: name}
	for _, file := range result.Files {
		for _, m := range file.Mutations {
			switch m.Status {
			case "KILLED":
				c.killed++
			case "LIVED":
				c.lived++
			case "NOT COVERED":
				c.notCovered++
			case "TIMED OUT":
				c.timedOut++
			case "NOT VIABLE":
				c.notViable++
			default:
				return count{}, fmt.Errorf("reading the output of gremlins: unknown status %q of a mutant", m.Status)
			}
			if m.Status == "LIVED" || m.Status == "NOT COVERED" {
				c.unnoticed = append(c.unnoticed, fmt.Sprintf("%s/%s:%d:%d: %s %s", name, file.Name, m.Line, m.Column, m.Type, m.Status))
			}
		}
	}
	slices.Sort(c.unnoticed)
	return c, nil
}

// printTable prints the mutants that no test noticed, and a line for each package.
func printTable(out io.Writer, counts []count) {
	for _, c := range counts {
		for _, mutant := range c.unnoticed {
			fmt.Fprintln(out, mutant)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.TabIndent)
	fmt.Fprint(w, "\nkilled\tlived\tnot covered\ttimed out\tnot viable\tefficacy\t  package\n")
	for _, c := range counts {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.1f %%\t  %s\n", c.killed, c.lived, c.notCovered, c.timedOut, c.notViable, c.efficacy(), c.name)
	}
	w.Flush()
}

// belowLimit returns an error that names the packages whose tests notice too little.
func belowLimit(counts []count) error {
	var low []string
	for _, c := range counts {
		if c.efficacy() < minEfficacy {
			low = append(low, fmt.Sprintf("%s %.1f %%", c.name, c.efficacy()))
		}
	}
	if low == nil {
		return nil
	}
	return fmt.Errorf("efficacy below %.0f %%: %s: tests pass although the code is changed; add a test for each LIVED mutant above",
		minEfficacy, strings.Join(low, ", "))
}
