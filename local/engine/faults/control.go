package faults

// The control API adds and removes rules while the account runs. See docs/faults.md.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Path of the control API. A bucket cannot have this name.
const Path = "/_drover/faults"

// maxRules limits a request to the control API, in bytes.
const maxRules = 64 << 10

// State is the answer of the control API.
type State struct {
	Seed uint64 `json:"seed"`
	// Rules in effect or over. Struck counts the strikes by kind, including those of removed rules.
	Rules  []RuleStatus `json:"rules"`
	Struck map[Kind]int `json:"struck"`
}

// Control serves the control API of an engine to this machine only:
//
//	GET    /_drover/faults       returns the rules, with the number of strikes of each
//	POST   /_drover/faults       adds the rules of the body, one a line, all or none
//	PUT    /_drover/faults       replaces all rules; with ?seed=N also restarts the engine with that seed
//	DELETE /_drover/faults       removes all rules
//	DELETE /_drover/faults/{id}  removes one rule
//
// Each answers the new State, or an error in plain text.
func Control(e *Engine, now func() time.Time) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(State{Seed: e.Seed(), Rules: e.List(now()), Struck: e.Struck()})
	}
	add := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRules))
		if err == nil {
			err = e.put(now(), string(body), r)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w)
	}
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	mux.HandleFunc("POST "+Path, add)
	mux.HandleFunc("PUT "+Path, add)
	mux.HandleFunc("DELETE "+Path, func(w http.ResponseWriter, _ *http.Request) { e.Clear(); answer(w) })
	mux.HandleFunc("DELETE "+Path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil || !e.Remove(id) {
			http.Error(w, fmt.Sprintf("there is no rule %q", r.PathValue("id")), http.StatusNotFound)
			return
		}
		answer(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r) {
			http.Error(w, "faults are controlled from this machine only", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// put adds the rules of a request's body, all or none.
func (e *Engine) put(now time.Time, text string, r *http.Request) error {
	rules, err := parseLines(text)
	if err != nil {
		return err
	}
	seed := r.URL.Query().Get("seed")
	switch number, err := strconv.ParseUint(seed, 10, 64); {
	case seed != "" && (err != nil || r.Method != http.MethodPut):
		return fmt.Errorf("seed=%s: a number, and only with PUT", seed)
	case seed != "":
		e.Reset(number)
	case r.Method == http.MethodPut:
		e.Clear()
	}
	for _, rule := range rules {
		if _, err := e.Add(now, rule); err != nil {
			return err
		}
	}
	return nil
}

func parseLines(text string) (rules []Rule, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r, err := Parse(line)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return nil, errors.New("no rules: the body has one a line")
	}
	return rules, nil
}

// local reports whether a request comes from this machine and addresses it by its own name. A web page whose domain resolves
// to this machine is rejected.
func local(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !net.ParseIP(from).IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
