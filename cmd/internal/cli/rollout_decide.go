package cli

// The verbs of drover rollout: each one uploads a decision and prints its answer.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// verb is a command that makes a decision.
type verb struct {
	api.Verb
	use, short, long, example string
	// args is how many arguments follow the name of the rollout, and into where they go.
	args cobra.PositionalArgs
	into func(spec *api.DecisionSpec, args []string)
	// completers of the arguments after the name.
	completers []completer
	// seen means that the user must have read the plan: the verb changes clusters that nothing has changed before.
	seen bool
}

func stageOf(spec *api.DecisionSpec, args []string)    { spec.Stage = strings.Join(args, "") }
func clustersOf(spec *api.DecisionSpec, args []string) { spec.Clusters = args }
func freezeOf(spec *api.DecisionSpec, args []string)   { spec.Freeze = args[0] }
func nothingOf(*api.DecisionSpec, []string)            {}

// planHelp is how the help of a verb explains --plan.
const planHelp = `

The decision names the digest of a plan, and has no effect for another one. Give the digest that you read with --plan: its first 12 digits
suffice. Without it, the command shows the plan and asks. That needs a terminal.`

// verbs are the commands that make a decision, in the order of their help.
func verbs() []verb {
	return []verb{
		{
			Verb: api.VerbStart, use: "start NAME", short: "Start a run of the newest plan", seen: true,
			long:    `Starts a run of the newest plan. Its members are fixed from then on.` + planHelp,
			example: "  drover rollout start kubernetes-1.37 --plan 7b1f0c9e41d2\n  drover rollout start kubernetes-1.37 --watch",
			args:    cobra.ExactArgs(1), into: nothingOf,
		}, {
			Verb: api.VerbApprove, use: "approve NAME [STAGE]", short: "Approve the start or the end of a stage", seen: true,
			long: `Approves a stage of the active run. Without STAGE it is the stage that needs an approval now.` + planHelp,
			example: "  drover rollout approve kubernetes-1.37 prod/eu-west-1/1 --plan 7b1f0c9e41d2 --reason green\n" +
				"  drover rollout approve kubernetes-1.37",
			args: cobra.RangeArgs(1, 2), into: stageOf, completers: []completer{stageNames},
		}, {
			Verb: api.VerbReject, use: "reject NAME [STAGE]", short: "Halt the run: nothing starts, and what began finishes",
			long: `Halts the active run, whatever its plan. Members in flight finish; a start that has not begun is withdrawn.
Resume, rollback or abort ends the halt.`,
			example: "  drover rollout reject kubernetes-1.37 --reason latency",
			args:    cobra.RangeArgs(1, 2), into: stageOf, completers: []completer{stageNames},
		}, {
			Verb: api.VerbPause, use: "pause NAME", short: "Pause the run: nothing starts, and what began finishes",
			long: `Pauses the active run, whatever its plan. Members in flight finish; a start that has not begun is withdrawn.
Without an active run, it keeps the next one from starting. Resume ends the pause.`,
			example: "  drover rollout pause kubernetes-1.37 --reason incident-4711",
			args:    cobra.ExactArgs(1), into: nothingOf,
		}, {
			Verb: api.VerbResume, use: "resume NAME", short: "End a pause or a halt",
			long:    `Ends a pause or a halt. Failed members that are well now settle again.`,
			example: "  drover rollout resume kubernetes-1.37",
			args:    cobra.ExactArgs(1), into: nothingOf,
		}, {
			Verb: api.VerbAbort, use: "abort NAME", short: "End the run: nothing starts, and what began finishes",
			long: `Ends the active run, whatever its plan, once no member is at risk. Members keep what they have. To continue later, start a new
run: it leaves out the clusters that have the release.`,
			example: "  drover rollout abort kubernetes-1.37 --reason replaced",
			args:    cobra.ExactArgs(1), into: nothingOf,
		}, {
			Verb: api.VerbRollback, use: "rollback NAME [STAGE]", short: "Return the members of a stage to their previous release",
			long: `Halts the run, and returns the members of a stage that this run changed to their previous release, as EKS allows. Without STAGE
it is the stage that is halted or open.`,
			example: "  drover rollout rollback kubernetes-1.37\n  drover rollout rollback kubernetes-1.37 canary",
			args:    cobra.RangeArgs(1, 2), into: stageOf, completers: []completer{stageNames},
		}, {
			Verb: api.VerbRetry, use: "retry NAME CLUSTER...", short: "Give failed or blocked members another attempt",
			long:    `Gives failed or blocked members another attempt, with the release of the plan. It ends a halt that they caused.`,
			example: "  drover rollout retry kubernetes-1.37 shop-eu-7",
			args:    cobra.MinimumNArgs(2), into: clustersOf, completers: []completer{memberNames},
		}, {
			Verb: api.VerbSkip, use: "skip NAME CLUSTER...", short: "Take waiting, failed or blocked members out of the run",
			long:    `Takes members out of the run. They keep what they have, and their stage no longer waits for them.`,
			example: "  drover rollout skip kubernetes-1.37 lab-1 --reason replaced",
			args:    cobra.MinimumNArgs(2), into: clustersOf, completers: []completer{memberNames},
		}, {
			Verb: api.VerbOverride, use: "override NAME FREEZE", short: "Let the run ignore a freeze",
			long:    `Lets the active run ignore a freeze. drover reports that as a problem.`,
			example: "  drover rollout override kubernetes-1.37 black-friday --reason CVE-2026-1234",
			args:    cobra.ExactArgs(2), into: freezeOf,
		},
	}
}

// command returns the command of a verb.
func (v verb) command() *cobra.Command {
	var plan, reason string
	var watch bool
	cmd := &cobra.Command{
		Use: v.use, Short: v.short, Long: v.long, Example: v.example, Args: v.args,
		Annotations: ExitCodes("the decision was applied; with --watch, the run is done",
			"an error, or the decision was refused; with --watch, the run is halted, or ended otherwise",
			"with --watch: the run waits for a user"),
		ValidArgsFunction: completeArgs(append([]completer{rolloutNames}, v.completers...)...),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			spec := api.DecisionSpec{Rollout: args[0], Verb: v.Verb, Reason: reason}
			v.into(&spec, args[1:])
			known, err := v.complete(ctx, cmd.InOrStdin(), out, c.State, &spec, plan)
			if err != nil {
				return err
			}
			if err := decide(ctx, out, c.decider(), spec); err != nil {
				return err
			}
			if !watch {
				fmt.Fprintf(out, "follow it: drover rollout status %s --watch\n", spec.Rollout)
				return nil
			}
			return watchRollout(ctx, out, c.State, spec.Rollout, known)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a line for readers of the history")
	completeFlag(cmd, "reason", cobra.NoFileCompletions)
	if !v.Brakes() {
		cmd.Flags().StringVar(&plan, "plan", "", "the digest of the plan that you read, or its first 12 digits or more")
		completeFlagNames(cmd, "plan", planDigests)
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print what changes until the run ends, is halted or waits for a user")
	return cmd
}

// complete adds to a decision what the status of the rollout says: the plan, and the stage of an approval. It returns what a watch may
// skip.
func (v verb) complete(ctx context.Context, in io.Reader, out io.Writer, state *store.State, spec *api.DecisionSpec,
	given string) (known seenRun, err error) {
	s, err := readRollout(ctx, state, spec.Rollout)
	switch {
	case err != nil && v.Brakes(): // a brake needs neither a plan nor a status
		return known, nil
	case err != nil:
		return known, err
	case v.Brakes():
		return seenOf(s, v.Verb), nil
	}
	digest, err := planFor(s, v.Verb)
	if err != nil {
		return known, err
	}
	if v.Verb == api.VerbApprove && spec.Stage == "" {
		if spec.Stage, err = neededStage(s); err != nil {
			return known, err
		}
	}
	switch {
	case given != "" && !sameDigest(given, digest):
		if len(given) == len(digest) { // the function explains how the plans differ
			spec.Plan = given
			return seenOf(s, v.Verb), nil
		}
		return known, fmt.Errorf("the plan of %s is %s: --plan %s is another one, or fewer than %d digits; read the plan, and name it: "+
			"drover rollout diff %[1]s", spec.Rollout, digest, given, minDigest)
	case given == "" && v.seen:
		if err := confirm(ctx, in, out, state, v, spec, digest); err != nil {
			return known, err
		}
	}
	spec.Plan = digest
	return seenOf(s, v.Verb), nil
}

// neededStage returns the stage that needs an approval now.
func neededStage(s *rollout.Status) (string, error) {
	for i := range s.Run.Stages {
		if s.Run.Stages[i].Needs != "" {
			return s.Run.Stages[i].Name, nil
		}
	}
	return "", fmt.Errorf("no stage of %s needs an approval now: name the STAGE to approve it early; %s", s.Metadata.Name, s.Message)
}

// errDeclined ends a command when the user does not confirm.
var errDeclined = errors.New("you did not confirm: nothing was uploaded")

// confirm shows a plan and asks whether the verb may apply to it.
func confirm(ctx context.Context, in io.Reader, out io.Writer, state *store.State, v verb, spec *api.DecisionSpec, digest string) error {
	command := strings.TrimSpace(fmt.Sprintf("drover rollout %s %s %s", strings.ToLower(string(v.Verb)), spec.Rollout, spec.Stage))
	if file, ok := in.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("the decision needs the digest of the plan that you read, and this is no terminal to show it: read it with "+
			"`drover rollout diff %s`, then run\n  %s --plan %.12s", spec.Rollout, command, digest)
	}
	plan, err := state.RolloutPlan(ctx, digest)
	if err != nil {
		return err
	}
	newPlanned(plan).print(out, false)
	fmt.Fprintf(out, "\n%s%s of this plan? [y/N] ", v.Verb, strings.TrimRight(" "+spec.Stage, " "))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errDeclined
	}
	return nil
}

// decide uploads a decision and prints its answer. A refusal is an error.
func decide(ctx context.Context, out io.Writer, d *decider, spec api.DecisionSpec) error {
	name, err := d.upload(ctx, spec)
	if err != nil {
		return err
	}
	about := ""
	if spec.Plan != "" {
		about = fmt.Sprintf(" for the plan %.12s", spec.Plan)
	}
	fmt.Fprintf(out, "uploaded the decision %s%s\n", name, about)
	polls := polls{report: func(text string) { fmt.Fprintln(out, text) }}
	return printAnswer(ctx, out, d, &polls, spec.Rollout, name, answerTimeout)
}

// printAnswer waits for the answer to a decision and prints it. A refusal is an error.
func printAnswer(ctx context.Context, out io.Writer, d *decider, polls *polls, of, name string, timeout time.Duration) error {
	answer, err := d.answer(ctx, polls, of, name, timeout)
	if err != nil {
		return err
	}
	if !answer.Applied {
		return fmt.Errorf("the decision %s was refused: %s", name, answer.Message)
	}
	fmt.Fprintf(out, "applied: %s\n", answer.Message)
	return nil
}

// rolloutNames lists the rollouts that have a status.
func rolloutNames(ctx context.Context, c *Cell, _ []string) ([]string, error) {
	return namesOfRollouts(ctx, c.State)
}

// stageNames, memberNames and planDigests list what the newest run of the rollout in the first argument has.
func stageNames(ctx context.Context, c *Cell, args []string) (all []string, err error) {
	return fromRun(ctx, c, args, func(run *rollout.RunStatus) {
		for i := range run.Stages {
			all = append(all, run.Stages[i].Name)
		}
	}, &all)
}

func memberNames(ctx context.Context, c *Cell, args []string) (all []string, err error) {
	return fromRun(ctx, c, args, func(run *rollout.RunStatus) {
		for i := range run.Stages {
			for _, m := range run.Stages[i].Members {
				all = append(all, m.Cluster)
			}
		}
	}, &all)
}

func fromRun(ctx context.Context, c *Cell, args []string, visit func(*rollout.RunStatus), all *[]string) ([]string, error) {
	s, err := readRollout(ctx, c.State, args[0])
	if err == nil && s.Run != nil {
		visit(s.Run)
	}
	return *all, err
}

func planDigests(ctx context.Context, c *Cell, args []string) (all []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	s, err := readRollout(ctx, c.State, args[0])
	if err != nil {
		return nil, err
	}
	if s.Run != nil {
		all = append(all, s.Run.Plan)
	}
	if s.Plan != nil && (s.Run == nil || s.Plan.Digest != s.Run.Plan) {
		all = append(all, s.Plan.Digest)
	}
	return all, nil
}
