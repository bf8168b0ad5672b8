package iam

// Condition operators. The effect of a missing key depends on the operator, which is a common mistake in policies: see
// holds. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// operator compares a value of the request with a value of the policy. A negated operator holds if no value of the
// policy matches.
type operator struct {
	negated   bool
	variables bool // values may have policy variables
	compare   func(policy, value string) bool
}

var operators = map[string]operator{
	"StringEquals":              {variables: true, compare: equal},
	"StringNotEquals":           {negated: true, variables: true, compare: equal},
	"StringEqualsIgnoreCase":    {variables: true, compare: equalFold},
	"StringNotEqualsIgnoreCase": {negated: true, variables: true, compare: equalFold},
	"StringLike":                {variables: true, compare: glob},
	"StringNotLike":             {negated: true, variables: true, compare: glob},
	"ArnEquals":                 {variables: true, compare: arnLike},
	"ArnNotEquals":              {negated: true, variables: true, compare: arnLike},
	"ArnLike":                   {variables: true, compare: arnLike},
	"ArnNotLike":                {negated: true, variables: true, compare: arnLike},
	"Bool":                      {compare: strings.EqualFold},
	"IpAddress":                 {compare: inCIDR},
	"NotIpAddress":              {negated: true, compare: inCIDR},
	"NumericEquals":             {compare: numeric(func(p, v float64) bool { return v == p })},
	"NumericNotEquals":          {negated: true, compare: numeric(func(p, v float64) bool { return v == p })},
	"NumericLessThan":           {compare: numeric(func(p, v float64) bool { return v < p })},
	"NumericLessThanEquals":     {compare: numeric(func(p, v float64) bool { return v <= p })},
	"NumericGreaterThan":        {compare: numeric(func(p, v float64) bool { return v > p })},
	"NumericGreaterThanEquals":  {compare: numeric(func(p, v float64) bool { return v >= p })},
	"DateEquals":                {compare: date(func(c int) bool { return c == 0 })},
	"DateNotEquals":             {negated: true, compare: date(func(c int) bool { return c == 0 })},
	"DateLessThan":              {compare: date(func(c int) bool { return c < 0 })},
	"DateLessThanEquals":        {compare: date(func(c int) bool { return c <= 0 })},
	"DateGreaterThan":           {compare: date(func(c int) bool { return c > 0 })},
	"DateGreaterThanEquals":     {compare: date(func(c int) bool { return c >= 0 })},
}

// holds evaluates the condition. A missing key fails positive operators. It satisfies negated ones, IfExists ones and
// ForAllValues. It fails ForAnyValue, negated or not.
func (c Condition) holds(r *request, variables bool) bool {
	values := r.context.values(c.key)
	if c.Operator == "Null" {
		for _, want := range c.Values {
			if strings.EqualFold(want, strconv.FormatBool(len(values) == 0)) {
				return true
			}
		}
		return false
	}
	op := operators[c.Operator]
	if len(values) == 0 {
		return c.IfExists || c.ForAllValues || op.negated && !c.ForAnyValue
	}
	satisfied := func(value string) bool {
		for _, pattern := range c.Values {
			if variables && op.variables {
				expanded, ok := expand(pattern, r.context)
				if !ok {
					continue
				}
				pattern = expanded
			}
			if op.compare(pattern, value) {
				return !op.negated
			}
		}
		return op.negated
	}
	// Without a modifier, several values act like ForAnyValue for positive operators and like ForAllValues for negated
	// ones: one matching value satisfies a positive operator, and fails a negated one.
	all := c.ForAllValues || op.negated && !c.ForAnyValue
	for _, v := range values {
		if satisfied(v) != all {
			return !all
		}
	}
	return all
}

func equal(policy, value string) bool { return unliterals.Replace(policy) == value }
func equalFold(policy, value string) bool {
	return strings.EqualFold(unliterals.Replace(policy), value)
}

// arnLike compares the six parts of an ARN one by one.
func arnLike(policy, value string) bool {
	p, v := strings.SplitN(policy, ":", 6), strings.SplitN(value, ":", 6)
	if policy == "*" {
		return true
	}
	if len(p) != 6 || len(v) != 6 {
		return false
	}
	for i := range p {
		if !glob(p[i], v[i]) {
			return false
		}
	}
	return true
}

func inCIDR(policy, value string) bool {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	if prefix, err := netip.ParsePrefix(policy); err == nil {
		return prefix.Contains(address)
	}
	other, err := netip.ParseAddr(policy)
	return err == nil && other == address
}

func numeric(compare func(policy, value float64) bool) func(policy, value string) bool {
	return func(policy, value string) bool {
		p, err1 := strconv.ParseFloat(policy, 64)
		v, err2 := strconv.ParseFloat(value, 64)
		return err1 == nil && err2 == nil && compare(p, v)
	}
}

func date(compare func(order int) bool) func(policy, value string) bool {
	return func(policy, value string) bool {
		p, ok1 := parseDate(policy)
		v, ok2 := parseDate(value)
		return ok1 && ok2 && compare(v.Compare(p))
	}
}

func parseDate(s string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(seconds, 0), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
