package s3

// Creation times of versions. The gateway lists a version that is no longer current with the time when it was replaced.
// S3 lists the time when it was created. The gateway's version IDs are ULIDs, which begin with that time.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ObjectVersion.html

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/oklog/ulid/v2"
)

var (
	listedVersion  = regexp.MustCompile(`(?s)<(Version|DeleteMarker)>.*?</(Version|DeleteMarker)>`)
	listedID       = regexp.MustCompile(`<VersionId>([^<]*)</VersionId>`)
	listedModified = regexp.MustCompile(`<LastModified>[^<]*</LastModified>`)
)

// correctVersionTimes rewrites the gateway's answer to ListObjectVersions.
func correctVersionTimes(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading a list of versions: %w", err)
	}
	_ = response.Body.Close()
	body = listedVersion.ReplaceAllFunc(body, func(version []byte) []byte {
		found := listedID.FindSubmatch(version)
		if found == nil {
			return version
		}
		id, err := ulid.ParseStrict(string(found[1]))
		if err != nil { // such as null, in buckets without versions
			return version
		}
		return listedModified.ReplaceAll(version, []byte("<LastModified>"+stamp(ulid.Time(id.Time()))+"</LastModified>"))
	})
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
