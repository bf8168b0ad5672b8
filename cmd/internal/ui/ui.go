// Package ui serves the page of drover ui on the loopback, and lists the files of a published copy. The page reads documents. It changes
// a cluster only by decisions on rollouts, which a published copy cannot make. Its files are built by `make ui` and embedded; see
// docs/adr/0038-ui-page-reads-static-documents.md and docs/adr/0040-the-page-makes-decisions.md.
package ui

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

//go:embed dist
var embeddedFiles embed.FS

// Files of the page, with their content types.
var contentTypes = map[string]string{
	"index.html": "text/html; charset=utf-8",
	"app.js":     "text/javascript; charset=utf-8",
	"app.css":    "text/css; charset=utf-8",
}

// ErrNotBuilt reports that the command was built without the page.
var ErrNotBuilt = errors.New("this command was built without the page: run `make build/drover`, which needs Node 20, and use that one")

// Paths of documents, in addition to those that the state bucket has.
const (
	// PagePath is what the page shows.
	PagePath = "page.json"
	// FleetPath has the rows of all clusters, and RolloutsPath those of all rollouts.
	FleetPath    = "status/fleet.json"
	RolloutsPath = "status/rollouts.json"
	// MeaningsPath explains the states and reasons of members.
	MeaningsPath = "meanings.json"
	// NodesPrefix is that of the pools and nodes of each cluster.
	NodesPrefix = "nodes/"
	// DecisionsPath accepts decisions.
	DecisionsPath = "decisions"
)

// Page says what the page shows.
type Page struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	// PublishedAt is when the copy was made. It is absent from the page that drover ui serves, which reads the account each time.
	PublishedAt time.Time `json:"publishedAt,omitzero"`
	// Decides reports whether the page may make decisions. A published copy may not.
	Decides bool `json:"decides,omitempty"`
}

// Source reads the documents of the page.
type Source interface {
	// Fleet returns the document of package overview.
	Fleet(ctx context.Context) ([]byte, error)
	// Cluster returns the status document of one cluster, or store.ErrNotFound.
	Cluster(ctx context.Context, name string) ([]byte, error)
	// Nodes returns the pools and nodes of one cluster as they are now, or store.ErrNotFound.
	Nodes(ctx context.Context, name string) ([]byte, error)
	// Rollouts returns a summary of each rollout, Rollout the status of one, and Plan a plan by its digest, or store.ErrNotFound.
	Rollouts(ctx context.Context) ([]byte, error)
	Rollout(ctx context.Context, name string) ([]byte, error)
	Plan(ctx context.Context, digest string) ([]byte, error)
	// Meanings explains the states and reasons of members.
	Meanings(ctx context.Context) ([]byte, error)
	// Decide uploads a decision and returns its name. Answer returns the answer to it, or store.ErrNotFound while there is none.
	Decide(ctx context.Context, spec api.DecisionSpec) (name string, err error)
	Answer(ctx context.Context, rollout, decision string) ([]byte, error)
}

// File is one static file of the page.
type File struct {
	Name, ContentType string
	Body              []byte
}

// Files returns the static files of the page, or ErrNotBuilt.
func Files() ([]File, error) {
	var files []File
	for _, name := range []string{"app.css", "app.js", "index.html"} {
		body, err := fs.ReadFile(embeddedFiles, "dist/"+name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNotBuilt
		} else if err != nil {
			return nil, err
		}
		files = append(files, File{name, contentTypes[name], body})
	}
	return files, nil
}

// Server serves the page. It answers only requests that name its own address, and data only to requests with its token.
type Server struct {
	Page   Page
	Source Source

	files map[string]File
	token string
	hosts []string
}

// Listen listens on a port of 127.0.0.1; 0 is any free port. It never listens elsewhere.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// NewServer returns a server for a listener of Listen, with a new token.
func NewServer(listener net.Listener, page Page, source Source) (*Server, error) {
	files, err := Files()
	if err != nil {
		return nil, err
	}
	s := &Server{Page: page, Source: source, files: map[string]File{}, token: rand.Text()}
	for _, f := range files {
		s.files[f.Name] = f
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	s.hosts = []string{"127.0.0.1:" + port, "localhost:" + port}
	return s, nil
}

// URL returns the address of the page. Browsers do not send the fragment with the token, so it reaches no log.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/#token=" + s.token }

// policy allows the page's own script, style and data, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if message, code := s.refuse(r); code != 0 {
		http.Error(w, message, code)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if path == "" {
		path = "index.html"
	}
	if f, ok := s.files[path]; ok {
		h.Set("Content-Type", f.ContentType)
		write(w, r, f.Body)
		return
	}
	// The comparison takes the same time for each token.
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
		http.Error(w, "the token is missing or wrong: open the address that drover ui printed", http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		s.decide(w, r)
		return
	}
	body, err := s.document(r.Context(), path)
	switch {
	case errors.Is(err, store.ErrNotFound):
		http.Error(w, "not found", http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		h.Set("Content-Type", "application/json")
		write(w, r, body)
	}
}

// refuse returns why a request is not answered, or 0. A name that another site resolves to 127.0.0.1 fails the check of the host.
func (s *Server) refuse(r *http.Request) (message string, code int) {
	host := r.Host == s.hosts[0] || r.Host == s.hosts[1]
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case !host:
		return "this server answers only to its own address", http.StatusForbidden
	case origin != "" && origin != "http://"+r.Host, site != "" && site != "same-origin" && site != "none":
		return "this server answers only to its own page", http.StatusForbidden
	case r.Method == http.MethodPost && s.Page.Decides && r.URL.Path == "/"+DecisionsPath:
		// A form of another site cannot have this type without asking first.
		if r.Header.Get("Content-Type") != "application/json" {
			return "a decision is a JSON document", http.StatusUnsupportedMediaType
		}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "the page only reads, except for decisions", http.StatusMethodNotAllowed
	}
	return "", 0
}

// maxDecision bounds the body of a decision.
const maxDecision = 64 << 10

// decide uploads a decision.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	var spec api.DecisionSpec
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDecision))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		http.Error(w, "not a decision: "+err.Error(), http.StatusBadRequest)
		return
	}
	name, err := s.Source.Decide(r.Context(), spec)
	var invalid api.Errors
	switch {
	case errors.As(err, &invalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"decision": name})
	}
}

// document returns one document by its path.
func (s *Server) document(ctx context.Context, path string) ([]byte, error) {
	named := func(prefix string) (string, bool) {
		rest, hasPrefix := strings.CutPrefix(path, prefix)
		name, isJSON := strings.CutSuffix(rest, ".json")
		return name, hasPrefix && isJSON && name != "" && !strings.Contains(name, "/")
	}
	if name, ok := named(names.Statuses); ok {
		return s.Source.Cluster(ctx, name)
	}
	if name, ok := named(NodesPrefix); ok {
		return s.Source.Nodes(ctx, name)
	}
	if name, ok := named(names.RolloutStatuses); ok {
		return s.Source.Rollout(ctx, name)
	}
	if digest, ok := named(names.RolloutPlans); ok {
		return s.Source.Plan(ctx, digest)
	}
	if rest, ok := strings.CutPrefix(path, names.DecisionAnswers); ok {
		rollout, file, _ := strings.Cut(rest, "/")
		if decision, isJSON := strings.CutSuffix(file, ".json"); isJSON && rollout != "" && !strings.Contains(decision, "/") {
			return s.Source.Answer(ctx, rollout, decision)
		}
	}
	switch path {
	case PagePath:
		return json.Marshal(s.Page)
	case FleetPath:
		return s.Source.Fleet(ctx)
	case RolloutsPath:
		return s.Source.Rollouts(ctx)
	case MeaningsPath:
		return s.Source.Meanings(ctx)
	}
	return nil, store.ErrNotFound
}

// write writes a body, compressed if the browser accepts that.
func write(w http.ResponseWriter, r *http.Request, body []byte) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = z.Write(body)
	_ = z.Close()
}
