package cloudwatch

// Log groups, streams and events.

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

type group struct {
	name          string
	created       time.Time
	retentionDays int
	key           string
	tags          map[string]string
	streams       map[string]*stream
}

type stream struct {
	name    string
	created time.Time
	events  []logEvent
}

type logEvent struct {
	at      time.Time
	message string
}

// maxEvents limits the events of a stream. The oldest are dropped.
const maxEvents = 50_000

// WriteLog appends a line to a stream, and creates the stream if needed. A line in the Embedded Metric Format also adds metrics. If the
// group does not exist, the line is lost.
func (s *Service) WriteLog(group, stream, line string) {
	now := s.clock.Now()
	s.mu.Lock()
	g, ok := s.groups[group]
	if !ok {
		s.mu.Unlock()
		return
	}
	st := g.stream(stream, now)
	st.events = append(st.events, logEvent{now, line})
	if len(st.events) > maxEvents+maxEvents/10 {
		st.events = slices.Clone(st.events[len(st.events)-maxEvents:])
	}
	s.mu.Unlock()
	if s.ingest(line) {
		s.evaluate(context.Background())
	}
}

// EnsureLogGroup creates a group if it does not exist.
func (s *Service) EnsureLogGroup(name string) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(name, now)
}

func (s *Service) group(name string, now time.Time) *group {
	g, ok := s.groups[name]
	if !ok {
		g = &group{name: name, created: now, streams: map[string]*stream{}}
		s.groups[name] = g
	}
	return g
}

func (g *group) stream(name string, now time.Time) *stream {
	st, ok := g.streams[name]
	if !ok {
		st = &stream{name: name, created: now}
		g.streams[name] = st
	}
	return st
}

// within returns the events of [start, end]. nil means no limit.
func (st *stream) within(start, end *int64) []logEvent {
	i, j := 0, len(st.events)
	if start != nil {
		i = sort.Search(len(st.events), func(i int) bool { return st.events[i].at.UnixMilli() >= *start })
	}
	if end != nil {
		j = sort.Search(len(st.events), func(i int) bool { return st.events[i].at.UnixMilli() >= *end })
	}
	return st.events[i:max(i, j)]
}

// terms is a filter pattern of words: all of them, any of those with ?, none of those with -.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForLogEvents.html
type terms struct{ all, any, none []string }

func parseTerms(pattern string) (t terms, err error) {
	rest := strings.TrimSpace(pattern)
	if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "%") {
		return t, wire.Unsupported("logs", "filter patterns other than terms, such as "+pattern)
	}
	for rest != "" {
		list := &t.all
		switch rest[0] {
		case '?':
			list, rest = &t.any, rest[1:]
		case '-':
			list, rest = &t.none, rest[1:]
		}
		var word string
		if strings.HasPrefix(rest, `"`) {
			end := strings.Index(rest[1:], `"`)
			if end < 0 {
				return t, wire.Errorf("InvalidParameterException", "Invalid filter pattern: a quote is not closed")
			}
			word, rest = rest[1:1+end], rest[end+2:]
		} else {
			word, rest, _ = strings.Cut(rest, " ")
		}
		if word != "" {
			*list = append(*list, word)
		}
		rest = strings.TrimSpace(rest)
	}
	return t, nil
}

func (t terms) match(line string) bool {
	in := func(word string) bool { return strings.Contains(line, word) }
	return !slices.ContainsFunc(t.all, func(w string) bool { return !in(w) }) && !slices.ContainsFunc(t.none, in) &&
		(len(t.any) == 0 || slices.ContainsFunc(t.any, in))
}
