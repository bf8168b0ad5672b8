package main

// The requests of the tools, counted at the clients. The API server's audit log would also record the requests of its controllers,
// which used an eighth of its time.

import (
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// requests of one trial.
type requests struct {
	mu    sync.Mutex
	total int
	// evictions are the responses to evictions, by status. 0 is no response.
	evictions map[int]int
}

func (r *requests) add(method, path string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if method == http.MethodPost && strings.HasSuffix(path, "/eviction") {
		r.evictions[status]++
	}
}

// totals returns the totals so far.
func (r *requests) totals() (total int, evictions map[int]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total, maps.Clone(r.evictions)
}

// through counts the requests of a client in this process. A watch is one request.
func (r *requests) through(next http.RoundTripper) http.RoundTripper { return counting{r, next} }

type counting struct {
	requests *requests
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(req)
	status := 0
	if err == nil {
		status = res.StatusCode
	}
	c.requests.add(req.Method, req.URL.Path, status)
	return res, err
}

// responseLine matches the line that kubectl logs for each request at the given verbosity.
var responseLine = regexp.MustCompile(`^I.*\] "Response" verb="([A-Z]+)" url="([^"?]*)[^"]*" status="(\d*)`)

const verbosity = "6"

// klogPrefix matches the beginning of a line of Kubernetes' log: its level, month and day.
var klogPrefix = regexp.MustCompile(`^[IWEF]\d{4} `)

// read counts the requests that kubectl logged, and returns its last message to the user.
func (r *requests) read(stderr string) (message string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if m := responseLine.FindStringSubmatch(line); m != nil {
			status, _ := strconv.Atoi(m[3]) // digits, or none
			r.add(m[1], m[2], status)
		} else if line != "" && !klogPrefix.MatchString(line) {
			message = line
		}
	}
	return message
}
