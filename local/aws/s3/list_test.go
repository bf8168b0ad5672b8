package s3_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func TestLists(t *testing.T) { everyStore(t, testLists) }

func testLists(t *testing.T) {
	b, c := newBucket(t, "listed"), admin()
	listed := func(prefix string) []string {
		out, err := c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: &b, Prefix: &prefix})
		require.NoError(t, err)
		keys := []string{}
		for _, object := range out.Contents {
			keys = append(keys, *object.Key+" "+aws.ToString(object.ETag))
		}
		return keys
	}
	requireList := func(prefix string, want ...string) {
		t.Helper()
		for range 2 {
			require.Equal(t, append([]string{}, want...), listed(prefix))
		}
	}
	requireList("a/")
	one := "a/1 " + *putObject(t, c, b, "a/1", "one").ETag
	requireList("a/", one)
	requireList("b/")
	two := "b/2 " + *putObject(t, c, b, "b/2", "two").ETag
	requireList("a/", one)
	requireList("b/", two)
	requireList("", one, two)
	one = "a/1 " + *putObject(t, c, b, "a/1", "other").ETag
	requireList("", one, two)
	for _, key := range []string{"a/1", "b/2"} {
		_, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &b, Key: aws.String(key)})
		require.NoError(t, err)
		requireList(key)
	}
	requireList("")
}
