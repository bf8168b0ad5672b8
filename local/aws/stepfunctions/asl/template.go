package asl

// Templates: JSON in which a string may be a JSONata expression in {% %}.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// template is a compiled JSON value. At most one of expr, object and array is set. If none is, raw is a literal.
type template struct {
	raw    json.RawMessage // compact
	expr   *expression
	object []field
	array  []*template
	at     string // the field as AWS names it in errors, such as "Arguments/Payload"
}

type field struct {
	key   string
	value *template
}

// binding is the assignment of one variable.
type binding struct {
	name  string
	value *template
}

// literal reports whether the template has no expression.
func (t *template) literal() bool {
	if t.expr != nil {
		return false
	}
	for _, f := range t.object {
		if !f.value.literal() {
			return false
		}
	}
	for _, e := range t.array {
		if !e.literal() {
			return false
		}
	}
	return true
}

// template compiles a field. It returns nil if the field is absent.
func (p *parser) template(o object, at, name string) *template {
	raw, ok := o[name]
	if !ok {
		return nil
	}
	return p.compile(raw, at+"/"+name, name)
}

func (p *parser) compile(raw json.RawMessage, at, name string) *template {
	t := &template{raw: compact(raw), at: name}
	switch t.raw[0] {
	case '{':
		members, err := members(t.raw)
		if err != nil {
			p.fail(at, "INVALID_JSON_DESCRIPTION: %v", err)
		}
		for _, m := range members {
			t.object = append(t.object, field{m.key, p.compile(m.raw, at+"/"+m.key, name+"/"+m.key)})
		}
	case '[':
		var elements []json.RawMessage
		_ = json.Unmarshal(t.raw, &elements)
		for i, e := range elements {
			t.array = append(t.array, p.compile(e, fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("%s[%d]", name, i)))
		}
	case '"':
		var s string
		_ = json.Unmarshal(t.raw, &s)
		opens, closes := strings.HasPrefix(s, "{%"), strings.HasSuffix(s, "%}")
		if !opens && !closes {
			break
		}
		if !opens || !closes || len(s) < 4 {
			p.fail(at, "INVALID_JSONATA: a JSONata expression begins with {%% and ends with %%}, with nothing around them")
			break
		}
		x, err := compileExpression(strings.TrimSpace(s[2 : len(s)-2]))
		if err != nil {
			p.fail(at, "INVALID_JSONATA: %v", err)
		}
		t.expr = x
	}
	return t
}

// assign compiles an Assign object.
func (p *parser) assign(o object, at string) []binding {
	t := p.template(o, at, "Assign")
	if t == nil {
		return nil
	}
	if t.raw[0] != '{' {
		p.fail(at+"/Assign", "SCHEMA_VALIDATION_FAILED: Assign is not an object")
	}
	var all []binding
	for _, f := range t.object {
		if !variableName(f.key) {
			p.fail(at+"/Assign", "SCHEMA_VALIDATION_FAILED: %q is no name for a variable", f.key)
		}
		all = append(all, binding{f.key, f.value})
	}
	return all
}

// eval evaluates a template. The error is a *Failure.
func (t *template) eval(q *query) (json.RawMessage, error) {
	if t.literal() {
		return t.raw, nil
	}
	var b bytes.Buffer
	if err := t.write(&b, q); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (t *template) write(b *bytes.Buffer, q *query) error {
	switch {
	case t.expr != nil:
		value, err := q.value(t)
		b.Write(value)
		return err
	case t.object != nil:
		b.WriteByte('{')
		for i, f := range t.object {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quote(f.key))
			b.WriteByte(':')
			if err := f.value.write(b, q); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case t.array != nil:
		b.WriteByte('[')
		for i, e := range t.array {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := e.write(b, q); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		b.Write(t.raw)
	}
	return nil
}

type member struct {
	key string
	raw json.RawMessage
}

// members returns the members of a JSON object in their order.
func members(raw json.RawMessage) ([]member, error) {
	if err := uniqueKeys(raw); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var all []member
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: k.(string)}
		if err := d.Decode(&m.raw); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// compact removes the space between tokens. It returns invalid JSON unchanged.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// quote encodes a string without HTML escapes, because the size of a payload counts and AWS does not escape either.
func quote(s string) json.RawMessage { return encode(s) }

// encode returns the JSON of a value that can always be encoded.
func encode(v any) json.RawMessage {
	raw, err := marshal(v)
	if err != nil {
		panic(err) // callers pass only plain structs, maps and strings
	}
	return raw
}

func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
