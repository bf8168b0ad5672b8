package main

// What contestants ask the API server, counted where they ask. Its audit log would have all of it in one place, but then it
// writes one for whatever its controllers ask too: that took an eighth of its time.

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
	// evictions are the answers to evictions, by status; 0 is no answer.
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

// counted is what was added so far.
func (r *requests) counted() (total int, evictions map[int]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total, maps.Clone(r.evictions)
}

// through counts what goes through a client of this process. A watch is one request.
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

// answered is what kubectl says of each request when it is as verbose as verbosity: not more than a line.
var answered = regexp.MustCompile(`^I.*\] "Response" verb="([A-Z]+)" url="([^"?]*)[^"]*" status="(\d*)`)

const verbosity = "6"

// klogged is the beginning of a line of Kubernetes' log: its level and the month and day.
var klogged = regexp.MustCompile(`^[IWEF]\d{4} `)

// read counts what kubectl logged, and returns the last thing that it said to its user.
func (r *requests) read(stderr string) (said string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if m := answered.FindStringSubmatch(line); m != nil {
			status, _ := strconv.Atoi(m[3]) // digits, or none
			r.add(m[1], m[2], status)
		} else if line != "" && !klogged.MatchString(line) {
			said = line
		}
	}
	return said
}
