package storm

// A world: an account, the lives of its clusters, the faults, and the outcome.

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// Violation of an invariant.
type Violation struct {
	// Invariant is a number of docs/reliability.md; 0 means that the world did not converge after the faults ended.
	Invariant int
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %s: %s", invariantName(v.Invariant), v.What)
}

// Outcome of a world.
type Outcome struct {
	Seed  uint64
	Lives int
	// Turns and Sum identify what happened: they are equal for equal seeds.
	Turns int
	Sum   uint64
	// Faults that struck, by kind. Checks of invariants, by number. Acts, by name.
	Faults map[faults.Kind]int
	Checks map[int]int
	Acts   map[string]int
	// Failures of resources.
	Failures int
	// Virtual is the duration of the world in virtual time.
	Virtual time.Duration
	// Settled is when all clusters had their desired state.
	Settled    time.Duration
	Violations []Violation
	// Story has the acts and faults, for reports of violations. Trace has all turns.
	Story []string
	Trace []string
	Log   string
}

// world is a world in progress.
type world struct {
	*harness.Account
	t      *testing.T
	turns  *turns
	engine *faults.Engine
	out    *Outcome
	began  time.Time
	// desired are the current desired states by cluster; nil for clusters without a spec.
	desired  map[string]*wish
	versions map[string]string
	// released are the versions of releases, by name.
	released map[string]string
	// protected are the clusters whose newest spec has, or had when it was deleted, deletion protection.
	protected map[string]bool
	// protectionChanging are those whose spec was deleted before its change of protection was deployed: either value may apply.
	protectionChanging map[string]bool
	// deleted are the clusters whose spec was deleted at some time.
	deleted map[string]bool
	// uploads are the specs of each cluster, oldest first.
	uploads map[string][]upload
	// blocked are the clusters with a budget that allows no disruption. alarmRings are those with an alarm; false after the
	// alarm ended. silentNode is a node of each cluster, usedUp are the clusters that use up a quota, deletedReleases are by cluster.
	blocked, alarmRings map[string]bool
	silentNode          map[string]string
	usedUp              map[string]bool
	deletedReleases     map[string][][2]int
	// alteredAddons are the previous versions of add-ons that were changed outside drover.
	alteredAddons map[string]map[string]string
	// closed are the clusters whose endpoint was closed outside drover.
	closed map[string]bool
	// deletedStacks is the network or control plane stack of each cluster that an operator deleted. changedVersions is the
	// minor version to which its control plane was moved.
	deletedStacks   map[string]string
	changedVersions map[string]int
	// unguarded are the clusters for whose stacks an operator disabled termination protection.
	unguarded map[string]bool
	// policies are all pools in the specs of a cluster.
	policies map[string][]wishedPool
	// requests are the executions of rolls and upgrades that operators started.
	requests []request
	// observed is the state of the checks.
	observed *observations
	plot     plot
	// fleet is the part of the world that is about rollouts; nil without any.
	fleet *fleet
	// faultsEnded reports whether the faults ended, at faultsEndedAt. resources counts CloudFormation's operations by step and type.
	faultsEnded   bool
	faultsEndedAt time.Time
	resources     map[string]int
	// channels counts their moves. channelsAt is the last one.
	channels   int
	channelsAt time.Time
	// removed reports whether drover is not deployed.
	removed bool
	// sweeps are in flight, and nothing waits for them.
	sweeps sync.WaitGroup
}

func (w *world) now() time.Time { return time.Now().UTC() }

// clusters returns all clusters, past and present.
func (w *world) clusters() []string { return slices.Sorted(maps.Keys(w.plot.last)) }

// plot of a world.
type plot struct {
	// acts in the order of time, and the final desired state of each cluster.
	acts []act
	last map[string]*wish
	// faultRules are rules for local/engine/faults. calmFor is how long they remain after the last act.
	faultRules []string
	calmFor    time.Duration
	// settleTime replaces maxSettleTime, if set.
	settleTime time.Duration
	// clocks of the operators, with the beginning of the world.
	clocks clocks
	// apps of each cluster.
	apps     map[string][]apiserver.App
	failures []failure
	// hooks reports whether updates wait for terminate hooks. readings are those of the other open questions about AWS.
	hooks    bool
	readings questions.Readings
	// fleet is the part that is about rollouts; nil without any.
	fleet *fleetPlot
	// breakAtBegin runs at the beginning, breakAtEnd after all has settled. Tests break invariants with them.
	breakAtBegin, breakAtEnd func(*world)
	identities               func(*iam.Definitions)
	// changeForecast changes previews.
	changeForecast func(*planner.Forecast)
}

// plotOf returns the plot of a seed.
func plotOf(seed uint64) plot {
	if seed >= firstFleet {
		return fleetPlotOf(seed)
	}
	r := rand.New(rand.NewPCG(seed, 2)) // #nosec G404 -- a world, no secret
	p := plot{apps: map[string][]apiserver.App{}}
	if r.IntN(3) == 0 {
		p.clocks = someClocks(r)
	}
	p.acts, p.last = lives(r, 1+r.IntN(3), p.clocks)
	p.faultRules = someFaultRules(r)
	for _, cluster := range slices.Sorted(maps.Keys(p.last)) {
		p.apps[cluster] = apps(r)
		if locks(p.acts, cluster) {
			p.apps[cluster] = append(p.apps[cluster], systemApps()...)
		}
	}
	p.failures = failures(r)
	p.hooks = r.IntN(2) == 0
	p.calmFor = time.Duration(r.IntN(30)) * time.Minute
	addRecent(seed, &p)
	return p
}

const (
	// maxSettleTime is the time for everything to converge after the faults ended. It exceeds Auto Scaling's limit for a drain that
	// never ends.
	maxSettleTime = 60 * time.Hour
	// observedAfter is how long a settled world is observed.
	observedAfter = 7 * time.Minute
	// maxTurns exceeds the turns of every world that settles.
	maxTurns = 400_000
)

// Run lives the world of a seed.
func Run(t *testing.T, seed uint64, trace bool) *Outcome { return run(t, seed, plotOf(seed), trace) }

func run(t *testing.T, seed uint64, p plot, trace bool) *Outcome {
	out := &Outcome{Seed: seed, Checks: map[int]int{}, Acts: map[string]int{}}
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(p.clocks.begin))
		w := &world{t: t, out: out, began: time.Now(), engine: faults.New(seed), desired: map[string]*wish{}, versions: map[string]string{},
			observed:  newObserved(),
			protected: map[string]bool{}, plot: p, resources: map[string]int{}, deleted: map[string]bool{}, policies: map[string][]wishedPool{},
			uploads: map[string][]upload{}, blocked: map[string]bool{}, alarmRings: map[string]bool{}, protectionChanging: map[string]bool{},
			released: map[string]string{}, silentNode: map[string]string{}, usedUp: map[string]bool{}, deletedReleases: map[string][][2]int{},
			alteredAddons: map[string]map[string]string{}, closed: map[string]bool{},
			deletedStacks: map[string]string{}, changedVersions: map[string]int{}, unguarded: map[string]bool{}}
		w.turns = newTurns(rand.New(rand.NewPCG(seed, 1)))
		w.turns.tracing = trace
		w.turns.after = w.after
		w.Account = harness.StartWith(t, harness.Options{
			Bubble: true, Turns: w.turns.ticket, Faults: w.engine, OnCluster: w.seeCluster, OnFunctionCall: w.seeFunctionCall,
			Identities: p.identities, Readings: p.readings, Fleet: p.fleet != nil,
		})
		defer func() {
			if len(out.Violations) > 0 {
				time.Sleep(time.Minute) // delays of calls end, which outlast the account
			}
		}()
		defer w.Close()
		w.followStackEvents()
		if p.fleet != nil {
			w.fleet = newFleet(&p)
			w.followRollouts()
		}
		w.OnCall(w.seeCall)
		w.OnResource(w.seeResource)
		w.OnAnswer(w.seeAnswer)
		w.OnStack(w.seeStack)
		w.OnMachineCall(w.seeMachineCall)
		stop, done := make(chan struct{}), make(chan struct{})
		var once sync.Once
		end := func() { once.Do(func() { close(stop) }) }
		defer end() // also after a failed requirement
		go func() {
			defer close(done)
			w.turns.run(stop)
		}()
		sweeping := make(chan struct{})
		go w.sweep(stop, sweeping)
		beating := make(chan struct{})
		go w.injectFaults(stop, beating)
		evaluating := make(chan struct{})
		if w.fleet == nil {
			close(evaluating)
		} else {
			go w.scheduleRollouts(stop, evaluating)
		}
		w.live()
		out.Virtual = time.Since(w.began)
		end()
		<-done
		<-sweeping
		<-evaluating
		w.sweeps.Wait()
		<-beating
		out.Turns, out.Sum, out.Trace = w.turns.totals()
		out.Faults = w.engine.Struck()
		if len(out.Violations) > 0 {
			out.Log = w.Log()
		}
	})
	return out
}

// violate records a violation. The world ends after this turn.
func (w *world) violate(invariant int, format string, arguments ...any) {
	v := Violation{invariant, fmt.Sprintf(format, arguments...)}
	w.observed.Lock()
	w.out.Violations = append(w.out.Violations, v)
	w.observed.Unlock()
	w.record("VIOLATION %v", v)
}

// record adds to the story.
func (w *world) record(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	w.out.Story = append(w.out.Story, time.Since(w.began).String()+" "+text)
	w.turns.note(text)
}

func (w *world) over() bool {
	w.observed.Lock()
	defer w.observed.Unlock()
	return len(w.out.Violations) > 0
}

// wait waits until a time since the beginning.
func (w *world) wait(until time.Duration) {
	time.Sleep(until - time.Since(w.began))
	w.turns.take("users")
}

// sweep runs the sweep and the audit on their schedules.
func (w *world) sweep(stop, done chan struct{}) {
	defer close(done)
	sweepAt, auditAt := w.began.Add(backoff.SweepPeriod), w.began.Add(backoff.AuditPeriod)
	for {
		select {
		case <-time.After(time.Until(earlier(sweepAt, auditAt))):
			if w.turns.take("sweep"); w.over() {
				return
			}
			w.nodesNow()
			if audits := auditAt.Before(sweepAt); audits {
				if auditAt = auditAt.Add(backoff.AuditPeriod); !w.removed {
					_ = w.AuditNow()
				}
				continue
			}
			if sweepAt = sweepAt.Add(backoff.SweepPeriod); w.removed {
				continue
			}
			switch w.engine.Decide(w.now(), faults.Moment{Kind: faults.Delivery, Event: "Scheduled Event", Target: "sweep"}).Kind {
			case faults.Drop:
				continue
			case faults.Duplicate:
				w.record("the schedule fires twice")
				w.out.Acts["fire"]++
				w.sweepBeside()
			}
			w.sweepNow()
		case <-stop:
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// sweepBeside runs the sweep concurrently with everything else.
func (w *world) sweepBeside() {
	turn := w.turns.ticket("another sweep")
	w.sweeps.Go(func() {
		turn()
		w.sweepNow()
	})
}

// sweepNow runs the sweep. Its schedule continues. A sweep that Lambda throttles has not run.
func (w *world) sweepNow() {
	began := time.Now()
	if harness.IsThrottled(w.SweepNow()) {
		return
	}
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.lastSweep = began
}

// fireTwice fires the schedule twice at a chosen moment.
func (w *world) fireTwice() {
	w.sweepBeside()
	w.sweepBeside()
}

// live performs all acts, then waits until the world settles.
func (w *world) live() {
	w.releases()
	w.alarms()
	w.out.Lives = len(w.plot.last)
	w.AutoScaling.WaitForTerminateHooks(w.plot.hooks)
	if w.plot.breakAtBegin != nil {
		w.plot.breakAtBegin(w)
	}
	for _, rule := range w.plot.faultRules {
		parsed, err := faults.Parse(rule)
		if err == nil {
			_, err = w.engine.Add(time.Now(), parsed)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", rule, err)
		}
		// "weather" means faults. The recorded traces contain this text and the one below: see TestTraces.
		w.record("weather: %s", rule)
	}
	w.Converge(unknownCluster)
	for _, a := range w.plot.acts {
		if w.wait(a.at); w.over() {
			return
		}
		w.do(a)
	}
	if w.wait(time.Since(w.began) + w.plot.calmFor); w.over() {
		return
	}
	w.record("the weather is fine")
	w.engine.Clear()
	w.faultsEnded, w.faultsEndedAt = true, time.Now()
	if w.fleet != nil {
		if w.endRuns(); w.over() {
			return
		}
	}
	w.settle(w.clusters())
}

func (w *world) do(a act) {
	if a.spec != nil && a.spec.flaw.release != "" && (!w.observed.hasControlPlane[a.cluster] || w.deleted[a.cluster]) {
		w.record("%s: skipped: %s: the cluster would be created in this state", a.cluster, a.what)
		return
	}
	w.out.Acts[strings.SplitN(a.what, " ", 2)[0]]++
	asks := ""
	if a.spec != nil && a.spec.upgrade(w.began) != "{}" {
		asks = ", with upgrade: " + a.spec.upgrade(w.began)
	}
	w.record("%s: %s%s", a.cluster, a.what, asks)
	w.disturb(a.cluster)
	switch {
	case a.remove:
		w.recordAffectedStacks(a.cluster, w.desired[a.cluster], nil)
		w.protectionChanging[a.cluster] = w.isProtectionChanging(a.cluster)
		w.Remove(names.ClusterSpec(a.cluster), "")
		w.desired[a.cluster] = nil
		w.uploads[a.cluster] = append(w.uploads[a.cluster], upload{at: time.Since(w.began)})
		w.deleted[a.cluster] = true
	case a.roll != "":
		w.recordAffectedPool(a.cluster, a.roll)
		w.roll(a.cluster, a.roll)
	case a.converge:
		w.Converge(a.cluster)
	case a.upgrade != nil:
		w.affectedStacks(a.cluster)[all] = true
		w.recordRollbackRequest(a)
		for range a.times {
			w.upgrade(*a.upgrade)
		}
	case a.cancel:
		w.stopUpgrade(a.cluster)
	case a.channels:
		w.moveChannels()
	case a.deletedStack != "":
		w.affectedStacks(a.cluster)[a.deletedStack] = true
		w.deleteStack(names.Stack(a.cluster, a.deletedStack))
	case a.kubernetes:
		w.createKubernetesResources(a.cluster)
	case a.do != nil:
		a.do(w)
	default:
		var foretold *expectation
		if w.fleet == nil { // a run may assign a release at any time
			foretold = w.forecast(a.cluster, a.spec)
		}
		w.recordAffectedStacks(a.cluster, w.desired[a.cluster], a.spec)
		w.desired[a.cluster], w.protected[a.cluster], w.protectionChanging[a.cluster] = a.spec, a.spec.protected, false
		w.observed.limitDesired(a.spec)
		w.policies[a.cluster] = append(w.policies[a.cluster], a.spec.pools...)
		w.versions[a.cluster] = w.Upload(names.ClusterSpec(a.cluster), a.spec.yaml(w.began))
		w.uploads[a.cluster] = append(w.uploads[a.cluster], upload{time.Since(w.began), a.spec, w.versions[a.cluster]})
		w.expect(a.cluster, w.versions[a.cluster], foretold)
	}
}

// settle waits until all clusters have their desired state, as their status reports it. It restarts those that failed
// because an execution was aborted, as the runbook describes.
func (w *world) settle(clusters []string) {
	began := time.Since(w.began)
	nudged, rolled := map[string]int{}, map[string]bool{}
	// early are those that operators restarted while an external deletion of a stack was in flight. A drain may delay that
	// deletion for two days, and the reason of the failure may end with it.
	early := map[string]bool{}
	for {
		waits := ""
		for _, cluster := range clusters { // the condition of one may delay another
			if w.condition(cluster) != "" && time.Since(w.began) > began+toleratedFor {
				w.repair(cluster)
			}
			w.deleteOrphaned(cluster)
			w.followVersion(cluster)
		}
		for _, cluster := range clusters {
			if text := w.unsettledPart(cluster); text != "" {
				waits = cluster + ": " + text
				s := w.Status(cluster)
				due := nudged[cluster] < 3 && time.Since(w.began) > began+time.Duration(nudged[cluster]+1)*patience || early[cluster] &&
					!w.hasUndetectedDeletion(cluster)
				if (s.Phase == status.Failed || w.stuck(s)) && !w.converging(cluster) && due {
					nudged[cluster]++
					early[cluster] = w.hasUndetectedDeletion(cluster)
					w.record("%s: by hand: %s", cluster, s.Message)
					w.out.Acts["nudge"]++
					// an older kubelet joined; the message requires a roll
					if !rolled[cluster] && strings.Contains(messages(s), preflight.KubeletSkew) {
						rolled[cluster] = true
						var pools []string
						for _, p := range w.desired[cluster].pools {
							w.recordAffectedPool(cluster, p.name)
							pools = append(pools, p.name)
						}
						w.roll(cluster, pools...)
					} else if w.stuck(s) && !strings.Contains(messages(s), "is missing: run drover converge") {
						w.continueUpgrade(cluster)
					} else {
						w.Converge(cluster)
					}
				}
				break
			}
		}
		if waits == "" {
			waits = w.unjudgedRelease()
		}
		if waits == "" && !w.running() && w.Idle() {
			break
		}
		if limit := cmp.Or(w.plot.settleTime, maxSettleTime); time.Since(w.began) > began+limit {
			w.violate(0, "not converged %s after the last fault: %s", limit, waits)
			return
		}
		pace := time.Minute
		if time.Since(w.began) > began+2*time.Hour {
			pace = 10 * time.Minute
		}
		if w.wait(time.Since(w.began) + pace); w.over() {
			return
		}
	}
	w.record("settled")
	w.out.Settled = time.Since(w.began)
	if w.wait(time.Since(w.began) + observedAfter); w.over() { // instances end, late events arrive
		return
	}
	if w.plot.breakAtEnd != nil {
		w.plot.breakAtEnd(w)
	}
	w.final(clusters)
}

// maxRollDelay is the latest begin of a roll after its time, without faults.
const maxRollDelay = 11 * time.Minute

// patience of operators with a failed cluster, before they follow the runbook.
const patience = 3 * time.Hour

// converging reports whether an execution processes a cluster or waits for it.
func (w *world) converging(cluster string) bool {
	lease := w.Lease(cluster)
	return slices.ContainsFunc(w.StepFunctions.Executions(), func(x stepfunctions.Execution) bool {
		return x.ARN == lease.Execution && x.Status == "RUNNING"
	})
}

func (w *world) running() bool {
	return slices.ContainsFunc(w.StepFunctions.Executions(), func(x stepfunctions.Execution) bool { return x.Status == "RUNNING" })
}

// unsettledPart returns what of a cluster differs from the desired state, or "".
func (w *world) unsettledPart(cluster string) string {
	s, want := w.Status(cluster), w.desired[cluster]
	switch {
	case w.condition(cluster) != "":
		return w.condition(cluster)
	case want != nil && w.missingStack(cluster) != "":
		return "it lost its " + w.missingStack(cluster)
	case want != nil && want.minor < w.externalVersion(cluster):
		return "its control plane was moved"
	case want == nil && len(w.Stacks(cluster)) == 0 && (s.UpdatedAt.IsZero() || s.Phase == status.Deleted || s.Phase == status.Stopped):
		return ""
	case want == nil && (w.protected[cluster] || w.protectionChanging[cluster]) && s.Phase == status.Stopped:
		return ""
	case want == nil:
		return fmt.Sprintf("deleted, and it is %s: %s %v", s.Phase, s.Message, w.Stacks(cluster))
	case s.Phase == status.Ready && s.PlannedVersion == w.versions[cluster]:
		if text := w.upgrading(s); text != "" {
			return text
		}
		if w.hasUndetectedDeletion(cluster) {
			return "a stack was deleted by hand"
		}
		if want.channel != "" && time.Since(w.channelsAt) < maxDriftDetection { // the next sweeps check it and begin the upgrade
			return "its channel has just moved"
		}
		if len(s.Nodes) > 0 {
			return fmt.Sprintf("node %s of %s is %s: %s", s.Nodes[0].Instance, s.Nodes[0].Pool, s.Nodes[0].State, s.Nodes[0].Message)
		}
		if instance := w.nodeless(cluster); instance != "" {
			return "instance " + instance + " has no node"
		}
		for _, p := range want.pools {
			if time.Since(w.began) < p.rollAt+maxRollDelay {
				return fmt.Sprintf("the nodes of %s are replaced at %s", p.name, p.rollAt)
			}
		}
		return ""
	}
	return fmt.Sprintf("%s: %s (of %s, newest is %s)", s.Phase, s.Message, s.PlannedVersion, w.versions[cluster])
}
