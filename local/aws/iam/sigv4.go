package iam

// Signature Version 4: verification computes the signature from the request and the caller's secret.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	signingAlgorithm = "AWS4-HMAC-SHA256"
	signingTime      = "20060102T150405Z"
	// maxSkew is the greatest difference between the times of a request and of the account.
	maxSkew = 15 * time.Minute
	// maxPresigned is the longest validity of a presigned URL.
	maxPresigned = 7 * 24 * time.Hour
)

// Signature is the unverified claim of a request.
type Signature struct {
	AccessKeyID, Date, Region, Service string
	SignedHeaders                      []string
	Signature, SessionToken            string
	Time                               time.Time
	// Expires is the validity of a presigned URL, or 0 for signed headers.
	Expires time.Duration

	presigned bool
	// trusted reports whether this is an unsigned request from the process: see WithAccessKey.
	trusted bool
}

type accessKeyContext struct{}

// WithAccessKey returns the context of an unsigned request that counts as signed with an access key. Only code in this
// process can create one. An unknown or expired key fails as it does in a signature.
func WithAccessKey(ctx context.Context, accessKeyID, region, service string) context.Context {
	return context.WithValue(ctx, accessKeyContext{}, &Signature{AccessKeyID: accessKeyID, Region: region, Service: service, trusted: true})
}

// Trusted reports whether this is an unsigned request from this process.
func (s *Signature) Trusted() bool { return s.trusted }

// ParseSignature returns the signature of a request, from its Authorization header or its query. Error codes:
// MissingAuthenticationToken, IncompleteSignature.
func ParseSignature(r *http.Request) (*Signature, error) {
	if trusted, ok := r.Context().Value(accessKeyContext{}).(*Signature); ok {
		return trusted, nil
	}
	query := r.URL.Query()
	if query.Has("X-Amz-Signature") || query.Has("X-Amz-Credential") {
		return parsePresigned(query)
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return nil, errorf(403, "MissingAuthenticationToken", "Missing Authentication Token")
	}
	rest, ok := strings.CutPrefix(header, signingAlgorithm+" ")
	if !ok {
		return nil, errorf(403, "IncompleteSignature", "Authorization header requires the algorithm %s.", signingAlgorithm)
	}
	fields := map[string]string{}
	for _, part := range strings.Split(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[k] = v
	}
	for _, k := range []string{"Credential", "Signature", "SignedHeaders"} {
		if fields[k] == "" {
			return nil, errorf(403, "IncompleteSignature", "Authorization header requires '%s' parameter.", k)
		}
	}
	s := &Signature{
		Signature: fields["Signature"], SignedHeaders: strings.Split(fields["SignedHeaders"], ";"),
		SessionToken: r.Header.Get("X-Amz-Security-Token"),
	}
	if err := s.parseScope(fields["Credential"]); err != nil {
		return nil, err
	}
	return s, s.parseTime(r.Header.Get("X-Amz-Date"))
}

func parsePresigned(query url.Values) (*Signature, error) {
	for _, k := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date"} {
		if query.Get(k) == "" {
			return nil, errorf(403, "IncompleteSignature", "AWS query-string parameters must include '%s'.", k)
		}
	}
	if query.Get("X-Amz-Algorithm") != signingAlgorithm {
		return nil, errorf(403, "IncompleteSignature", "X-Amz-Algorithm must be %s.", signingAlgorithm)
	}
	s := &Signature{
		Signature: query.Get("X-Amz-Signature"), SignedHeaders: strings.Split(query.Get("X-Amz-SignedHeaders"), ";"),
		SessionToken: query.Get("X-Amz-Security-Token"), presigned: true, Expires: maxSkew,
	}
	if text := query.Get("X-Amz-Expires"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 || time.Duration(seconds)*time.Second > maxPresigned {
			return nil, errorf(403, "IncompleteSignature", "X-Amz-Expires must be between 1 and 604800 seconds, not %q.", text)
		}
		s.Expires = time.Duration(seconds) * time.Second
	}
	if err := s.parseScope(query.Get("X-Amz-Credential")); err != nil {
		return nil, err
	}
	return s, s.parseTime(query.Get("X-Amz-Date"))
}

func (s *Signature) parseScope(credential string) error {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != "aws4_request" {
		return errorf(403, "IncompleteSignature", "Credential must have exactly 5 slash-delimited elements, e.g. "+
			"keyid/date/region/service/term, got '%s'", credential)
	}
	s.AccessKeyID, s.Date, s.Region, s.Service = parts[0], parts[1], parts[2], parts[3]
	return nil
}

func (s *Signature) parseTime(text string) error {
	t, err := time.Parse(signingTime, text)
	if err != nil {
		return errorf(403, "IncompleteSignature", "Authorization requires a valid 'X-Amz-Date', got %q.", text)
	}
	if !strings.HasPrefix(text, s.Date) {
		return errorf(403, "SignatureDoesNotMatch", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "+
			"'%s' != '%s', from '%s'.", s.Date, text[:8], text)
	}
	s.Time = t
	return nil
}

// Verify verifies the signature of a request and returns the caller. payloadHash is the SHA-256 of the body in
// hexadecimal, or UNSIGNED-PAYLOAD. Error codes: InvalidClientTokenId, ExpiredToken, SignatureDoesNotMatch.
func (s *Service) Verify(r *http.Request, sig *Signature, payloadHash string) (Caller, error) {
	caller, secret, token, err := s.Caller(sig.AccessKeyID)
	if err != nil || sig.trusted {
		return caller, err
	}
	if !hmac.Equal([]byte(token), []byte(sig.SessionToken)) {
		return Caller{}, errorf(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
	}
	now := s.clock.Now()
	switch age := now.Sub(sig.Time); {
	case age < -maxSkew:
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "Signature not yet current: %s is still later than %s (%s + 15 min.)",
			sig.Time.Format(signingTime), now.Add(maxSkew).Format(signingTime), now.Format(signingTime))
	case !sig.presigned && age > maxSkew:
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "Signature expired: %s is now earlier than %s (%s - 15 min.)",
			sig.Time.Format(signingTime), now.Add(-maxSkew).Format(signingTime), now.Format(signingTime))
	case sig.presigned && age > sig.Expires:
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "Signature expired: %s is now earlier than %s (%s - %d s)",
			sig.Time.Format(signingTime), now.Add(-sig.Expires).Format(signingTime), now.Format(signingTime), int(sig.Expires.Seconds()))
	}
	if !slices.Contains(sig.SignedHeaders, "host") {
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	canonical := canonicalRequest(r, sig, payloadHash)
	hash := sha256.Sum256([]byte(canonical))
	scope := strings.Join([]string{sig.Date, sig.Region, sig.Service, "aws4_request"}, "/")
	text := strings.Join([]string{signingAlgorithm, sig.Time.Format(signingTime), scope, hex.EncodeToString(hash[:])}, "\n")
	if !hmac.Equal([]byte(hex.EncodeToString(authenticate(s.signingKey(secret, sig), text))), []byte(sig.Signature)) {
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return caller, nil
}

// signingKey returns the key of a secret for a day, a region and a service. It caches the latest keys, because calls are
// frequent.
func (s *Service) signingKey(secret string, sig *Signature) []byte {
	of := signingScope{secret, sig.Date, sig.Region, sig.Service}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.signingKeys[of]; ok {
		return key
	}
	key := []byte("AWS4" + secret)
	for _, part := range []string{sig.Date, sig.Region, sig.Service, "aws4_request"} {
		key = authenticate(key, part)
	}
	if s.signingKeys == nil || len(s.signingKeys) >= maxSigningKeys {
		s.signingKeys = map[signingScope][]byte{}
	}
	s.signingKeys[of] = key
	return key
}

const maxSigningKeys = 1000

type signingScope struct{ secret, date, region, service string }

func authenticate(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func canonicalRequest(r *http.Request, sig *Signature, payloadHash string) string {
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	if sig.Service != "s3" {
		path = escapePath(path) // every service except S3 signs the path escaped twice
	}
	var headers strings.Builder
	for _, name := range sig.SignedHeaders {
		var value string
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		default:
			value = canonicalHeader(r.Header.Values(name))
		}
		headers.WriteString(name)
		headers.WriteByte(':')
		headers.WriteString(value)
		headers.WriteByte('\n')
	}
	return strings.Join([]string{
		r.Method, path, canonicalQuery(r.URL.Query()), headers.String(), strings.Join(sig.SignedHeaders, ";"), payloadHash,
	}, "\n")
}

// canonicalHeader joins a header's values with single spaces.
func canonicalHeader(values []string) string {
	if len(values) == 1 && strings.IndexByte(values[0], ' ') < 0 && strings.TrimSpace(values[0]) == values[0] {
		return values[0]
	}
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for _, k := range slices.SortedFunc(maps.Keys(query), func(a, b string) int { return strings.Compare(escape(a), escape(b)) }) {
		if k == "X-Amz-Signature" {
			continue
		}
		values := slices.Clone(query[k])
		slices.SortFunc(values, func(a, b string) int { return strings.Compare(escape(a), escape(b)) })
		for _, v := range values {
			pairs = append(pairs, escape(k)+"="+escape(v))
		}
	}
	return strings.Join(pairs, "&")
}

func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

// escape leaves only the unreserved characters of RFC 3986 unescaped.
func escape(s string) string {
	const hexadecimal = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
	}
	return b.String()
}

// VerifyPresigned verifies a presigned GetCallerIdentity URL, which is the content of an EKS token. As in the cluster's
// authenticator, the header x-k8s-aws-id must be signed and have the value cluster, and the URL must be at most 15
// minutes old. https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
func (s *Service) VerifyPresigned(_ context.Context, presigned, cluster string) (Caller, error) {
	u, err := url.Parse(presigned)
	if err != nil {
		return Caller{}, errorf(403, "AccessDenied", "the token holds no URL: %v", err)
	}
	query := u.Query()
	if u.Scheme != "https" && u.Scheme != "http" || u.Path != "/" && u.Path != "" || query.Get("Action") != "GetCallerIdentity" ||
		query.Get("Version") != "2011-06-15" {
		return Caller{}, errorf(403, "AccessDenied", "the token is not a presigned GetCallerIdentity call")
	}
	for k := range query {
		if k != "Action" && k != "Version" && !strings.HasPrefix(k, "X-Amz-") && k != "x-amz-content-sha256" {
			return Caller{}, errorf(403, "AccessDenied", "the token has the parameter %q, which is not allowed", k)
		}
	}
	sig, err := parsePresigned(query)
	if err != nil {
		return Caller{}, err
	}
	if sig.Service != "sts" {
		return Caller{}, errorf(403, "SignatureDoesNotMatch", "Credential should be scoped to correct service: 'sts'.")
	}
	if !slices.Contains(sig.SignedHeaders, "x-k8s-aws-id") {
		return Caller{}, errorf(403, "AccessDenied", "the token does not sign the header x-k8s-aws-id")
	}
	sig.Expires = maxSkew // STS accepts these for 15 minutes whatever X-Amz-Expires says
	r := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{"X-K8s-Aws-Id": {cluster}}}
	empty := sha256.Sum256(nil)
	return s.Verify(r, sig, hex.EncodeToString(empty[:]))
}
