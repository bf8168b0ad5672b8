package runner

import (
	"regexp"
	"strings"
)

// Redactor removes from texts what must stay in the account.
type Redactor struct{ replace []string }

// NewRedactor returns a redactor that removes secrets and account IDs. hide are further texts, each with its replacement.
func NewRedactor(hide map[string]string) *Redactor {
	r := &Redactor{}
	for text, replacement := range hide {
		if text != "" {
			r.replace = append(r.replace, text, replacement)
		}
	}
	return r
}

// The forms of secrets: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
var secrets = []struct {
	form        *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`k8s-aws-v1\.[A-Za-z0-9_-]+`), "<token>"},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`), "<token>"},
	{regexp.MustCompile(`(?i)(X-Amz-(?:Signature|Security-Token|Credential)=)[^&\s"']+`), "${1}<secret>"},
	{regexp.MustCompile(`(?i)((?:secret_?access_?key|session_?token)["']?\s*[=:]\s*["']?)[^\s"',;]+`), "${1}<secret>"},
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b`), "<key>"},
	{regexp.MustCompile(`\b[0-9]{12}\b`), "<account>"},
}

// Text returns the text without account IDs and secrets.
func (r *Redactor) Text(text string) string {
	text = strings.NewReplacer(r.replace...).Replace(text)
	for _, s := range secrets {
		text = s.form.ReplaceAllString(text, s.replacement)
	}
	return text
}
