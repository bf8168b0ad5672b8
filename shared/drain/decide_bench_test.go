package drain

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The cost of one decision for a full node. While 240 pods leave, there are hundreds, on the processor that carries out the drain.
func BenchmarkDecide(b *testing.B) {
	var pods []*corev1.Pod
	for i := range 240 {
		pods = append(pods, pod(fmt.Sprintf("web-%03d", i)))
	}
	v, now := view(pods), time.Now()
	task := Task{Started: now, Policy: Policy{OnTimeout: Wait, DeleteEmptyDirData: true, UnmanagedPods: EvictUnmanaged}}
	b.ReportAllocs()
	for b.Loop() {
		var r Report
		Describe(&r, Decide(now, task, v, 32))
	}
}
