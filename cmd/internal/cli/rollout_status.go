package cli

// The status of rollouts: a table of all, one in depth, and a watch of its run.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

func rolloutStatusCommand() *cobra.Command {
	var watch bool
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show a rollout: its stages, and why each member waits or failed; or a table of all",
		Long: `Shows what drover last wrote about a rollout: the stages of its newest run with their members, budgets, gates and soaks, and each
member that is in flight, failed or waits, with its reason. Without a name, a table of all rollouts. docs/fleet.md explains
each reason, and drover fleet why CLUSTER explains that of one cluster.

With --watch it prints what changes until the run ends, is halted, or waits for a user. -o json prints the document that drover keeps
in status/rollouts/NAME.json of the state bucket.`,
		Example: `  drover rollout status
  drover rollout status kubernetes-1.37
  drover rollout status kubernetes-1.37 --watch
  drover rollout status kubernetes-1.37 -o json`,
		Annotations: ExitCodes("the run is done or in progress, or no cluster needs a change; without NAME, the table is printed",
			"an error; the run is halted; no plan is possible; with --watch, also if the run ended before it was done",
			"the rollout waits for a user: a start, an approval, or the end of a pause"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeArgs(rolloutNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			if watch && (len(args) != 1 || output.forMachines()) {
				return errors.New("--watch shows one rollout, as lines: give its NAME and no -o json or yaml")
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				all, err := readRollouts(ctx, c.State)
				if err != nil {
					return err
				}
				if output.forMachines() {
					return output.print(out, all)
				}
				newDisplay(out, false).rollouts(all)
				return nil
			}
			if watch {
				return watchRollout(ctx, out, c.State, args[0], seenRun{})
			}
			s, err := readRollout(ctx, c.State, args[0])
			if err != nil {
				return err
			}
			if !output.forMachines() {
				newDisplay(out, false).rollout(s, output.format == formatWide)
			} else if err := output.print(out, s); err != nil {
				return err
			}
			return verdictOf(s)
		},
	}
	output = addOutputFlag(cmd, formatWide)
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes until the run ends, is halted or waits for a user")
	return cmd
}

// namesOfRollouts lists the rollouts that have a status.
func namesOfRollouts(ctx context.Context, state *store.State) (all []string, err error) {
	entries, err := state.List(ctx, names.RolloutStatuses)
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(entry.Key, names.RolloutStatuses), ".json"); ok {
			all = append(all, name)
		}
	}
	return all, err
}

// readRollouts reads the status of every rollout. A document that cannot be read hides no other: its message says so.
func readRollouts(ctx context.Context, state *store.State) ([]*rollout.Status, error) {
	all, err := namesOfRollouts(ctx, state)
	if err != nil {
		return nil, err
	}
	list := []*rollout.Status{}
	for _, name := range all {
		s, _, err := state.RolloutStatus(ctx, name)
		switch {
		case unreadable(err):
			s = &rollout.Status{Metadata: rollout.StatusMetadata{Name: name}, State: string(unknownPhase),
				Message: "its status cannot be read: " + err.Error()}
		case err != nil:
			return nil, err
		case s == nil:
			continue // deleted since it was listed
		}
		list = append(list, s)
	}
	return list, nil
}

// nextDecision returns what a user has to do before the rollout continues; empty if nothing.
func nextDecision(s *rollout.Status) string {
	name := s.Metadata.Name
	if active := activeRun(s); active != nil {
		if active.PausedBy != "" {
			return "it is paused: drover rollout resume " + name
		}
		for i := range active.Stages {
			if stage := &active.Stages[i]; stage.Needs != "" && active.Halt == nil && active.Ending == "" {
				return fmt.Sprintf("%s needs an approval: drover rollout approve %s %[1]s --plan %.12[3]s", stage.Name, name, active.Plan)
			}
		}
		return ""
	}
	switch {
	case s.State == rollout.StatusPaused:
		return "it is paused: drover rollout resume " + name
	case s.State == rollout.StatusPlanned && s.Plan != nil:
		return fmt.Sprintf("the plan waits for a start: drover rollout start %s --plan %.12s", name, s.Plan.Digest)
	}
	return ""
}

// activeRun returns the run that has not ended; nil if there is none.
func activeRun(s *rollout.Status) *rollout.RunStatus {
	if s.Run == nil || s.Run.State.Final() {
		return nil
	}
	return s.Run
}

// verdictOf returns the exit code of a rollout, as an error that was printed.
func verdictOf(s *rollout.Status) error {
	active := activeRun(s)
	switch {
	case active != nil && active.Halt != nil, active == nil && s.State == rollout.StatusInvalid:
		return errPrinted
	case nextDecision(s) != "":
		return errFindings
	}
	return nil
}

// rollouts shows a row for each rollout.
func (d *display) rollouts(all []*rollout.Status) {
	table := &view.Table{Columns: []view.Column{
		{Title: "NAME"}, {Title: "STATE"}, {Title: "RUN"}, {Title: "PLAN"}, {Title: "STAGE"}, {Title: "GOOD"}, {Title: "FAILED"},
		{Title: "MESSAGE", Min: 20},
	}}
	for _, s := range all {
		row, number, good, failed := overview.SummarizeRollout(s), "-", "-", "-"
		if row.Run > 0 {
			number, good, failed = fmt.Sprint(row.Run), fmt.Sprintf("%d/%d", row.Good, row.Members), fmt.Sprint(row.Failed)
		}
		table.Add(view.Text(row.Name), view.Cell{Text: row.State, Tone: rolloutTones[row.State]}, view.Text(number),
			view.Text(cmp.Or(row.Plan[:min(minDigest, len(row.Plan))], "-")), view.Text(cmp.Or(row.Stage, "-")), view.Text(good), view.Text(failed),
			view.Text(cmp.Or(d.words(row.Message), "-")))
	}
	table.Write(d.out, d.width, d.color)
}

// rolloutTones has the color of each state of a rollout, a run, a stage or a member. Other states have none.
var rolloutTones = map[string]view.Tone{
	string(rollout.Running): view.Moving, string(rollout.Paused): view.Moving, string(rollout.Halted): view.Bad,
	string(rollout.RollingBack): view.Bad, string(rollout.Done): view.Good, string(rollout.Aborted): view.Bad,
	string(rollout.Superseded): view.Quiet,
	rollout.StatusInvalid:      view.Bad, rollout.StatusDeleted: view.Quiet, rollout.StatusCurrent: view.Good,
	rollout.StatusPlanned: view.Moving,
	rollout.StageOpen:     view.Moving, rollout.StageSoaking: view.Moving, rollout.StagePassed: view.Good,
	string(rollout.Started): view.Moving, string(rollout.Withdrawing): view.Moving, string(rollout.Changing): view.Moving,
	string(rollout.Settling): view.Moving, string(rollout.Good): view.Good, string(rollout.Failed): view.Bad,
	string(rollout.Blocked): view.Bad,
	string(rollout.Skipped): view.Quiet, string(rollout.NotRolledBack): view.Bad,
}

// rollout shows one rollout. Members that wait only for an earlier stage are counted, unless the output is wide.
func (d *display) rollout(s *rollout.Status, wide bool) {
	run := s.Run
	name := s.Metadata.Name
	switch {
	case run == nil:
		d.head(s.State, fmt.Sprintf("%s is %s", name, s.State))
	case activeRun(s) != nil:
		d.head(string(run.State), fmt.Sprintf("%s: run %d is %s, started %s", name, run.Number, run.State, view.Relative(d.now, run.Started)))
	default:
		d.head(s.State, fmt.Sprintf("%s is %s; run %d was %s %s", name, s.State, run.Number, run.State, view.Relative(d.now, run.Ended)))
	}
	for _, p := range s.Problems {
		d.say("problem: %s: %s", p.File, p.Message)
	}
	if s.Plan != nil && (run == nil || s.Plan.Digest != run.Plan) {
		d.say("newest plan %s: %s, %d left out", s.Plan.Digest, view.Count(s.Plan.Members, "cluster"), s.Plan.LeftOut)
		for _, line := range s.Plan.Difference {
			d.say("  %s", line)
		}
	}
	if run != nil {
		d.say("plan of the run %s", run.Plan)
	}
	if s.Message != "" {
		d.say("%s", d.words(s.Message))
	}
	if next := nextDecision(s); next != "" {
		d.say("%s", next)
	}
	if run == nil {
		return
	}
	stages := &view.Table{Columns: []view.Column{
		{Title: "NO"}, {Title: "STAGE"}, {Title: "STATE"}, {Title: "MEMBERS"}, {Title: "GOOD"}, {Title: "AT RISK"}, {Title: "WAITING"},
		{Title: "FAILED"}, {Title: "NOTE", Min: 16},
	}}
	for i := range run.Stages {
		stage := &run.Stages[i]
		stages.Add(view.Text(fmt.Sprint(stage.Number)), view.Text(stage.Name), view.Cell{Text: stage.State, Tone: rolloutTones[stage.State]},
			view.Text(fmt.Sprint(len(stage.Members))), view.Text(fmt.Sprint(stage.Counts[rollout.Good])),
			view.Text(fmt.Sprintf("%d of %d", atRisk(stage), stage.MaxConcurrency)), view.Text(fmt.Sprint(stage.Counts[rollout.Waiting])),
			view.Text(fmt.Sprintf("%d of %d", stage.Failed, stage.MaxFailures)), view.Text(stageNotes(stage, d.now)))
	}
	d.table(stages)
	members, later := &view.Table{Columns: []view.Column{
		{Title: "CLUSTER"}, {Title: "STAGE"}, {Title: "STATE"}, {Title: "REASON"}, {Title: "SINCE"}, {Title: "UNTIL"}, {Title: "ATTEMPT"},
	}}, 0
	for i := range run.Stages {
		for j := range run.Stages[i].Members {
			m := &run.Stages[i].Members[j]
			settled := m.State == rollout.Good || m.State == rollout.Skipped || m.State == rollout.RolledBack
			if m.Reason == rollout.ReasonStage && !wide {
				later++
			}
			if !wide && (settled || m.Reason == rollout.ReasonStage) {
				continue
			}
			until := "-"
			if !m.Until.IsZero() {
				until = view.Relative(d.now, m.Until)
			}
			members.Add(view.Text(m.Cluster), view.Text(run.Stages[i].Name), view.Cell{Text: string(m.State), Tone: rolloutTones[string(m.State)]},
				view.Text(cmp.Or(reasonOf(m), "-")), view.Text(view.Age(d.now, m.Since)), view.Text(until), view.Text(fmt.Sprint(m.Attempt)))
		}
	}
	d.table(members)
	if later > 0 {
		d.say("\n%s for an earlier stage: -o wide shows them", view.Count(later, "member")+map[bool]string{true: " waits",
			false: " wait"}[later == 1])
	}
}

// reasonOf returns the reason of a member, with the check that blocked it.
func reasonOf(m *rollout.MemberRun) string {
	if m.Check != "" {
		return string(m.Reason) + " " + m.Check
	}
	return string(m.Reason)
}

// atRisk counts the members of a stage that started and are not Good yet.
func atRisk(s *rollout.StageStatus) int {
	return s.Counts[rollout.Started] + s.Counts[rollout.Withdrawing] + s.Counts[rollout.Changing] + s.Counts[rollout.Settling]
}

// stageNotes describes the gates and the soak of a stage.
func stageNotes(s *rollout.StageStatus, now time.Time) string {
	var all []string
	switch s.Needs {
	case rollout.NeedsBefore:
		all = append(all, "needs an approval to begin")
	case rollout.NeedsAfter:
		all = append(all, "needs an approval to pass")
	}
	if s.State == rollout.StageSoaking && s.Needs == "" {
		all = append(all, "soaks until "+view.Relative(now, s.SoakUntil))
	}
	regressed := 0
	for i := range s.Members {
		if !s.Members[i].RegressedAt.IsZero() {
			regressed++
		}
	}
	if regressed > 0 {
		all = append(all, view.Count(regressed, "member")+" restarted the soak")
	}
	if !s.AlarmSince.IsZero() {
		all = append(all, "an alarm is in ALARM since "+view.Age(now, s.AlarmSince))
	}
	if !s.Passed.IsZero() {
		all = append(all, "passed "+view.Relative(now, s.Passed))
	}
	if s.Rollback != "" {
		all = append(all, "rollback "+string(s.Rollback))
	}
	return strings.Join(all, ", ")
}

// seenRun is what a command knew of a rollout before its decision. A watch skips statuses that are as old. The zero value skips none.
type seenRun struct {
	// start reports whether the decision starts a run; number is that of the newest run before it.
	start  bool
	number int64
	// revision is that of the status.
	revision int64
}

// seenOf returns what a status shows before a decision with a verb. s is nil if there is no status.
func seenOf(s *rollout.Status, v api.Verb) seenRun {
	if s == nil {
		return seenRun{}
	}
	seen := seenRun{start: v == api.VerbStart, revision: s.Revision}
	if s.Run != nil {
		seen.number = s.Run.Number
	}
	return seen
}

// older reports whether a status does not show the decision yet.
func (seen seenRun) older(s *rollout.Status) bool {
	return seen != seenRun{} && s.Revision <= seen.revision || seen.start && (s.Run == nil || s.Run.Number <= seen.number)
}

// watchRollout prints changes of a rollout until its run ends, is halted, or waits for a user. It prints plain lines, also for the logs of
// CI.
func watchRollout(ctx context.Context, w io.Writer, state *store.State, name string, seen seenRun) error {
	show := view.NewProgress(w)
	defer show.End()
	polls := polls{report: func(text string) { show.Say("%s", text) }, strict: true}
	printed := map[string]string{}
	say := func(key, text string) {
		if printed[key] != text {
			printed[key] = text
			show.Say("%s", text)
		}
	}
	followed := int64(0)
	for {
		s, err := readRollout(ctx, state, name)
		if ends := polls.next(ctx, err); ends != nil {
			return ends
		}
		if err == nil && !seen.older(s) {
			if s.Run != nil && (seen.start || activeRun(s) != nil) { // a run that was started may have ended
				followed = s.Run.Number
			}
			if s.Run != nil && s.Run.Number == followed {
				SayRun(say, s.Run)
			}
			if ended, err := watchEnds(say, s, followed); ended {
				return err
			}
			say("message", s.Message)
			show.Wait(s.Message)
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// watchEnds reports whether a watch ends with a status, and its result. followed is the run that the watch has seen active; 0 if none.
func watchEnds(say func(key, text string), s *rollout.Status, followed int64) (ended bool, result error) {
	active, name := activeRun(s), s.Metadata.Name
	if active == nil && followed > 0 && s.Run != nil && s.Run.Number >= followed {
		say("end", fmt.Sprintf("run %d of %s is %s", s.Run.Number, name, s.Run.State))
		if s.Run.State != rollout.Done {
			return true, errPrinted
		}
		return true, nil
	}
	flying := 0
	if active != nil {
		for i := range active.Stages {
			flying += atRisk(&active.Stages[i])
		}
	}
	switch {
	case active != nil && (active.Ending != "" || flying > 0 || active.State == rollout.RollingBack):
		return false, nil
	case active != nil && active.Halt != nil:
		say("end", s.Message)
		return true, errPrinted
	case nextDecision(s) != "":
		say("end", nextDecision(s))
		return true, errFindings
	case active == nil:
		say("end", fmt.Sprintf("%s is %s: %s", name, s.State, s.Message))
		return true, verdictOf(s)
	}
	return false, nil
}

// SayRun prints what is new in a run: states of stages, and of members.
func SayRun(say func(key, text string), run *rollout.RunStatus) {
	say("run", fmt.Sprintf("run %d is %s", run.Number, run.State))
	for i := range run.Stages {
		stage := &run.Stages[i]
		if stage.State == rollout.StageWaiting {
			continue
		}
		say("stage "+stage.Name, fmt.Sprintf("stage %s is %s: %d of %d members Good, %d at risk, %d waiting, %d of %d failures",
			stage.Name, stage.State, stage.Counts[rollout.Good], len(stage.Members), atRisk(stage), stage.Counts[rollout.Waiting], stage.Failed,
			stage.MaxFailures))
		for j := range stage.Members {
			m := &stage.Members[j]
			if m.State == rollout.Waiting && m.Reason == rollout.ReasonStage {
				continue
			}
			say("member "+m.Cluster, strings.TrimSuffix(fmt.Sprintf("  %s is %s: %s", m.Cluster, m.State, reasonOf(m)), ": "))
		}
	}
}
