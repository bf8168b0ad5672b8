package asl

// Reading of states, with a function for each kind of field.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// maxSeconds is the longest Wait and timeout, and the default timeout of a Task.
const maxSeconds = 99999999

func (p *parser) state(name string, o object, at string, outer map[string]bool) *state {
	s := &state{name: name}
	p.decode(o, at, "Type", &s.kind)
	names, ok := fields[s.kind]
	if !ok {
		p.fail(at+"/Type", "SCHEMA_VALIDATION_FAILED: %q is no type of state", s.kind)
		return s
	}
	var language string
	if p.decode(o, at, "QueryLanguage", &language) && language != "JSONata" {
		p.fail(at+"/QueryLanguage", "QueryLanguage %q: only JSONata is supported by the local account", language)
	}
	p.rejectOthers(o, at, append(names, commonFields...)...)
	s.output = p.template(o, at, "Output")
	s.assign = p.assign(o, at)

	switch s.kind {
	case "Task":
		p.require(o, at, "Resource")
		s.resource = p.resource(o, at)
		s.arguments = p.template(o, at, "Arguments")
		s.timeout = p.seconds(o, at, "TimeoutSeconds", 1)
		s.heartbeat = p.seconds(o, at, "HeartbeatSeconds", 1)
	case "Choice":
		p.choices(s, o, at)
	case "Wait":
		s.seconds = p.seconds(o, at, "Seconds", 0)
		s.timestamp = p.template(o, at, "Timestamp")
		if (s.seconds == nil) == (s.timestamp == nil) {
			p.fail(at, "SCHEMA_VALIDATION_FAILED: A Wait state has exactly one of Seconds and Timestamp")
		}
		if t := s.timestamp; t != nil && t.literal() {
			var text string
			if json.Unmarshal(t.raw, &text) != nil || !isTimestamp(text) {
				p.fail(at+"/Timestamp", "SCHEMA_VALIDATION_FAILED: Timestamp is not an RFC3339 timestamp")
			}
		}
	case "Fail":
		s.err = p.text(o, at, "Error")
		s.cause = p.text(o, at, "Cause")
	case "Parallel":
		s.arguments = p.template(o, at, "Arguments")
		var branches []json.RawMessage
		p.require(o, at, "Branches")
		p.decode(o, at, "Branches", &branches)
		for i, raw := range branches {
			here := fmt.Sprintf("%s/Branches[%d]", at, i)
			if b, ok := p.object(raw, here); ok {
				p.rejectOthers(b, here, "StartAt", "States", "Comment")
				s.branches = append(s.branches, p.flow(b, here, outer))
			}
		}
		if len(branches) == 0 {
			p.fail(at+"/Branches", "SCHEMA_VALIDATION_FAILED: A Parallel state has at least one branch")
		}
	case "Map":
		p.mapFields(s, o, at, outer)
	}
	if s.kind != "Choice" && s.kind != "Succeed" && s.kind != "Fail" {
		p.transition(s, o, at)
	}
	s.retry = p.retriers(o, at)
	s.catch = p.catchers(o, at)
	return s
}

func (p *parser) transition(s *state, o object, at string) {
	var end bool
	hasNext := p.decode(o, at, "Next", &s.next)
	p.decode(o, at, "End", &end)
	if hasNext == end {
		p.fail(at, `SCHEMA_VALIDATION_FAILED: A state has either "Next" or "End": true`)
	}
}

// resource parses an optimized or SDK integration. It rejects a function's own ARN, an activity and .sync without :2,
// which drover does not use.
func (p *parser) resource(o object, at string) Resource {
	var r Resource
	p.decode(o, at, "Resource", &r.ARN)
	parts := strings.SplitN(r.ARN, ":", 7)
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "states" || parts[3] != "" || parts[4] != "" {
		p.fail(at+"/Resource", "Resource %q: only arn:aws:states:::service:action is supported by the local account", r.ARN)
		return r
	}
	r.Service, r.Action = parts[5], parts[6]
	if r.Service == "aws-sdk" {
		service, action, ok := strings.Cut(r.Action, ":")
		if !ok {
			p.fail(at+"/Resource", "Resource %q names no action", r.ARN)
		}
		r.Service, r.Action = "aws-sdk:"+service, action
	}
	if action, pattern, ok := strings.Cut(r.Action, "."); ok {
		r.Action, r.Token, r.Job = action, pattern == "waitForTaskToken", pattern == "sync:2"
		if !r.Token && !r.Job {
			p.fail(at+"/Resource", "Resource %q: .%s is not supported by the local account", r.ARN, pattern)
		}
	}
	return r
}

func (p *parser) choices(s *state, o object, at string) {
	var rules []object
	p.require(o, at, "Choices")
	p.decode(o, at, "Choices", &rules)
	p.decode(o, at, "Default", &s.defaultNext)
	if len(rules) == 0 {
		p.fail(at+"/Choices", "SCHEMA_VALIDATION_FAILED: A Choice state has at least one rule")
	}
	for i, r := range rules {
		here := fmt.Sprintf("%s/Choices[%d]", at, i)
		p.rejectOthers(r, here, "Condition", "Next", "Output", "Assign", "Comment")
		p.require(r, here, "Condition", "Next")
		c := choice{condition: p.template(r, here, "Condition"), output: p.template(r, here, "Output"), assign: p.assign(r, here)}
		p.decode(r, here, "Next", &c.next)
		if t := c.condition; t != nil && t.literal() && string(t.raw) != "true" && string(t.raw) != "false" {
			p.fail(here+"/Condition", "SCHEMA_VALIDATION_FAILED: Condition is neither a JSONata expression nor a boolean")
		}
		s.choices = append(s.choices, c)
	}
}

func (p *parser) mapFields(s *state, o object, at string, outer map[string]bool) {
	s.items = p.template(o, at, "Items")
	if t := s.items; t != nil && t.expr == nil && t.array == nil && (len(t.raw) == 0 || t.raw[0] != '[') {
		p.fail(at+"/Items", "Items that are neither an array nor an expression are not supported by the local account")
	}
	s.itemSelector = p.template(o, at, "ItemSelector")
	s.maxConcurrency = p.seconds(o, at, "MaxConcurrency", 0)
	p.require(o, at, "ItemProcessor")
	ip, ok := p.object(o["ItemProcessor"], at+"/ItemProcessor")
	if !ok {
		return
	}
	here := at + "/ItemProcessor"
	p.rejectOthers(ip, here, "ProcessorConfig", "StartAt", "States", "Comment")
	config := map[string]string{}
	p.decode(ip, here, "ProcessorConfig", &config)
	if mode := config["Mode"]; mode != "" && mode != "INLINE" || config["ExecutionType"] != "" {
		p.fail(here+"/ProcessorConfig", "Map in mode %s is not supported by the local account, only INLINE", mode)
	}
	s.processor = p.flow(ip, here, outer)
}

func (p *parser) retriers(o object, at string) []retrier {
	var entries []object
	p.decode(o, at, "Retry", &entries)
	var all []retrier
	for i, e := range entries {
		here := fmt.Sprintf("%s/Retry[%d]", at, i)
		p.rejectOthers(e, here, "ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy", "Comment")
		interval, attempts, backoff, maxDelay, jitter := int64(1), int64(3), 2.0, int64(0), "NONE"
		p.decode(e, here, "IntervalSeconds", &interval)
		p.decode(e, here, "MaxAttempts", &attempts)
		p.decode(e, here, "BackoffRate", &backoff)
		hasMax := p.decode(e, here, "MaxDelaySeconds", &maxDelay)
		p.decode(e, here, "JitterStrategy", &jitter)
		switch {
		case interval < 1 || interval > maxSeconds:
			p.fail(here+"/IntervalSeconds", "IntervalSeconds must be between 1 and %d", maxSeconds)
		case attempts < 0 || attempts > maxSeconds:
			p.fail(here+"/MaxAttempts", "MaxAttempts must be between 0 and %d", maxSeconds)
		case backoff < 1:
			p.fail(here+"/BackoffRate", "BackoffRate must be at least 1.0")
		case hasMax && (maxDelay <= interval || maxDelay >= 31622400):
			p.fail(here+"/MaxDelaySeconds", "MaxDelaySeconds must be greater than IntervalSeconds and less than 31622400")
		case jitter != "NONE" && jitter != "FULL":
			p.fail(here+"/JitterStrategy", "JitterStrategy %q is neither FULL nor NONE", jitter)
		}
		all = append(all, retrier{
			errors: p.errorEquals(e, here, i == len(entries)-1), interval: time.Duration(interval) * time.Second,
			maxAttempts: int(attempts), backoff: backoff, maxDelay: time.Duration(maxDelay) * time.Second, jitter: jitter == "FULL",
		})
	}
	return all
}

func (p *parser) catchers(o object, at string) []catcher {
	var entries []object
	p.decode(o, at, "Catch", &entries)
	var all []catcher
	for i, e := range entries {
		here := fmt.Sprintf("%s/Catch[%d]", at, i)
		p.rejectOthers(e, here, "ErrorEquals", "Next", "Output", "Assign", "Comment")
		p.require(e, here, "Next")
		c := catcher{errors: p.errorEquals(e, here, i == len(entries)-1), output: p.template(e, here, "Output"), assign: p.assign(e, here)}
		p.decode(e, here, "Next", &c.next)
		all = append(all, c)
	}
	return all
}

// knownErrors are the reserved names that begin with "States.".
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html#error-handling-error-representation
var knownErrors = map[string]bool{
	errAll: true, errBranchFailed: true, errDataLimit: true, errHeartbeat: true, errNoChoice: true, errPermissions: true, errQuery: true,
	errRuntime: true, errTaskFailed: true, errTimeout: true, "States.ExceedToleratedFailureThreshold": true, "States.IntrinsicFailure": true,
	"States.ItemReaderFailed": true, "States.ParameterPathFailure": true, "States.ResultPathMatchFailure": true,
	"States.ResultWriterFailed": true,
}

func (p *parser) errorEquals(e object, at string, last bool) []string {
	var names []string
	p.require(e, at, "ErrorEquals")
	p.decode(e, at, "ErrorEquals", &names)
	if len(names) == 0 {
		p.fail(at+"/ErrorEquals", "SCHEMA_VALIDATION_FAILED: ErrorEquals has at least one error name")
	}
	for _, n := range names {
		if strings.HasPrefix(n, "States.") && !knownErrors[n] {
			p.fail(at+"/ErrorEquals", "SCHEMA_VALIDATION_FAILED: %q is no reserved error name", n)
		}
		if n == errAll && (len(names) > 1 || !last) {
			p.fail(at+"/ErrorEquals", "SCHEMA_VALIDATION_FAILED: States.ALL must appear alone and in the last entry")
		}
	}
	return names
}

// seconds reads an integer field that may be an expression.
func (p *parser) seconds(o object, at, field string, least int64) *template {
	t := p.template(o, at, field)
	if t == nil || t.expr != nil {
		return t
	}
	var n int64
	if json.Unmarshal(t.raw, &n) != nil || n < least || n > maxSeconds {
		p.fail(at+"/"+field, "SCHEMA_VALIDATION_FAILED: %s is neither an expression nor an integer between %d and %d", field, least, maxSeconds)
	}
	return t
}

// text reads a string field that may be an expression.
func (p *parser) text(o object, at, field string) *template {
	t := p.template(o, at, field)
	if t != nil && t.expr == nil && (len(t.raw) == 0 || t.raw[0] != '"') {
		p.fail(at+"/"+field, "SCHEMA_VALIDATION_FAILED: %s is not a string", field)
	}
	return t
}

func isTimestamp(s string) bool {
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}
