package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// watchInterval is the pause between two reads of a status.
const watchInterval = time.Second

// Upload is the change of a spec that a watch waits for.
type Upload struct {
	// Version is the spec's, empty if it was deleted. Before is the version that drover had observed before the upload.
	Version, Before string
}

// AnyUpload is for a watch that waits for no upload.
var AnyUpload Upload

// follow watches a cluster after an upload, or prints the command that does.
func follow(ctx context.Context, out io.Writer, c *Cell, name string, watch bool, u Upload) error {
	if watch {
		return watchStatus(ctx, out, c, name, u)
	}
	fmt.Fprintf(out, "follow it: drover status %s --watch\n", name)
	return nil
}

// deletion reports whether the spec was deleted.
func (u Upload) deletion() bool { return u.Version == "" && u != AnyUpload }

// awaited reports whether the status is about the previous upload: drover has not observed this one yet.
func (u Upload) awaited(s status.Status) bool {
	return u.Version != "" && u.Version != u.Before && s.ObservedVersion == u.Before
}

// IsVerdict reports whether a cluster's phase is about the upload, or about a later one.
func (u Upload) IsVerdict(s status.Status) bool {
	return u == AnyUpload || s.PlannedVersion == u.Version || u.superseded(s) && s.PlannedVersion == s.ObservedVersion
}

func (u Upload) superseded(s status.Status) bool {
	return u != AnyUpload && s.ObservedVersion != u.Version && s.ObservedVersion != u.Before
}

// watchStatus prints changes in a cluster's status until drover has finished an upload or a later one. It prints plain lines,
// also for the logs of CI.
func watchStatus(ctx context.Context, w io.Writer, c *Cell, name string, u Upload) error {
	show := view.NewProgress(w)
	defer show.End()
	polls := polls{report: func(text string) { show.Say("%s", text) }, strict: u == AnyUpload}
	printed := map[string]string{}
	// sayAs prints a text if its subject is new. A text with a time differs each second.
	sayAs := func(key, subject, text string) {
		if printed[key] != subject {
			printed[key] = subject
			show.Say("%s", text)
		}
	}
	say := func(key, text string) { sayAs(key, text, text) }
	for {
		cluster, err := c.State.Status(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			if u == AnyUpload {
				return unknown(name)
			}
			err = nil // drover has not written it yet
		}
		if ends := polls.next(ctx, err); ends != nil {
			return ends
		}
		if err != nil {
			if err := sleep(ctx, watchInterval); err != nil {
				return err
			}
			continue
		}
		s := cluster.Status
		if u.awaited(s) {
			say("phase", "drover has not handled the upload yet")
			if show.Elapsed() > verdictTimeout {
				say("missed", "its event seems to be lost: the next sweep or audit finds the upload, within 20 minutes")
			}
			if err := sleep(ctx, watchInterval); err != nil {
				return err
			}
			continue
		}
		for _, condition := range s.Conditions {
			if condition.Status != "True" || printed[condition.Type] != "" {
				say(condition.Type, strings.TrimSuffix(fmt.Sprintf("%s is %s: %s: %s", condition.Type, condition.Status, condition.Reason,
					condition.Message), ": "))
			}
		}
		for _, change := range s.Plan {
			say("plan "+change.Stack, fmt.Sprintf("will %s %s: %s", strings.ToLower(change.Operation), change.Stack, change.Reasons[0].Field))
		}
		for _, stack := range s.Stacks {
			line := func(now time.Time) string {
				return strings.TrimSuffix(fmt.Sprintf("stack %s is %s: %s", stack.Name, stack.Status, stackNote(stack, now)), ": ")
			}
			sayAs("stack "+stack.Name, line(stack.Since), line(time.Now()))
		}
		for _, n := range s.Nodes {
			say("node "+n.Instance, fmt.Sprintf("node %s of pool %s is %s: %s", cmp.Or(n.Name, n.Instance), n.Pool, n.State,
				view.FirstLine(events.WithoutBlocked(n.Message))))
			for _, b := range n.Blocked {
				say("pod "+n.Instance+b.Pod, strings.TrimSuffix(fmt.Sprintf("  pod %s waits: %s (%s)", b.Pod, b.Why, strings.Join(b.Budgets, ", ")),
					" ()"))
			}
		}
		say("phase", phaseLine(name, s))
		show.Wait(strings.Join(pendingChanges(s), ", "))
		rejected := s.Condition(status.SpecAccepted)
		if u.Version != "" && s.ObservedVersion == u.Version && rejected != nil && rejected.Status == "False" {
			return fmt.Errorf("the spec of %s was rejected: %s", name, rejected.Message)
		}
		if u.superseded(s) {
			say("superseded", "a newer spec was uploaded: the status is about that one now")
		}
		if u.IsVerdict(s) {
			switch s.Phase {
			case status.Ready:
				if s.DrainsRoll() {
					break // the stacks match the spec, and the roll has not ended
				}
				if u.deletion() {
					return fmt.Errorf("%s was not deleted: its spec was uploaded again", name)
				}
				return nil
			case status.Deleted:
				return nil
			case status.Failed, status.Stopped:
				if !retriesSoon(s, time.Now()) {
					return fmt.Errorf("%s is %s: %s", name, s.Phase, s.Message)
				}
				sayAs("retry", s.RetryAt.String(), "drover retries "+view.Relative(time.Now(), *s.RetryAt))
			}
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// retriesSoon reports whether drover retries the failure within minutes: a watch continues then.
func retriesSoon(s status.Status, now time.Time) bool {
	const soon, late = 6 * time.Minute, 10 * time.Minute
	return s.RetryAt != nil && s.RetryAt.Before(now.Add(soon)) && now.Before(s.RetryAt.Add(late))
}

// errUnwatched ends a command when the user stops its watch. Its message is that the work in the account continues.
var errUnwatched = errors.New("you stopped watching; nothing was cancelled, and `drover status` shows the progress")

// sleep pauses between two polls of a watch.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errUnwatched
	}
}

func phaseLine(name string, s status.Status) string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, s.Phase, allLines(headline(s))), ": ")
}

// pendingChanges describes the changes that the converge machine has yet to finish.
func pendingChanges(s status.Status) []string {
	var pending []string
	for _, change := range live.Unfinished(s) {
		pending = append(pending, strings.ToLower(change.Operation)+" "+change.Stack)
	}
	return pending
}
