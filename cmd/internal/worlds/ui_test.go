package worlds

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/cmd/internal/ui"
	"github.com/drover-run/drover/shared/aws/s3"
)

// showPage opens the cluster of the account in Chromium: from drover ui, and from a published copy.
func showPage(t *testing.T) {
	if _, err := ui.Files(); err != nil {
		missing(t, err.Error())
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		missing(t, "chromium is missing: install Debian's package chromium")
	}
	mark := cloud.Calls.Mark()
	t.Run("on the loopback", func(t *testing.T) {
		browse(t, serveUI(t), "live")
	})
	for _, call := range cloud.Calls.Since(mark) {
		require.False(t, call.Mutating, "ui called %s %s", call.Service, call.Action)
	}
	t.Run("published", func(t *testing.T) {
		require.Contains(t, fails(t, "ui", "--publish", "s3://drover-state-000000000000-us-east-1/ui"), "are drover's own")
		e := cloud.Environment()
		client := s3.NewClient(aws.Config{
			Region: e["AWS_REGION"], BaseEndpoint: aws.String(e["AWS_ENDPOINT_URL"]),
			Credentials: credentials.NewStaticCredentialsProvider(e["AWS_ACCESS_KEY_ID"], e["AWS_SECRET_ACCESS_KEY"], ""),
		})
		bucket := "pages-of-tests"
		_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &bucket})
		require.NoError(t, err)
		require.Equal(t, "published 1 clusters to s3://pages-of-tests/fleet/index.html\n", ok(t, "ui", "--publish", "s3://pages-of-tests/fleet"))
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := "fleet" + r.URL.Path
			object, err := client.GetObject(r.Context(), &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
			if err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
			defer object.Body.Close()
			w.Header().Set("Content-Type", aws.ToString(object.ContentType))
			_, _ = io.Copy(w, object.Body)
		}))
		defer site.Close()
		browse(t, site.URL+"/index.html", "published")
	})
}

// missing skips a test, or fails it in CI, where everything that a test needs is installed.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// serveUI runs drover ui until the test ends, and returns the address that it prints.
func serveUI(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, os.Args[0], "ui")
	cmd.Env = []string{clitest.AsCommand + "=1", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true"}
	for key, value := range cloud.Environment() {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		require.Zero(t, cmd.ProcessState.ExitCode(), "Ctrl-C ends the command: %s", stderr.String())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, stderr.String())
	require.True(t, strings.HasPrefix(line, "http://127.0.0.1:"), line)
	return strings.TrimSpace(line)
}

// browse opens the page in Chromium and checks the cluster demo.
func browse(t *testing.T, url, mode string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(repository, "cmd", "internal", "ui", "web", "test", "account.mjs"), url, mode)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "every check passed")
}
