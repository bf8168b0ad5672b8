package asl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Machine is a valid definition.
type Machine struct {
	Comment string
	flow
	// timeout of a whole execution; zero means none.
	timeout time.Duration
}

// flow is a set of states with a first state: the machine itself, a branch of a Parallel, or the item processor of a
// Map.
type flow struct {
	startAt string
	states  map[string]*state
}

// state is a state with compiled templates. Only the fields of its type are set.
type state struct {
	name, kind string
	next       string // empty at the end of the flow
	output     *template
	assign     []binding

	// Task
	resource  Resource
	arguments *template // also Parallel
	timeout   *template
	heartbeat *template

	retry []retrier
	catch []catcher

	choices []choice
	// defaultNext is a Choice's Default, or empty.
	defaultNext string

	seconds, timestamp *template // Wait
	err, cause         *template // Fail

	branches []flow // Parallel

	processor      flow // Map
	items          *template
	itemSelector   *template
	maxConcurrency *template
}

type choice struct {
	condition *template
	next      string
	output    *template
	assign    []binding
}

type retrier struct {
	errors      []string
	interval    time.Duration
	maxAttempts int
	backoff     float64
	maxDelay    time.Duration // zero: no limit
	jitter      bool
}

type catcher struct {
	errors []string
	next   string
	output *template
	assign []binding
}

// Resource is the parsed ARN of a Task's resource.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html
type Resource struct {
	// ARN as written.
	ARN string
	// Service and Action such as "lambda" and "invoke", or "aws-sdk:autoscaling" and "completeLifecycleAction".
	Service, Action string
	// Token reports whether the task waits for an answer to its token (.waitForTaskToken).
	Token bool
	// Job reports whether the task waits for the job that it started and gets the job's output as JSON (.sync:2).
	Job bool
}

// InvalidDefinition lists the problems of a definition, each with its location.
type InvalidDefinition []string

func (e InvalidDefinition) Error() string { return strings.Join(e, "; ") }

// Parse reads a definition. It rejects what Step Functions rejects and what this interpreter does not support. The error
// is an InvalidDefinition. Machines are immutable, so a process parses each definition once for all its accounts.
func Parse(definition []byte) (*Machine, error) {
	if m, ok := parsedMachines.Load(string(definition)); ok {
		return m.(*Machine), nil
	}
	p := &parser{names: map[string]string{}}
	m := p.machine(definition)
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	parsedMachines.Store(string(definition), m)
	return m, nil
}

// parsedMachines caches machines by definition.
var parsedMachines sync.Map

// Resources returns the resources of all Task states, sorted by ARN.
func (m *Machine) Resources() []Resource {
	var all []Resource
	seen := map[string]bool{}
	m.walk(func(s *state) {
		if s.kind == "Task" && !seen[s.resource.ARN] {
			seen[s.resource.ARN] = true
			all = append(all, s.resource)
		}
	})
	sort.Slice(all, func(i, j int) bool { return all[i].ARN < all[j].ARN })
	return all
}

func (f flow) walk(visit func(*state)) {
	for _, s := range f.states {
		visit(s)
		for _, b := range s.branches {
			b.walk(visit)
		}
		s.processor.walk(visit)
	}
}

// Fields by state type, for JSONata. https://docs.aws.amazon.com/step-functions/latest/dg/workflow-states.html
var (
	commonFields = []string{"Type", "Comment", "QueryLanguage"}
	fields       = map[string][]string{
		"Task":     {"Resource", "Arguments", "Output", "Assign", "TimeoutSeconds", "HeartbeatSeconds", "Retry", "Catch", "Next", "End"},
		"Choice":   {"Choices", "Default", "Output", "Assign"},
		"Pass":     {"Output", "Assign", "Next", "End"},
		"Wait":     {"Seconds", "Timestamp", "Output", "Assign", "Next", "End"},
		"Succeed":  {"Output"},
		"Fail":     {"Error", "Cause"},
		"Parallel": {"Branches", "Arguments", "Output", "Assign", "Retry", "Catch", "Next", "End"},
		"Map":      {"Items", "ItemSelector", "ItemProcessor", "MaxConcurrency", "Output", "Assign", "Retry", "Catch", "Next", "End"},
	}
	// distributedFields belong to a distributed Map.
	distributedFields = []string{"ItemReader", "ItemBatcher", "ResultWriter", "Label", "ToleratedFailureCount", "ToleratedFailurePercentage"}
	// jsonPathFields exist only with the query language JSONPath.
	jsonPathFields = []string{
		"InputPath", "OutputPath", "ResultPath", "Parameters", "ResultSelector", "Result", "ItemsPath", "MaxConcurrencyPath",
		"TimeoutSecondsPath", "HeartbeatSecondsPath", "SecondsPath", "TimestampPath", "ErrorPath", "CausePath", "Variable", "Iterator",
	}
)

type object map[string]json.RawMessage

// parser collects all problems of a definition.
type parser struct {
	problems InvalidDefinition
	names    map[string]string // state name → location of its first state
}

func (p *parser) fail(at, format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...)+" at "+at)
}

func (p *parser) machine(definition []byte) *Machine {
	o, ok := p.object(definition, "/")
	if !ok {
		return nil
	}
	p.rejectOthers(o, "", "Comment", "QueryLanguage", "StartAt", "States", "TimeoutSeconds", "Version")
	var language, version string
	p.decode(o, "", "QueryLanguage", &language)
	p.decode(o, "", "Version", &version)
	if language != "JSONata" {
		p.fail("/QueryLanguage", "QueryLanguage %q: only JSONata is supported by the local account", cmpOr(language, "JSONPath"))
		return nil
	}
	if version != "" && version != "1.0" {
		p.fail("/Version", "Version %q is not 1.0", version)
	}
	m := &Machine{}
	p.decode(o, "", "Comment", &m.Comment)
	var seconds int64
	p.decode(o, "", "TimeoutSeconds", &seconds)
	if _, set := o["TimeoutSeconds"]; set && (seconds < 1 || seconds > maxSeconds) {
		p.fail("/TimeoutSeconds", "TimeoutSeconds must be between 1 and %d", maxSeconds)
	}
	m.timeout = time.Duration(seconds) * time.Second
	m.flow = p.flow(o, "", nil)
	return m
}

// flow reads StartAt and States. outer are the variables that enclosing flows assign.
func (p *parser) flow(o object, at string, outer map[string]bool) flow {
	f := flow{states: map[string]*state{}}
	p.require(o, at, "StartAt", "States")
	p.decode(o, at, "StartAt", &f.startAt)
	states, ok := p.object(o["States"], at+"/States")
	if !ok {
		return f
	}
	objects := map[string]object{}
	variables := map[string]bool{}
	for v := range outer {
		variables[v] = true
	}
	for _, name := range sortedKeys(states) {
		here := at + "/States/" + name
		so, ok := p.object(states[name], here)
		if !ok {
			continue
		}
		if n := utf8.RuneCountInString(name); n < 1 || n > 80 {
			p.fail(here, "a state's name has 1 to 80 characters")
		}
		if first, seen := p.names[name]; seen {
			p.fail(here, "State name %q is already used at %s", name, first)
		}
		p.names[name] = here
		objects[name] = so
		p.assignVariables(so, here, variables, outer)
	}
	for _, name := range sortedKeys(objects) {
		f.states[name] = p.state(name, objects[name], at+"/States/"+name, variables)
	}
	p.reachable(f, at)
	return f
}

// assignVariables records the variables that a state assigns. It rejects one that an enclosing flow assigns too: inner flows
// may read outer variables but not write them.
// https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html
func (p *parser) assignVariables(o object, at string, variables, outer map[string]bool) {
	note := func(raw json.RawMessage, at string) {
		var names map[string]json.RawMessage
		if json.Unmarshal(raw, &names) != nil {
			return // reported when the state is read
		}
		for n := range names {
			if outer[n] {
				p.fail(at, "Variable %q belongs to an enclosing flow and cannot be assigned here", n)
			}
			variables[n] = true
		}
	}
	note(o["Assign"], at+"/Assign")
	for _, list := range []string{"Choices", "Catch"} {
		var entries []object
		if json.Unmarshal(o[list], &entries) != nil {
			continue
		}
		for i, e := range entries {
			note(e["Assign"], fmt.Sprintf("%s/%s[%d]/Assign", at, list, i))
		}
	}
}

// reachable verifies that each transition has a target and that each state can be reached.
func (p *parser) reachable(f flow, at string) {
	seen := map[string]bool{}
	var visit func(name, from string)
	visit = func(name, from string) {
		s, ok := f.states[name]
		if !ok {
			p.fail(from, "MISSING_TRANSITION_TARGET: Missing target state %q", name)
			return
		}
		if seen[name] {
			return
		}
		seen[name] = true
		here := at + "/States/" + name
		if s.next != "" {
			visit(s.next, here+"/Next")
		}
		for i, c := range s.choices {
			visit(c.next, fmt.Sprintf("%s/Choices[%d]/Next", here, i))
		}
		if s.defaultNext != "" {
			visit(s.defaultNext, here+"/Default")
		}
		for i, c := range s.catch {
			visit(c.next, fmt.Sprintf("%s/Catch[%d]/Next", here, i))
		}
	}
	if f.startAt != "" {
		visit(f.startAt, at+"/StartAt")
	}
	for _, name := range sortedKeys(f.states) {
		if !seen[name] {
			p.fail(at+"/States/"+name, "MISSING_TRANSITION_TARGET: State %q is not reachable", name)
		}
	}
}

// object decodes a JSON object. It rejects duplicate keys and trailing data.
func (p *parser) object(raw json.RawMessage, at string) (object, bool) {
	if raw == nil {
		return nil, false // an absent field is reported by require
	}
	if !json.Valid(raw) {
		p.fail(at, "INVALID_JSON_DESCRIPTION: it is no JSON")
		return nil, false
	}
	if err := uniqueKeys(raw); err != nil {
		p.fail(at, "INVALID_JSON_DESCRIPTION: %v", err)
		return nil, false
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		p.fail(at, "SCHEMA_VALIDATION_FAILED: Value is not an object")
		return nil, false
	}
	return o, true
}

// uniqueKeys verifies that a JSON object has no duplicate key at its first level. Its members are verified when they are
// read.
func uniqueKeys(raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return err
		}
		if key := k.(string); seen[key] {
			return fmt.Errorf("duplicate key %q", key)
		} else {
			seen[key] = true
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) decode(o object, at, field string, into any) bool {
	raw, ok := o[field]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		p.fail(at+"/"+field, "SCHEMA_VALIDATION_FAILED: Value has the wrong type")
		return false
	}
	return true
}

func (p *parser) require(o object, at string, names ...string) {
	for _, n := range names {
		if _, ok := o[n]; !ok {
			p.fail(cmpOr(at, "/"), "SCHEMA_VALIDATION_FAILED: The field %q is required", n)
		}
	}
}

// rejectOthers rejects each field that is not in names.
func (p *parser) rejectOthers(o object, at string, names ...string) {
	for _, k := range sortedKeys(o) {
		switch {
		case slices.Contains(names, k):
		case slices.Contains(jsonPathFields, k):
			p.fail(at+"/"+k, "SCHEMA_VALIDATION_FAILED: The JSONPath field %q is not supported with QueryLanguage JSONata", k)
		case slices.Contains(distributedFields, k):
			p.fail(at+"/"+k, "The field %q belongs to a distributed Map, which is not supported by the local account", k)
		default:
			p.fail(at+"/"+k, "SCHEMA_VALIDATION_FAILED: The field %q is not supported", k)
		}
	}
}

// variableName reports whether a name is a Unicode identifier of at most 80 characters, except the reserved "states".
func variableName(n string) bool {
	for i, r := range n {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)) {
			return false
		}
	}
	return n != "" && n != "states" && utf8.RuneCountInString(n) <= 80
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
