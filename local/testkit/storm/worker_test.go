package storm

// The processes of a storm. Each lives one world after the other and prints the outcomes. If one dies, its seed is
// reported.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// Effects of the tests below on a worker.
var (
	dies   = flag.Uint64("dies", 0, "a worker panics in the world of this seed")
	hangs  = flag.Uint64("hangs", 0, "a worker hangs in the world of this seed")
	fleets = flag.Int("fleets", 10, "every n-th world of a worker has rollouts; 0 is none")
	spoilt = flag.Bool("spoilt", false, "a worker leaves something behind in every world, which breaks an invariant")
)

// Output of a worker: the seed of each world before it is lived, and its outcome.
const (
	seedPrefix    = "seed: "
	outcomePrefix = "outcome: "
)

// work lives worlds until the time is up, but at least one.
func work(t *testing.T) {
	runtime.MemProfileRate = 0 // profiling has a cost and is not used
	debug.SetTraceback("all")
	for seed, began, worlds := *from, time.Now(), 0; ; seed, worlds = seed+uint64(*worker), worlds+1 {
		seed := seed
		if *fleets > 0 && worlds%*fleets == *fleets-1 {
			seed += firstFleet
		}
		well := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fmt.Println(seedPrefix + fmt.Sprint(seed))
			defer time.AfterFunc(*limit, func() { panic("the world exceeded its limit of " + limit.String()) }).Stop()
			body, err := json.Marshal(run(t, seed, spoil(seed, plotOf(seed)), false))
			require.NoError(t, err)
			fmt.Println(outcomePrefix + string(body))
		})
		if !well || time.Since(began) >= *stormFor {
			return
		}
	}
}

func spoil(seed uint64, p plot) plot {
	switch {
	case seed == *dies:
		p.breakAtBegin = func(*world) { go func() { panic("as a test wants it") }() }
	case seed == *hangs:
		p.breakAtBegin = func(*world) {
			for {
				runtime.Gosched()
			}
		}
	case *spoilt:
		p.breakAtEnd = func(w *world) {
			_, err := w.State().Put(context.Background(), names.Waiter("drover-c0-network"), []byte("{}"))
			require.NoError(w.t, err)
		}
	}
	return p
}

// employ runs a worker and calls do with each outcome. An error names the seed at which the worker died.
func employ(do func(*Outcome), arguments ...string) error {
	c := exec.Command(os.Args[0], append([]string{"-test.run=^TestStorm$", "-test.timeout=0"}, arguments...)...) // #nosec G204 -- itself
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=800", "GOMEMLIMIT=2GiB")
	var output bytes.Buffer
	c.Stderr = &output
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	seed, others := "", ""
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), seedPrefix); ok {
			seed = text
		} else if text, ok := strings.CutPrefix(lines.Text(), outcomePrefix); ok {
			o := &Outcome{}
			if err := json.Unmarshal([]byte(text), o); err != nil {
				return err
			}
			do(o)
		} else {
			others += lines.Text() + "\n"
		}
	}
	if err := c.Wait(); err != nil {
		const most = 64 << 10 // the cause of the death comes first, then all goroutines
		return fmt.Errorf("a worker died in the world of seed %s: %w\n%s%s\nreplay: go test ./local/testkit/storm -run TestLives -seed %s",
			seed, err, others,
			output.Bytes()[:min(most, output.Len())], seed)
	}
	return nil
}

// A seed is the same world in every process, also one with a violation.
func TestFailingSeedReplaysInAnotherProcess(t *testing.T) {
	var first *Outcome
	for range 2 {
		require.NoError(t, employ(func(o *Outcome) {
			require.Len(t, o.Violations, 1)
			require.Contains(t, o.Violations[0].String(), "invariant 9: waiters are left")
			if first == nil {
				first = o
			}
			require.Equal(t, first, o)
		}, "-storm", "1ns", "-worker", "1", "-from", "1", "-spoilt"))
	}
	require.NotNil(t, first)
	require.NotZero(t, first.Sum)
}

func TestDeadWorkerReportsItsSeed(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		lived     int
		says      string
	}{
		"one that panics": {[]string{"-from", "1", "-dies", "2"}, 1, "as a test wants it"},
		"one that hangs":  {[]string{"-from", "2", "-hangs", "2", "-limit", "2s"}, 0, "the world exceeded its limit of 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			lived := 0
			err := employ(func(*Outcome) { lived++ }, append([]string{"-storm", "1h", "-worker", "1"}, c.arguments...)...)
			require.ErrorContains(t, err, "a worker died in the world of seed 2: ")
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "-run TestLives -seed 2")
			require.Equal(t, c.lived, lived)
		})
	}
}
