package view

import (
	"regexp"
	"strings"
)

// requestID matches an identifier that AWS adds to messages for AWS Support.
var requestID = regexp.MustCompile(
	`(?i),? ?\b(?:extended request ?id|request ?id|request ?token|client ?request ?token|host ?id): [^\s,;)]+`)

// WithoutRequestIDs removes the identifiers of requests from a message.
func WithoutRequestIDs(message string) string {
	short := requestID.ReplaceAllString(message, "")
	return strings.NewReplacer(" ()", "", "(, ", "(").Replace(short)
}
