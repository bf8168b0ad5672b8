package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is one measurement.
type figure struct {
	Section string  `json:"section"`
	Name    string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	// Limit is the promised bound, if any.
	Limit *limit `json:"limit,omitempty"`
	// Note is a comparison or an explanation of the value.
	Note string `json:"note,omitempty"`
	// Missed reports whether the limit does not hold.
	Missed bool `json:"missed,omitempty"`
}

// valueText is the value with its unit. A missed value has enough digits to differ from its limit.
func (f figure) valueText() string {
	value := number(f.Value)
	if f.Missed {
		value = strconv.FormatFloat(f.Value, 'g', 6, 64)
	}
	return strings.TrimSpace(value + " " + f.Unit)
}

// limit of a figure.
type limit struct {
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
}

func atLeast(v float64) *limit { return &limit{AtLeast: &v} }

func atMost(v float64) *limit { return &limit{AtMost: &v} }

func (l *limit) holds(v float64) bool {
	return l == nil || (l.AtLeast == nil || v >= *l.AtLeast) && (l.AtMost == nil || v <= *l.AtMost)
}

func (l *limit) String() string {
	switch {
	case l == nil:
		return ""
	case l.AtLeast != nil:
		return "≥ " + number(*l.AtLeast)
	default:
		return "≤ " + number(*l.AtMost)
	}
}

// report collects figures and prints them.
type report struct {
	out     io.Writer
	machine string
	section string
	figures []figure
}

func (r *report) begin(section string) {
	r.section = section
	fmt.Fprintf(r.out, "\n%s\n", section)
}

// add adds a figure to the current section.
func (r *report) add(name string, value float64, unit string, l *limit, note string) {
	r.figures = append(r.figures, figure{r.section, name, value, unit, l, note, !l.holds(value)})
}

// table prints the current section.
func (r *report) table() {
	w := tabwriter.NewWriter(r.out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  FIGURE\tVALUE\tLIMIT\t\tNOTE")
	for _, f := range r.figures {
		if f.Section != r.section {
			continue
		}
		verdict := ""
		switch {
		case f.Missed:
			verdict = "MISSED"
		case f.Limit != nil:
			verdict = "met"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", f.Name, f.valueText(), f.Limit, verdict, f.Note)
	}
	_ = w.Flush()
}

// lines returns a JSON line about the machine, and one for each figure.
func (r *report) lines() []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]string{"machine": r.machine}) // strings and numbers
	for _, f := range r.figures {
		_ = encoder.Encode(f)
	}
	return out.Bytes()
}

// missedError is an error that names the figures that miss their limits.
func (r *report) missedError() error {
	var names []string
	for _, f := range r.figures {
		if f.Missed {
			names = append(names, fmt.Sprintf("%s: %s (%s, %s)", f.Section, f.Name, f.valueText(), f.Limit))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d limits are missed:\n  %s", len(names), strings.Join(names, "\n  "))
}

// number formats a value with three digits, or all digits of a whole number.
func number(v float64) string {
	if v == float64(int64(v)) || v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// quantile returns a quantile by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9)) // 0.95 × 20 is 19, not a little more
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// describeMachine returns the processor, the platform and the date of the measurement.
func describeMachine() string {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(info), "model name"); ok {
			line, _, _ := strings.Cut(after, "\n")
			model = strings.TrimLeft(line, "\t :")
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		time.Now().UTC().Format(time.DateOnly))
}
