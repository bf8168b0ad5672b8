package s3

// Bucket configuration that versitygw does not store, or not as AWS does.

import (
	"encoding/xml"
	"io"
	"net/http"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/wire"
)

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

type encryption struct {
	XMLName xml.Name         `xml:"ServerSideEncryptionConfiguration"`
	NS      string           `xml:"xmlns,attr"`
	Rules   []encryptionRule `xml:"Rule"`
}

type encryptionRule struct {
	Default          encryptionDefault `xml:"ApplyServerSideEncryptionByDefault"`
	BucketKeyEnabled bool
}

type encryptionDefault struct {
	SSEAlgorithm   string
	KMSMasterKeyID string `xml:",omitempty"`
}

type lifecycle struct {
	XMLName xml.Name        `xml:"LifecycleConfiguration"`
	NS      string          `xml:"xmlns,attr"`
	Rules   []lifecycleRule `xml:"Rule"`
}

type lifecycleRule struct {
	ID     string `xml:",omitempty"`
	Filter struct {
		Prefix string
	}
	Status                         string
	Expiration                     *lifecycleExpiration
	NoncurrentVersionExpiration    *noncurrentExpiration
	AbortIncompleteMultipartUpload *abortUploads
}

type lifecycleExpiration struct {
	Days                      int  `xml:",omitempty"`
	ExpiredObjectDeleteMarker bool `xml:",omitempty"`
}

type noncurrentExpiration struct {
	NoncurrentDays          int
	NewerNoncurrentVersions int `xml:",omitempty"`
}

type abortUploads struct{ DaysAfterInitiation int }

type publicAccessBlock struct {
	XMLName                                                                     xml.Name `xml:"PublicAccessBlockConfiguration"`
	BlockPublicAcls, IgnorePublicAcls, BlockPublicPolicy, RestrictPublicBuckets bool
}

type ownershipControls struct {
	XMLName xml.Name `xml:"OwnershipControls"`
	NS      string   `xml:"xmlns,attr"`
	Rule    struct{ ObjectOwnership string }
}

type notification struct {
	XMLName     xml.Name  `xml:"NotificationConfiguration"`
	NS          string    `xml:"xmlns,attr"`
	EventBridge *struct{} `xml:"EventBridgeConfiguration"`
}

type bucketTagging struct {
	XMLName xml.Name                      `xml:"Tagging"`
	NS      string                        `xml:"xmlns,attr"`
	Tags    []struct{ Key, Value string } `xml:"TagSet>Tag"`
}

// configurations answer the actions that never reach the gateway.
var configurations = map[string]func(s *Service, w http.ResponseWriter, r *http.Request, q request, requestID string) error{
	"GetEncryptionConfiguration": get(func(b *bucket) (any, error) {
		if b.encryption != nil {
			return b.encryption, nil
		}
		return defaultEncryption(), nil
	}),
	"GetLifecycleConfiguration": get(func(b *bucket) (any, error) {
		if b.lifecycle == nil {
			return nil, notFound("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
		}
		return b.lifecycle, nil
	}),
	"GetBucketPublicAccessBlock": get(func(b *bucket) (any, error) {
		if b.publicBlock != nil {
			return b.publicBlock, nil
		}
		return &publicAccessBlock{BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true, RestrictPublicBuckets: true}, nil
	}),
	"GetBucketOwnershipControls": get(func(b *bucket) (any, error) {
		out := &ownershipControls{NS: namespace}
		out.Rule.ObjectOwnership = "BucketOwnerEnforced"
		if b.ownership != "" {
			out.Rule.ObjectOwnership = b.ownership
		}
		return out, nil
	}),
	"GetBucketNotification": get(func(b *bucket) (any, error) {
		out := &notification{NS: namespace}
		if b.eventBridge {
			out.EventBridge = &struct{}{}
		}
		return out, nil
	}),
	"GetBucketTagging": get(func(b *bucket) (any, error) {
		if len(b.tags) == 0 {
			return nil, notFound("NoSuchTagSet", "The TagSet does not exist")
		}
		out := &bucketTagging{NS: namespace}
		for _, t := range tagging.List(b.tags) {
			out.Tags = append(out.Tags, struct{ Key, Value string }(t))
		}
		return out, nil
	}),
	"GetBucketPolicy":       (*Service).getPolicy,
	"PutBucketPolicy":       (*Service).putPolicy,
	"DeleteBucketPolicy":    (*Service).deletePolicy,
	"PutBucketNotification": (*Service).putNotification,
}

func defaultEncryption() *encryption {
	return &encryption{NS: namespace, Rules: []encryptionRule{{Default: encryptionDefault{SSEAlgorithm: "AES256"}}}}
}

func notFound(code, message string) error {
	return &wire.Error{Code: code, Message: message, Status: 404}
}

// get answers a request with a part of a bucket's configuration.
func get(read func(*bucket) (any, error)) func(*Service, http.ResponseWriter, *http.Request, request, string) error {
	return func(s *Service, w http.ResponseWriter, _ *http.Request, q request, requestID string) error {
		s.mu.Lock()
		b, ok := s.buckets[q.bucket]
		var out any
		var err error = errNoSuchBucket
		if ok {
			out, err = read(b)
		}
		var body []byte
		if err == nil {
			body, err = xml.Marshal(out)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("X-Amz-Request-Id", requestID)
		_, _ = w.Write(append([]byte(xml.Header), body...)) // fails only if the client disconnected
		return nil
	}
}

func (s *Service) getPolicy(w http.ResponseWriter, _ *http.Request, q request, requestID string) error {
	s.mu.Lock()
	b, ok := s.buckets[q.bucket]
	text := ""
	if ok {
		text = b.policyText
	}
	s.mu.Unlock()
	if !ok {
		return errNoSuchBucket
	}
	if text == "" {
		return notFound("NoSuchBucketPolicy", "The bucket policy does not exist")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Request-Id", requestID)
	_, _ = io.WriteString(w, text) // fails only if the client disconnected
	return nil
}

func (s *Service) putPolicy(w http.ResponseWriter, r *http.Request, q request, _ string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 20<<10+1))
	if err != nil {
		return err
	}
	if err := s.setPolicy(q.bucket, string(body)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setPolicy replaces a bucket's policy. An empty text removes it.
func (s *Service) setPolicy(name, text string) error {
	var policy *iam.Policy
	if text != "" {
		if len(text) > 20<<10 {
			return &wire.Error{Code: "PolicyTooLarge", Message: "Policy exceeds the maximum allowed document size of 20480 bytes", Status: 400}
		}
		var err error
		if policy, err = iam.ParsePolicy(text, true); err != nil {
			return &wire.Error{Code: "MalformedPolicy", Message: err.Error(), Status: 400}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.buckets[name]
	if !ok {
		return errNoSuchBucket
	}
	b.policy, b.policyText = policy, text
	return nil
}

func (s *Service) deletePolicy(w http.ResponseWriter, _ *http.Request, q request, _ string) error {
	if err := s.setPolicy(q.bucket, ""); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) putNotification(w http.ResponseWriter, r *http.Request, q request, _ string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	var in struct {
		EventBridge *struct{}  `xml:"EventBridgeConfiguration"`
		Others      []struct{} `xml:",any"`
	}
	if err := xml.Unmarshal(body, &in); err != nil {
		return &wire.Error{
			Code: "MalformedXML", Message: "The XML you provided was not well-formed or did not validate against our published schema", Status: 400,
		}
	}
	if len(in.Others) > 0 {
		return wire.Unsupported("s3", "notifications other than to EventBridge")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.buckets[q.bucket]
	if !ok {
		return errNoSuchBucket
	}
	b.eventBridge = in.EventBridge != nil
	return nil
}
