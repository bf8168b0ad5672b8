// Errors say what is wrong with a spec: file, line, column and field path, in the wording of Kubernetes field errors.
package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Error is one thing that is wrong with a spec.
type Error struct {
	// File that was read, as the caller called it; empty when the object was not read from a file.
	File string
	// Line and Column count from 1; 0 when they are not known.
	Line, Column int
	// Cause is the field error. Its Field is empty for what concerns the file as a whole.
	Cause *field.Error
}

// Error is "file:line: field: Kind of error: value: detail", on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:", e.Line)
		}
		b.WriteByte(' ')
	}
	if e.Cause.Field != "" {
		b.WriteString(shorten(e.Cause.Field) + ": ")
	}
	b.WriteString(e.Cause.ErrorBody())
	return printable(b.String())
}

// printable is a text on one line that does nothing to a terminal: names of files and fields are whatever their writer says,
// and errors are shown to others.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Unwrap returns the field error.
func (e *Error) Unwrap() error { return e.Cause }

// Errors is everything that is wrong with a spec, in the order of the file; nil when nothing is. Use Err to return it as
// an error: a nil Errors in an error interface is not a nil error.
type Errors []*Error

// maxLines is how many errors a message shows: nobody reads more, and a status has to hold it.
const maxLines = 100

// Error has one line for each error, up to a hundred.
func (l Errors) Error() string {
	var lines []string
	for _, e := range l[:min(len(l), maxLines)] {
		lines = append(lines, e.Error())
	}
	if more := len(l) - maxLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each error, for errors.As.
func (l Errors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

// Err is nil when nothing is wrong.
func (l Errors) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// In says where in a file the errors are: data is what the object was decoded from. It serves errors of later checks
// (Resolve, ValidateVersions), whose fields are those of the same spec. A field that is not in the file has the position
// of the nearest one that holds it.
func (l Errors) In(file string, data []byte) Errors {
	return decode(file, data, KindOf(data)).locate(l)
}

// fromFields turns field errors into Errors without positions; none are nil.
func fromFields(list field.ErrorList) (errs Errors) {
	for _, e := range list {
		errs = append(errs, &Error{Cause: e})
	}
	return errs
}

// sorted puts errors in the order of the file, and drops what is said twice.
func (l Errors) sorted() Errors {
	slices.SortStableFunc(l, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(l, func(a, b *Error) bool { return a.Error() == b.Error() })
}
