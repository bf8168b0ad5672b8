package lambda

// Log streams of environments: the function's own lines and those that Lambda adds.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
)

// Report describes one invocation that ended.
type Report struct {
	Function, RequestID string
	// A Cold start took Init before the Duration.
	Cold           bool
	Init, Duration time.Duration
	// Memory is the environment's peak so far, in MB.
	Memory int
	Failed bool
	// Payload is the event. Answer is the function's result, or its errorType and errorMessage.
	Payload, Answer []byte
	// Log is the last part of the log, at most 4 KB.
	Log string
}

// tailSize is the size of the log that an invocation with LogType Tail returns, in bytes.
const tailSize = 4096

// rssPerMB is the number of getrusage units in a megabyte.
var rssPerMB = map[bool]int{true: 1 << 20, false: 1 << 10}[runtime.GOOS == "darwin"]

// logger writes the log stream of one environment.
type logger struct {
	service *Service
	group   string
	stream  string
	json    bool
	// write is false if the role may not write logs. Lines are then dropped, as on AWS.
	write bool
	// createGroup is whether the role may create the log group. Without it, lines for a group that does not exist are lost.
	createGroup bool

	mu   sync.Mutex
	last strings.Builder
}

func newLogger(s *Service, c settings, caller iam.Caller) *logger {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	l := &logger{service: s, group: c.LoggingConfig.LogGroup, json: c.LoggingConfig.LogFormat == "JSON"}
	l.stream = s.config.Clock.Now().Format("2006/01/02") + "/[$LATEST]" + hex.EncodeToString(id)
	arn := fmt.Sprintf("arn:%s:logs:%s:%s:log-group:%s:log-stream:%s", s.config.Partition, s.config.Region, s.config.Account,
		l.group, l.stream)
	err := caller.Authorize("logs:PutLogEvents", arn, nil)
	if err == nil {
		err = caller.Authorize("logs:CreateLogStream", strings.SplitAfter(arn, ":log-stream:")[0]+l.stream, nil)
	}
	if err != nil {
		warn(c.FunctionName, "the function has no logs: its role may not write them", err)
	}
	l.write = err == nil && s.config.Logs != nil
	l.createGroup = l.write && caller.Authorize("logs:CreateLogGroup", strings.TrimSuffix(arn, "log-stream:"+l.stream)+"*", nil) == nil
	return l
}

func (l *logger) line(text string) {
	l.mu.Lock()
	l.last.WriteString(text + "\n")
	if l.last.Len() > 4*tailSize { // limit the buffer
		tail := l.last.String()[l.last.Len()-tailSize:]
		l.last.Reset()
		l.last.WriteString(tail)
	}
	l.mu.Unlock()
	if l.createGroup {
		l.service.config.Logs.EnsureLogGroup(l.group)
	}
	if l.write {
		l.service.config.Logs.WriteLog(l.group, l.stream, text)
	}
}

// begin clears the lines of the previous invocation.
func (l *logger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.Reset()
}

func (l *logger) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.last.String()
	return s[max(0, len(s)-tailSize):]
}

// platform writes a line of Lambda's own as JSON.
// https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
func (l *logger) platform(kind string, record map[string]any) {
	raw, _ := json.Marshal(struct { // plain data
		Time   string         `json:"time"`
		Type   string         `json:"type"`
		Record map[string]any `json:"record"`
	}{l.service.config.Clock.Now().Format("2006-01-02T15:04:05.000Z"), kind, record})
	l.line(string(raw))
}

func (l *logger) start(id string) {
	if l.json {
		l.platform("platform.start", map[string]any{"requestId": id, "version": "$LATEST"})
		return
	}
	l.line("START RequestId: " + id + " Version: $LATEST")
}

func (l *logger) end(id string, r Report, memory int, status string) {
	ms := func(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Millisecond)*100) / 100 }
	billed := int(math.Ceil(ms(r.Init + r.Duration)))
	if l.json {
		metrics := map[string]any{"durationMs": ms(r.Duration), "billedDurationMs": billed, "memorySizeMB": memory, "maxMemoryUsedMB": r.Memory}
		if r.Cold {
			metrics["initDurationMs"] = ms(r.Init)
		}
		l.platform("platform.report", map[string]any{"requestId": id, "metrics": metrics, "status": status})
		return
	}
	l.line("END RequestId: " + id)
	text := fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %d ms\tMemory Size: %d MB\tMax Memory Used: %d MB\t", id,
		ms(r.Duration), billed, memory, r.Memory)
	if r.Cold {
		text += fmt.Sprintf("Init Duration: %.2f ms\t", ms(r.Init))
	}
	if status != "success" {
		text += "Status: " + status + "\t"
	}
	l.line(text)
}

// traceID returns an X-Ray trace header. No service receives the trace.
func traceID(c settings) string {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails
	sampled := 0
	if c.TracingConfig.Mode == "Active" {
		sampled = 1
	}
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=%d", time.Now().Unix(), hex.EncodeToString(id[:12]), hex.EncodeToString(id[12:]),
		sampled)
}
