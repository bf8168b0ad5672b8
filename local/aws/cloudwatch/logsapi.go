package cloudwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

// LogsWire returns the API of CloudWatch Logs.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/Welcome.html
func (s *Service) LogsWire() *wire.Service {
	return &wire.Service{
		Name: "logs", Protocol: wire.JSON11, TargetPrefix: "Logs_20140328",
		Operations: map[string]wire.Operation{
			"DeleteLogGroup":      s.deleteLogGroup,
			"DescribeLogGroups":   s.describeLogGroups,
			"DescribeLogStreams":  s.describeLogStreams,
			"GetLogEvents":        s.getLogEvents,
			"FilterLogEvents":     s.filterLogEvents,
			"ListTagsForResource": s.listLogTags,
		},
	}
}

func (s *Service) groupARN(name string) string { return s.arn("logs", "log-group:"+name+":*") }

func (s *Service) describeLogGroups(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LogGroupNamePrefix, LogGroupNamePattern, NextToken string
		Limit                                              *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(s.arn("logs", "log-group:*")); err != nil {
		return nil, err
	}
	type shown struct {
		Name            string `json:"logGroupName"`
		Created         int64  `json:"creationTime"`
		RetentionInDays int    `json:"retentionInDays,omitempty"`
		ARN             string `json:"arn"`
		LogGroupARN     string `json:"logGroupArn"`
		KmsKeyID        string `json:"kmsKeyId,omitempty"`
		StoredBytes     int64  `json:"storedBytes"`
		Class           string `json:"logGroupClass"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.groups)), func(name string) bool {
		return !strings.HasPrefix(name, in.LogGroupNamePrefix) || !strings.Contains(strings.ToLower(name),
			strings.ToLower(in.LogGroupNamePattern))
	})
	names, next, err := page(names, in.NextToken, in.Limit, 50)
	if err != nil {
		return nil, err
	}
	out := struct {
		LogGroups []shown `json:"logGroups"`
		NextToken string  `json:"nextToken,omitempty"`
	}{NextToken: next}
	for _, name := range names {
		g := s.groups[name]
		size := int64(0)
		for _, st := range g.streams {
			for _, e := range st.events {
				size += int64(len(e.message)) + 26
			}
		}
		out.LogGroups = append(out.LogGroups, shown{
			name, g.created.UnixMilli(), g.retentionDays, s.groupARN(name), s.arn("logs", "log-group:"+name), g.key, size, "STANDARD",
		})
	}
	return out, nil
}

// page returns a page of a list from a token, which is an offset, and a limit.
func page[T any](list []T, token string, limit *int, greatest int) (part []T, next string, err error) {
	start := 0
	if token != "" {
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 {
			return nil, "", wire.Errorf("InvalidParameterException", "The specified nextToken is invalid.")
		}
		start = min(n, len(list))
	}
	end := start + greatest
	if limit != nil && *limit > 0 && *limit < greatest {
		end = start + *limit
	}
	if end < len(list) {
		return list[start:end], strconv.Itoa(end), nil
	}
	return list[start:], "", nil
}

// onGroup returns a log group by name or ARN, if the caller may perform the action on it. The caller holds the lock.
func (s *Service) onGroup(c *wire.Call, name, identifier string) (*group, error) {
	if name == "" {
		name = strings.TrimSuffix(strings.TrimPrefix(identifier, s.arn("logs", "log-group:")), ":*")
	}
	if err := c.Authorize(s.groupARN(name)); err != nil {
		return nil, err
	}
	g, ok := s.groups[name]
	if !ok {
		return nil, wire.Errorf("ResourceNotFoundException", "The specified log group does not exist.")
	}
	return g, nil
}

func (s *Service) deleteLogGroup(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ LogGroupName string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.onGroup(c, in.LogGroupName, ""); err != nil {
		return nil, err
	}
	delete(s.groups, in.LogGroupName)
	return struct{}{}, nil
}

func (s *Service) describeLogStreams(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LogGroupName, LogGroupIdentifier, LogStreamNamePrefix, OrderBy, NextToken string
		Descending                                                                bool
		Limit                                                                     *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.onGroup(c, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	type shown struct {
		Name    string `json:"logStreamName"`
		Created int64  `json:"creationTime"`
		First   int64  `json:"firstEventTimestamp,omitempty"`
		Last    int64  `json:"lastEventTimestamp,omitempty"`
		ARN     string `json:"arn"`
	}
	var all []shown
	for _, name := range slices.Sorted(maps.Keys(g.streams)) {
		if !strings.HasPrefix(name, in.LogStreamNamePrefix) {
			continue
		}
		st := g.streams[name]
		one := shown{Name: name, Created: st.created.UnixMilli(), ARN: s.arn("logs", "log-group:"+g.name+":log-stream:"+name)}
		if len(st.events) > 0 {
			one.First, one.Last = st.events[0].at.UnixMilli(), st.events[len(st.events)-1].at.UnixMilli()
		}
		all = append(all, one)
	}
	if in.OrderBy == "LastEventTime" {
		slices.SortStableFunc(all, func(a, b shown) int { return int(a.Last - b.Last) })
	}
	if in.Descending {
		slices.Reverse(all)
	}
	all, next, err := page(all, in.NextToken, in.Limit, 50)
	return struct {
		LogStreams []shown `json:"logStreams"`
		NextToken  string  `json:"nextToken,omitempty"`
	}{all, next}, err
}

func (s *Service) getLogEvents(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LogGroupName, LogGroupIdentifier, LogStreamName, NextToken string
		StartTime, EndTime                                         *int64
		StartFromHead                                              bool
		Limit                                                      *int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.onGroup(c, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	st, ok := g.streams[in.LogStreamName]
	if !ok {
		return nil, wire.Errorf("ResourceNotFoundException", "The specified log stream does not exist.")
	}
	events := st.within(in.StartTime, in.EndTime)
	limit := 10_000
	if in.Limit != nil && *in.Limit > 0 {
		limit = min(limit, *in.Limit)
	}
	// Tokens are f/ or b/ and an offset. An unchanged token means: no further events in its direction.
	start, end := 0, min(limit, len(events))
	if !in.StartFromHead {
		start, end = max(0, len(events)-limit), len(events)
	}
	if in.NextToken != "" {
		direction, number, _ := strings.Cut(in.NextToken, "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || direction != "f" && direction != "b" {
			return nil, wire.Errorf("InvalidParameterException", "The specified nextToken is invalid.")
		}
		n = min(n, len(events))
		if direction == "f" {
			start, end = n, min(n+limit, len(events))
		} else {
			start, end = max(0, n-limit), n
		}
	}
	type shown struct {
		Timestamp     int64  `json:"timestamp"`
		Message       string `json:"message"`
		IngestionTime int64  `json:"ingestionTime"`
	}
	out := struct {
		Events   []shown `json:"events"`
		Forward  string  `json:"nextForwardToken"`
		Backward string  `json:"nextBackwardToken"`
	}{Forward: fmt.Sprintf("f/%d", end), Backward: fmt.Sprintf("b/%d", start)}
	for _, e := range events[start:end] {
		out.Events = append(out.Events, shown{e.at.UnixMilli(), e.message, e.at.UnixMilli()})
	}
	return out, nil
}

// maxPage limits a page of FilterLogEvents, in bytes of log events.
const maxPage = 1 << 20

// filterLogEvents searches all streams of a group.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
func (s *Service) filterLogEvents(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		LogGroupName, LogGroupIdentifier, LogStreamNamePrefix, FilterPattern, NextToken string
		LogStreamNames                                                                  []string
		StartTime, EndTime                                                              *int64
		Limit                                                                           *int
		Interleaved                                                                     bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	filter, err := parseTerms(in.FilterPattern)
	if err != nil {
		return nil, err
	}
	end := in.EndTime
	if end != nil { // "events with a timestamp later than this time are not returned"
		end = new(*in.EndTime + 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.onGroup(c, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	type shown struct {
		Stream        string `json:"logStreamName"`
		Timestamp     int64  `json:"timestamp"`
		Message       string `json:"message"`
		IngestionTime int64  `json:"ingestionTime"`
		ID            string `json:"eventId"`
	}
	var found []shown
	for _, name := range slices.Sorted(maps.Keys(g.streams)) {
		if !strings.HasPrefix(name, in.LogStreamNamePrefix) || len(in.LogStreamNames) > 0 && !slices.Contains(in.LogStreamNames, name) {
			continue
		}
		for i, e := range g.streams[name].within(in.StartTime, end) {
			if filter.match(e.message) {
				found = append(found, shown{name, e.at.UnixMilli(), e.message, e.at.UnixMilli(), fmt.Sprintf("%s/%d/%d", name, e.at.UnixNano(), i)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b shown) int { return int(a.Timestamp - b.Timestamp) })
	found, next, err := page(found, in.NextToken, in.Limit, 10_000)
	size := 0
	for i, e := range found { // a page stays below maxPage and may have fewer events than its limit
		if size += len(e.Message); size > maxPage && i > 0 {
			start, _ := strconv.Atoi(in.NextToken) // page has parsed it
			found, next = found[:i], strconv.Itoa(start+i)
			break
		}
	}
	return struct {
		Events    []shown `json:"events"`
		NextToken string  `json:"nextToken,omitempty"`
	}{found, next}, err
}

func (s *Service) listLogTags(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ ResourceARN string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.onGroup(c, "", in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return struct {
		Tags map[string]string `json:"tags"`
	}{maps.Clone(g.tags)}, nil
}
