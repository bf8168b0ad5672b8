package s3

// The store behind the gateway: versitygw's files, with an event for each change, and with AWS's behavior of delete
// markers.

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/drover-run/drover/local/aws/iam"
)

type store struct {
	*posix.Posix
	s *Service
	// keys are locked during a change, so that conditions hold until the change and events keep their order.
	keys [256]sync.Mutex
}

func (st *store) lock(bucket, key *string) func() {
	h := fnv.New32a()
	_, _ = h.Write([]byte(aws.ToString(bucket) + "/" + aws.ToString(key)))
	m := &st.keys[h.Sum32()%uint32(len(st.keys))]
	m.Lock()
	return m.Unlock
}

// current is the kind of a key's newest version.
type current int

const (
	absent current = iota
	marker
	live
)

func (st *store) current(ctx context.Context, bucket, key *string) current {
	if _, err := st.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: key}); err == nil {
		return live
	}
	// Only GetObject's error identifies a delete marker.
	out, err := st.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key, Range: aws.String("")})
	if err != nil && out != nil && aws.ToBool(out.DeleteMarker) {
		return marker
	}
	return absent
}

// conditions corrects versitygw's conditional writes where the newest version is a delete marker. For AWS the object is
// then absent: If-None-Match: * holds, If-Match does not.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
func (st *store) conditions(ctx context.Context, bucket, key *string, ifMatch, ifNoneMatch **string) error {
	if *ifMatch == nil && *ifNoneMatch == nil || st.current(ctx, bucket, key) != marker {
		return nil
	}
	if *ifMatch != nil {
		return s3err.GetAPIError(s3err.ErrNoSuchKey)
	}
	if **ifNoneMatch == "*" {
		*ifNoneMatch = nil
	}
	return nil
}

// PutObject stores an object.
func (st *store) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	defer st.lock(in.Bucket, in.Key)()
	if err := st.conditions(ctx, in.Bucket, in.Key, &in.IfMatch, &in.IfNoneMatch); err != nil {
		return s3response.PutObjectOutput{}, err
	}
	out, err := st.Posix.PutObject(ctx, in)
	if err == nil {
		st.sendCreated(ctx, in.Bucket, in.Key, out.VersionID, "PutObject")
	}
	return out, err
}

// CopyObject copies an object.
func (st *store) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	defer st.lock(in.Bucket, in.Key)()
	out, err := st.Posix.CopyObject(ctx, in)
	if err == nil {
		st.sendCreated(ctx, in.Bucket, in.Key, aws.ToString(out.VersionId), "CopyObject")
	}
	return out, err
}

// CompleteMultipartUpload creates an object from its parts.
func (st *store) CompleteMultipartUpload(ctx context.Context,
	in *awss3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	defer st.lock(in.Bucket, in.Key)()
	if err := st.conditions(ctx, in.Bucket, in.Key, &in.IfMatch, &in.IfNoneMatch); err != nil {
		return s3response.CompleteMultipartUploadResult{}, "", err
	}
	out, version, err := st.Posix.CompleteMultipartUpload(ctx, in)
	if err == nil {
		st.sendCreated(ctx, in.Bucket, in.Key, version, "CompleteMultipartUpload")
	}
	return out, version, err
}

// DeleteObject deletes a version or adds a delete marker.
func (st *store) DeleteObject(ctx context.Context, in *awss3.DeleteObjectInput) (*awss3.DeleteObjectOutput, error) {
	defer st.lock(in.Bucket, in.Key)()
	before, version := st.current(ctx, in.Bucket, in.Key), aws.ToString(in.VersionId)
	if in.IfMatch != nil && version == "" {
		// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
		switch before {
		case absent:
			return nil, s3err.GetAPIError(s3err.ErrNoSuchKey)
		case marker:
			return nil, s3err.GetPreconditionFailedErr(s3err.ConditionIfMatch)
		case live:
			if *in.IfMatch == "*" {
				in.IfMatch = nil // the object exists, so If-Match: * holds
			}
		}
	}
	out, err := st.Posix.DeleteObject(ctx, in)
	if err != nil {
		return out, err
	}
	switch {
	case version == "" && aws.ToBool(out.DeleteMarker):
		st.sendDeleted(ctx, in.Bucket, in.Key, aws.ToString(out.VersionId), "Delete Marker Created")
	case version != "" || before != absent:
		st.sendDeleted(ctx, in.Bucket, in.Key, version, "Permanently Deleted")
	}
	return out, nil
}

// DeleteObjects deletes several objects. Each may fail by itself.
func (st *store) DeleteObjects(ctx context.Context, in *awss3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	result := s3response.DeleteResult{Deleted: []types.DeletedObject{}, Error: []types.Error{}}
	for _, o := range in.Delete.Objects {
		out, err := st.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: in.Bucket, Key: o.Key, VersionId: o.VersionId, IfMatch: o.ETag})
		if err != nil {
			result.Error = append(result.Error, s3err.ObjectDeleteError(o.Key, o.VersionId, err))
			continue
		}
		deleted := types.DeletedObject{Key: o.Key, VersionId: o.VersionId, DeleteMarker: out.DeleteMarker}
		if aws.ToBool(out.DeleteMarker) {
			deleted.DeleteMarkerVersionId = out.VersionId
		}
		result.Deleted = append(result.Deleted, deleted)
	}
	return result, nil
}

// Events in EventBridge's format. https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
type eventDetail struct {
	Version         string      `json:"version"`
	Bucket          eventBucket `json:"bucket"`
	Object          eventObject `json:"object"`
	RequestID       string      `json:"request-id"`
	Requester       string      `json:"requester"`
	SourceIPAddress string      `json:"source-ip-address"`
	Reason          string      `json:"reason"`
	DeletionType    string      `json:"deletion-type,omitempty"`
}

type eventBucket struct {
	Name string `json:"name"`
}

type eventObject struct {
	Key       string `json:"key"`
	Size      *int64 `json:"size,omitempty"`
	ETag      string `json:"etag,omitempty"`
	VersionID string `json:"version-id,omitempty"`
	Sequencer string `json:"sequencer"`
}

func (st *store) sendCreated(ctx context.Context, bucket, key *string, version, reason string) {
	if !st.s.sendsEvents(*bucket) {
		return
	}
	object := eventObject{VersionID: version}
	if head, err := st.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: key}); err == nil {
		object.Size, object.ETag = head.ContentLength, strings.Trim(aws.ToString(head.ETag), `"`)
	}
	st.s.send("Object Created", *bucket, *key, object, reason, "")
}

func (st *store) sendDeleted(_ context.Context, bucket, key *string, version, deletionType string) {
	if st.s.sendsEvents(*bucket) {
		st.s.send("Object Deleted", *bucket, *key, eventObject{VersionID: version}, "DeleteObject", deletionType)
	}
}

// send runs under the key's lock: later changes of a key have greater sequencers.
func (s *Service) send(detailType, bucket, key string, object eventObject, reason, deletionType string) {
	if object.VersionID == "null" {
		object.VersionID = ""
	}
	object.Key, object.Sequencer = key, s.sequencer()
	// The request's context ends with the request. The event must still be delivered.
	s.emit(context.Background(), detailType, eventDetail{
		Version: "0", Bucket: eventBucket{bucket}, Object: object, RequestID: strings.ToUpper(uuid.NewString()[:16]),
		Requester: s.identities.Account, SourceIPAddress: "127.0.0.1", Reason: reason, DeletionType: deletionType,
	}, []string{s.arn(bucket, "")})
}

// sequencer returns increasing values. They start from the time, so that they also increase across restarts.
func (s *Service) sequencer() string {
	for {
		last := s.sequence.Load()
		next := max(last+1, s.clock.Now().UnixNano())
		if s.sequence.CompareAndSwap(last, next) {
			return fmt.Sprintf("%016X", next)
		}
	}
}

// accounts lets the gateway verify the signatures of streaming uploads with the account's credentials. The front has
// authorized the caller already: every account is an administrator for the gateway.
type accounts struct{ identities *iam.Service }

var errReadOnly = errors.New("accounts are those of IAM")

func (a accounts) account(access string) (auth.Account, string, error) {
	_, secret, token, err := a.identities.Caller(access)
	if err != nil {
		return auth.Account{}, "", auth.ErrNoSuchUser
	}
	return auth.Account{Access: access, Secret: secret, Role: auth.RoleAdmin}, token, nil
}

func (a accounts) GetUserAccount(access string) (auth.Account, error) {
	account, _, err := a.account(access)
	return account, err
}

// DeriveSigningKey makes accounts an auth.SigningKeyProvider, which supports session tokens.
func (a accounts) DeriveSigningKey(access, sessionToken, date, region, service string) ([]byte, auth.Account, error) {
	account, token, err := a.account(access)
	if err != nil {
		return nil, auth.Account{}, err
	}
	if !hmac.Equal([]byte(token), []byte(sessionToken)) {
		return nil, auth.Account{}, auth.ErrInvalidSessionToken
	}
	key := []byte("AWS4" + account.Secret)
	for _, part := range []string{date, region, service, "aws4_request"} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	account.Secret = ""
	return key, account, nil
}

func (a accounts) ResolveAccounts(accessKeyIDs []string) (missing []string, err error) {
	for _, id := range accessKeyIDs {
		if _, err := a.GetUserAccount(id); err != nil {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

func (accounts) CreateAccount(auth.Account) error                  { return errReadOnly }
func (accounts) UpdateUserAccount(string, auth.MutableProps) error { return errReadOnly }
func (accounts) DeleteUserAccount(string) error                    { return errReadOnly }
func (accounts) ListUserAccounts() ([]auth.Account, error)         { return nil, errReadOnly }
func (accounts) Shutdown() error                                   { return nil }
