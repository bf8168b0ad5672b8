package faults

// The syntax of rules: the kind, then conditions and counts, in words such as
//
//	throttle service=cloudformation caller=plan p=0.3 for=2m
//	error=ServiceUnavailable status=503 action=PutObject nth=3
//	crash-after=2 caller=change count=1
//	drop event="CloudFormation Stack Status Change" p=0.5

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a rule. An error names the wrong word.
func Parse(text string) (Rule, error) {
	words, err := split(text)
	if err != nil {
		return Rule{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if len(words) == 0 {
		return Rule{}, fmt.Errorf("a fault begins with its kind: one of %s", join(Kinds()))
	}
	r, err := parse(words)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Rule{}, fmt.Errorf("fault %q: %w", text, err)
	}
	return r, nil
}

func parse(words []string) (Rule, error) {
	name, value, given := strings.Cut(words[0], "=")
	r := Rule{Kind: Kind(name)}
	k, ok := kindOf(r.Kind)
	if !ok {
		return r, fmt.Errorf("%q is no kind of fault: it begins with one of %s", name, join(Kinds()))
	}
	if given && k.value == "" {
		return r, fmt.Errorf("%s takes no value", name)
	}
	if !given {
		if value = k.def; k.needed {
			return r, fmt.Errorf("%s needs a %s: %s=%s", name, k.value, name, map[string]string{"duration": "2s", "reason": example}[k.value])
		}
	}
	if err := r.setValue(k, value); err != nil {
		return r, err
	}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case !ok || value == "":
			return r, fmt.Errorf("%q is not key=value", word)
		case seen[key]:
			return r, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := r.set(key, value); err != nil {
			return r, err
		}
	}
	return r, nil
}

// setValue sets the value of the kind.
func (r *Rule) setValue(k kind, value string) (err error) {
	switch k.value {
	case "code", "reason", "conflict":
		r.Code = value
	case "duration":
		err = duration(string(k.name), value, &r.Duration)
	case "number":
		if value != "" {
			err = number(string(k.name), value, &r.Call)
		}
	}
	return err
}

func (r *Rule) set(key, value string) error {
	for _, f := range fields {
		if f.word == key {
			*f.rule(r) = value
			return nil
		}
	}
	switch key {
	case "p":
		p, err := strconv.ParseFloat(value, 64)
		if err != nil || !(p > 0 && p <= 1) {
			return fmt.Errorf("p=%s is no probability: more than 0, at most 1", value)
		}
		r.Probability = p
	case "nth":
		return number(key, value, &r.Nth)
	case "count":
		return number(key, value, &r.Count)
	case "status":
		return number(key, value, &r.Status)
	case "every":
		return duration(key, value, &r.Every)
	case "after":
		return duration(key, value, &r.After)
	case "for":
		return duration(key, value, &r.For)
	default:
		k, _ := kindOf(r.Kind)
		words := append(wordsOf(k.moment), "p", "nth", "count", "every", "after", "for")
		return fmt.Errorf("%q is not known: %s takes %s", key, r.Kind, strings.Join(words, ", "))
	}
	return nil
}

func number(key, value string, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("%s=%s is no number from 1 on", key, value)
	}
	*to = n
	return nil
}

func duration(key, value string, to *time.Duration) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return fmt.Errorf("%s=%s is no duration such as 500ms, 2s or 5m", key, value)
	}
	*to = d
	return nil
}

// split splits a text at spaces outside double quotes.
func split(text string) (words []string, err error) {
	var word strings.Builder
	quoted, begun := false, false
	for _, c := range text {
		switch {
		case c == '"':
			quoted, begun = !quoted, true
		case !quoted && strings.ContainsRune(" \t\r\n", c):
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	if quoted {
		return nil, errors.New("a quotation does not end")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// String returns the rule in the syntax of Parse.
func (r Rule) String() string {
	words := []string{string(r.Kind)}
	switch k, _ := kindOf(r.Kind); {
	case k.value == "duration":
		words[0] += "=" + r.Duration.String()
	case r.Code != "":
		words[0] += "=" + r.Code
	case r.Call != 0:
		words[0] += "=" + strconv.Itoa(r.Call)
	}
	add := func(key, value string, set bool) {
		if !set {
			return
		}
		if strings.ContainsAny(value, " \t\r\n") {
			value = `"` + value + `"`
		}
		words = append(words, key+"="+value)
	}
	for _, f := range fields {
		value := *f.rule(&r)
		add(f.word, value, value != "")
	}
	add("status", strconv.Itoa(r.Status), r.Status != 0)
	add("p", strconv.FormatFloat(r.Probability, 'g', -1, 64), r.Probability != 0)
	add("nth", strconv.Itoa(r.Nth), r.Nth != 0)
	add("count", strconv.Itoa(r.Count), r.Count != 0)
	add("every", r.Every.String(), r.Every != 0)
	add("after", r.After.String(), r.After != 0)
	add("for", r.For.String(), r.For != 0)
	return strings.Join(slices.Clip(words), " ")
}
