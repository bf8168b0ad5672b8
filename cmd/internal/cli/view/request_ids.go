package view

import (
	"regexp"
	"strings"
)

// requestID is an identifier that AWS puts into its messages for its own support.
var requestID = regexp.MustCompile(
	`(?i),? ?\b(?:extended request ?id|request ?id|request ?token|client ?request ?token|host ?id): [^\s,;)]+`)

// WithoutRequestIDs is a message without the identifiers of requests.
func WithoutRequestIDs(message string) string {
	short := requestID.ReplaceAllString(message, "")
	return strings.NewReplacer(" ()", "", "(, ", "(").Replace(short)
}
