package rollout

// Planning: from a rollout and the known clusters to numbered stages with their members.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// Content is a release with its file.
type Content struct {
	Release *api.Release
	SHA256  string
}

// ContentOf returns the content of a release file.
func ContentOf(release *api.Release, file []byte) Content {
	return Content{release, names.SHA256(file)}
}

// WithStages returns a copy of a rollout that has stages of its own. A rollout with `like` gets those of the rollout that it names.
func WithStages(r *api.Rollout, others map[string]*api.Rollout) (*api.Rollout, api.Errors) {
	full := r.Defaulted()
	if full.Spec.Like == "" {
		return full, nil
	}
	path, other := field.NewPath("spec", "like"), others[full.Spec.Like]
	switch {
	case other == nil:
		return nil, problems(field.Invalid(path, full.Spec.Like, "there is no such rollout"))
	case other.Spec.Like != "":
		return nil, problems(field.Invalid(path, full.Spec.Like, fmt.Sprintf("it has no stages of its own: name %s", other.Spec.Like)))
	}
	full.Spec.Stages = other.Defaulted().Spec.Stages
	return full, nil
}

// SubjectOf returns the subject of a rollout, with the releases that it names.
func SubjectOf(r *api.Rollout, releases map[string]Content) (Subject, api.Errors) {
	var s Subject
	var wrong field.ErrorList
	path := field.NewPath("spec", "subject")
	add := func(path *field.Path, name, version string) {
		c, ok := releases[name]
		switch {
		case !ok:
			wrong = append(wrong, field.Invalid(path, name, "there is no such release"))
			return
		case version != "" && c.Release.Spec.KubernetesVersion != version:
			wrong = append(wrong, field.Invalid(path, name, fmt.Sprintf("it is a release of Kubernetes %s", c.Release.Spec.KubernetesVersion)))
			return
		}
		s.Releases = append(s.Releases, Release{
			Name: name, SHA256: c.SHA256, KubernetesVersion: c.Release.Spec.KubernetesVersion, UpgradeFrom: c.Release.Spec.UpgradeFrom, For: version,
		})
	}
	if r.Spec.Subject.Release != "" {
		add(path.Child("release"), r.Spec.Subject.Release, "")
	}
	for _, version := range slices.Sorted(maps.Keys(r.Spec.Subject.Releases)) {
		add(path.Child("releases").Key(version), r.Spec.Subject.Releases[version], version)
	}
	return s, problems(wrong...)
}

// of returns the release for a cluster of a Kubernetes version.
func (s Subject) of(version string) (r Release, ok bool) {
	for _, r := range s.Releases {
		if r.For == "" || r.For == version {
			return r, true
		}
	}
	return Release{}, false
}

// problems converts field errors. Errors.In adds their positions in the file of the rollout.
func problems(list ...*field.Error) (errs api.Errors) {
	for _, e := range list {
		errs = append(errs, &api.Error{Cause: e})
	}
	return errs
}

// Compute expands a rollout over the known clusters. Equal inputs give equal plans, in whatever order the clusters are. The rollout has
// stages of its own: see WithStages.
func Compute(r *api.Rollout, s Subject, facts []Fact) (*Plan, api.Errors) {
	r = r.Defaulted()
	known := slices.Clone(facts)
	slices.SortFunc(known, func(a, b Fact) int { return strings.Compare(a.Cluster, b.Cluster) })
	c := computing{r: r, subject: s, plan: &Plan{
		Rollout: r.Metadata.Name, Spec: SpecDigest(r), Subject: s,
		Start: r.Spec.Start, OnNewer: r.Spec.OnNewer, OnFailure: r.Spec.OnFailure, Stages: []Stage{},
	}}
	chosen := c.choose(known)
	c.verifyContent(known)
	for i := range r.Spec.Stages {
		c.expand(i, chosen[i])
	}
	if len(c.wrong) > 0 {
		return nil, problems(c.wrong...)
	}
	slices.SortFunc(c.plan.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.Cluster, b.Cluster) })
	return c.plan, nil
}

// CheckSelectors reports the problems of the selectors of a rollout over the known clusters: what matches none of them, or overlaps. The
// rollout has stages of its own.
func CheckSelectors(r *api.Rollout, facts []Fact) api.Errors {
	known := slices.Clone(facts)
	slices.SortFunc(known, func(a, b Fact) int { return strings.Compare(a.Cluster, b.Cluster) })
	c := computing{r: r.Defaulted(), plan: &Plan{}}
	c.choose(known)
	return problems(c.wrong...)
}

// SpecDigest is the SHA-256 of a spec with all defaults. Comments and the order of fields do not change it. The rollout has stages of its
// own: see WithStages.
func SpecDigest(r *api.Rollout) string {
	body, err := json.Marshal(r.Defaulted().Spec)
	if err != nil {
		panic(err) // strings and numbers
	}
	return names.SHA256(body)
}

// computing is the state of one call of Compute.
type computing struct {
	r       *api.Rollout
	subject Subject
	plan    *Plan
	wrong   field.ErrorList
}

// candidate is a member with what its position in the plan depends on.
type candidate struct {
	Member
	labels map[string]string
}

func stagePath(i int) *field.Path { return field.NewPath("spec", "stages").Index(i) }

// choose returns the members of each stage, by name. It reports clusters that two stages select, or none.
func (c *computing) choose(known []Fact) [][]candidate {
	chosen, matched := make([][]candidate, len(c.r.Spec.Stages)), make([]int, len(c.r.Spec.Stages))
	var unmatched []string
	overlaps := map[[2]int][]string{}
	for i := range known {
		f := &known[i]
		if i > 0 && known[i-1].Cluster == f.Cluster {
			c.wrong = append(c.wrong, field.Duplicate(field.NewPath("spec", "clusters"), f.Cluster))
			continue
		}
		labels := f.AllLabels()
		if c.r.Spec.Clusters != nil && !c.r.Spec.Clusters.Matches(labels) {
			continue
		}
		in := -1
		for n := range c.r.Spec.Stages {
			if !c.r.Spec.Stages[n].Selector.Matches(labels) {
				continue
			}
			if in >= 0 {
				overlaps[[2]int{in, n}] = append(overlaps[[2]int{in, n}], f.Cluster)
				continue
			}
			in = n
			matched[n]++
		}
		switch m, reason, why := c.member(f); {
		case in < 0 && c.r.Spec.Clusters == nil: // no candidate
		case in < 0:
			unmatched = append(unmatched, f.Cluster)
		case reason != "":
			c.plan.LeftOut = append(c.plan.LeftOut, LeftOut{f.Cluster, reason, why})
		default:
			chosen[in] = append(chosen[in], candidate{m, labels})
		}
	}
	c.report(matched, unmatched, overlaps)
	return chosen
}

// report adds the problems of selectors.
func (c *computing) report(matched []int, unmatched []string, overlaps map[[2]int][]string) {
	skip := c.r.Spec.Unmatched == api.UnmatchedSkip
	for _, name := range unmatched {
		if skip {
			c.plan.LeftOut = append(c.plan.LeftOut, LeftOut{name, ReasonUnmatched, "no stage selects it"})
		}
	}
	if len(unmatched) > 0 && !skip {
		c.wrong = append(c.wrong, field.Invalid(field.NewPath("spec", "clusters"), c.r.Spec.Clusters.String(),
			fmt.Sprintf("no stage selects %s: add a stage, or set unmatched: Skip", some(unmatched))))
	}
	for n, count := range matched {
		if count == 0 && !skip {
			c.wrong = append(c.wrong, field.Invalid(stagePath(n).Child("selector"), c.r.Spec.Stages[n].Selector.String(),
				"it matches no cluster: correct it, or set unmatched: Skip"))
		}
	}
	for n := range c.r.Spec.Stages {
		for earlier := range n {
			if both := overlaps[[2]int{earlier, n}]; len(both) > 0 {
				c.wrong = append(c.wrong, field.Invalid(stagePath(n).Child("selector"), c.r.Spec.Stages[n].Selector.String(),
					fmt.Sprintf("stage %s also selects %s: a cluster is in one stage", c.r.Spec.Stages[earlier].Name, some(both))))
			}
		}
	}
}

// some names the first clusters of a list.
func some(list []string) string {
	const shown = 5
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// member returns the member of a cluster, or the reason for which the plan leaves it out.
func (c *computing) member(f *Fact) (m Member, left Reason, why string) {
	have := f.Deployed
	to, ok := c.subject.of(have.KubernetesVersion)
	m = Member{Cluster: f.Cluster, Cell: f.Cell(), Stack: f.Stack, From: have, To: to.Target()}
	switch {
	case f.Pinned:
		return m, ReasonPinned, "spec.fleet.release of the cluster is Pinned"
	case have.KubernetesVersion == "":
		return m, ReasonNotCreated, "it has no control plane"
	case !ok:
		return m, ReasonIncompatibleVersion, fmt.Sprintf("the rollout has no release for %s", have.KubernetesVersion)
	case have.Release == to.Name && (have.SHA256 == to.SHA256 || have.SHA256 == ""):
		return m, ReasonUpToDate, "" // facts from specs may have the name alone
	}
	why = misfit(have.KubernetesVersion, to)
	if why != "" {
		return m, ReasonIncompatibleVersion, why
	}
	return m, "", ""
}

// misfit returns why a cluster of a Kubernetes version cannot be upgraded to a release; empty if it can.
func misfit(have string, to Release) string {
	from, target, oldest := upgrade.Minor(have), upgrade.Minor(to.KubernetesVersion), upgrade.Minor(to.UpgradeFrom)
	if oldest < 0 {
		oldest = target - 1
	}
	switch {
	case from > target:
		return fmt.Sprintf("it runs %s: %s is of %s", have, to.Name, to.KubernetesVersion)
	case from < oldest:
		return fmt.Sprintf("it runs %s: %s upgrades from 1.%d", have, to.Name, oldest)
	}
	return ""
}

// verifyContent refuses a release that was edited after clusters were pinned to it. drover compares releases by name.
func (c *computing) verifyContent(known []Fact) {
	for _, r := range c.subject.Releases {
		pinned := 0
		for i := range known {
			if have := known[i].Deployed; have.Release == r.Name && have.SHA256 != r.SHA256 && have.SHA256 != "" {
				pinned++
			}
		}
		if pinned == 0 {
			continue
		}
		path := field.NewPath("spec", "subject", "release")
		if r.For != "" {
			path = field.NewPath("spec", "subject", "releases").Key(r.For)
		}
		c.wrong = append(c.wrong, field.Invalid(path, r.Name,
			fmt.Sprintf("it was edited after %s pinned to it: publish it under a new name", pinnedClusters(pinned))))
	}
}

func pinnedClusters(n int) string {
	if n == 1 {
		return "a cluster was"
	}
	return fmt.Sprintf("%d clusters were", n)
}

// group is a part of a stage: the members with one value of the label of groupBy.
type group struct {
	name    string
	members []candidate
}

// expand adds the expanded stages of one stage to the plan.
func (c *computing) expand(i int, members []candidate) {
	s := &c.r.Spec.Stages[i]
	slices.SortStableFunc(members, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(a.labels[s.Order]), rank(b.labels[s.Order])), strings.Compare(a.Cluster, b.Cluster))
	})
	first := len(c.plan.Stages)
	for _, g := range c.groups(i, members) {
		for n, wave := range waves(s.Waves, g.members) {
			if len(wave) == 0 {
				continue
			}
			name := s.Name
			if g.name != "" {
				name += "/" + g.name
			}
			if len(s.Waves) > 0 {
				name += "/" + strconv.Itoa(n+1)
			}
			c.plan.Stages = append(c.plan.Stages, c.stage(s, name, wave))
		}
	}
	added := c.plan.Stages[first:]
	for _, gate := range s.Before {
		if len(added) > 0 {
			added[0].Before = append(added[0].Before, *gate.Approval)
		}
	}
	for _, gate := range s.After {
		if last := len(added) - 1; last >= 0 {
			added[last].After = append(added[last].After, *gate.Approval)
		}
	}
}

// stage returns an expanded stage with its amounts in numbers.
func (c *computing) stage(s *api.RolloutStage, name string, members []candidate) Stage {
	_, percentage := s.MaxFailures.Percent()
	out := Stage{
		Number: len(c.plan.Stages) + 1, Name: name, FromStage: s.Name,
		MaxConcurrency: max(1, s.MaxConcurrency.Of(len(members), false)),
		MaxFailures:    s.MaxFailures.Of(len(members), false), SharedFailures: !percentage, Budget: s.Budget,
		Settle: duration(s.Settle), Deadline: duration(s.Deadline), Soak: duration(s.Soak),
		Window: s.Window, Alarms: s.Alarms,
	}
	for _, m := range members {
		out.Members = append(out.Members, m.Member)
		if s.Deadline == "" {
			out.Deadline = max(out.Deadline, out.Settle+Duration(limit(m.From, m.To)))
		}
	}
	return out
}

// limit is the time that the steps of an upgrade may take.
func limit(from, to upgrade.Target) time.Duration {
	minors := max(0, upgrade.Minor(to.KubernetesVersion)-upgrade.Minor(from.KubernetesVersion))
	return time.Duration(minors)*(upgrade.StepAddonsFirst.Limit()+upgrade.StepControlPlane.Limit()) +
		upgrade.StepAddons.Limit() + upgrade.StepNodes.Limit()
}

// duration parses a duration of a valid spec.
func duration(text string) Duration {
	d, _ := time.ParseDuration(text)
	return Duration(d)
}

// rank is the number of a label by which members are ordered. Members without a number are last.
func rank(label string) int {
	n, err := strconv.Atoi(label)
	if err != nil {
		return int(^uint(0) >> 1)
	}
	return n
}

// groups returns the parts of a stage in order. Without groupBy there is one.
func (c *computing) groups(i int, members []candidate) []group {
	s := &c.r.Spec.Stages[i]
	if s.GroupBy == "" {
		return []group{{"", members}}
	}
	byValue := map[string][]candidate{}
	var without []string
	for _, m := range members {
		value := m.labels[s.GroupBy]
		if value == "" {
			without = append(without, m.Cluster)
			continue
		}
		byValue[value] = append(byValue[value], m)
	}
	if len(without) > 0 {
		c.wrong = append(c.wrong, field.Invalid(stagePath(i).Child("groupBy"), s.GroupBy, "no such label on "+some(without)))
	}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(byValue)), func(value string) bool { return slices.Contains(s.Groups, value) })
	order := s.Groups
	if len(order) == 0 {
		order = []string{allGroups}
	}
	if !slices.Contains(order, allGroups) && len(rest) > 0 {
		c.wrong = append(c.wrong, field.Invalid(stagePath(i).Child("groups"), strings.Join(s.Groups, ", "),
			fmt.Sprintf("the label %s has other values too: add %s, or \"*\"", s.GroupBy, some(rest))))
	}
	var all []group
	for _, value := range order {
		values := []string{value}
		if value == allGroups {
			values = rest
		}
		for _, value := range values {
			all = append(all, group{value, byValue[value]})
		}
	}
	return all
}

// allGroups stands for all values that groups does not name.
const allGroups = "*"

// waves splits members into waves. A wave is empty if the ones before have as many members.
func waves(amounts []api.Amount, members []candidate) [][]candidate {
	if len(amounts) == 0 {
		return [][]candidate{members}
	}
	var all [][]candidate
	done := 0
	for _, amount := range amounts {
		upTo := min(max(done, amount.Of(len(members), true)), len(members))
		all = append(all, members[done:upTo])
		done = upTo
	}
	return all
}

// Wait is a member that could not start at a time, whatever its stage.
type Wait struct {
	Cluster string    `json:"cluster"`
	Reason  Reason    `json:"reason"`
	Until   time.Time `json:"until,omitzero"`
}

// Waits returns the members of a plan that could not start at a time because of their facts, in the order of the plan. At the zero time,
// windows and freezes do not count.
func Waits(p *Plan, facts []Fact, freezes []api.Freeze, at time.Time) (all []Wait) {
	byName := map[string]*Fact{}
	for i := range facts {
		byName[facts[i].Cluster] = &facts[i]
	}
	for i := range p.Stages {
		for _, m := range p.Stages[i].Members {
			f := byName[m.Cluster]
			if f == nil {
				continue
			}
			if reason, until := f.obstacle(freezes, at, ""); reason != "" {
				all = append(all, Wait{m.Cluster, reason, until})
			}
		}
	}
	return all
}

// Conflict is a member of a plan that another run has claimed.
type Conflict struct {
	Cluster, Rollout string
}

// Conflicts returns the members of a plan that are members of the plans of active runs of other rollouts. A run with a conflict must not
// start: two runs would set different releases for one cluster.
func (p *Plan) Conflicts(active []*Plan) (all []Conflict) {
	claimed := map[string]string{}
	for _, other := range active {
		for i := range other.Stages {
			for _, m := range other.Stages[i].Members {
				if other.Rollout != p.Rollout {
					claimed[m.Cluster] = other.Rollout
				}
			}
		}
	}
	for i := range p.Stages {
		for _, m := range p.Stages[i].Members {
			if by := claimed[m.Cluster]; by != "" {
				all = append(all, Conflict{m.Cluster, by})
			}
		}
	}
	return all
}
