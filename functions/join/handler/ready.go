package handler

// What a node must be before it counts.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/kube"
)

// missing says what a node lacks to count, or nothing.
func missing(node *kube.Node, readiness *events.PoolReadiness) string {
	switch {
	case node == nil:
		return "the instance has not registered as a node: read its console output"
	case !node.Ready:
		return fmt.Sprintf("node %s is not Ready: %s", node.Name, node.Message)
	case readiness == nil:
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(readiness.Labels)) {
		if value, ok := node.Labels[key]; !ok || value != readiness.Labels[key] {
			return fmt.Sprintf("node %s is Ready, but has not the label %s=%s that its pool waits for", node.Name, key, readiness.Labels[key])
		}
	}
	for _, condition := range readiness.Conditions {
		if !slices.Contains(node.True, condition) {
			return fmt.Sprintf("node %s is Ready, but its condition %s, which its pool waits for, is not True", node.Name, condition)
		}
	}
	return ""
}

// oldest is how many minors a kubelet may be behind its API server.
// https://kubernetes.io/releases/version-skew-policy/#kubelet
const oldest = 3

// skew says what is wrong with a kubelet's version beside the control plane's, or nothing.
func skew(kubelet, controlPlane string) string {
	node, err := minor(strings.TrimPrefix(kubelet, "v"))
	server, err2 := minor(controlPlane)
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	switch {
	case node > server:
		return fmt.Sprintf("the kubelet is %s, newer than the control plane (%s): use an image for %s or older", kubelet, controlPlane,
			controlPlane)
	case node < server-oldest:
		return fmt.Sprintf("the kubelet is %s, more than %d minors behind the control plane (%s): use a newer image", kubelet,
			oldest, controlPlane)
	}
	return ""
}

func minor(version string) (int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, fmt.Errorf("%q is no Kubernetes version", version)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("%q is no Kubernetes version", version)
	}
	return n, nil
}
