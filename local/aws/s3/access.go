package s3

// The front of S3: it parses a request, authorizes the caller, and answers itself or lets the gateway answer.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// request is a parsed S3 request.
type request struct {
	bucket, key string
	query       url.Values
	// action in IAM's spelling, without s3:. It is empty for a request that this package does not support; subresource then
	// names it.
	action, subresource string
}

// methods are the IAM actions of a subresource for GET, PUT and DELETE. The tables below list the subresources of
// buckets and of objects that are operations of their own.
type methods struct{ get, put, del string }

var bucketSubresources = map[string]methods{
	"policy":            {"GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"},
	"versioning":        {"GetBucketVersioning", "PutBucketVersioning", ""},
	"notification":      {"GetBucketNotification", "PutBucketNotification", ""},
	"encryption":        {"GetEncryptionConfiguration", "", ""},
	"lifecycle":         {"GetLifecycleConfiguration", "", ""},
	"publicAccessBlock": {"GetBucketPublicAccessBlock", "", ""},
	"ownershipControls": {"GetBucketOwnershipControls", "", ""},
	"tagging":           {"GetBucketTagging", "", ""},
	"location":          {"GetBucketLocation", "", ""},
	"versions":          {"ListBucketVersions", "", ""},
	"uploads":           {"ListBucketMultipartUploads", "", ""},
}

var objectSubresources = map[string]methods{
	"tagging":    {"GetObjectTagging", "PutObjectTagging", "DeleteObjectTagging"},
	"attributes": {"GetObjectAttributes", "", ""},
	"uploadId":   {"ListMultipartUploadParts", "PutObject", "AbortMultipartUpload"},
	"uploads":    {"", "", ""},
}

func (m methods) of(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return m.get
	case http.MethodPut:
		return m.put
	case http.MethodDelete:
		return m.del
	}
	return ""
}

// otherSubresources exist on AWS. A request for one is rejected, and not taken for a request of the bucket or object
// itself.
var otherSubresources = []string{
	"accelerate", "acl", "analytics", "cors", "intelligent-tiering", "inventory", "legal-hold", "logging", "metadataConfiguration",
	"metrics", "object-lock",
	"policyStatus", "replication", "requestPayment", "restore", "retention", "select", "torrent", "website", "rename", "session", "abac",
}

// plainQueries are the parsed queries of most requests. They are shared: do not modify them.
var plainQueries = map[string]url.Values{
	"x-id=GetObject": {"x-id": {"GetObject"}}, "x-id=PutObject": {"x-id": {"PutObject"}}, "x-id=DeleteObject": {"x-id": {"DeleteObject"}},
}

func queryOf(u *url.URL) url.Values {
	if plain, found := plainQueries[u.RawQuery]; found {
		return plain
	}
	return u.Query()
}

func parse(r *http.Request) request {
	q := request{query: queryOf(r.URL)}
	path := strings.TrimPrefix(r.URL.Path, "/")
	host, _, _ := strings.Cut(r.Host, ":")
	if bucket, ok := strings.CutSuffix(host, ".localhost"); ok {
		q.bucket, q.key = bucket, path
	} else {
		q.bucket, q.key, _ = strings.Cut(path, "/")
	}
	for name := range q.query {
		if slices.Contains(otherSubresources, name) {
			q.subresource = r.Method + " ?" + name
			return q
		}
	}
	q.action = q.find(r)
	if q.action == "" && q.subresource == "" {
		q.subresource = r.Method + " of " + r.URL.Path
	}
	return q
}

func (q *request) find(r *http.Request) string {
	table := bucketSubresources
	if q.key != "" {
		table = objectSubresources
	}
	for name := range q.query {
		m, ok := table[name]
		if !ok {
			continue
		}
		q.subresource = r.Method + " ?" + name
		if q.key != "" && r.Method == http.MethodPost && (name == "uploads" || name == "uploadId") {
			return "PutObject"
		}
		action := m.of(r.Method)
		if name == "tagging" && q.query.Has("versionId") {
			action = strings.Replace(action, "ObjectTagging", "ObjectVersionTagging", 1)
		}
		return action
	}
	q.subresource = ""
	versioned := q.key != "" && q.query.Has("versionId")
	switch {
	case q.bucket == "" && r.Method == http.MethodGet:
		return "ListAllMyBuckets"
	case q.key == "" && r.Method == http.MethodPost && q.query.Has("delete"):
		return "DeleteObject"
	case q.key == "":
		return methods{"ListBucket", "CreateBucket", "DeleteBucket"}.of(r.Method)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		if versioned {
			return "GetObjectVersion"
		}
		return "GetObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case r.Method == http.MethodDelete && versioned:
		return "DeleteObjectVersion"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	}
	return ""
}

// Describe returns the action and the resource of a request.
func (s *Service) Describe(r *http.Request) (action, resource string) {
	q := parse(r)
	return q.action, s.arn(q.bucket, q.key)
}

// Serve authorizes and answers a request whose signature is verified. It returns the error that it sent, if any.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request, caller iam.Caller, requestID string) error {
	q := parse(r)
	err := s.permit(r, caller, q)
	if err == nil && q.action == "" {
		err = wire.Unsupported("s3", q.subresource)
	}
	if err != nil {
		s.Fail(w, r, requestID, err)
		return err
	}
	if answer, ok := configurations[q.action]; ok {
		if err := answer(s, w, r, q, requestID); err != nil {
			s.Fail(w, r, requestID, err)
			return err
		}
		return nil
	}
	return s.proxy(w, r, caller, q, requestID)
}

// headerKeys maps headers to condition keys.
var headerKeys = map[string]string{
	"If-Match": "s3:if-match", "If-None-Match": "s3:if-none-match", "X-Amz-Acl": "s3:x-amz-acl", "X-Amz-Copy-Source": "s3:x-amz-copy-source",
	"X-Amz-Content-Sha256": "s3:x-amz-content-sha256", "X-Amz-Server-Side-Encryption": "s3:x-amz-server-side-encryption",
	"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "s3:x-amz-server-side-encryption-aws-kms-key-id",
}

// permit authorizes every action that a request performs.
func (s *Service) permit(r *http.Request, caller iam.Caller, q request) error {
	if q.action == "" {
		return nil
	}
	context := map[string]string{}
	for _, k := range []string{"prefix", "delimiter", "max-keys"} {
		if q.query.Has(k) {
			context["s3:"+k] = q.query.Get(k)
		}
	}
	if q.query.Has("versionId") {
		context["s3:VersionId"] = q.query.Get("versionId")
	}
	for name, values := range r.Header {
		if key, ok := headerKeys[name]; ok && values[0] != "" {
			context[key] = values[0]
		}
	}
	if q.action == "DeleteObject" && q.key == "" {
		return s.permitDeletes(r, caller, q, context)
	}
	if err := s.authorize(caller, q.action, q.bucket, q.key, context); err != nil {
		return err
	}
	if q.action == "DeleteObject" && r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != "*" {
		// Comparing an ETag needs read access: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
		return s.authorize(caller, "GetObject", q.bucket, q.key, context)
	}
	if source := r.Header.Get("X-Amz-Copy-Source"); source != "" {
		return s.permitCopy(caller, source)
	}
	if r.Header.Get("X-Amz-Tagging") != "" && q.action == "PutObject" {
		return s.authorize(caller, "PutObjectTagging", q.bucket, q.key, context)
	}
	return nil
}

func (s *Service) permitCopy(caller iam.Caller, source string) error {
	path, query, _ := strings.Cut(strings.TrimPrefix(source, "/"), "?")
	path, err := url.PathUnescape(path)
	if err != nil {
		return wire.Errorf("InvalidArgument", "the copy source %q is no path", source)
	}
	bucket, key, _ := strings.Cut(path, "/")
	action, context := "GetObject", map[string]string(nil)
	if version, ok := strings.CutPrefix(query, "versionId="); ok {
		action, context = "GetObjectVersion", map[string]string{"s3:VersionId": version}
	}
	return s.authorize(caller, action, bucket, key, context)
}

// permitDeletes authorizes each key of a DeleteObjects request. It restores the request's body.
func (s *Service) permitDeletes(r *http.Request, caller iam.Caller, q request, context map[string]string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 2<<20))
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Object []struct{ Key, VersionId, ETag string } // S3's spelling
	}
	if err := xml.Unmarshal(body, &in); err != nil {
		return &wire.Error{
			Code: "MalformedXML", Message: "The XML you provided was not well-formed or did not validate against our published schema", Status: 400,
		}
	}
	for _, o := range in.Object {
		actions := []string{"DeleteObject"}
		if o.VersionId != "" {
			actions = []string{"DeleteObjectVersion"}
		}
		if o.ETag != "" && o.ETag != "*" {
			actions = append(actions, "GetObject")
		}
		for _, action := range actions {
			if err := s.authorize(caller, action, q.bucket, o.Key, context); err != nil {
				return err
			}
		}
	}
	return nil
}

// proxy forwards a request to the gateway. An absent key is 403 for a caller who may not list the bucket.
func (s *Service) proxy(w http.ResponseWriter, r *http.Request, caller iam.Caller, q request, requestID string) error {
	var sent error
	look := func(response *http.Response) error {
		if response.StatusCode < 300 {
			s.afterwards(q, r.Method)
			if _, inMemory := s.transport.(*memory); q.action == "ListBucketVersions" && !inMemory {
				return correctVersionTimes(response)
			}
			return nil
		}
		if response.StatusCode < 400 {
			return nil
		}
		e := readError(response)
		if response.StatusCode == http.StatusNotFound && slices.Contains([]string{"GetObject", "GetObjectAttributes"}, q.action) &&
			e.Code != "NoSuchBucket" {
			if denied := s.authorize(caller, "ListBucket", q.bucket, "", nil); denied != nil {
				return denied
			}
		}
		sent = e
		return nil
	}
	fail := func(w http.ResponseWriter, r *http.Request, err error) {
		sent = err
		s.Fail(w, r, requestID, err)
	}
	if m, ok := s.transport.(*memory); ok {
		forward(w, r, func() (*http.Response, error) { return m.respond(r, q) }, look, fail)
		return sent
	}
	p := httputil.ReverseProxy{
		Transport: s.transport,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = "http", "gateway", pr.In.Host
		},
		ModifyResponse: look,
		ErrorHandler:   fail,
	}
	p.ServeHTTP(w, r)
	return sent
}

// forward does what httputil.ReverseProxy does, without the copies that only a network needs.
func forward(
	w http.ResponseWriter, r *http.Request, to func() (*http.Response, error), look func(*http.Response) error,
	fail func(http.ResponseWriter, *http.Request, error),
) {
	response, err := to()
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		err = look(response)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the client may have disconnected
}

// afterwards updates the configuration after the API created or deleted a bucket.
func (s *Service) afterwards(q request, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.action == "CreateBucket" && method == http.MethodPut:
		s.config(q.bucket)
	case q.action == "DeleteBucket":
		delete(s.buckets, q.bucket)
	}
}

// readError reads the gateway's error and restores the response's body.
func readError(response *http.Response) *wire.Error {
	e := &wire.Error{Code: http.StatusText(response.StatusCode), Status: response.StatusCode}
	const limit = 1 << 16
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return e
	}
	if len(body) < limit { // the whole body
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
	} else {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	}
	var parsed struct{ Code, Message string }
	if xml.Unmarshal(body, &parsed) == nil && parsed.Code != "" {
		e.Code, e.Message = parsed.Code, parsed.Message
	}
	return e
}

var errNoSuchBucket = &wire.Error{Code: "NoSuchBucket", Message: "The specified bucket does not exist", Status: 404}

// isNotFound reports whether an error is about a bucket or object that does not exist.
func isNotFound(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && (e.Code == "NoSuchBucket" || e.Code == "NotFound" || e.Code == "NoSuchKey")
}
