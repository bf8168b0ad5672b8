// Package kubernetes builds and runs real Kubernetes control planes: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, and KWOK in place of the kubelets.
package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Version is the Kubernetes version of the programs. build/go.mod requires it.
const Version = "v1.36.3"

// program is one binary.
type program struct {
	name, pkg string
	// client reports whether the program is not part of a control plane. Benchmarks use such programs.
	client bool
}

var programs = []program{
	{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
	{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", client: true},
	{name: "kubectl-unlimited", pkg: own + "kubectl-unlimited", client: true},
}

// own is the path of programs in the nested module itself.
const own = "github.com/drover-run/drover/local/kubernetes/build/"

// BinDir returns the directory of the programs, below the root of the repository.
func BinDir(root string) string {
	return filepath.Join(root, "build", "kubernetes", Version, "bin")
}

// Missing returns the programs of a control plane that are not built in dir.
func Missing(dir string) []string {
	var missing []string
	for _, p := range programs {
		if p.client {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
			missing = append(missing, p.name)
		}
	}
	return missing
}

// Build provides programs that are missing or out of date in BinDir(root), with clients also kubectl. It copies those that
// the folder in KUBEBUILDER_ASSETS has in the right version, and compiles the others. Compiling all takes about five minutes
// on two cores. root is the repository. progress may be nil; it receives a line for each step, and during a build one every
// half minute. A program is up to date while the versions of its module, the compiler and the flags are unchanged.
func Build(ctx context.Context, root string, clients bool, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	module := filepath.Join(root, "local", "kubernetes", "build")
	bin := BinDir(root)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("making the folder of the Kubernetes programs: %w", err)
	}
	stamp, err := buildStamp(ctx, module)
	if err != nil {
		return err
	}
	var stale []program
	stamps := map[string]string{}
	for _, p := range programs {
		if p.client && !clients {
			continue
		}
		if stamps[p.name], err = p.stamp(module, stamp); err != nil {
			return err
		}
		if !upToDate(bin, p, stamps[p.name]) {
			stale = append(stale, p)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	// First, so that a complete set of programs implies that the stages exist.
	if err := copyStages(ctx, module, stagesDir(bin)); err != nil {
		return err
	}
	missing := stale
	if from := os.Getenv(providedFolder); from != "" {
		if missing, err = takeProvided(ctx, module, from, bin, stale, progress); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		if err := compileShowing(ctx, module, bin, missing, progress); err != nil {
			return err
		}
	}
	for _, p := range stale {
		if err := os.WriteFile(stampFile(bin, p), []byte(stamps[p.name]), 0o644); err != nil {
			return fmt.Errorf("building %s: %w", p.name, err)
		}
	}
	return nil
}

// compileShowing compiles programs, and reports that it still does every half minute.
func compileShowing(ctx context.Context, module, bin string, missing []program, progress func(string)) error {
	var names []string
	for _, p := range missing {
		names = append(names, p.name)
	}
	progress(fmt.Sprintf("building %s, Kubernetes %s: about five minutes the first time, on two cores", strings.Join(names, ", "), Version))
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- compile(ctx, module, bin, missing) }()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				progress(fmt.Sprintf("built them in %s", time.Since(began).Round(time.Second)))
			}
			return err
		case <-ticker.C:
			progress(fmt.Sprintf("still building, for %s", time.Since(began).Round(time.Second)))
		}
	}
}

// podStages are files of KWOK's module that define its pods: Ready immediately, Jobs complete, deletion obeyed.
var podStages = []string{"pod-ready", "pod-complete", "pod-delete"}

func stagesDir(bin string) string { return filepath.Join(filepath.Dir(bin), "stages") }

// copyStages copies the stages to the programs' directory, from the version of KWOK that was built.
func copyStages(ctx context.Context, module, to string) error {
	// Download, because the module has no directory on a machine that has built nothing yet.
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kwok")
	cmd.Dir = module
	cmd.Env = buildEnv()
	body, err := cmd.Output()
	var kwok struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(body, &kwok)
	}
	if err != nil {
		return fmt.Errorf("finding KWOK's stages: %w", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("copying KWOK's stages: %w", err)
	}
	for _, stage := range podStages {
		b, err := os.ReadFile(filepath.Join(kwok.Dir, "kustomize", "stage", "pod", "fast", stage+".yaml"))
		if err != nil {
			return fmt.Errorf("copying KWOK's stages: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, stage+".yaml"), b, 0o644); err != nil {
			return fmt.Errorf("copying KWOK's stages: %w", err)
		}
	}
	return nil
}

// ldflags set the version that the programs report. Without them the API server reports v0.0.0 and kubectl warns.
func ldflags() string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range [][2]string{
			{"gitVersion", Version}, {"gitMajor", major}, {"gitMinor", minor}, {"gitTreeState", "clean"},
		} {
			flags = append(flags, "-X", pkg+"."+v[0]+"="+v[1])
		}
	}
	return strings.Join(flags, " ")
}

// compile compiles programs with one command: while one is linked, which takes one core, the next is compiled. Paths are
// not trimmed, so that Kubernetes packages that the repository uses too are compiled once for both.
func compile(ctx context.Context, module, bin string, stale []program) error {
	// A rename afterwards: an interrupted build never leaves a partial program.
	partial, err := os.MkdirTemp(bin, ".partial-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(partial)
	arguments := []string{"build", "-ldflags", ldflags(), "-o", partial + string(filepath.Separator)}
	for _, p := range stale {
		arguments = append(arguments, p.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = module
	cmd.Env = buildEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the Kubernetes programs: %w\n%s", err, lastLines(string(out), 20))
	}
	for _, p := range stale {
		if err := os.Rename(filepath.Join(partial, p.binaryName()), filepath.Join(bin, p.name)); err != nil {
			return fmt.Errorf("building %s: %w", p.name, err)
		}
	}
	return nil
}

// binaryName returns the name that the Go command gives a program: the last part of its package that is not a major version.
func (p program) binaryName() string {
	return path.Base(strings.TrimSuffix(p.pkg, "/v3"))
}

// buildEnv removes the caller's flags and workspaces, because the nested module's go.mod is complete.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
}

func upToDate(bin string, p program, stamp string) bool {
	if _, err := os.Stat(filepath.Join(bin, p.name)); err != nil {
		return false
	}
	was, err := os.ReadFile(stampFile(bin, p))
	return err == nil && string(was) == stamp
}

func stampFile(bin string, p program) string { return filepath.Join(bin, "."+p.name+".stamp") }

// stamp returns the stamp of the build, and for one of drover's own programs also a digest of its source.
func (p program) stamp(module, build string) (string, error) {
	folder, ours := strings.CutPrefix(p.pkg, own)
	if !ours {
		return build, nil
	}
	source, err := os.ReadFile(filepath.Join(module, folder, "main.go"))
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", p.name, err)
	}
	digest := sha256.Sum256(append([]byte(build), source...))
	return hex.EncodeToString(digest[:]), nil
}

// buildStamp returns a digest of everything that determines the programs, except the source of drover's own.
func buildStamp(ctx context.Context, module string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("finding the module of the Kubernetes programs: %w", err)
		}
		h.Write(b)
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir = module
	cmd.Env = buildEnv()
	compiler, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask the Go command for its version: %w", err)
	}
	h.Write(compiler)
	h.Write([]byte(ldflags()))
	return hex.EncodeToString(h.Sum(nil)), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
