package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/local/kubernetes"
)

// The flags of drover local are the rules and the seed of its control API.
func TestFaultsByFlags(t *testing.T) {
	require.Empty(t, kubernetes.Missing(kubernetes.BinDir(repository)), "run make local first")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rules := []string{"throttle service=cloudformation caller=nobody p=0.2", `drop event="An Event" rule=none nth=2`}
	cmd := exec.CommandContext(ctx, os.Args[0], "local", "--dir", t.TempDir(), "--build", filepath.Join(repository, "build"),
		"--fault", rules[0], "--fault", rules[1], "--fault-seed", "7")
	cmd.Env = []string{beDrover + "=1", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "NO_PROXY=127.0.0.1"}
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
		if _, after, is := strings.Cut(lines.Text(), " at http://"); is && url == "" {
			url = "http://" + strings.Fields(after)[0]
		}
		if strings.Contains(lines.Text(), "from now on: ") {
			begun++
		}
	}
	require.Equal(t, len(rules), begun, "%s", &errs)
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

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() { // or it could not end
	}
	err = cmd.Wait()
	ended = true
	require.NoError(t, err, "%s", &errs)
}
