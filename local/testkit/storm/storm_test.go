package storm

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "live the world of this seed alone, and print its story")
	tracing    = flag.Bool("trace", false, "print every turn")
	worldCount = flag.Int("seeds", 20, "how many worlds TestLives lives")
	traces     = flag.String("traces", "", "the file with the recorded traces that TestTraces compares the worlds of -seeds with")
	record     = flag.Bool("record", false, "TestTraces records the traces")
	replays    = flag.Int("replays", 3, "how many worlds TestSeedReplays lives twice")
	stormFor   = flag.Duration("storm", 0, "how long TestStorm lives worlds; 0 skips it")
	from       = flag.Uint64("from", 0, "the seed that TestStorm begins with; 0 is any")
	worker     = flag.Int("worker", 0, "TestStorm lives every n-th world from -from on, and prints their outcomes (how it calls itself)")
	limit      = flag.Duration("limit", 10*time.Minute, "the wall-clock time after which a world of TestStorm counts as hung")
)

// story returns the story of a world with a violation.
func story(o *Outcome) string {
	log, last := strings.Split(strings.TrimSpace(o.Log), "\n"), 25
	if *seedFlag != 0 {
		last = len(log)
	}
	return fmt.Sprintf("seed %d: %v\n%s\nthe last of the log:\n%s\nreplay: go test ./local/testkit/storm -run TestLives -seed %d",
		o.Seed, o.Violations,
		strings.Join(o.Story, "\n"), strings.Join(log[max(0, len(log)-last):], "\n"), o.Seed)
}

// A fixed set of worlds.
func TestLives(t *testing.T) {
	first, last := uint64(1), uint64(*worldCount)
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := Run(t, seed, *tracing)
			outcomes[seed] = o
			for _, line := range o.Trace {
				fmt.Println(line)
			}
			switch {
			case len(o.Violations) > 0:
				t.Error(story(o))
			case *seedFlag != 0:
				fmt.Println(strings.Join(o.Story, "\n"))
			}
		})
	}
}

// Worlds with private clusters, at Lambda's limit, and with removals of drover.
func TestRecentLives(t *testing.T) {
	for seed := uint64(firstRecent); seed < firstRecent+uint64(*worldCount); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := Run(t, seed, *tracing)
			if outcomes[seed] = o; len(o.Violations) > 0 {
				t.Error(story(o))
			}
		})
	}
}

// found are worlds in which the storm found a violation, with its cause. What a seed does changes with drover, so each cause has a test
// of its own, too.
var found = map[uint64]string{
	32385574:       "the relay was deleted, and its endpoint became open minutes later",
	32385832:       "the relay was deleted, and then the endpoint became open: CloudFormation forgot its security group",
	32386351:       "the access entries were deleted with the control plane's stack, and the deletion waited for drains",
	205396819154:   "the event of an ending instance was lost, and Lambda throttled every sweep",
	205396818987:   "drover was removed during a drain, and Lambda throttled every sweep",
	205396818691:   "the events of the second of two stacks of one name were lost",
	205396819176:   "drover was removed during the checks of an upgrade at a time",
	205396818643:   "drover was removed during an upgrade, and the cluster was busy for days",
	700000000008:   "the role of a function was deleted during one of its calls",
	920000000056:   "the role of a function was deleted at the moment of one of its calls",
	700000000152:   "a relay was deleted while an execution had updated the control plane already",
	3000000000065:  "a run waited for a cluster whose only pool could not be created, and whose drain waited for room",
	5000000000034:  "S3 reported a conflict, and an override that had ended stayed in the record",
	8000000000016:  "the spec named another release while EKS rolled a control plane back",
	8000000000074:  "an upgrade stopped during the last drain of its roll, and the message did not name the drain",
	10000000000086: "a call removed a cluster from the list of open ones on which another call had relied",
	10000000000268: "a resume named an earlier plan, and the rollout started by itself with the newest",
	5000000000226:  "an upgrade began before the first fact of a cluster",
	1471345952962:  "a run withdrew an assignment before the cell had read it",
	1000000020011:  "two audits at the same time marked one instance unhealthy",
	1471345952821:  "an upgrade began and ended during the last checks, and the next plan removed the one that had waited for it",
}

func TestFoundLives(t *testing.T) {
	for _, seed := range slices.Sorted(maps.Keys(found)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if o := Run(t, seed, *tracing); len(o.Violations) > 0 {
				t.Error(story(o))
			}
		})
	}
}

// TestTraces compares the calls of drover in the worlds of the first seeds with a recording. A trace covers the body of
// every call to AWS and to Kubernetes, so an equal sum means that a change of the code changed neither behavior nor
// recorded texts.
func TestTraces(t *testing.T) {
	if *traces == "" {
		t.Skip("see make traces")
	}
	var now strings.Builder
	for seed := uint64(1); seed <= uint64(*worldCount); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := Run(t, seed, false)
			if len(o.Violations) > 0 {
				t.Error(story(o))
			}
			fmt.Fprintf(&now, "%d %d %x\n", seed, o.Turns, o.Sum)
		})
	}
	if *record {
		require.NoError(t, os.WriteFile(*traces, []byte(now.String()), 0o644))
		return
	}
	recorded, err := os.ReadFile(*traces)
	require.NoError(t, err)
	was := strings.Split(string(recorded), "\n")
	for i, line := range strings.Split(strings.TrimSpace(now.String()), "\n") {
		if i >= len(was) || line != was[i] {
			t.Errorf("seed %d behaves differently: it was %q (seed, turns, sum), and is %q; see both with -run TestLives -args -seed %d -trace", i+1,
				was[min(i, len(was)-1)], line, i+1)
		}
	}
}

// outcomes are those of worlds that a test has lived, for the tests of replays.
var outcomes = map[uint64]*Outcome{}

// lived returns the outcome of a seed, of an earlier test or of a new life.
func lived(t *testing.T, seed uint64) *Outcome {
	if outcomes[seed] == nil {
		outcomes[seed] = Run(t, seed, false)
	}
	return outcomes[seed]
}

// The same seed is the same world, turn by turn.
func TestSeedReplays(t *testing.T) {
	for seed := uint64(1); seed <= uint64(*replays); seed++ {
		requireReplay(t, seed)
		requireReplay(t, firstRecent+2*seed)
	}
}

// requireReplay lives the world of a seed again. The sum covers every turn. If it differs, two traced lives show the turn.
func requireReplay(t *testing.T, seed uint64) {
	t.Helper()
	var first, second *Outcome
	t.Run(fmt.Sprint(seed), func(t *testing.T) { first = lived(t, seed) })
	t.Run(fmt.Sprint(seed), func(t *testing.T) { second = Run(t, seed, false) })
	if first == nil || second == nil {
		return // the life failed
	}
	if first.Sum == second.Sum && first.Turns == second.Turns && slices.Equal(first.Story, second.Story) {
		return
	}
	var a, b []string
	t.Run(fmt.Sprint(seed), func(t *testing.T) { a = Run(t, seed, true).Trace })
	t.Run(fmt.Sprint(seed), func(t *testing.T) { b = Run(t, seed, true).Trace })
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("turn %d differs:\n%s\n\n%s", i, strings.Join(a[max(0, i-10):min(i+5, len(a))], "\n"),
				strings.Join(b[max(0, i-1):min(i+5, len(b))], "\n"))
		}
	}
	t.Errorf("seed %d: the first life took %d turns (sum %x), the second %d (sum %x); two traced lives have the same turns:\n%s\n\n%s", seed,
		first.Turns, first.Sum, second.Turns, second.Sum, strings.Join(first.Story, "\n"), strings.Join(second.Story, "\n"))
}

// TestStorm lives worlds for a given time, in one process per core, because random values must belong to one world at a
// time.
func TestStorm(t *testing.T) {
	if *stormFor == 0 {
		t.Skip("see make storm")
	}
	if *worker > 0 {
		work(t)
		return
	}
	first := *from
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1e12
	}
	workers := runtime.NumCPU()
	results := make(chan *Outcome)
	for i := range workers {
		go func() {
			defer func() { results <- nil }()
			err := employ(func(o *Outcome) {
				results <- o
			}, "-storm", stormFor.String(), "-limit", limit.String(), "-fleets", fmt.Sprint(*fleets),
				"-worker", fmt.Sprint(workers), "-from", fmt.Sprint(first+uint64(i)))
			if err != nil {
				t.Error(err)
			}
		}()
	}
	total := Total{}
	for began := time.Now(); workers > 0; {
		o := <-results
		if o == nil {
			workers--
			continue
		}
		total.add(o)
		if len(o.Violations) > 0 {
			t.Error(story(o))
		}
		total.Took = time.Since(began)
	}
	fmt.Println(total)
}

// Total of many worlds.
type Total struct {
	Worlds, Lives, Turns, Violations int
	// Fleets are the worlds with rollouts, Members their lives.
	Fleets, Members      int
	Faults, Checks, Acts map[string]int
	Took, Virtual        time.Duration
}

func (t *Total) add(o *Outcome) {
	t.Worlds++
	t.Lives += o.Lives
	if o.Seed >= firstFleet {
		t.Fleets++
		t.Members += o.Lives
	}
	t.Turns += o.Turns
	t.Violations += len(o.Violations)
	t.Virtual += o.Virtual
	if t.Faults == nil {
		t.Faults, t.Checks, t.Acts = map[string]int{}, map[string]int{}, map[string]int{}
	}
	for k, n := range o.Faults {
		t.Faults[string(k)] += n
	}
	for k, n := range o.Checks {
		t.Checks[invariantName(k)] += n
	}
	for k, n := range o.Acts {
		t.Acts[k] += n
	}
}

func (t Total) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d lives in %d worlds in %s (%.0f lives a minute), %s of their time, %d turns; violations: %d\n", t.Lives, t.Worlds,
		t.Took.Round(time.Second), float64(t.Lives)/t.Took.Minutes(), t.Virtual.Round(time.Minute), t.Turns, t.Violations)
	if t.Fleets > 0 {
		fmt.Fprintf(&b, "of them %d lives in %d worlds with rollouts\n", t.Members, t.Fleets)
	}
	for _, part := range []struct {
		what string
		of   map[string]int
	}{{"acts of users", t.Acts}, {"faults", t.Faults}, {"checks by invariant", t.Checks}} {
		fmt.Fprintf(&b, "%s:", part.what)
		for _, k := range slices.Sorted(maps.Keys(part.of)) {
			fmt.Fprintf(&b, " %s %d,", k, part.of[k])
		}
		b.WriteString("\n")
	}
	return strings.ReplaceAll(b.String(), ",\n", "\n")
}
