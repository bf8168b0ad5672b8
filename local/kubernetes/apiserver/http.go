package apiserver

// The API over HTTP, as far as client-go uses it.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// codecs also decode protobuf, for the kinds that drains send.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two types with the same name: no input causes it
		}
	}
	return serializer.NewCodecFactory(scheme)
}()

// target of a request: an object, or a list of them.
type target struct {
	kind                       kind
	namespace, name, secondary string
}

func locate(path string) (target, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	unknown := func() (target, error) {
		return target{}, apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "",
			"the API in memory does not know "+path, 0, true)
	}
	var group, version string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return unknown()
	}
	t := target{}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return unknown()
	}
	for _, k := range kinds {
		if k.group == group && k.version == version && k.resource == parts[0] {
			t.kind = k
			if len(parts) > 1 {
				t.name = parts[1]
			}
			if len(parts) > 2 {
				t.secondary = parts[2]
			}
			return t, nil
		}
	}
	return unknown()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if r.URL.Path == "/readyz" {
		s.readyz(w)
		return
	}
	t, err := locate(r.URL.Path)
	if err != nil {
		fail(w, err)
		return
	}
	options := metav1.ListOptions{
		LabelSelector: r.URL.Query().Get("labelSelector"), FieldSelector: r.URL.Query().Get("fieldSelector"),
		ResourceVersion: r.URL.Query().Get("resourceVersion"),
	}
	if r.Method == http.MethodGet && t.name == "" {
		match, err := newMatcher(options)
		switch {
		case err != nil:
			fail(w, err)
		case r.URL.Query().Get("watch") != "":
			s.watch(w, r, t, match, options.ResourceVersion)
		default:
			s.answerList(w, t, match)
		}
		return
	}
	s.mu.Lock()
	o, err := s.do(r, t, body)
	s.mu.Unlock()
	if err != nil {
		fail(w, err)
		return
	}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	send(w, status, o)
}

// readyz answers like an API server whose checks all pass.
func (s *Server) readyz(w http.ResponseWriter) {
	s.mu.Lock()
	down := s.down()
	s.mu.Unlock()
	if down {
		fail(w, errDown)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

var errDown = apierrors.NewServiceUnavailable("the API server is down")

// do performs a request about one object.
func (s *Server) do(r *http.Request, t target, body []byte) (any, error) {
	if s.down() {
		return nil, errDown
	}
	switch {
	case r.Method == http.MethodPost && t.kind == pods && t.secondary == "eviction":
		eviction := policyv1.Eviction{}
		if err := decode(body, &eviction); err != nil {
			return nil, err
		}
		return success, s.evict(t.namespace, t.name, eviction.DeleteOptions)
	case t.secondary != "":
		return nil, apierrors.NewBadRequest("the API in memory does not know the subresource " + t.secondary)
	case r.Method == http.MethodPost:
		o, err := read(body)
		if err != nil {
			return nil, err
		}
		if t.namespace != "" && meta(o) != nil {
			meta(o)["namespace"] = t.namespace
		}
		return s.create(t.kind, o)
	}
	old, err := s.find(t.kind, t.namespace, t.name)
	if applying := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"); applying && apierrors.IsNotFound(err) {
		o, err := read(body)
		if err != nil {
			return nil, err
		}
		return s.create(t.kind, o)
	}
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case http.MethodGet:
		return old, nil
	case http.MethodPut:
		o, err := read(body)
		if err != nil {
			return nil, err
		}
		return s.update(t.kind, old, o)
	case http.MethodPatch:
		return s.patch(t.kind, old, r.Header.Get("Content-Type"), body)
	case http.MethodDelete:
		options := metav1.DeleteOptions{}
		if len(body) > 0 {
			if err := decode(body, &options); err != nil {
				return nil, err
			}
		}
		return success, s.delete(t.kind, old, &options)
	}
	return nil, apierrors.NewMethodNotSupported(t.kind.groupResource(), r.Method)
}

var success = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}

func (s *Server) patch(k kind, old object, contentType string, body []byte) (object, error) {
	if !strings.HasPrefix(contentType, "application/merge-patch+json") && !strings.HasPrefix(contentType, "application/apply-patch") {
		return nil, apierrors.NewBadRequest("the API in memory does not know patches of " + contentType)
	}
	wanted, err := read(body)
	if err != nil {
		return nil, err
	}
	next := runtime.DeepCopyJSON(old)
	merge(next, wanted)
	return s.update(k, old, next)
}

// merge applies a patch by RFC 7396.
func merge(into, patch object) {
	for name, v := range patch {
		inner, isObject := v.(object)
		switch existing, exists := into[name].(object); {
		case v == nil:
			delete(into, name)
		case isObject && exists:
			merge(existing, inner)
		case isObject:
			created := object{}
			merge(created, inner)
			into[name] = created
		default:
			into[name] = v
		}
	}
}

// read decodes a JSON object, with Kubernetes' number types.
func read(body []byte) (object, error) {
	o := object{}
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

// decode decodes a typed object from JSON or protobuf.
func decode(body []byte, into runtime.Object) error {
	if _, _, err := codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func (s *Server) answerList(w http.ResponseWriter, t target, match matcher) {
	s.mu.Lock()
	if s.down() {
		s.mu.Unlock()
		fail(w, errDown)
		return
	}
	list := map[string]any{
		"apiVersion": t.kind.apiVersion(), "kind": t.kind.kind + "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
		"items": s.list(t.kind, t.namespace, match),
	}
	body, _ := json.Marshal(list) // JSON values; encoded before a change
	s.mu.Unlock()
	write(w, http.StatusOK, body)
}

// watch sends the changes after a version until the client disconnects, its timeoutSeconds are over, or the server ends or is
// down. It sends each in a turn of its own.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, t target, match matcher, from string) {
	seen, err := strconv.Atoi(from)
	if err != nil {
		fail(w, apierrors.NewBadRequest("a watch from the version "+strconv.Quote(from)+" is not supported in memory"))
		return
	}
	var over <-chan time.Time
	if text := r.URL.Query().Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds <= 0 {
			fail(w, apierrors.NewBadRequest("timeoutSeconds "+strconv.Quote(text)+" is not supported in memory"))
			return
		}
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		over = timer.C
	}
	w.Header().Set("Content-Type", "application/json")
	flush := func() {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	flush()
	for {
		s.mu.Lock()
		var next *change
		for i := max(0, len(s.changes)-(s.version-seen)); i < len(s.changes); i++ {
			if c := s.changes[i]; c.version > seen {
				seen = c.version
				if c.kind == t.kind && (t.namespace == "" || text(c.object, "metadata", "namespace") == t.namespace) && match.matches(c.object) {
					next = &c
					break
				}
			}
		}
		changed, down := s.changed, s.down()
		s.mu.Unlock()
		if down {
			return
		}
		if next != nil {
			s.clock.Take(fmt.Sprintf("watch %s of %s %d", t.kind.resource, r.Header.Get(WhoHeader), next.version))
			body, _ := json.Marshal(map[string]any{"type": next.typ, "object": next.object}) // JSON values
			if _, err := w.Write(append(body, '\n')); err != nil {
				return
			}
			flush()
			continue
		}
		select {
		case <-changed:
		case <-over:
			s.clock.Take(fmt.Sprintf("watch %s of %s ends", t.kind.resource, r.Header.Get(WhoHeader)))
			return
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// WhoHeader is a header with the name of the watching client. It distinguishes watches, equally in every replay.
const WhoHeader = "X-Watcher"

func send(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v) // JSON values
	write(w, status, body)
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client disconnected
}

func fail(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	send(w, int(status.Code), status)
}
