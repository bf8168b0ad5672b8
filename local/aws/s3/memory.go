package s3

// Objects in memory, instead of versitygw: buckets, versions, delete markers, conditional writes and deletes, lists. It
// answers requests that the front has authorized, as the gateway would. It rejects what it does not support with an
// error that names it. The storm uses it for accounts without sockets, which it creates and discards by the thousand.

import (
	"bytes"
	"crypto/md5" // #nosec G501 -- an ETag is one
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/engine/wire"
)

// memory is an http.RoundTripper that stores buckets.
type memory struct {
	s  *Service
	mu sync.Mutex
	// buckets by name.
	buckets map[string]*memoryBucket
}

type memoryBucket struct {
	versioned bool
	objects   map[string][]*memoryVersion // newest first, never empty
	listed    map[string][]byte           // answers of ListObjects since the last change, by query
}

type memoryVersion struct {
	id, etag, contentType string
	marker                bool
	body                  []byte
	modified              time.Time
}

// unversioned is the version ID of objects in buckets without versions.
const unversioned = "null"

// memoryAnswer is the result of an operation.
type memoryAnswer struct {
	status int
	header http.Header
	body   []byte
}

func xmlAnswer(v any) memoryAnswer {
	body, _ := xml.Marshal(v) // structs of strings and numbers
	return memoryAnswer{status: http.StatusOK, header: xmlHeader(), body: append([]byte(xml.Header), body...)}
}

func xmlHeader() http.Header { return http.Header{"Content-Type": {"application/xml"}} }

// RoundTrip answers a request.
func (m *memory) RoundTrip(r *http.Request) (*http.Response, error) { return m.respond(r, parse(r)) }

// respond answers a request that is already parsed.
func (m *memory) respond(r *http.Request, q request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	m.mu.Lock()
	a, err := m.answer(r, q, body)
	m.mu.Unlock()
	if err != nil {
		e := translate(err)
		a = xmlAnswer(struct {
			XMLName       xml.Name `xml:"Error"`
			Code, Message string
		}{Code: e.Code, Message: e.Message})
		a.status = e.HTTPStatus()
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	length := int64(len(a.body))
	a.header.Set("Content-Length", strconv.FormatInt(length, 10))
	if r.Method == http.MethodHead {
		a.body = nil
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: length, Request: r,
	}, nil
}

func (m *memory) answer(r *http.Request, q request, body []byte) (memoryAnswer, error) {
	b := m.buckets[q.bucket]
	if b == nil && q.action != "CreateBucket" {
		return memoryAnswer{}, errNoSuchBucket
	}
	versionID := q.query.Get("versionId")
	switch q.action {
	case "CreateBucket":
		if b == nil {
			m.buckets[q.bucket] = &memoryBucket{objects: map[string][]*memoryVersion{}}
		}
		return memoryAnswer{status: http.StatusOK}, nil
	case "DeleteBucket":
		if len(b.objects) > 0 {
			return memoryAnswer{}, &wire.Error{Code: "BucketNotEmpty", Message: "The bucket you tried to delete is not empty", Status: 409}
		}
		delete(m.buckets, q.bucket)
		return memoryAnswer{status: http.StatusNoContent}, nil
	case "PutBucketVersioning":
		var in struct{ Status string }
		if err := xml.Unmarshal(body, &in); err != nil || in.Status != "Enabled" {
			return memoryAnswer{}, wire.Unsupported("s3 in memory", "the versioning status "+strconv.Quote(in.Status))
		}
		b.versioned = true
		return memoryAnswer{status: http.StatusOK}, nil
	case "GetBucketVersioning":
		out := struct {
			XMLName xml.Name `xml:"VersioningConfiguration"`
			Status  string   `xml:",omitempty"`
		}{}
		if b.versioned {
			out.Status = "Enabled"
		}
		return xmlAnswer(out), nil
	case "ListBucket":
		if body, ok := b.listed[r.URL.RawQuery]; ok {
			return memoryAnswer{status: http.StatusOK, header: xmlHeader(), body: body}, nil
		}
		a, err := b.list(q.bucket, q.query)
		if err == nil && len(a.body) > 0 {
			if b.listed == nil {
				b.listed = map[string][]byte{}
			}
			b.listed[r.URL.RawQuery] = a.body
		}
		return a, err
	case "ListBucketVersions":
		return b.listVersions(q.bucket, q.query)
	case "GetObject", "GetObjectVersion":
		return b.get(q.key, versionID, r.Header.Get("If-None-Match"))
	case "PutObject":
		if q.subresource != "" || r.Header.Get("X-Amz-Copy-Source") != "" || r.Header.Get("X-Amz-Tagging") != "" {
			break
		}
		return m.put(q, b, r.Header, body)
	case "DeleteObject", "DeleteObjectVersion":
		if q.key == "" {
			break
		}
		return m.remove(q, b, versionID, r.Header.Get("If-Match"))
	}
	return memoryAnswer{}, wire.Unsupported("s3 in memory", r.Method+" "+r.URL.RequestURI())
}

func (v *memoryVersion) header(versioned bool) http.Header {
	h := http.Header{"Last-Modified": {v.modified.UTC().Format(http.TimeFormat)}}
	if versioned {
		h.Set("X-Amz-Version-Id", v.id)
	}
	if v.marker {
		h.Set("X-Amz-Delete-Marker", "true")
		return h
	}
	h.Set("Etag", v.etag)
	h.Set("Content-Type", v.contentType)
	return h
}

var (
	errNoSuchKey     = &wire.Error{Code: "NoSuchKey", Message: "The specified key does not exist.", Status: 404}
	errNoSuchVersion = &wire.Error{Code: "NoSuchVersion", Message: "The specified version does not exist.", Status: 404}
	errCondition     = &wire.Error{
		Code: "PreconditionFailed", Message: "At least one of the pre-conditions you specified did not hold", Status: 412,
	}
	errIsMarker = &wire.Error{Code: "MethodNotAllowed", Message: "The specified method is not allowed against this resource.", Status: 405}
)

// get: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-reads.html
func (b *memoryBucket) get(key, versionID, unless string) (memoryAnswer, error) {
	versions := b.objects[key]
	var v *memoryVersion
	switch {
	case versionID != "":
		i := slices.IndexFunc(versions, func(v *memoryVersion) bool { return v.id == versionID })
		if i < 0 {
			return memoryAnswer{}, errNoSuchVersion
		}
		if v = versions[i]; v.marker {
			return memoryAnswer{}, errIsMarker
		}
	case len(versions) == 0 || versions[0].marker:
		return memoryAnswer{}, errNoSuchKey
	default:
		v = versions[0]
	}
	if unless != "" && (unless == "*" || sameTag(unless, v.etag)) {
		return memoryAnswer{status: http.StatusNotModified, header: v.header(b.versioned)}, nil
	}
	return memoryAnswer{status: http.StatusOK, header: v.header(b.versioned), body: v.body}, nil
}

// put: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
func (m *memory) put(q request, b *memoryBucket, header http.Header, body []byte) (memoryAnswer, error) {
	exists := len(b.objects[q.key]) > 0 && !b.objects[q.key][0].marker
	if header.Get("If-None-Match") == "*" && exists {
		return memoryAnswer{}, errCondition
	}
	if match := header.Get("If-Match"); match != "" {
		if !exists {
			return memoryAnswer{}, errNoSuchKey
		}
		if !sameTag(match, b.objects[q.key][0].etag) {
			return memoryAnswer{}, errCondition
		}
	}
	sum := md5.Sum(body) // #nosec G401 -- an ETag is one
	v := &memoryVersion{
		id: unversioned, etag: `"` + hex.EncodeToString(sum[:]) + `"`, contentType: header.Get("Content-Type"), body: body,
		modified: m.s.clock.Now(),
	}
	b.add(q.key, v)
	if m.s.sendsEvents(q.bucket) {
		size := int64(len(body))
		m.s.send("Object Created", q.bucket, q.key, eventObject{Size: &size, ETag: strings.Trim(v.etag, `"`), VersionID: v.id}, "PutObject", "")
	}
	h := v.header(b.versioned)
	h.Del("Content-Type")
	return memoryAnswer{status: http.StatusOK, header: h}, nil
}

// add puts a version on top.
func (b *memoryBucket) add(key string, v *memoryVersion) {
	b.listed = nil
	if !b.versioned {
		b.objects[key] = []*memoryVersion{v}
		return
	}
	v.id = strings.ReplaceAll(uuid.NewString(), "-", "")
	b.objects[key] = slices.Insert(b.objects[key], 0, v)
}

func sameTag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// remove: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
func (m *memory) remove(q request, b *memoryBucket, versionID, match string) (memoryAnswer, error) {
	versions := b.objects[q.key]
	b.listed = nil
	if match != "" && versionID == "" {
		switch {
		case len(versions) == 0:
			return memoryAnswer{}, errNoSuchKey
		case versions[0].marker, match != "*" && !sameTag(match, versions[0].etag):
			return memoryAnswer{}, errCondition
		}
	}
	done := memoryAnswer{status: http.StatusNoContent}
	sendDeleted := func(version, deletionType string) {
		if m.s.sendsEvents(q.bucket) {
			m.s.send("Object Deleted", q.bucket, q.key, eventObject{VersionID: version}, "DeleteObject", deletionType)
		}
	}
	switch {
	case versionID != "":
		i := slices.IndexFunc(versions, func(v *memoryVersion) bool { return v.id == versionID })
		if i < 0 {
			return done, nil
		}
		done.header = http.Header{"X-Amz-Version-Id": {versionID}}
		if versions[i].marker {
			done.header.Set("X-Amz-Delete-Marker", "true")
		}
		if b.objects[q.key] = slices.Delete(slices.Clone(versions), i, i+1); len(versions) == 1 {
			delete(b.objects, q.key)
		}
		sendDeleted(versionID, "Permanently Deleted")
	case len(versions) == 0: // a key that never existed gets no marker, as in versitygw
	case !b.versioned:
		delete(b.objects, q.key)
		sendDeleted("", "Permanently Deleted")
	default:
		v := &memoryVersion{marker: true, modified: m.s.clock.Now()}
		b.add(q.key, v)
		done.header = v.header(true)
		sendDeleted(v.id, "Delete Marker Created")
	}
	return done, nil
}

// list: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
func (b *memoryBucket) list(name string, q url.Values) (memoryAnswer, error) {
	if q.Get("list-type") != "2" || q.Has("delimiter") || q.Get("encoding-type") != "" && q.Get("encoding-type") != "url" {
		if len(q) == 0 || len(q) == 1 && q.Has("x-id") { // HeadBucket
			return memoryAnswer{status: http.StatusOK}, nil
		}
		return memoryAnswer{}, wire.Unsupported("s3 in memory", "a list with "+q.Encode())
	}
	type content struct {
		Key, LastModified, ETag string
		Size                    int
		StorageClass            string
	}
	out := struct {
		XMLName                                  xml.Name `xml:"ListBucketResult"`
		Name, Prefix                             string
		KeyCount, MaxKeys                        int
		IsTruncated                              bool
		ContinuationToken, NextContinuationToken string `xml:",omitempty"`
		EncodingType                             string `xml:",omitempty"`
		Contents                                 []content
	}{EncodingType: q.Get("encoding-type"), Name: name, Prefix: q.Get("prefix"), MaxKeys: 1000, ContinuationToken: q.Get("continuation-token")}
	if text := q.Get("max-keys"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return memoryAnswer{}, wire.Errorf("InvalidArgument", "max-keys is %q", text)
		}
		out.MaxKeys = min(n, 1000)
	}
	after, last := max(out.ContinuationToken, q.Get("start-after")), ""
	for _, key := range b.keys(out.Prefix) {
		v := b.objects[key][0]
		if v.marker || key <= after {
			continue
		}
		if out.KeyCount == out.MaxKeys {
			out.IsTruncated = true
			out.NextContinuationToken = last
			break
		}
		last = key
		listed := key
		if out.EncodingType != "" {
			listed = strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
		}
		out.Contents = append(out.Contents, content{listed, stamp(v.modified), v.etag, len(v.body), "STANDARD"})
		out.KeyCount++
	}
	return xmlAnswer(out), nil
}

// keys returns the keys with a prefix, in order.
func (b *memoryBucket) keys(prefix string) (keys []string) {
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// stamp formats a time as S3's lists do: in whole seconds. https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
func stamp(t time.Time) string {
	return t.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z")
}

// listVersions: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html
func (b *memoryBucket) listVersions(name string, q url.Values) (memoryAnswer, error) {
	if q.Has("delimiter") || q.Has("key-marker") || q.Has("max-keys") {
		return memoryAnswer{}, wire.Unsupported("s3 in memory", "a list of versions with "+q.Encode())
	}
	type version struct {
		Key, VersionId, LastModified string // S3's spelling
		IsLatest                     bool
		ETag                         string `xml:",omitempty"`
		Size                         int    `xml:",omitempty"`
	}
	out := struct {
		XMLName      xml.Name `xml:"ListVersionsResult"`
		Name, Prefix string
		Version      []version
		DeleteMarker []version
	}{Name: name, Prefix: q.Get("prefix")}
	for _, key := range b.keys(out.Prefix) {
		for i, v := range b.objects[key] {
			listed := version{key, v.id, stamp(v.modified), i == 0, v.etag, len(v.body)}
			if v.marker {
				out.DeleteMarker = append(out.DeleteMarker, listed)
			} else {
				out.Version = append(out.Version, listed)
			}
		}
	}
	if len(out.Version)+len(out.DeleteMarker) > 1000 {
		return memoryAnswer{}, fmt.Errorf("more than 1000 versions: pages of versions are not supported in memory")
	}
	return xmlAnswer(out), nil
}
