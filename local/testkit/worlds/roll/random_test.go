package roll_test

// Random rolls, in virtual time. Pools of any size and policy, with any workloads, are rolled, one roll soon after the other
// or during it. At the same time an autoscaler changes the size, nodes fail, spot instances are interrupted, budgets allow nothing for a
// while, events are doubled, late or lost, executions are stopped, and some new nodes cannot join. The invariants always hold:
// each pool is checked against the update policy that is deployed at that moment.
//
// A failure names its seed. `go test ./local/testkit/worlds/roll -run TestRandomRolls -rolls 17` nearly repeats it;
// -rolls 100-200 tries more seeds.

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// rollSeeds are fast, and together cover everything that a plot may contain.
var rollSeeds = flag.String("rolls", "1,2,5,6,7,9,10,12,16,17,18,26,32,403,436,455,527", "seeds of random rolls: 3,8 or 1-50")

func TestRandomRolls(t *testing.T) {
	for _, part := range strings.Split(*rollSeeds, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		first, err := strconv.Atoi(from)
		require.NoError(t, err)
		last, err := strconv.Atoi(to)
		require.NoError(t, err)
		for seed := first; seed <= last; seed++ {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { rollAtRandom(t, uint64(seed)) })
			})
		}
	}
}

// rolls is a plot in progress.
type rolls struct {
	*life
	plot   rollPlot
	judges map[string]*judge // by group

	mu sync.Mutex
	// specs by their versions.
	specs map[string][]rolledPool
	// drains is when the drain or warning of an instance began. lost are instances that failed.
	drains map[string]time.Time
	lost   map[string]bool
	// excused is why the current roll may fail. blocked is until when a budget allows nothing.
	excused []string
	blocked time.Time
	wrong   []string
	rolled  int
}

func rollAtRandom(t *testing.T, seed uint64) {
	plot, started := plotRolls(seed), time.Now()
	t.Logf("%+v", plot)
	bad := faults.New(seed)
	a := startWith(t, harness.Options{Bubble: true, Faults: bad})
	defer a.Close()
	l := &rolls{
		life: a, plot: plot, judges: map[string]*judge{}, specs: map[string][]rolledPool{}, drains: map[string]time.Time{},
		lost: map[string]bool{},
	}
	first := plot.uploads[0]
	a.Upload(names.ReleaseSpec("r1"), harness.Release())
	begin := rollUpload{pools: slices.Clone(first.pools)}
	for i := range begin.pools {
		begin.pools[i].mark, begin.pools[i].tooNew = -1, false
	}
	a.Upload(names.ClusterSpec("demo"), begin.yaml())
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	for _, p := range first.pools {
		group := names.Group("demo", p.name)
		view, _ := a.AutoScaling.View(group)
		j := &judge{pool: p, view: view, served: map[string]bool{}, taken: map[string]bool{}}
		for _, i := range view.Instances {
			j.served[i.ID] = true
		}
		l.judges[group] = j
		defer a.AutoScaling.Watch(group, func(v autoscaling.View) { l.sees(group, v) })()
	}
	server := a.API("drover-demo")
	for _, app := range plot.apps {
		server.Run(app)
	}
	time.Sleep(5 * time.Minute)
	server.OnRemoval(l.checkRemoval)
	a.OnResource(l.begins)
	a.OnStack(l.ends)
	a.AutoScaling.WaitForTerminateHooks(plot.waits)
	stop := l.sweeps()
	defer stop()

	for n, upload := range plot.uploads {
		for _, rule := range plot.faultRules {
			lives.AddFault(t, bad, rule)
		}
		version := l.upload(upload)
		began := time.Now()
		for _, act := range upload.acts {
			time.Sleep(max(0, act.after-time.Since(began)))
			l.do(act, upload.pools)
		}
		if upload.next > 0 && n+1 < len(plot.uploads) {
			time.Sleep(max(0, upload.next-time.Since(began)))
			bad.Clear()
			continue
		}
		l.rest(upload, version, func() { bad.Clear() })
	}
	// The last upload is one that drover can complete.
	last := plot.uploads[len(plot.uploads)-1]
	last.acts = nil
	last.pools = slices.Clone(last.pools)
	for i := range last.pools {
		last.pools[i].mark, last.pools[i].tooNew = 1000, false
	}
	l.rest(last, l.upload(last), func() {})
	for _, j := range l.judges {
		require.Positive(t, j.most, "nothing was judged")
	}
	t.Logf("%d updates in %s", l.rolled, time.Since(started))
}

// upload uploads a spec and returns its version.
func (l *rolls) upload(u rollUpload) string {
	l.mu.Lock()
	defer l.mu.Unlock() // handlers of the event wait until the version is recorded
	version := l.Upload(names.ClusterSpec("demo"), u.yaml())
	l.specs[version] = u.pools
	return version
}

// sweeps runs the sweep on drover's schedule until stop is called.
func (l *rolls) sweeps() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-time.After(5 * time.Minute):
			case <-ended:
				return
			}
			_ = l.SweepNow() // the next sweep retries
			if n%3 == 0 {
				_ = l.AuditNow()
			}
		}
	}()
	return func() { close(ended); <-done }
}

// restless is how long a cluster may take to become idle. It covers a budget that allows no eviction and three attempts of an update. Each
// attempt may use the full hour of CloudFormation's or of a refresh's timeout. A longer wait would last until the 48 hours of a hook end.
const restless = 12 * time.Hour

// rest waits until no work is in flight, and checks the invariants of that state.
func (l *rolls) rest(u rollUpload, version string, calm func()) {
	l.T.Helper()
	began := time.Now()
	wrong := ""
	for nudged := 0; ; {
		time.Sleep(30 * time.Second)
		if time.Since(began) > 20*time.Minute {
			calm()
		}
		l.mu.Lock()
		broken := slices.Clone(l.wrong)
		l.mu.Unlock()
		if len(broken) > 0 {
			story := ""
			for group := range l.judges {
				story += group + ":\n" + strings.Join(l.batches(group), "\n") + "\n"
			}
			require.Fail(l.T, "an invariant is broken", "%s\n%s", strings.Join(broken, "\n"), story)
		}
		if wrong = l.unrest(); wrong == "" {
			s := l.Status("demo")
			fine := s.PlannedVersion == version && s.Phase == status.Ready
			failed := s.PlannedVersion == version && s.Phase == status.Failed
			tooNew := slices.ContainsFunc(u.pools, func(p rolledPool) bool { return p.tooNew })
			switch {
			case fine:
				l.mu.Lock()
				l.excused = nil
				l.mu.Unlock()
				return
			case failed && tooNew:
				return
			case failed && nudged < 2:
				if time.Since(l.blocked) > 70*time.Minute { // the hour that CloudFormation waits
					require.NotEmpty(l.T, l.excused, "%s", s.Message)
				}
				nudged++
				time.Sleep(time.Until(l.blocked))
				l.Converge("demo")
				continue
			}
			wrong = fmt.Sprintf("%s of %s: %s", s.Phase, s.PlannedVersion, s.Message)
		}
		if time.Since(began) > restless {
			require.Fail(l.T, "work is still in flight", "%s\n%s", wrong, l.story())
		}
	}
}

// story describes what is in flight: the status, the running executions, the groups, and the last log lines.
func (l *rolls) story() string {
	s := l.Status("demo")
	story := []string{fmt.Sprintf("%s of %s: %s", s.Phase, s.PlannedVersion, s.Message)}
	for _, n := range s.Nodes {
		story = append(story, fmt.Sprintf("node %s of %s, since %s: %s %s",
			n.Instance, n.Pool, n.Since.Format("02 15:04:05"), n.State, n.Message))
	}
	for _, x := range l.StepFunctions.Executions() {
		if x.Status == "RUNNING" {
			story = append(story, fmt.Sprintf("%s runs since %s: %s", x.MachineName, x.Started.Format("02 15:04:05"), x.Input))
		}
	}
	for group := range l.judges {
		v, _ := l.AutoScaling.View(group)
		story = append(story, fmt.Sprintf("%s: %+v", group, v))
	}
	log := l.Log()
	return strings.Join(story, "\n") + "\n…" + log[max(0, len(log)-20_000):]
}

// unrest lists operations in flight and leftovers. Even after a rollback no node is cordoned, protected from an autoscaler or excluded from
// load balancers. No process is suspended, and no instance waits at a hook.
func (l *rolls) unrest() string {
	if slices.ContainsFunc(l.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" }) || !l.Idle() {
		return "executions run"
	}
	size := 0
	for group := range l.judges {
		v, _ := l.AutoScaling.View(group)
		size += len(v.Instances)
		for _, i := range v.Instances {
			if i.State != "InService" || len(v.Instances) != v.Desired || len(v.Suspended) > 0 {
				return fmt.Sprintf("%s: %+v", group, v)
			}
		}
	}
	list, err := l.Kubernetes("demo").Resource(schema.GroupVersionResource{
		Version: "v1", Resource: "nodes",
	}).List(context.Background(), metav1.ListOptions{})
	require.NoError(l.T, err)
	if len(list.Items) != size {
		return fmt.Sprintf("%d nodes of %d", len(list.Items), size)
	}
	for _, n := range list.Items {
		cordoned, _, _ := unstructured.NestedBool(n.Object, "spec", "unschedulable")
		_, excluded := n.GetLabels()[corev1.LabelNodeExcludeBalancers]
		annotations := n.GetAnnotations()
		_, held := annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]
		ours := slices.ContainsFunc(slices.Collect(maps.Keys(annotations)), func(key string) bool {
			return strings.HasPrefix(key, "drover.run/")
		})
		if cordoned || excluded || held || ours {
			return fmt.Sprintf("%s is left: cordoned %t, out of load balancers %t, held %t: %v", n.GetName(), cordoned, excluded, held, annotations)
		}
	}
	return ""
}
