package pool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkew(t *testing.T) {
	tests := map[string]struct {
		kubelet, controlPlane string
		wrong                 string
	}{
		"the same minor is right":       {"v1.36.3-eks-1a2b3c4", "1.36", ""},
		"three minors behind is right":  {"v1.33.9-eks-1a2b3c4", "1.36", ""},
		"four minors behind is wrong":   {"v1.32.9", "1.36", "more than 3 minor versions behind"},
		"newer than the control plane":  {"v1.37.0", "1.36", "newer than the control plane"},
		"1.9 is older than 1.10":        {"v1.9.0", "1.10", ""},
		"what is no version is refused": {"banana", "1.36", `"banana" is not a Kubernetes version`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.wrong == "" {
				require.Empty(t, KubeletSkew(test.kubelet, test.controlPlane))
				return
			}
			require.Contains(t, KubeletSkew(test.kubelet, test.controlPlane), test.wrong)
		})
	}
}
