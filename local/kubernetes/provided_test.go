package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProvidedPrograms(t *testing.T) {
	from, bin := t.TempDir(), t.TempDir()
	write := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	write("kube-apiserver", `[ "$1" = --version ] && echo "Kubernetes `+Version+`"`)
	write("kube-scheduler", `echo "Kubernetes v1.2.3"`)
	write("kube-controller-manager", `exit 1`)
	write("etcd", `echo "etcd Version: $(cat `+filepath.Join(from, "etcd-version")+`)"; echo "Git SHA: x"`)
	write("kubectl", `[ "$1 $2" = "version --client" ] && echo "Client Version: `+Version+`"`)
	write("kubectl-unlimited", `echo "Kubernetes `+Version+`"`)
	var etcd string
	for _, p := range programs {
		if p.name == "etcd" {
			var err error
			etcd, err = p.version("build")
			require.NoError(t, err)
			require.Regexp(t, `^3\.\d+\.\d+$`, etcd)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(from, "etcd-version"), []byte(etcd), 0o600))
	var lines []string
	rest, err := takeProvided(t.Context(), "build", from, bin, programs, func(line string) { lines = append(lines, line) })
	require.NoError(t, err)
	var built []string
	for _, p := range rest {
		built = append(built, p.name)
	}
	require.Equal(t, []string{"kube-controller-manager", "kube-scheduler", "kwok", "kubectl-unlimited"}, built)
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		info, err := os.Stat(filepath.Join(bin, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode())
	}
	entries, err := os.ReadDir(bin)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no partial file is left")
	progress := strings.Join(lines, "\n")
	require.Contains(t, progress, "using kube-apiserver "+strings.TrimPrefix(Version, "v")+" of KUBEBUILDER_ASSETS")
	require.Contains(t, progress, "kube-scheduler: its version is 1.2.3, and "+strings.TrimPrefix(Version, "v")+" is needed")
	require.Contains(t, progress, "kube-controller-manager: its version is unknown: exit status 1")
}
