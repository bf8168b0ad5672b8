package storm

// Control planes whose version is changed by one minor outside drover. The status reports it, and an upgrade to a
// release of that version updates the stack.

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/shared/names"
)

// changeVersion updates a control plane's version outside drover. EKS may refuse.
func (w *world) changeVersion(cluster string, minor int) {
	_, err := w.EKS.UpdateClusterVersion(w.t.Context(), w.Admin(), eks.UpdateClusterVersionInput{
		Name: names.EKSCluster(cluster), Version: fmt.Sprintf("1.%d", minor),
	})
	if err != nil {
		w.record("the control plane of %s is not moved: %v", cluster, err)
		return
	}
	w.affectedStacks(cluster)[all] = true
	w.changedVersions[cluster] = minor
}

// externalVersion returns the minor version that EKS has or is moving to, if it differs from the version of the stack; otherwise 0.
func (w *world) externalVersion(cluster string) int {
	out, err := w.EKS.DescribeCluster(w.t.Context(), w.Admin(), eks.NamedInput{Name: names.EKSCluster(cluster)})
	if err != nil || w.changedVersions[cluster] == 0 || minorOf(out.Cluster.Version) != w.changedVersions[cluster] &&
		out.Cluster.Status != "UPDATING" {
		return 0
	}
	for _, stack := range w.CloudFormation.Stacks() {
		for _, o := range stack.Outputs {
			if stack.StackName == names.Stack(cluster, names.ControlPlane) && o.OutputKey == "KubernetesVersion" &&
				minorOf(o.OutputValue) < w.changedVersions[cluster] {
				return w.changedVersions[cluster]
			}
		}
	}
	return 0
}

// followVersion uploads a spec with a release of the new version, once the status reports a control plane that was moved.
func (w *world) followVersion(cluster string) {
	want, minor := w.desired[cluster], w.externalVersion(cluster)
	if want == nil || minor == 0 || want.minor >= minor || !strings.Contains(messages(w.Status(cluster)),
		fmt.Sprintf("EKS runs Kubernetes 1.%d", minor)) {
		return
	}
	spec := *want
	spec.minor, spec.rev = minor, 0
	w.do(act{cluster: cluster, what: "follow the control plane", spec: &spec})
}
