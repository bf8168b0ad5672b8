package api

// Errors of a spec: file, line, column and field path, in the wording of Kubernetes field errors.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Error is one error of a spec.
type Error struct {
	// File is the name that the caller gave. It is empty if the object was not read from a file.
	File string
	// Line and Column count from 1. They are 0 if unknown.
	Line, Column int
	// Cause is the field error. Its Field is empty for an error about the whole file.
	Cause *field.Error
}

// Error returns "file:line: field: Kind of error: value: detail" on one line.
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

// printable returns a text on one line without terminal control. Names of files and fields come from users, and other users see errors.
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

// Errors are all errors of a spec, in the order of the file. It is nil without errors. Return Err as an error: a nil Errors in an error
// interface is not a nil error.
type Errors []*Error

// maxLines is how many errors a message shows, so that a status can hold it.
const maxLines = 100

// Error returns one line for each error, up to a hundred.
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

// Err returns nil without errors.
func (l Errors) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// In adds the positions of errors in a file. data is what the object was decoded from. It serves the errors of later checks (Resolve,
// ValidateVersions) about the same spec. A field that is not in the file gets the position of the nearest one that contains it.
func (l Errors) In(file string, data []byte) Errors {
	return decode(file, data, KindOf(data)).locate(l)
}

// FieldErrors converts field errors of checks that only AWS can answer.
func FieldErrors(list field.ErrorList) Errors { return fromFields(list) }

// fromFields converts field errors to Errors without positions. It returns nil for none.
func fromFields(list field.ErrorList) (errs Errors) {
	for _, e := range list {
		errs = append(errs, &Error{Cause: e})
	}
	return errs
}

// sortedByLine sorts errors in the order of the file, and drops duplicates.
func (l Errors) sortedByLine() Errors {
	slices.SortStableFunc(l, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(l, func(a, b *Error) bool { return a.Error() == b.Error() })
}
