package eventbridge

// Targets and their inputs. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/eventbridge/delivery"
	"github.com/drover-run/drover/local/engine/wire"
)

// target of a rule. The API and templates spell it alike.
type target struct {
	Id               string // AWS's spelling
	Arn              string
	RoleArn          string            `json:",omitempty"`
	Input            string            `json:",omitempty"`
	InputPath        string            `json:",omitempty"`
	InputTransformer *inputTransformer `json:",omitempty"`
	DeadLetterConfig *deadLetters      `json:",omitempty"`
	RetryPolicy      *delivery.Policy  `json:",omitempty"`
}

type deadLetters struct{ Arn string }

type inputTransformer struct {
	InputPathsMap map[string]string `json:",omitempty"`
	InputTemplate string
}

var (
	idForm       = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)
	variableForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	placeholder  = regexp.MustCompile(`<([A-Za-z0-9_.-]+)>`)
)

// maxPaths limits the paths of an input transformer.
const maxPaths = 100

func (t *target) check() error {
	bad := func(format string, args ...any) error { return wire.Errorf("ValidationException", format, args...) }
	if !idForm.MatchString(t.Id) {
		return bad("The target id %q does not satisfy %s", t.Id, idForm)
	}
	if err := delivery.Check(t.Arn); err != nil {
		return err
	}
	if delivery.NeedsRole(t.Arn) && t.RoleArn == "" {
		return bad("RoleArn is required for target %s.", t.Arn)
	}
	inputs := 0
	for _, set := range []bool{t.Input != "", t.InputPath != "", t.InputTransformer != nil} {
		if set {
			inputs++
		}
	}
	if inputs > 1 {
		return bad("Only one of Input, InputPath, or InputTransformer must be provided for target %s.", t.Id)
	}
	if t.Input != "" && !json.Valid([]byte(t.Input)) {
		return bad("JSON syntax error in input for target %s", t.Id)
	}
	if t.InputPath != "" {
		if _, err := parsePath(t.InputPath); err != nil {
			return bad("Invalid InputPath for target %s: %v", t.Id, err)
		}
	}
	if x := t.InputTransformer; x != nil {
		if len(x.InputPathsMap) > maxPaths || x.InputTemplate == "" {
			return bad("InputTransformer for target %s: at most %d paths and a template", t.Id, maxPaths)
		}
		for name, path := range x.InputPathsMap {
			if _, err := parsePath(path); err != nil || !variableForm.MatchString(name) || strings.HasPrefix(name, "AWS") {
				return bad("InputTransformer for target %s: invalid path %s: %s", t.Id, name, path)
			}
		}
		for _, m := range placeholder.FindAllStringSubmatch(x.InputTemplate, -1) {
			if _, ok := x.InputPathsMap[m[1]]; !ok && !strings.HasPrefix(m[1], "aws.events.") {
				return bad("InputTemplate for target %s contains invalid placeholder %s.", t.Id, m[1])
			}
		}
	}
	if t.DeadLetterConfig != nil && !strings.Contains(t.DeadLetterConfig.Arn, ":sqs:") {
		return bad("DeadLetterConfig for target %s: the ARN is that of no queue", t.Id)
	}
	return t.RetryPolicy.Check()
}

// input returns the payload of a target for an event.
func (t target) input(r rule, e Event, text []byte, received time.Time) ([]byte, error) {
	switch {
	case t.Input != "":
		return []byte(t.Input), nil
	case t.InputPath != "":
		v, ok, err := lookup(text, t.InputPath)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s is not in the event: %w", t.InputPath, err)
		}
		return v, nil
	case t.InputTransformer != nil:
		return t.InputTransformer.fill(r, e, text, received)
	}
	return text, nil
}

// fill replaces the variables of a template: within a JSON string by their text, elsewhere by their JSON.
func (x *inputTransformer) fill(r rule, e Event, text []byte, received time.Time) ([]byte, error) {
	withoutDetail := e
	withoutDetail.Detail = json.RawMessage("{}")
	values := map[string]json.RawMessage{
		"aws.events.rule-arn": delivery.JSON(r.arn), "aws.events.rule-name": delivery.JSON(r.Name),
		"aws.events.event.ingestion-time": delivery.JSON(received.UTC().Format("2006-01-02T15:04:05.000Z")),
		"aws.events.event":                delivery.JSON(withoutDetail), "aws.events.event.json": text,
	}
	for name, path := range x.InputPathsMap {
		v, ok, err := lookup(text, path)
		if err != nil {
			return nil, err
		}
		if ok {
			values[name] = v
		}
	}
	var out bytes.Buffer
	rest := x.InputTemplate
	quoted := false
	for rest != "" {
		m := placeholder.FindStringSubmatchIndex(rest)
		if m == nil {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:m[0]])
		quoted = inString(rest[:m[0]], quoted)
		name := rest[m[2]:m[3]]
		value, found := values[name]
		if !found && strings.HasPrefix(name, "aws.events.") {
			return nil, wire.Unsupported("events", "the variable <"+name+">")
		}
		out.Write(templateValue(value, quoted))
		rest = rest[m[1]:]
	}
	if !json.Valid(out.Bytes()) { // a text of several lines becomes one string
		return delivery.JSON(out.String()), nil
	}
	return out.Bytes(), nil
}

// inString reports whether a position after the piece is within a JSON string.
func inString(piece string, quoted bool) bool {
	for i := 0; i < len(piece); i++ {
		switch piece[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		}
	}
	return quoted
}

// templateValue returns a value for a template. A value that the event lacks is empty text, or null.
func templateValue(value json.RawMessage, quoted bool) []byte {
	if !quoted {
		if value == nil {
			return []byte("null")
		}
		return value
	}
	if value == nil {
		return nil
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	}
	escaped := delivery.JSON(s)
	return escaped[1 : len(escaped)-1]
}

// parsePath parses a path such as $.a.b[0].c. It supports keys and indexes, and nothing else of JSONPath.
func parsePath(path string) ([]any, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, fmt.Errorf("%s does not begin with $", path)
	}
	var steps []any
	for rest != "" {
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			key := rest[1 : end+1]
			if key == "" || strings.ContainsAny(key, "*?()@") {
				return nil, fmt.Errorf("%s is no path of keys and indexes", path)
			}
			steps = append(steps, key)
			rest = rest[end+1:]
		case '[':
			inside, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(inside)
			if !ok || err != nil || n < 0 {
				return nil, fmt.Errorf("%s is no path of keys and indexes", path)
			}
			steps = append(steps, n)
			rest = after
		default:
			return nil, fmt.Errorf("%s is no path of keys and indexes", path)
		}
	}
	return steps, nil
}

// lookup returns the JSON at a path.
func lookup(event []byte, path string) (json.RawMessage, bool, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	at := json.RawMessage(event)
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			var o map[string]json.RawMessage
			if json.Unmarshal(at, &o) != nil {
				return nil, false, nil
			}
			v, ok := o[step]
			if !ok {
				return nil, false, nil
			}
			at = v
		case int:
			var a []json.RawMessage
			if json.Unmarshal(at, &a) != nil || step >= len(a) {
				return nil, false, nil
			}
			at = a[step]
		}
	}
	return at, true, nil
}
