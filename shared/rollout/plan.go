// Package rollout moves many clusters to a release, in stages and within a failure budget. Compute expands a rollout into a plan: numbered
// stages with their members. Tick evaluates one run of a plan: which members start now, and why each other member waits. The package is
// pure: callers pass facts about clusters, and store the record that Tick returns before they act on it.
package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// Plan is the expansion of a rollout over the known clusters. A run follows its plan and evaluates no selector.
type Plan struct {
	// Rollout is the name of the rollout, and Spec the SHA-256 of its spec with all defaults.
	Rollout string `json:"rollout"`
	Spec    string `json:"spec"`
	// Subject is what the members get.
	Subject   Subject          `json:"subject"`
	Start     api.RolloutStart `json:"start"`
	OnNewer   api.OnNewer      `json:"onNewer"`
	OnFailure api.OnFailure    `json:"onFailure"`
	// Stages run in order. Stages without members are not in the plan.
	Stages []Stage `json:"stages"`
	// LeftOut are the clusters that the rollout selects and does not change, by name.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Subject is what the members of a plan get.
type Subject struct {
	Releases []Release `json:"releases"`
}

// Release is a release by content.
type Release struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// KubernetesVersion is the release's own. UpgradeFrom is the oldest version from which clusters may be upgraded to it.
	KubernetesVersion string `json:"kubernetesVersion"`
	UpgradeFrom       string `json:"upgradeFrom,omitempty"`
	// For is the Kubernetes version of the clusters that get this release. Empty means all clusters.
	For string `json:"for,omitempty"`
}

// Target returns the target of a cluster that gets the release.
func (r Release) Target() upgrade.Target {
	return upgrade.Target{Release: r.Name, SHA256: r.SHA256, KubernetesVersion: r.KubernetesVersion}
}

// Stage is an expanded stage: one wave of one group of a stage of the rollout. All amounts are numbers of members.
type Stage struct {
	// Number counts from 1.
	Number int `json:"number"`
	// Name is that of its stage in the file (FromStage), followed by its group and its wave.
	Name      string `json:"name"`
	FromStage string `json:"fromStage"`
	// MaxConcurrency is how many members may be at risk at once.
	MaxConcurrency int `json:"maxConcurrency"`
	// MaxFailures is how many members may fail: in all expanded stages of FromStage if SharedFailures, in this one otherwise.
	MaxFailures    int        `json:"maxFailures"`
	SharedFailures bool       `json:"sharedFailures"`
	Budget         api.Budget `json:"budget"`
	Settle         Duration   `json:"settle"`
	Deadline       Duration   `json:"deadline"`
	Soak           Duration   `json:"soak"`
	// Window is when members may start; nil is always.
	Window *api.Window `json:"window,omitempty"`
	// Alarms must be quiet.
	Alarms []string `json:"alarms,omitempty"`
	// Before and After are approvals that the stage needs before its first start, and after its soak. The first expanded stage of
	// FromStage has the former, the last one the latter.
	Before []api.Approval `json:"before,omitempty"`
	After  []api.Approval `json:"after,omitempty"`
	// Members start in this order.
	Members []Member `json:"members"`
}

// Member is a cluster of a plan.
type Member struct {
	Cluster string `json:"cluster"`
	Cell    string `json:"cell"`
	// Stack is the ARN of the control plane's stack. A cluster with another stack is not this member. It is empty if it was not known.
	Stack string `json:"stack,omitempty"`
	// From is the target that is deployed when the plan is made, To the one that the run sets.
	From upgrade.Target `json:"from"`
	To   upgrade.Target `json:"to"`
}

// LeftOut is a cluster that the rollout selects and does not change.
type LeftOut struct {
	Cluster string `json:"cluster"`
	Reason  Reason `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Digest identifies the plan: the SHA-256 of its canonical JSON, in hex. Decisions name it.
func (p *Plan) Digest() string {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Size returns the number of members.
func (p *Plan) Size() (n int) {
	for i := range p.Stages {
		n += len(p.Stages[i].Members)
	}
	return n
}

// Parallel returns how many members of the stage can be at risk at once. A strict budget may allow fewer than MaxConcurrency.
func (s *Stage) Parallel() int {
	n := min(s.MaxConcurrency, len(s.Members))
	if s.Budget == api.BudgetStrict {
		n = min(n, s.MaxFailures+1)
	}
	return n
}

// Least returns the shortest time that a run of the plan can take, without the time of the upgrades themselves and without waits.
func (p *Plan) Least() (least time.Duration) {
	for i := range p.Stages {
		s := &p.Stages[i]
		rounds := (len(s.Members) + s.Parallel() - 1) / s.Parallel()
		least += time.Duration(rounds)*time.Duration(s.Settle) + time.Duration(s.Soak)
	}
	return least
}

// Difference describes in sentences how a plan differs from an older one.
func (p *Plan) Difference(old *Plan) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, r := range p.Subject.Releases {
		if !containsRelease(old.Subject.Releases, r) {
			add("the release is %s@%.12s", r.Name, r.SHA256)
		}
	}
	before, now := stagesOf(old), stagesOf(p)
	joined, left, moved := map[string]int{}, map[string]int{}, 0
	for cluster, stage := range now {
		switch was, ok := before[cluster]; {
		case !ok:
			joined[stage]++
		case was != stage:
			moved++
		}
	}
	for cluster, stage := range before {
		if now[cluster] == "" {
			left[stage]++
		}
	}
	for _, stage := range stageNames(p, old) {
		if n := joined[stage]; n > 0 {
			add("%d %s joined %s", n, clusters(n), stage)
		}
		if n := left[stage]; n > 0 {
			add("%d %s left %s", n, clusters(n), stage)
		}
	}
	if moved > 0 {
		add("%d %s in another stage", moved, map[bool]string{true: "cluster is", false: "clusters are"}[moved == 1])
	}
	if p.Spec != old.Spec {
		add("the spec of the rollout was edited")
	}
	if len(lines) == 0 && p.Digest() != old.Digest() {
		add("the state of clusters changed")
	}
	return lines
}

func clusters(n int) string {
	if n == 1 {
		return "cluster"
	}
	return "clusters"
}

func containsRelease(list []Release, r Release) bool {
	for _, other := range list {
		if other == r {
			return true
		}
	}
	return false
}

// stagesOf returns the name of each member's stage of the rollout.
func stagesOf(p *Plan) map[string]string {
	stages := map[string]string{}
	for i := range p.Stages {
		for _, m := range p.Stages[i].Members {
			stages[m.Cluster] = p.Stages[i].FromStage
		}
	}
	return stages
}

// stageNames returns the names of the stages of several plans, in their order.
func stageNames(plans ...*Plan) (names []string) {
	seen := map[string]bool{}
	for _, p := range plans {
		for i := range p.Stages {
			if of := p.Stages[i].FromStage; !seen[of] {
				seen[of] = true
				names = append(names, of)
			}
		}
	}
	return names
}

// Duration is written as text, such as "1h30m0s".
type Duration time.Duration

// String returns the duration in the form of Go.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}
