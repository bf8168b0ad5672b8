package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes"
)

// Flags of drover local set the fault rules and the seed, the port and the access key. drover local env prints the account's variables.
func TestFaultsByFlags(t *testing.T) {
	require.Empty(t, kubernetes.Missing(kubernetes.BinDir(repository)), "run make local first")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rules := []string{"throttle service=cloudformation caller=absent p=0.2", `drop event="An Event" rule=none nth=2`}
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "account")
	_, port, err := net.SplitHostPort(closedAddress(t))
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, os.Args[0], "local", "--dir", dir, "--build", filepath.Join(repository, "build"),
		"--fault", rules[0], "--fault", rules[1], "--fault-seed", "7",
		"--port", port, "--access-key-id", "AKIALOCALACCOUNT0001", "--secret-access-key", "local-secret")
	cmd.Env = []string{clitest.AsCommand + "=1", "HOME=" + home, "AWS_EC2_METADATA_DISABLED=true", "NO_PROXY=127.0.0.1"}
	cmd.Dir = repository
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs strings.Builder
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	url, begun := "", 0
	lines := bufio.NewScanner(out)
	for begun < len(rules) && lines.Scan() {
		if _, after, found := strings.Cut(lines.Text(), " at http://"); found && url == "" {
			url = "http://" + strings.Fields(after)[0]
		}
		if strings.Contains(lines.Text(), "from now on: ") {
			begun++
		}
	}
	require.Equal(t, len(rules), begun, "%s", &errs)
	// The address of the page, or why there is none.
	page := false
	for !page && lines.Scan() {
		page = strings.HasPrefix(lines.Text(), "The page of drover ui")
	}
	require.True(t, page, "%s", &errs)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+faults.Path, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var state faults.State
	require.NoError(t, json.NewDecoder(response.Body).Decode(&state))
	require.EqualValues(t, 7, state.Seed)
	var got []string
	for _, r := range state.Rules {
		got = append(got, r.Rule)
	}
	require.Equal(t, rules, got)

	require.Equal(t, "http://127.0.0.1:"+port, url)
	atHome := map[string]string{"HOME": home}
	env := droverIn(t, atHome, "local", "env")
	require.Equal(t, 0, env.Code, env.Stderr)
	require.Equal(t, `export AWS_ACCESS_KEY_ID=AKIALOCALACCOUNT0001
export AWS_DEFAULT_REGION=us-east-1
export AWS_ENDPOINT_URL=`+url+`
export AWS_REGION=us-east-1
export AWS_SECRET_ACCESS_KEY=local-secret
unset AWS_SESSION_TOKEN AWS_PROFILE
`, env.Stdout)
	require.Equal(t, env, droverIn(t, atHome, "local", "env", "--dir", dir))
	listed, err := filepath.Glob(filepath.Join(home, ".cache", "drover", "local", "*"))
	require.NoError(t, err)
	require.Len(t, listed, 1)
	info, err := os.Stat(listed[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again := droverIn(t, atHome, "local", "--dir", dir)
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "is in use: a local account runs in it, at "+url)
	shell := map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIALOCALACCOUNT0001", "AWS_SECRET_ACCESS_KEY": "local-secret",
	}
	require.Equal(t, 0, droverIn(t, shell, "status").Code)
	shell["AWS_ACCESS_KEY_ID"] = "AKIAANOTHERACCOUNT01"
	require.Contains(t, droverIn(t, shell, "status").Stderr, "the local account at "+url+" does not know your access key")

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() { // an unread pipe would block the process
	}
	err = cmd.Wait()
	ended = true
	require.NoError(t, err, "%s", &errs)
	require.NoFileExists(t, listed[0])
	after := droverIn(t, atHome, "local", "--dir", dir)
	require.Equal(t, 1, after.Code)
	require.Contains(t, after.Stderr, "is not empty: a local account lives as long as its process")
}
