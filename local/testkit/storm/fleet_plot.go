package storm

// Plots of fleets: two to six clusters with one or two rollouts over them, and the acts of their users.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// firstFleet is the first seed of worlds with rollouts. The storm draws other seeds below it.
const firstFleet = 1_000_000_000_000

// fleetPlot is the part of a plot that is about rollouts.
type fleetPlot struct {
	// rollouts by name, as they are at first.
	rollouts map[string]*wishedRollout
	// sabotage breaks invariants.
	sabotage sabotage
}

// wishedRollout is a rollout, from which a file is written.
type wishedRollout struct {
	name, release, selector           string
	start, onNewer, onFailure, budget string
	concurrency, waves                string
	failures                          int
	settle, soak                      int // minutes
	approveBefore, approveAfter       bool
	alarm                             bool
	window                            string
}

// yaml returns the file of the rollout.
func (o *wishedRollout) yaml() string {
	selects := func(stage string) string {
		if o.selector == "" {
			return fmt.Sprintf("{matchLabels: {stage: %s}}", stage)
		}
		return fmt.Sprintf("{matchLabels: {stage: %s, half: %s}}", stage, o.selector)
	}
	more := ""
	if o.waves != "" {
		more += "      waves: " + o.waves + "\n"
	}
	if o.approveBefore {
		more += "      before: [{approval: {}}]\n"
	}
	if o.approveAfter {
		more += "      after: [{approval: {}}]\n"
	}
	if o.alarm {
		more += fmt.Sprintf("      alarms: [%s]\n", alarmOf(fleetAlarm))
	}
	if o.window != "" {
		more += "      window: " + o.window + "\n"
	}
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: %s}
spec:
  subject: {release: %s}
  unmatched: Skip
  start: %s
  onNewer: %s
  onFailure: %s
  stages:
    - {name: canary, selector: %s, settle: %dm, soak: %dm, deadline: 5h}
    - name: prod
      selector: %s
      maxConcurrency: %s
      maxFailures: %d
      budget: %s
      settle: %dm
      soak: %dm
      deadline: 5h
%s`, o.name, o.release, o.start, o.onNewer, o.onFailure, selects("canary"), o.settle, o.soak, selects("prod"), o.concurrency, o.failures,
		o.budget, o.settle, o.soak, more)
}

// fleetAlarm is the alarm of stages.
const fleetAlarm = "fleet"

// someRollout draws a rollout.
func someRollout(r *rand.Rand, name, release string) *wishedRollout {
	o := &wishedRollout{
		name: name, release: release, start: pick(r, string(api.StartManual), string(api.StartManual), string(api.StartAuto)),
		onNewer: pick(r, "Finish", "Supersede"), onFailure: pick(r, "Stop", "Stop", "Rollback"), budget: pick(r, "Strict", "Strict", "Soft"),
		concurrency: pick(r, "1", "2", "3", "50%"), failures: r.IntN(3), settle: 5 + 5*r.IntN(3),
		soak: 10 * r.IntN(4), approveBefore: r.IntN(3) == 0, approveAfter: r.IntN(5) == 0, alarm: r.IntN(4) == 0,
	}
	if r.IntN(3) == 0 {
		o.waves = pick(r, "[1, 100%]", "[1, 50%, 100%]")
	}
	if r.IntN(6) == 0 {
		o.window = fmt.Sprintf(`{start: "%02d:00", duration: %dh}`, r.IntN(24), 2+r.IntN(12))
	}
	return o
}

// fleetPlotOf returns the plot of a world with rollouts.
func fleetPlotOf(seed uint64) plot {
	r := rand.New(rand.NewPCG(seed, 5)) // #nosec G404 -- a world, no secret
	p := plot{last: map[string]*wish{}, fleet: &fleetPlot{rollouts: map[string]*wishedRollout{}}}
	clusters := 2 + r.IntN(5)
	for i := range clusters {
		w := &wish{
			name: fmt.Sprintf("c%d", i), minor: firstMinor, protected: r.IntN(4) > 0,
			labels: fleetLabels(i, pick(r, "prod", "prod", "prod", "canary")),
			pools: []wishedPool{{
				name: "a", min: 1 + r.IntN(2), max: 3, timeout: time.Duration(10+10*r.IntN(4)) * time.Minute,
				onTimeout: pick(r, "Wait", "Force"), surge: 1, unavailable: r.IntN(2),
			}},
		}
		if r.IntN(5) == 0 {
			w.gate = someGate(r, clocks{})
		}
		first := *w
		p.acts = append(p.acts, act{at: time.Duration(r.IntN(180)) * time.Second, cluster: w.name, what: "create", spec: &first})
		p.last[w.name] = w
	}
	p.apps = fleetApps(r, clusters)
	begin := time.Duration(25+r.IntN(20)) * time.Minute
	names := []string{"next"}
	p.fleet.rollouts["next"] = someRollout(r, "next", pick(r, release(firstMinor, 1), release(firstMinor+1, 0)))
	if r.IntN(2) == 0 {
		names = append(names, "other")
		p.fleet.rollouts["other"] = someRollout(r, "other", pick(r, release(firstMinor, 1), release(firstMinor+1, 1)))
		if r.IntN(2) == 0 { // they share no cluster
			p.fleet.rollouts["next"].selector, p.fleet.rollouts["other"].selector = "a", "b"
		}
	}
	for _, name := range names {
		p.act(begin+time.Duration(r.IntN(300))*time.Second, "upload "+name, func(w *world) { w.uploadRollout(name) })
		p.act(begin+time.Duration(360+r.IntN(900))*time.Second, "start "+name, func(w *world) {
			w.decide(choice{rollout: name, verb: api.VerbStart})
		})
	}
	at := begin + 10*time.Minute
	for range 4 + r.IntN(12) {
		at += pause(r)
		fleetActs[r.IntN(len(fleetActs))](&p, r, at, names[r.IntN(len(names))], fmt.Sprintf("c%d", r.IntN(clusters)))
	}
	p.faultRules = fleetFaults(r)
	p.calmFor = time.Duration(r.IntN(60)) * time.Minute
	p.hooks = r.IntN(2) == 0
	p.sortActs()
	return p
}

// act adds an act that is about no cluster.
func (p *plot) act(at time.Duration, what string, do func(*world)) {
	p.acts = append(p.acts, act{at: at, cluster: "fleet", what: what, do: do})
}

// fleetLabels are those of the i-th cluster. The first one is always a canary.
func fleetLabels(i int, stage string) string {
	if i == 0 {
		stage = "canary"
	}
	return fmt.Sprintf(", labels: {stage: %s, half: %s}", stage, []string{"a", "b"}[i%2])
}

// fleetFaults returns rules that also affect the functions of rollouts.
func fleetFaults(r *rand.Rand) (rules []string) {
	for _, rule := range someFaultRules(r) {
		if i := strings.Index(rule, "caller="); i >= 0 && r.IntN(2) == 0 {
			end := i + strings.IndexByte(rule[i:], ' ')
			rule = rule[:i] + "caller=" + pick(r, "rollout", "fleet", "upgrade", "sweep") + rule[end:]
		}
		rules = append(rules, rule)
	}
	if r.IntN(3) == 0 {
		crash, function := pick(r, "crash-before", "crash-after"), pick(r, "rollout", "fleet")
		rules = append(rules, fmt.Sprintf("%s caller=%s p=%.3f", crash, function, 0.01+r.Float64()/10))
	}
	return rules
}

// fleetActs draw an act at a time, about a rollout or a cluster.
var fleetActs = []func(p *plot, r *rand.Rand, at time.Duration, rollout, cluster string){
	decideSomething, decideSomething, decideSomething, decideSomething, decideSomething, decideSomething,
	func(p *plot, r *rand.Rand, at time.Duration, rollout, _ string) { // a pause, and its end
		p.act(at, "pause "+rollout, func(w *world) { w.decide(choice{rollout: rollout, verb: api.VerbPause}) })
		p.act(at+pause(r)+pause(r), "resume "+rollout, func(w *world) { w.decide(choice{rollout: rollout, verb: api.VerbResume}) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, _ string) { // a freeze, and its end
		name, labels := fmt.Sprintf("f%d", r.IntN(2)), pick(r, "{}", "{matchLabels: {stage: prod}}", "{matchLabels: {half: a}}")
		broken := r.IntN(8) == 0
		p.act(at, "freeze "+name, func(w *world) { w.freeze(name, labels, broken) })
		p.act(at+pause(r)+pause(r), "thaw "+name, func(w *world) { w.thaw(name) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, rollout, _ string) { // an edit in mid-run
		edited := someRollout(r, rollout, "")
		p.act(at, "edit "+rollout, func(w *world) { w.editRollout(edited) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, rollout, _ string) { // the file is deleted, and sometimes comes back
		p.act(at, "delete "+rollout, func(w *world) { w.deleteRollout(rollout) })
		if r.IntN(2) == 0 {
			p.act(at+pause(r), "upload "+rollout, func(w *world) { w.uploadRollout(rollout) })
		}
	},
	func(p *plot, r *rand.Rand, at time.Duration, rollout, _ string) { // the release changes after it was planned
		p.act(at, "edit the release of "+rollout, func(w *world) { w.editRelease(rollout) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, _ string) { // an alarm of stages
		p.act(at, "alarm", func(w *world) { w.setAlarm(fleetAlarm, true) })
		p.act(at+time.Duration(1+r.IntN(30))*time.Minute, "quiet", func(w *world) { w.setAlarm(fleetAlarm, false) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a cluster is not well for a while
		p.act(at, "silence a node of "+cluster, func(w *world) { w.setSilent(cluster, "a", 0, true) })
		p.act(at+time.Duration(5+r.IntN(90))*time.Minute, "its kubelet speaks", func(w *world) { w.setSilent(cluster, "a", 0, false) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a cluster that blocks
		p.act(at, "block "+cluster+" by a budget", func(w *world) { w.setBlocked(cluster, true) })
		p.act(at+pause(r)+pause(r), "unblock "+cluster, func(w *world) { w.setBlocked(cluster, false) })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a paused cluster
		p.respec(at, cluster, "pause", func(s *wish) { s.paused = true })
		p.respec(at+pause(r)+pause(r), cluster, "continue", func(s *wish) { s.paused = false })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a cluster of another stage
		labels := fleetLabels(1+r.IntN(2), pick(r, "prod", "canary", "lab"))
		p.respec(at, cluster, "relabel", func(s *wish) { s.labels = labels })
	},
	func(p *plot, _ *rand.Rand, at time.Duration, _, cluster string) { // a spec that changes in mid-run
		p.respec(at, cluster, "tags", func(s *wish) { s.team++ })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a spec that overtakes the run
		minor, rev := firstMinor+r.IntN(2), r.IntN(2)
		p.respec(at, cluster, "another release by the spec", func(s *wish) { s.minor, s.rev = minor, rev })
	},
	func(p *plot, r *rand.Rand, at time.Duration, _, cluster string) { // a cluster that leaves, and sometimes comes back
		p.respec(at, cluster, "unprotect", func(s *wish) { s.protected = false })
		p.acts = append(p.acts, act{at: at + 20*time.Minute, cluster: cluster, what: "delete", remove: true})
		if r.IntN(2) == 0 {
			p.respec(at+20*time.Minute+pause(r), cluster, "create again", func(*wish) {})
		}
	},
	func(p *plot, _ *rand.Rand, at time.Duration, _, _ string) {
		p.act(at, "fire the schedules twice", func(w *world) { w.fireTwice(); w.rolloutsBeside(); w.rolloutsBeside() })
	},
}

// respec uploads a changed spec of a cluster.
func (p *plot) respec(at time.Duration, cluster, what string, change func(*wish)) {
	p.acts = append(p.acts, act{at: at, cluster: cluster, what: what, do: func(w *world) {
		spec := *w.fleet.specs[cluster]
		spec.pools = slices.Clone(spec.pools)
		change(&spec)
		w.fleet.specs[cluster] = &spec
		if w.desired[cluster] == nil && what != "create again" {
			w.record("%s: it has no spec", cluster)
			return
		}
		w.do(act{cluster: cluster, what: what, spec: &spec})
	}})
}

// verbs in the order of their frequency.
var verbs = []api.Verb{
	api.VerbStart, api.VerbApprove, api.VerbApprove, api.VerbRetry, api.VerbRetry, api.VerbSkip, api.VerbResume, api.VerbResume,
	api.VerbAbort, api.VerbReject, api.VerbRollback, api.VerbOverride, api.VerbPause,
}

// decideSomething uploads a decision: sometimes of an older plan, sometimes twice.
func decideSomething(p *plot, r *rand.Rand, at time.Duration, rollout, cluster string) {
	c := choice{
		rollout: rollout, verb: verbs[r.IntN(len(verbs))], old: r.IntN(6) == 0, twice: r.IntN(5) == 0, cluster: cluster,
		freeze: fmt.Sprintf("f%d", r.IntN(2)), stage: r.IntN(4),
	}
	p.act(at, fmt.Sprintf("%s %s", strings.ToLower(string(c.verb)), rollout), func(w *world) { w.decide(c) })
}
