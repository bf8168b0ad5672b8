package pool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
)

// ErrNoCluster means that EKS has no such cluster, or that it is still being created.
var ErrNoCluster = errors.New("the EKS cluster does not exist, or EKS still creates it")

// Node is a node of a pool, as join waits for it.
type Node struct {
	// Name is that of the Node object, Instance the EC2 instance that it runs on.
	Name, Instance string
	// Ready is the status of the condition Ready, ReadySince its last transition, Message its message.
	Ready      bool
	ReadySince time.Time
	Message    string
	// KubeletVersion such as v1.36.3-eks-abc.
	KubeletVersion string
	Labels         map[string]string
	// True lists the types of the conditions whose status is True.
	True []string
	// Draining reports whether drover drains the node.
	Draining bool
}

// NodeHealth is a node as the audit reads it, with all others of its cluster.
type NodeHealth struct {
	// Name is that of the Node object, Instance the EC2 instance that it runs on.
	Name, Instance, Pool string
	// Ready is the status of the condition Ready, Since its last transition, Message its message.
	Ready   bool
	Since   time.Time
	Message string
	// Cordoned reports whether the node accepts no new pods.
	Cordoned bool
	// KubeletVersion such as v1.36.3-eks-abc.
	KubeletVersion string
}

// Missing returns what a node lacks of the readiness that its pool requires, or "". A nil node has not registered.
func (n *Node) Missing(readiness *events.PoolReadiness) string {
	switch {
	case n == nil:
		return "the instance has not registered as a node: read its console output"
	case !n.Ready:
		return fmt.Sprintf("node %s is not Ready: %s", n.Name, n.Message)
	case readiness == nil:
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(readiness.Labels)) {
		if value, ok := n.Labels[key]; !ok || value != readiness.Labels[key] {
			return fmt.Sprintf("node %s is Ready, but does not have the label %s=%s that its pool waits for", n.Name, key, readiness.Labels[key])
		}
	}
	for _, condition := range readiness.Conditions {
		if !slices.Contains(n.True, condition) {
			return fmt.Sprintf("node %s is Ready, but its condition %s, which its pool waits for, is not True", n.Name, condition)
		}
	}
	return ""
}

// ReadyBefore reports whether the node became Ready before another. In the same second, the name decides.
func (n Node) ReadyBefore(other Node) bool {
	return cmp.Or(n.ReadySince.Compare(other.ReadySince), cmp.Compare(n.Name, other.Name)) < 0
}

// maxSkew is how many minor versions a kubelet may be behind its API server.
// https://kubernetes.io/releases/version-skew-policy/#kubelet
const maxSkew = 3

// KubeletSkew returns why a kubelet's version is not allowed with a control plane's, or "".
func KubeletSkew(kubelet, controlPlane string) string {
	kubeletMinor, err := minor(strings.TrimPrefix(kubelet, "v"))
	serverMinor, err2 := minor(controlPlane)
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	switch {
	case kubeletMinor > serverMinor:
		return fmt.Sprintf("the kubelet is %s, newer than the control plane (%s): use an image for %s or older", kubelet, controlPlane,
			controlPlane)
	case kubeletMinor < serverMinor-maxSkew:
		return fmt.Sprintf("the kubelet is %s, more than %d minor versions behind the control plane (%s): use a newer image", kubelet,
			maxSkew, controlPlane)
	}
	return ""
}

func minor(version string) (int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, fmt.Errorf("%q is not a Kubernetes version", version)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("%q is not a Kubernetes version", version)
	}
	return n, nil
}
