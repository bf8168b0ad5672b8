package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is the timeout of operations that take seconds. It suffices on a machine that has a tenth of the time for
// them.
const patience = 3 * time.Minute

// bin returns the directory of the programs. It skips the test if they are not built.
func bin(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(BinDir("../.."))
	require.NoError(t, err)
	if missing := Missing(dir); len(missing) > 0 {
		t.Fatalf("%s not built in %s: run `make kubernetes` first", strings.Join(missing, ", "), dir)
	}
	return dir
}

func TestControlPlane(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	c, err := Start(t.Context(), Options{Name: "test", Dir: dir, BinDir: bin(t), ServiceCIDR: "172.20.0.0/16", Minor: "1.35", Measured: true})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	client := c.client()
	get := func(path string) error {
		_, err := c.read(t.Context(), client, path)
		return err
	}

	call := func(t *testing.T, method, path, contentType, body string) map[string]any {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, c.Endpoint+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Authorization", "Bearer "+c.AdminToken)
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Less(t, res.StatusCode, 300, string(b))
		var out map[string]any
		require.NoError(t, json.Unmarshal(b, &out), string(b))
		return out
	}
	nodeReady := func(t *testing.T, name string) string {
		status := call(t, http.MethodGet, "/api/v1/nodes/"+name, "", "")["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Ready" {
				return c["status"].(string)
			}
		}
		return "absent"
	}

	t.Run("emulates the minor version", func(t *testing.T) {
		v := call(t, http.MethodGet, "/version", "", "")
		require.Equal(t, []any{"v1.36.3", "35"}, []any{v["gitVersion"], v["emulationMinor"]})
	})
	t.Run("runs the controllers and the scheduler with low priority", func(t *testing.T) {
		priority := func(pid int) int {
			p, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid)
			require.NoError(t, err)
			return p
		}
		last := []string{"kube-controller-manager", "kube-scheduler"}
		for name, p := range c.parts {
			require.Equal(t, slices.Contains(last, name), priority(p.cmd.Process.Pid) != priority(os.Getpid()), name)
		}
	})
	t.Run("rejects requests without a valid token", func(t *testing.T) {
		for token, answer := range map[string]int{
			"": http.StatusForbidden, "Bearer ": http.StatusForbidden, "Bearer " + c.AdminToken[1:]: http.StatusUnauthorized,
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Endpoint+"/api/v1/nodes", nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", token)
			res, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, answer, res.StatusCode, token)
		}
	})
	t.Run("hides its users' tokens from other users", func(t *testing.T) {
		for _, name := range []string{"tokens.csv", "admin.kubeconfig", "kwok.kubeconfig"} {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
		}
	})
	t.Run("makes a node Ready when its network is ready", func(t *testing.T) {
		call(t, http.MethodPost, "/api/v1/nodes", "application/json", `{"metadata":{"name":"n1"}}`)
		call(t, http.MethodPost, "/api/v1/nodes", "application/json",
			`{"metadata":{"name":"n2","annotations":{"local.drover.run/network":"ready"}},`+
				`"status":{"capacity":{"cpu":"2","memory":"8Gi","pods":"29"}}}`)
		require.Eventually(t, func() bool { return nodeReady(t, "n2") == "True" }, patience, 50*time.Millisecond)
		require.NotEqual(t, "True", nodeReady(t, "n1"))
		call(t, http.MethodPatch, "/api/v1/nodes/n1", "application/merge-patch+json",
			`{"metadata":{"annotations":{"local.drover.run/network":"ready"}}}`)
		require.Eventually(t, func() bool { return nodeReady(t, "n1") == "True" }, patience, 50*time.Millisecond)
	})
	t.Run("schedules and runs pods", func(t *testing.T) {
		call(t, http.MethodPost, "/apis/apps/v1/namespaces/default/deployments", "application/json",
			`{"metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},`+
				`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`)
		require.Eventually(t, func() bool {
			status := call(t, http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/web", "", "")["status"].(map[string]any)
			return status["availableReplicas"] == float64(2)
		}, patience, 100*time.Millisecond)
	})
	t.Run("obeys the durations in a pod's annotations", func(t *testing.T) {
		created := time.Now()
		call(t, http.MethodPost, "/api/v1/namespaces/default/pods", "application/json", `{"metadata":{"name":"slow","annotations":{"`+
			ReadyAfter+`":"0.5","`+EndsAfter+`":"60"}},
			"spec":{"nodeName":"n2","terminationGracePeriodSeconds":1,"containers":[{"name":"slow","image":"slow:1"}]}}`)
		require.Eventually(t, func() bool {
			return call(t, http.MethodGet, "/api/v1/namespaces/default/pods/slow", "", "")["status"].(map[string]any)["phase"] == "Running"
		}, patience, 20*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(created), 400*time.Millisecond)
		deleted := time.Now()
		call(t, http.MethodDelete, "/api/v1/namespaces/default/pods/slow", "", "")
		require.Eventually(t, func() bool { return get("/api/v1/namespaces/default/pods/slow") != nil }, patience, 20*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(deleted), 900*time.Millisecond, "its grace period bounds it")
	})
	// deletions returns the number of deletions of single pods that the API server answered, with any result.
	deletions := func(t *testing.T) (n int) {
		t.Helper()
		b, err := c.read(t.Context(), client, "/metrics")
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="pods"`) &&
				strings.Contains(line, `verb="DELETE"`) {
				count, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
				require.NoError(t, err)
				n += count
			}
		}
		return n
	}
	running := func(t *testing.T, name, metadata string) (path string) {
		t.Helper()
		call(t, http.MethodPost, "/api/v1/namespaces/default/pods", "application/json",
			fmt.Sprintf(`{"metadata":{"name":%q%s},"spec":{"nodeName":"n2","containers":[{"name":"c","image":"c:1"}]}}`, name, metadata))
		path = "/api/v1/namespaces/default/pods/" + name
		require.Eventually(t, func() bool {
			return call(t, http.MethodGet, path, "", "")["status"].(map[string]any)["phase"] == "Running"
		}, patience, 20*time.Millisecond)
		return path
	}
	t.Run("requests the deletion of an ended pod once", func(t *testing.T) {
		var paths []string
		for i := range 20 {
			paths = append(paths, running(t, fmt.Sprintf("once-%d", i), ""))
		}
		before := deletions(t)
		for _, path := range paths {
			call(t, http.MethodDelete, path, "", "")
		}
		for _, path := range paths {
			require.Eventually(t, func() bool { return get(path) != nil }, patience, 20*time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond) // for late requests
		// A pod that takes a second to end, because the processors are busy, is requested again.
		require.InDelta(t, 2*len(paths), deletions(t)-before, float64(len(paths)/4), "once by the client, and once by the kubelet")
	})
	t.Run("repeats the request if the pod still exists", func(t *testing.T) {
		path := running(t, "held", `,"finalizers":["example.com/hold"]`)
		// On busy processors, repeated requests for the pods above come a second later.
		before := deletions(t)
		for quiet := time.Now(); time.Since(quiet) < 2*time.Second; time.Sleep(100 * time.Millisecond) {
			if n := deletions(t); n > before {
				before, quiet = n, time.Now()
			}
		}
		call(t, http.MethodDelete, path+"?gracePeriodSeconds=0", "", "")
		require.EqualValues(t, 0, call(t, http.MethodGet, path, "", "")["metadata"].(map[string]any)["deletionGracePeriodSeconds"])
		require.Eventually(t, func() bool {
			return deletions(t)-before >= 2
		}, patience, 20*time.Millisecond, "once by the client, and once by the kubelet")
		call(t, http.MethodPatch, path, "application/merge-patch+json", `{"metadata":{"finalizers":null}}`)
		require.Eventually(t, func() bool { return get(path) != nil }, patience, 20*time.Millisecond)
	})
	t.Run("makes pods Ready again once their node is Ready", func(t *testing.T) {
		pod := running(t, "recovers", "")
		const network = `{"metadata":{"annotations":{"local.drover.run/network":%s}}}`
		const condition = `{"status":{"conditions":[{"type":"Ready","status":%q}]}}`
		podReady := func() string {
			conditions := call(t, http.MethodGet, pod, "", "")["status"].(map[string]any)["conditions"].([]any)
			i := slices.IndexFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Ready" })
			return conditions[i].(map[string]any)["status"].(string)
		}
		// KWOK reports no node Ready whose network is not, and node lifecycle marks its pods.
		call(t, http.MethodPatch, "/api/v1/nodes/n2", "application/merge-patch+json", fmt.Sprintf(network, "null"))
		strategic := "application/strategic-merge-patch+json"
		call(t, http.MethodPatch, "/api/v1/nodes/n2/status", strategic, fmt.Sprintf(condition, "Unknown"))
		call(t, http.MethodPatch, pod+"/status", strategic, fmt.Sprintf(condition, "False"))
		time.Sleep(3 * podSyncInterval)
		require.Equal(t, "False", podReady(), "the node is not Ready")
		call(t, http.MethodPatch, "/api/v1/nodes/n2", "application/merge-patch+json", fmt.Sprintf(network, `"ready"`))
		require.Eventually(t, func() bool { return nodeReady(t, "n2") == "True" }, patience, 50*time.Millisecond)
		require.Eventually(t, func() bool { return podReady() == "True" }, time.Minute, 100*time.Millisecond)
	})
	t.Run("keeps its data when the minor version changes", func(t *testing.T) {
		require.NoError(t, c.SetMinor(t.Context(), "1.36"))
		require.Equal(t, "36", call(t, http.MethodGet, "/version", "", "")["emulationMinor"])
		call(t, http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/web", "", "")
		require.ErrorContains(t, c.SetMinor(t.Context(), "1.37"), "cannot act as 1.37")
	})
	t.Run("answers for its settings", func(t *testing.T) {
		require.NoError(t, c.Configure(t.Context(), Settings{
			EventTTL: "10m", NodePorts: "20000-20009", HPASyncPeriod: "10s", TerminatedPodThreshold: 500,
		}))
		require.Contains(t, c.apiserverArguments(), "--event-ttl=10m")
		service := func(name, port string) string {
			return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":"NodePort","ports":[{"port":80%s}]}}`, name, port)
		}
		const services = "/api/v1/namespaces/default/services"
		made := call(t, http.MethodPost, services, "application/json", service("inside", ""))
		port := made["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["nodePort"].(float64)
		require.True(t, port >= 20000 && port <= 20009, port)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.Endpoint+services, strings.NewReader(service("outside",
			`,"nodePort":30000`)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+c.AdminToken)
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, string(body))
		require.Contains(t, string(body), "The range of valid ports is 20000-20009")
	})
	t.Run("restarts a program that dies", func(t *testing.T) {
		p := c.parts["kube-apiserver"]
		require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
		require.Eventually(t, func() bool { return get("/readyz") != nil }, patience, time.Millisecond)
		require.Eventually(t, func() bool { return get("/readyz") == nil }, patience, 50*time.Millisecond)
	})
	t.Run("runs nothing after Stop", func(t *testing.T) {
		var pids []int
		for _, p := range c.parts {
			pids = append(pids, p.cmd.Process.Pid)
		}
		require.Len(t, pids, 5)
		c.Stop()
		c.Stop()
		for _, pid := range append(pids, c.guard.cmd.Process.Pid) {
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		}
		require.NoDirExists(t, filepath.Join(dir, "etcd"))
		require.FileExists(t, filepath.Join(dir, "kube-apiserver.log"))
		_, err := net.Dial("tcp", strings.TrimPrefix(c.Endpoint, "https://"))
		require.Error(t, err)
	})
}

// fakeBin returns a directory in which every program is the shell script.
func fakeBin(t *testing.T, script string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bin")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, p := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, p.name), []byte("#!/bin/sh\n"+script), 0o755))
	}
	require.NoError(t, os.MkdirAll(stagesDir(dir), 0o755))
	for _, stage := range podStages {
		require.NoError(t, os.WriteFile(filepath.Join(stagesDir(dir), stage+".yaml"), []byte("spec:\n  next:\n"), 0o600))
	}
	return dir
}

func TestStartRefuses(t *testing.T) {
	occupied := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(occupied, "left"), nil, 0o600))
	idle := fakeBin(t, "sleep 60")
	tests := map[string]struct {
		options Options
		want    string
	}{
		"programs that are not built, and says how to": {
			Options{Name: "demo", BinDir: t.TempDir()},
			"starting cluster demo: kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kwok not built"},
		"a minor version it cannot act as": {Options{BinDir: idle, Minor: "1.37"}, "cannot act as 1.37, only as 1.33 to 1.36"},
		"a minor version that is none":     {Options{BinDir: idle, Minor: "1.036"}, "cannot act as 1.036"},
		"a folder that something is in":    {Options{BinDir: idle, Dir: occupied, ServiceCIDR: "10.0.0.0/16"}, "must be empty"},
		"a service CIDR that is none": {
			Options{BinDir: idle, Dir: t.TempDir(), ServiceCIDR: "10.0.0.0"}, "service CIDR: invalid CIDR address",
		},
		"a program that dies, with its last words": {
			Options{BinDir: fakeBin(t, "echo no such flag >&2; exit 3"), Dir: t.TempDir(), ServiceCIDR: "10.0.0.0/16"},
			"died: exit status 3; the end of"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), tt.options)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := Start(t.Context(), Options{BinDir: fakeBin(t, "echo no such flag >&2; exit 3"), Dir: t.TempDir(), ServiceCIDR: "10.0.0.0/16"})
	require.ErrorContains(t, err, "no such flag")
}

// TestOrphan is the process that dies without stopping its programs, in TestProcessesEndWithTheirParent.
func TestOrphan(t *testing.T) {
	dir := os.Getenv("ORPHAN_DIR")
	if dir == "" {
		t.SkipNow()
	}
	g, err := newGuard()
	require.NoError(t, err)
	p, err := startProcess("sleeper", dir, []string{"sleep", "600"}, memory, g, func(*process, error) {})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "partial"), []byte(strconv.Itoa(p.cmd.Process.Pid)), 0o600))
	require.NoError(t, os.Rename(filepath.Join(dir, "partial"), filepath.Join(dir, "pid")))
	select {}
}

func TestProcessesEndWithTheirParent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$")
	cmd.Env = append(os.Environ(), "ORPHAN_DIR="+dir)
	require.NoError(t, cmd.Start())
	var pid int
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(string(b))
		return err == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(pid, 0), "it runs")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return dead(pid) }, patience, 10*time.Millisecond)
}

// If the process ends after it started a program and before the guard knows it, the program ends too: it has not begun.
func TestProgramWaitsForTheGuard(t *testing.T) {
	for name, c := range map[string]struct {
		input  string
		begins bool
	}{"let in": {"go\n", true}, "left alone": {"", false}} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "begun")
			cmd := exec.Command("/bin/sh", "-c", gatedScript, "toucher", "/bin/sh", "-c", `echo $$ >"$1"`, "x", file)
			cmd.Stdin = strings.NewReader(c.input)
			err := cmd.Run()
			if !c.begins {
				require.Error(t, err)
				require.NoFileExists(t, file)
				return
			}
			require.NoError(t, err)
			pid, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(cmd.Process.Pid), strings.TrimSpace(string(pid)), "in the process that the guard knows")
		})
	}
}

// dead reports whether a process has ended, even if its parent has not collected it yet.
func dead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

func TestBuildModule(t *testing.T) {
	b, err := os.ReadFile("build/go.mod")
	require.NoError(t, err)
	has := func(text string) bool { return bytes.Contains(b, []byte(text)) }
	require.True(t, has("\tk8s.io/kubernetes "+Version+" //"), "Version is what go.mod requires")
	for _, p := range programs {
		if folder, ours := strings.CutPrefix(p.pkg, own); ours {
			require.FileExists(t, filepath.Join("build", folder, "main.go"))
			continue
		}
		require.True(t, has("\t"+p.pkg+"\n"), "%s is a tool of the module", p.pkg)
	}
}

// Most Kubernetes packages use one of these. With another version all of them would be compiled twice, once for the
// programs and once for drover.
func TestModulesShareVersions(t *testing.T) {
	versions := func(file string) map[string]string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		found := map[string]string{}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[1] != "=>" {
				found[f[0]] = f[1]
			}
		}
		return found
	}
	ours, kubernetes := versions("../../go.mod"), versions("build/go.mod")
	for _, module := range []string{
		"golang.org/x/crypto", "golang.org/x/net", "golang.org/x/oauth2", "golang.org/x/sys", "golang.org/x/term", "golang.org/x/text",
		"golang.org/x/time",
		"github.com/fxamacker/cbor/v2", "github.com/go-openapi/jsonreference", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "k8s.io/client-go",
	} {
		require.NotEmpty(t, ours[module], module)
		require.Equal(t, ours[module], kubernetes[module], "%s: go get the newer version in the other module", module)
	}
}
