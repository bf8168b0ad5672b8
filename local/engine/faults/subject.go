package faults

import "encoding/json"

// Subject is what a name in a call or an event belongs to.
type Subject struct{ Cluster, Stack, Pool string }

// SubjectOf finds the subject of a name: of a stack, a group or an object, or of the ARN of one.
type SubjectOf func(name string) (of Subject, found bool)

// About returns the moment with the subject of a name. A name without a subject is ignored.
func (m Moment) About(name string, subject SubjectOf) Moment {
	of, found := subject(name)
	if !found {
		return m
	}
	m.Cluster = of.Cluster
	if of.Stack != "" {
		m.Stack = of.Stack
	}
	if of.Pool != "" {
		m.Pool = of.Pool
	}
	return m
}

// In returns the moment with what a document names: an event's detail, or an execution's input.
func (m Moment) In(document []byte, subject SubjectOf) Moment {
	var content struct {
		Cluster string               `json:"cluster"`
		Stack   string               `json:"stack-id"`
		Group   string               `json:"AutoScalingGroupName"`
		Object  struct{ Key string } `json:"object"`
		Detail  json.RawMessage      `json:"detail"`
	}
	if json.Unmarshal(document, &content) != nil {
		return m
	}
	if len(content.Detail) > 0 {
		m = m.In(content.Detail, subject)
	}
	for _, name := range []string{content.Object.Key, content.Group, content.Stack} {
		m = m.About(name, subject)
	}
	if content.Cluster != "" {
		m.Cluster = content.Cluster
	}
	return m
}
