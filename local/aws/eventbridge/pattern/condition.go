package pattern

// Conditions on one scalar value.

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"slices"
	"strings"
)

type condition struct {
	// absent matches a missing field. matches is then nil.
	absent  bool
	matches func(value any) bool
}

func conditions(list []any, at string) ([]condition, error) {
	if len(list) == 0 {
		return nil, invalid("empty arrays are not allowed%s", where(at))
	}
	var all []condition
	for _, e := range list {
		c, err := one(e, at)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func one(e any, at string) (condition, error) {
	o, ok := e.(map[string]any)
	if !ok {
		if _, nested := e.([]any); nested {
			return condition{}, invalid("an array inside of an array is not allowed%s", where(at))
		}
		return condition{matches: func(v any) bool { return equal(e, v) }}, nil
	}
	if len(o) != 1 {
		return condition{}, invalid("only one key is allowed in a match expression%s", where(at))
	}
	for name, argument := range o {
		operator := operators[name]
		if operator == nil {
			return condition{}, invalid("unrecognized match type %s%s", name, where(at))
		}
		c, err := operator(argument)
		if err != "" {
			return condition{}, invalid("%s: %s%s", name, err, where(at))
		}
		return c, nil
	}
	panic("unreachable: o has one key")
}

// operators compile their argument, or return what is wrong with it.
var operators map[string]func(argument any) (condition, string)

func init() { // anything-but takes some of the others as its argument
	operators = map[string]func(any) (condition, string){
		"prefix":             affix(strings.HasPrefix),
		"suffix":             affix(strings.HasSuffix),
		"equals-ignore-case": ignoreCase,
		"wildcard":           wildcard,
		"numeric":            numeric,
		"exists":             exists,
		"cidr":               cidr,
		"anything-but":       anythingBut,
	}
}

// equal compares as EventBridge does: strings exactly, numbers by their text.
func equal(want, got any) bool {
	switch want := want.(type) {
	case json.Number:
		n, ok := got.(json.Number)
		return ok && n.String() == want.String()
	default:
		return want == got
	}
}

func onString(matches func(string) bool) condition {
	return condition{matches: func(v any) bool {
		s, ok := v.(string)
		return ok && matches(s)
	}}
}

func affix(has func(s, affix string) bool) func(any) (condition, string) {
	return func(argument any) (condition, string) {
		switch a := argument.(type) {
		case string:
			if a == "" {
				return condition{}, "the empty string is not allowed"
			}
			return onString(func(s string) bool { return has(s, a) }), ""
		case map[string]any:
			if fold, ok := a["equals-ignore-case"].(string); ok && len(a) == 1 && fold != "" {
				fold = strings.ToLower(fold)
				return onString(func(s string) bool { return has(strings.ToLower(s), fold) }), ""
			}
		}
		return condition{}, "the value must be a string or equals-ignore-case with one"
	}
}

func ignoreCase(argument any) (condition, string) {
	a, ok := argument.(string)
	if !ok {
		return condition{}, "the value must be a string"
	}
	return onString(func(s string) bool { return strings.EqualFold(s, a) }), ""
}

func exists(argument any) (condition, string) {
	switch argument {
	case true:
		return condition{matches: func(any) bool { return true }}, ""
	case false:
		return condition{absent: true}, ""
	}
	return condition{}, "the value must be true or false"
}

// wildcard compiles a string in which * matches any characters, and \* and \\ match themselves.
func wildcard(argument any) (condition, string) {
	a, ok := argument.(string)
	if !ok {
		return condition{}, "the value must be a string"
	}
	parts := []string{""}
	for i := 0; i < len(a); i++ {
		switch c := a[i]; {
		case c == '*' && i > 0 && a[i-1] == '*' && parts[len(parts)-1] == "":
			return condition{}, "consecutive wildcard characters are not allowed"
		case c == '*':
			parts = append(parts, "")
		case c == '\\':
			i++
			if i == len(a) || a[i] != '*' && a[i] != '\\' {
				return condition{}, `only \* and \\ may be escaped`
			}
			parts[len(parts)-1] += a[i : i+1]
		default:
			parts[len(parts)-1] += string(c)
		}
	}
	return onString(func(s string) bool { return between(s, parts) }), ""
}

// between reports whether s consists of the parts in order, with anything between them.
func between(s string, parts []string) bool {
	if len(parts) == 1 {
		return s == parts[0]
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// numericLimit is the largest number that numeric accepts. Its negative is the smallest.
var numericLimit = big.NewRat(5_000_000_000, 1)

func numeric(argument any) (condition, string) {
	list, ok := argument.([]any)
	if !ok || len(list) != 2 && len(list) != 4 {
		return condition{}, "the value must be an array of one or two pairs of operator and number"
	}
	var tests []func(*big.Rat) bool
	var shape string
	for i := 0; i < len(list); i += 2 {
		operator, _ := list[i].(string)
		number, _ := list[i+1].(json.Number)
		bound, ok := new(big.Rat).SetString(number.String())
		if !ok || new(big.Rat).Abs(bound).Cmp(numericLimit) > 0 {
			return condition{}, "the bound must be a number between -5.0e9 and 5.0e9"
		}
		test := map[string]func(int) bool{
			"=":  func(c int) bool { return c == 0 },
			"<":  func(c int) bool { return c < 0 },
			"<=": func(c int) bool { return c <= 0 },
			">":  func(c int) bool { return c > 0 },
			">=": func(c int) bool { return c >= 0 },
		}[operator]
		if test == nil {
			return condition{}, "the operator must be one of = < <= > >="
		}
		shape += operator[:1]
		tests = append(tests, func(n *big.Rat) bool { return test(n.Cmp(bound)) })
	}
	if len(shape) == 2 && shape != "><" {
		return condition{}, "a range has a lower bound and then an upper one"
	}
	return condition{matches: func(v any) bool {
		number, ok := v.(json.Number)
		if !ok {
			return false
		}
		n, ok := new(big.Rat).SetString(number.String())
		return ok && !slices.ContainsFunc(tests, func(test func(*big.Rat) bool) bool { return !test(n) })
	}}, ""
}

func cidr(argument any) (condition, string) {
	a, _ := argument.(string)
	prefix, err := netip.ParsePrefix(a)
	if err != nil {
		address, err := netip.ParseAddr(a)
		if err != nil {
			return condition{}, "the value must be an IPv4 or IPv6 block"
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	return onString(func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && prefix.Contains(address)
	}), ""
}

// anythingBut matches what none of its arguments match: values, or one of prefix, suffix, equals-ignore-case and
// wildcard with one or several strings.
func anythingBut(argument any) (condition, string) {
	var inner []condition
	switch a := argument.(type) {
	case map[string]any:
		for name, nested := range a {
			if len(a) != 1 || !slices.Contains([]string{"prefix", "suffix", "equals-ignore-case", "wildcard"}, name) {
				return condition{}, "it takes one of prefix, suffix, equals-ignore-case and wildcard"
			}
			for _, e := range asList(nested) {
				c, err := operators[name](e)
				if err != "" {
					return condition{}, name + ": " + err
				}
				inner = append(inner, c)
			}
		}
	default:
		for _, e := range asList(argument) {
			switch e.(type) {
			case string, json.Number:
				inner = append(inner, condition{matches: func(v any) bool { return equal(e, v) }})
			default:
				return condition{}, "the values must be strings or numbers"
			}
		}
	}
	if len(inner) == 0 {
		return condition{}, "there must be at least one value"
	}
	return condition{matches: func(v any) bool {
		return !slices.ContainsFunc(inner, func(c condition) bool { return c.matches(v) })
	}}, ""
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}
