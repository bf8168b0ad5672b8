package main

// The status of rollouts: a document that drover writes, and that `drover rollout status -o json` prints.

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
)

// output is the name of the files of the status.
const output = "rollout-status"

// valuesOf are the values of the types of the status that are one word.
var valuesOf = map[reflect.Type][]string{
	reflect.TypeFor[rollout.State]():  textsOf(rollout.States()...),
	reflect.TypeFor[rollout.Reason](): reasons(),
	reflect.TypeFor[rollout.RunState](): textsOf(rollout.Running, rollout.Paused, rollout.Halted, rollout.RollingBack, rollout.Done,
		rollout.Aborted, rollout.Superseded),
	reflect.TypeFor[rollout.HaltCause]():     textsOf(rollout.HaltFailures, rollout.HaltAlarm, rollout.HaltRejected, rollout.HaltRollback),
	reflect.TypeFor[rollout.RollbackState](): textsOf(rollout.RollbackActive, rollout.RollbackDone),
}

func textsOf[T ~string](list ...T) (all []string) {
	for _, v := range list {
		all = append(all, string(v))
	}
	return all
}

// reasons are the reasons of all states, each once.
func reasons() (all []string) {
	seen := map[rollout.Reason]bool{}
	for _, state := range rollout.States() {
		for _, reason := range rollout.Reasons(state) {
			if !seen[reason] {
				seen[reason] = true
				all = append(all, string(reason))
			}
		}
	}
	return all
}

// outputValue returns the schema of a type that only outputs have; ok is false for other types.
func (s *schemas) outputValue(t reflect.Type) (o object, ok bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}, true
	case valuesOf[t] != nil:
		return object{{"type", "string"}, {"enum", valuesOf[t]}}, true
	case t.Kind() == reflect.Int64:
		return object{{"type", "integer"}}, true
	case t.Kind() == reflect.Map && t.Elem().Kind() != reflect.String && t.Elem().Kind() != reflect.Interface:
		o = object{{"type", "object"}}
		if valuesOf[t.Key()] != nil {
			o.set("propertyNames", object{{"enum", valuesOf[t.Key()]}})
		}
		o.set("additionalProperties", s.value(t.Elem(), api.Rules{}))
		return o, true
	}
	return nil, false
}

// outputType names a type that only outputs have.
func outputType(t reflect.Type) (name string, object reflect.Type, ok bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time", nil, true
	case valuesOf[t] != nil:
		return "one of " + quoteAll(valuesOf[t]), nil, true
	case t.Kind() == reflect.Int64:
		return "whole number", nil, true
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Int:
		return "map of whole numbers", nil, true
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return "map of objects", t.Elem(), true
	}
	return "", nil, false
}

// generateStatus returns the schema and the page of the status, by the name of the file.
func generateStatus(source string) (map[string][]byte, error) {
	docs, err := readComments(source)
	if err != nil {
		return nil, err
	}
	kind := reflect.TypeFor[rollout.Status]()
	schema, err := schemaOf(kind, output, docs)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from shared/rollout by go run ./cmd/reference. -->\n\n# RolloutStatus\n\n%s\n\n", docs[kind.Name()])
	fmt.Fprintf(&b, "drover writes it to `status/rollouts/<name>.json` in the state bucket. `drover rollout status <name> -o json` prints\n"+
		"it. The same as [JSON Schema](%s.schema.json). [Fleets](../fleet.md#states-and-reasons) explains states and reasons.\n", output)
	section(&b, kind, "", api.Rules{}, docs, nil)
	return map[string][]byte{output + ".schema.json": schema, output + ".md": b.Bytes()}, nil
}
