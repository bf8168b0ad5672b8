package s3_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func TestVersionTimes(t *testing.T) { everyStore(t, testVersionTimes) }

// A version keeps its creation time when a later one replaces it.
func testVersionTimes(t *testing.T) {
	b, c := newBucket(t, "times"), admin()
	created := map[string]time.Time{}
	for _, body := range []string{"one", "two"} {
		created[aws.ToString(putObject(t, c, b, "a", body).VersionId)] = time.Now()
		time.Sleep(1100 * time.Millisecond)
	}
	deleted, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: aws.String("a")})
	require.NoError(t, err)
	created[aws.ToString(deleted.VersionId)] = time.Now()
	time.Sleep(1100 * time.Millisecond)
	created[aws.ToString(putObject(t, c, b, "a", "three").VersionId)] = time.Now()
	listed, err := c.ListObjectVersions(t.Context(), &awss3.ListObjectVersionsInput{Bucket: &b})
	require.NoError(t, err)
	require.Len(t, listed.Versions, 3)
	require.Len(t, listed.DeleteMarkers, 1)
	for _, v := range listed.Versions {
		require.WithinDuration(t, created[aws.ToString(v.VersionId)], aws.ToTime(v.LastModified), time.Second)
	}
	require.WithinDuration(t, created[aws.ToString(listed.DeleteMarkers[0].VersionId)], aws.ToTime(listed.DeleteMarkers[0].LastModified),
		time.Second)
}
