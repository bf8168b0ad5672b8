package rollout

// The documents that the functions rollout and fleet keep in the state bucket. shared/store reads and writes them, shared/names has their
// keys.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// Active lists the runs that have not ended. Starts of runs serialize on it: two runs never claim the same cluster. The sweep ticks each
// run in it.
type Active struct {
	Runs []ActiveRun `json:"runs"`
}

// ActiveRun is a run that has not ended. It may be in the list before its record has the run.
type ActiveRun struct {
	Rollout string `json:"rollout"`
	Number  int64  `json:"number"`
	// Plan is the digest of the run's plan. Its members are claimed.
	Plan    string  `json:"plan"`
	Subject Subject `json:"subject"`
	// Since is when the run was added.
	Since time.Time `json:"since"`
}

// Of returns the entry of a rollout; nil if it has none.
func (a *Active) Of(rollout string) *ActiveRun {
	i := slices.IndexFunc(a.Runs, func(r ActiveRun) bool { return r.Rollout == rollout })
	if i < 0 {
		return nil
	}
	return &a.Runs[i]
}

// Record is what drover knows of a rollout between two calls.
type Record struct {
	Rollout string `json:"rollout"`
	// Revision grows by one with each write.
	Revision int64 `json:"revision"`
	// Plan is the digest of the newest plan, Planned when it became that. Both are empty if no plan was possible yet.
	Plan    string    `json:"plan,omitempty"`
	Planned time.Time `json:"planned,omitzero"`
	// Older are plans that were the newest within the last day, by digest, and until when. A Start may still name them.
	Older map[string]time.Time `json:"older,omitempty"`
	// Problems are why the newest files cannot be used, or why a run that would start by itself does not.
	Problems []Problem `json:"problems,omitempty"`
	// Deleted reports that the rollout's file does not exist.
	Deleted bool `json:"deleted,omitempty"`
	// PausedBy is the decision that keeps the next run from starting. An active run has its own.
	PausedBy string `json:"pausedBy,omitempty"`
	// Number is that of the newest run; 0 if there was none.
	Number int64 `json:"number,omitempty"`
	// Run is the newest run. It stays after its end, so that its assignments still follow from the record.
	Run *Run `json:"run,omitempty"`
	// Answers are those of decisions that came while no run was active, by name. The next run takes them over.
	Answers map[string]Answer `json:"answers,omitempty"`
	// Notices were not sent yet, or were sent by a call that then ended.
	Notices []Notify `json:"notices,omitempty"`
}

// Problem is why an uploaded file cannot be used, or has no effect now.
type Problem struct {
	// File is its key in the specs bucket.
	File    string `json:"file"`
	Message string `json:"message"`
}

// Running returns the run that has not ended; nil if there is none.
func (r *Record) Running() *Run {
	if r.Run == nil || r.Run.State.Final() {
		return nil
	}
	return r.Run
}

// AllAnswers returns the answers to all decisions so far, by name.
func (r *Record) AllAnswers() map[string]Answer {
	all := map[string]Answer{}
	maps.Copy(all, r.Answers)
	if r.Run != nil {
		maps.Copy(all, r.Run.Answers)
	}
	return all
}

// DecisionAnswer is the answer to a decision, for its author.
type DecisionAnswer struct {
	Rollout  string `json:"rollout"`
	Decision string `json:"decision"`
	Answer
}

// DesiredState is what the runs of rollouts want from one cell: a section for each rollout, and the freezes.
type DesiredState struct {
	// Sections by the name of the rollout.
	Sections map[string]Section `json:"sections,omitempty"`
	// Freezes of all clusters, those of the past too.
	Freezes []api.Freeze `json:"freezes,omitempty"`
}

// Section is what one rollout wants from a cell. It follows from the record of the run alone.
type Section struct {
	// Run and Sequence are the number and the sequence of the run. A section never replaces one with higher ones.
	Run      int64 `json:"run"`
	Sequence int64 `json:"sequence"`
	// Assignments of the members that have started, in the order of the plan. A cluster of an ended run keeps its last one.
	Assignments []Assignment `json:"assignments,omitempty"`
	// Watches has at most one entry: until when the cell observes its clusters every four to six minutes.
	Watches []Watch `json:"watches,omitempty"`
	// Overrides are the freezes that the run ignores.
	Overrides []string `json:"overrides,omitempty"`
	// Claims are the members of a run that has not ended, sorted. Their channels do not move them.
	Claims []string `json:"claims,omitempty"`
	// Releases are those of the plan. The cell reports which of them it can use.
	Releases []ReleaseRef `json:"releases,omitempty"`
}

// Newer reports whether a section is of a later record than another.
func (s *Section) Newer(other *Section) bool {
	return s.Run > other.Run || s.Run == other.Run && s.Sequence > other.Sequence
}

// SectionOf returns the section of a run for a cell.
func SectionOf(p *Plan, r *Run, cell string, now time.Time) Section {
	s := Section{Run: r.Number, Sequence: r.Sequence, Overrides: slices.Clone(r.Overrides)}
	for _, a := range Assignments(p, r) {
		if a.Cell == cell {
			s.Assignments = append(s.Assignments, a)
		}
	}
	if r.State.Final() {
		return s
	}
	for _, w := range Watches(p, r, now) {
		if w.Cell == cell {
			s.Watches = append(s.Watches, w)
		}
	}
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			if m := &p.Stages[i].Members[j]; m.Cell == cell {
				s.Claims = append(s.Claims, m.Cluster)
			}
		}
	}
	slices.Sort(s.Claims)
	for _, release := range p.Subject.Releases {
		s.Releases = append(s.Releases, ReleaseRef{release.Name, release.SHA256})
	}
	return s
}

// Report is what a cell reports to the function rollout.
type Report struct {
	// At is when the report was written. Full is when the cell last observed all of its clusters.
	At   time.Time `json:"at"`
	Full time.Time `json:"full,omitzero"`
	// Facts by the name of the cluster, sorted.
	Facts []Fact `json:"facts"`
	// Open are the clusters on which rollouts work now. Each has the number of its newest reservation: a call removes a cluster only if it
	// knows that one. Limit bounds how many clusters are open; 0 is no bound.
	Open  map[string]int64 `json:"open,omitempty"`
	Limit int              `json:"limit,omitempty"`
	// Reservations counts the reservations of all clusters, so that no number is used twice.
	Reservations int64 `json:"reservations,omitempty"`
	// Usable are the SHA-256 of the releases of active runs that the cell can use, sorted.
	Usable []string `json:"usable,omitempty"`
}

// CellAssignment is the cell's copy of an assignment. The function fleet writes and withdraws it; the function upgrade sets Begun. Both
// write it on the condition that they read the newest one. So an attempt is either withdrawn or begun.
type CellAssignment struct {
	Assignment
	// Taken is when the cell took the assignment.
	Taken time.Time `json:"taken"`
	// Stack is the ARN of the control plane's stack at that time. A recreated cluster has another one, and no assignment.
	Stack string `json:"stack,omitempty"`
	// Overrides are the freezes that the run ignores.
	Overrides []string `json:"overrides,omitempty"`
	// Begun reports whether the upgrade has begun. Then Withdrawn has no effect.
	Begun bool `json:"begun,omitempty"`
	// Check is the check that refused the upgrade before it had a record; empty if none did. Message is why.
	Check   string `json:"check,omitempty"`
	Message string `json:"message,omitempty"`
	// Requested is the time for which the cluster was planned last because of this assignment.
	Requested time.Time `json:"requested,omitzero"`
}

// Looks are the newest observations of the clusters of a cell whose upgrades have begun.
type Looks struct {
	Clusters map[string]Look `json:"clusters,omitempty"`
}

// Look is what was seen in the cluster itself.
type Look struct {
	// At is when the look began.
	At time.Time `json:"at"`
	// Nodes of the cluster, and how many of them are not Ready.
	Nodes    int `json:"nodes"`
	NotReady int `json:"notReady,omitempty"`
}

// Same reports whether a report says nothing new. Where a run measures time by the observations of a cluster, each one counts: after an
// upgrade. Otherwise a newer one counts if the old one is too old: see tolerance.
func (r *Report) Same(old *Report) bool {
	return r.Limit == old.Limit && r.Full.Equal(old.Full) && maps.Equal(r.Open, old.Open) && slices.Equal(r.Usable, old.Usable) &&
		slices.EqualFunc(r.Facts, old.Facts, func(a, b Fact) bool {
			if b.Observed.After(a.Observed.Add(-tolerance(&a))) {
				a.Observed = b.Observed
			}
			return reflect.DeepEqual(a, b)
		})
}

// tolerance is how much newer an observation may be that adds nothing. A run may not have read how an attempt ended.
func tolerance(f *Fact) time.Duration {
	switch {
	case f.Attempt == nil, !f.Attempt.State.Ended():
		return 10 * time.Minute
	case f.Attempt.State == AttemptDone:
		return 0
	}
	return time.Minute
}

// Equal reports whether two documents have the same content.
func (f *CellFreezes) Equal(other *CellFreezes) bool {
	a, _ := json.Marshal(f) // strings
	b, _ := json.Marshal(other)
	return bytes.Equal(a, b)
}

// Key identifies the attempt of an assignment in upgrade records: it fires once, and a later run of the same plan is another request.
func (a *Assignment) Key() string {
	return fmt.Sprintf("rollout %s %d.%d %.16s", a.Rollout, a.Run, a.Attempt, a.Plan)
}

// CellFreezes are the freezes that hold in a cell, and the clusters that runs claim.
type CellFreezes struct {
	Freezes []api.Freeze `json:"freezes"`
	// Claims are the members of runs that have not ended, sorted.
	Claims []string `json:"claims,omitempty"`
}
