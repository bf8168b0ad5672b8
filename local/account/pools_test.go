package account

// What an external observer sees of a pool while its nodes are replaced: the states of its group's instances, and the
// result.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/names"
)

// observer watches a group.
type observer struct {
	mu     sync.Mutex
	served map[string]bool // instances that were in service
	lost   map[string]bool // instances that ended without a request
	// out is the greatest number of instances that waited for their drains at the same time after they were in service.
	// least is the least number in service. when has the states at these moments.
	out, least         int
	outWhen, leastWhen string
	suspended          bool
	stop               func()
}

func observe(t *testing.T, cluster, pool string) *observer {
	t.Helper()
	o := &observer{served: map[string]bool{}, lost: map[string]bool{}, least: 1000}
	o.stop = cloud.AutoScaling.Watch(names.Group(cluster, pool), o.see)
	t.Cleanup(o.stop)
	instances := instancesOf(t, cluster)
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, of := range instances {
		if of == pool {
			o.served[id] = true
		}
	}
	return o
}

func (o *observer) see(v autoscaling.View) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out, serving := 0, 0
	var states []string
	for _, i := range v.Instances {
		states = append(states, fmt.Sprintf("%s:%s(%d)", i.ID[len(i.ID)-4:], i.State, i.TemplateVersion))
		switch {
		case i.State == "InService":
			o.served[i.ID] = true
			serving++
		case o.lost[i.ID]: // no roll replaced it
		case o.served[i.ID] && (i.State == "Terminating" || i.State == "Terminating:Wait"):
			out++
		}
	}
	for id := range o.lost {
		// Its place is empty until Auto Scaling has noticed and replaced it.
		if !slices.ContainsFunc(v.Instances, func(i autoscaling.InstanceView) bool { return i.ID == id && i.State == "InService" }) {
			serving++
		}
	}
	o.suspended = o.suspended || len(v.Suspended) > 0
	when := fmt.Sprintf("desired %d: %s", v.Desired, strings.Join(states, " "))
	if out > o.out {
		o.out, o.outWhen = out, when
	}
	if serving < o.least {
		o.least, o.leastWhen = serving, when
	}
}

// lose records that an instance fails: no policy can keep it in service.
func (o *observer) lose(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost[id] = true
}

// requireKept fails the test if more than unavailable of the desired instances were missing, or more than batch drained at
// once.
func (o *observer) requireKept(t *testing.T, desired, unavailable, batch int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.LessOrEqual(t, o.out, batch, "more nodes out than the pool's update allows: %s", o.outWhen)
	require.GreaterOrEqual(t, o.least, desired-unavailable, "fewer nodes in service than the pool's update allows: %s", o.leastWhen)
}

// connect connects to a cluster as its administrator, for workloads.
func connect(t *testing.T, cluster string) *workload.Cluster {
	t.Helper()
	_, kubeconfig, err := cloud.EKS.Administrator(names.EKSCluster(cluster))
	require.NoError(t, err)
	c, err := workload.Open(kubeconfig)
	require.NoError(t, err)
	return c
}

// atRest waits until the pool has the given number of nodes, in service and Ready. Then it verifies that the pool is
// idle: no node is cordoned, held from the autoscaler or suspended, and no hook is open.
func (w *world) atRest(t *testing.T, cluster, pool string, size int) {
	t.Helper()
	w.atRestWithin(t, cluster, pool, size, size)
}

// atRestWithin is atRest with least to most nodes.
func (w *world) atRestWithin(t *testing.T, cluster, pool string, least, most int) {
	t.Helper()
	group := names.Group(cluster, pool)
	var wrong []string
	w.until(t, func() bool {
		wrong = nil
		view, ok := cloud.AutoScaling.View(group)
		size := len(view.Instances)
		if !ok || size != view.Desired || size < least || size > most || len(view.Suspended) > 0 {
			wrong = append(wrong, fmt.Sprintf("group: %+v", view))
		}
		for _, i := range view.Instances {
			if i.State != "InService" {
				wrong = append(wrong, i.ID+" is "+i.State)
			}
		}
		nodes := 0
		for _, n := range nodesOf(t, cluster) {
			if n.Labels[names.LabelPool] != pool {
				continue
			}
			nodes++
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					wrong = append(wrong, n.Name+" is not Ready")
				}
			}
			_, held := n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]
			_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
			if n.Spec.Unschedulable || held || excluded || len(n.Spec.Taints) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s is left cordoned: %v held %v excluded %v %v", n.Name, n.Spec.Unschedulable, held, excluded,
					n.Spec.Taints))
			}
		}
		if nodes != size {
			wrong = append(wrong, fmt.Sprintf("%d nodes of %d", nodes, size))
		}
		return len(wrong) == 0
	}, func() string { return strings.Join(wrong, "\n") + "\n" + w.executions(cluster) })
}
