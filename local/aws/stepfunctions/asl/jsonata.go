package asl

// Expressions: JSONata 2.0.6 as Step Functions supports it. gnata evaluates them, with corrections for its known
// differences. https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recolabs/gnata"
)

type expression struct {
	source   string
	compiled *gnata.Expression
	// of are the members of $states that the expression names.
	of memberSet
}

// memberSet is a set of members of $states. Only named members are decoded, because decoding costs more than evaluation.
type memberSet uint8

const (
	ofInput memberSet = 1 << iota
	ofResult
	ofErrorOutput
	ofContext
	ofAll = ofInput | ofResult | ofErrorOutput | ofContext
)

// membersOf returns the members of $states that an expression names. It returns all if the expression may use $states
// itself.
func membersOf(source string) (of memberSet) {
	for {
		_, rest, found := strings.Cut(source, "$states")
		if !found {
			return of
		}
		source = rest
		named := 0
		for name, m := range map[string]memberSet{".input": ofInput, ".result": ofResult, ".errorOutput": ofErrorOutput, ".context": ofContext} {
			if strings.HasPrefix(rest, name) && !isWord(rest, len(name)) {
				of |= m
				named++
			}
		}
		if named == 0 {
			return ofAll
		}
	}
}

// compileExpression rejects what gnata supports but JSONata 2.0.6 or Step Functions does not.
func compileExpression(source string) (*expression, error) {
	if source == "" {
		return nil, fmt.Errorf("the expression is empty")
	}
	for _, foreign := range []string{"??", "?:", "$eval"} {
		if containsToken(source, foreign) {
			return nil, fmt.Errorf("%s is not part of the JSONata of Step Functions: %s", foreign, source)
		}
	}
	c, err := gnata.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, source)
	}
	return &expression{source, c, membersOf(source)}, nil
}

// containsToken finds an operator or a variable outside strings, quoted names, comments and regular expressions.
func containsToken(source, token string) bool {
	operand := false // the last token was an operand: a following / divides
	for i := 0; i < len(source); {
		c := source[i]
		switch {
		case strings.HasPrefix(source[i:], "/*"):
			i += skipTo(source[i+2:], "*/") + 2
		case c == '"' || c == '\'' || c == '`':
			i += skipQuoted(source[i:], c)
			operand = true
		case c == '/' && !operand:
			i += skipQuoted(source[i:], '/')
			operand = true
		case strings.HasPrefix(source[i:], token) && (token[0] != '$' || !isWord(source, i+len(token))):
			return true
		case isWord(source, i):
			for isWord(source, i) {
				i++
			}
			operand = true
		default:
			if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				operand = c == ')' || c == ']' || c == '}'
			}
			i++
		}
	}
	return false
}

func skipTo(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

func skipQuoted(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' && quote != '`' {
			i++
		} else if s[i] == quote {
			return i + 1
		}
	}
	return len(s)
}

func isWord(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	c := s[i]
	return c == '$' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// query evaluates the expressions of one phase of one state. It is not safe for concurrent use.
type query struct {
	ctx       context.Context
	states    func(memberSet) json.RawMessage // $states
	variables map[string]json.RawMessage
	// evaluate evaluates in the environment of the query, which the first expression creates. Variables that an expression
	// assigns are its own.
	evaluate func(*expression) (any, error)
	bound    environment
	names    map[string]bool // bound variables, by name
	of       memberSet       // bound members of $states
}

// environment is the interface of gnata's environments, whose type is unexported.
type environment interface {
	Bind(name string, value any)
}

// value evaluates the expression of t. The error is a *Failure with the name States.QueryEvaluationError.
func (q *query) value(t *template) (json.RawMessage, error) {
	if q.evaluate == nil {
		env := baseEnvironment.Clone()
		q.evaluate = func(x *expression) (any, error) { return x.compiled.EvalWithCustomFuncs(q.ctx, nil, env) }
		q.bound, q.names = env, map[string]bool{}
	}
	if err := q.bind(t.expr); err != nil {
		return nil, queryFailure(t, "%v", err)
	}
	v, err := q.evaluate(t.expr)
	if err != nil {
		return nil, queryFailure(t, "threw an error during evaluation. %v", err)
	}
	if v == nil {
		return nil, queryFailure(t, "returned nothing (undefined).")
	}
	var b bytes.Buffer
	if err := write(&b, v); err != nil {
		return nil, queryFailure(t, "returned %v.", err)
	}
	return b.Bytes(), nil
}

// bind decodes and binds the values that an expression names, each once: decoding costs more than evaluation.
func (q *query) bind(x *expression) error {
	bind := func(name string, raw json.RawMessage) error {
		v, err := gnata.DecodeJSON(raw)
		if err != nil {
			return fmt.Errorf("decoding $%s: %w", name, err)
		}
		q.bound.Bind(name, v)
		return nil
	}
	for name, raw := range q.variables {
		if q.names[name] || !strings.Contains(x.source, "$"+name) {
			continue
		}
		if err := bind(name, raw); err != nil {
			return err
		}
		q.names[name] = true
	}
	if x.of|q.of == q.of {
		return nil
	}
	q.of |= x.of
	return bind("states", q.states(q.of))
}

func queryFailure(t *template, format string, args ...any) *Failure {
	return &Failure{
		Name: errQuery, Cause: fmt.Sprintf("The JSONata expression '%s' specified for the field '%s' ", t.expr.source, t.at) +
			fmt.Sprintf(format, args...),
	}
}

// orderedMap is the interface of gnata's objects, whose type is unexported.
type orderedMap interface {
	Keys() []string
	Get(string) (any, bool)
}

// write encodes a result as JSON. It rejects functions and infinite numbers.
func write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case nil: // a missing element of an array
		b.WriteString("null")
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case orderedMap:
		return writeObject(b, v.Keys(), v.Get)
	case map[string]any:
		return writeObject(b, sortedKeys(v), func(k string) (any, bool) { e, ok := v[k]; return e, ok })
	case bool, string, json.Number, float64:
		raw, err := marshal(v)
		if err != nil {
			return fmt.Errorf("a number out of range")
		}
		b.Write(raw)
	default:
		if !gnata.IsNull(v) {
			return fmt.Errorf("an unsupported result type: a function or a regular expression")
		}
		b.WriteString("null")
	}
	return nil
}

func writeObject(b *bytes.Buffer, keys []string, get func(string) (any, bool)) error {
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(k))
		b.WriteByte(':')
		e, _ := get(k)
		if err := write(b, e); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
