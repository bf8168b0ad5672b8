package cli

// The view of one cluster, and the table of all.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// PrintStatus prints a cluster in the format of drover status.
func PrintStatus(w io.Writer, c *status.Cluster) { newDisplay(w, false).cluster(c, nil) }

// cluster shows one cluster. observed is its present state, or nil.
func (d *display) cluster(c *status.Cluster, observed *live.Cluster) {
	s := c.Status
	d.head(string(s.Phase), strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", c.Metadata.Name, s.Phase, d.words(headline(s))), ": "))
	if s.RetryAt != nil {
		d.say("%s; drover retries %s", view.Count(s.Failures, "failed attempt"), view.Relative(d.now, *s.RetryAt))
	}
	d.say("%s", strings.Join(d.facts(s), ", "))
	if s.Endpoint != "" {
		d.say("endpoint %s", s.Endpoint)
	}
	if d.verbose {
		d.identifiers(s)
	}
	if observed != nil {
		d.sourceErrors(observed)
	}
	d.table(d.conditions(s))
	d.table(d.stacks(s, observed))
	if observed != nil {
		d.table(d.pools(c.Metadata.Name, s, observed))
	}
	d.upgrades(s)
	d.slowNodes(s.Nodes)
	d.deletion(s.Deletion)
	d.plan(s.Plan)
}

// facts returns the versions and the age of the status. Everything in the status may be as old.
func (d *display) facts(s status.Status) []string {
	var facts []string
	for _, f := range []struct{ name, value string }{
		{"Kubernetes", s.KubernetesVersion}, {"release", s.Release}, {"templates", s.TemplateVersion},
	} {
		if f.value != "" {
			facts = append(facts, f.name+" "+f.value)
		}
	}
	if s.UpdatedAt.IsZero() {
		return append(facts, "status never written")
	}
	return append(facts, "status last changed "+view.Relative(d.now, s.UpdatedAt))
}

// identifiers shows the identifiers for a problem report.
func (d *display) identifiers(s status.Status) {
	for _, id := range []struct{ name, value string }{
		{"spec version", s.PlannedVersion}, {"last good spec version", s.GoodVersion}, {"observed spec version", s.ObservedVersion},
		{"execution", s.Execution},
	} {
		if id.value != "" {
			d.say("%s %s", id.name, id.value)
		}
	}
}

// sourceErrors shows the sources that could not be read. Their part of the view is missing.
func (d *display) sourceErrors(observed *live.Cluster) {
	for _, source := range []struct {
		name string
		err  error
	}{{"CloudFormation", observed.StacksErr}, {"Auto Scaling", observed.GroupsErr}, {"the cluster", observed.NodesErr}} {
		if source.err != nil && !errors.Is(source.err, pool.ErrNoCluster) { // the cluster is not created yet, or deleted
			d.say("%s was not read: %s", source.name, d.words(source.err.Error()))
		}
	}
}

// messageColumn is the last column of most tables.
var messageColumn = view.Column{Title: "MESSAGE", Min: 20, Wrap: true}

func (d *display) conditions(s status.Status) *view.Table {
	table := &view.Table{Columns: []view.Column{{Title: "CONDITION"}, {Title: "STATUS"}, {Title: "REASON"}, {Title: "AGE"}, messageColumn}}
	for _, c := range s.Conditions {
		table.Add(view.Text(c.Type), view.Cell{Text: c.Status, Tone: view.ToneOfCondition(c.Status, c.Reason)}, view.Text(c.Reason),
			view.Text(view.Age(d.now, c.LastTransitionTime)), view.Text(d.words(c.Message)))
	}
	return table
}

// stacks shows the observed state of each stack, or the recorded state if observed is nil.
func (d *display) stacks(s status.Status, observed *live.Cluster) *view.Table {
	table := &view.Table{Columns: []view.Column{{Title: "STACK"}, {Title: "STATUS"}, {Title: "AGE"}, messageColumn}}
	if observed != nil {
		table.Columns[3].Title = "PROGRESS"
	}
	for _, name := range live.StackNames(s) {
		row := status.Stack{Name: name}
		if i := slices.IndexFunc(s.Stacks, func(o status.Stack) bool { return o.Name == name }); i >= 0 {
			row = s.Stacks[i]
		} else if observed == nil {
			continue // planned; the plan below names it
		}
		note, read := stackNote(row, d.now), false
		var now live.Stack
		if observed != nil {
			now, read = observed.Stacks[name]
		}
		if read {
			if row.Status != now.Status {
				row.Status, row.Since = now.Status, now.Operation.Began
			}
			note = strings.Join(slices.DeleteFunc([]string{live.OperationWords(now.Status, now.Operation), d.token(now), note}, func(p string) bool {
				return p == ""
			}), "; ")
		}
		if stack.Absent(row.Status) {
			row.Status = absentStatus(s, name)
		}
		table.Add(view.Text(name), view.State(row.Status), view.Text(view.Age(d.now, row.Since)), view.Text(d.words(note)))
	}
	return table
}

// absentStatus returns the status of a stack that CloudFormation does not have: "-" if it is planned, "absent" if it is missing.
func absentStatus(s status.Status, stack string) string {
	if slices.ContainsFunc(s.Plan, func(c status.Change) bool { return c.Stack == stack }) || s.Phase == status.Deleting {
		return "-"
	}
	return "absent"
}

// token returns the token of a stack's operation in progress. CloudFormation repeats it in the events of the operation.
func (d *display) token(stack live.Stack) string {
	if !d.verbose || stack.Operation.Token == "" {
		return ""
	}
	return "token " + stack.Operation.Token
}

// pools shows the nodes of each pool in Auto Scaling and Kubernetes.
func (d *display) pools(cluster string, s status.Status, observed *live.Cluster) *view.Table {
	table := &view.Table{
		Columns: []view.Column{
			{Title: "POOL"}, {Title: "READY"}, {Title: "IN SERVICE"}, {Title: "DESIRED"}, {Title: "PROGRESS", Min: 20, Wrap: true},
		},
	}
	for _, name := range live.StackNames(s) {
		pool, ok := strings.CutPrefix(name, names.PoolPrefix)
		group, found := observed.Groups[pool]
		if !ok || !found {
			continue
		}
		stackStatus := observed.Stacks[name].Status
		p := live.ProgressOf(group, observed.Nodes, observed.NodesErr == nil, strings.Contains(stackStatus, "ROLLBACK"))
		ready := view.Text("?")
		if p.Ready >= 0 {
			ready = view.Cell{Text: fmt.Sprint(p.Ready), Tone: view.Good}
			if p.Ready < p.Desired {
				ready.Tone = view.Moving
			}
		}
		table.Add(view.Text(pool), ready, view.Text(fmt.Sprint(p.InService)), view.Text(fmt.Sprint(p.Desired)),
			view.Text(p.Words(stack.InProgress(stackStatus))))
	}
	return table
}

// stackNote describes why a stack failed and what its operation waits for.
func stackNote(stack status.Stack, now time.Time) string {
	text := strings.TrimPrefix(stack.Resource+": "+stack.Reason, ": ")
	if stack.Delay == nil {
		return text
	}
	waits := stack.Delay.Message
	switch remaining := stack.Delay.Until.Sub(now); {
	case stack.Delay.Until.IsZero():
	case remaining > 0:
		waits += ", for " + view.Duration(remaining) + " at most"
	default:
		waits += "; the limit of the wait has passed"
	}
	return strings.TrimPrefix(text+"; "+waits, "; ")
}

// slowNodes shows the nodes that delay others, each with the pods that block its drain.
func (d *display) slowNodes(nodes []status.Node) {
	table := &view.Table{
		Columns: []view.Column{{Title: "NODE"}, {Title: "POOL"}, {Title: "STATE"}, {Title: "AGE"}, {Title: "LEFT"}, messageColumn},
	}
	for _, n := range nodes {
		message := events.WithoutBlocked(n.Message) // the pods are listed below
		if n.More > 0 {
			table.Add(view.Text(fmt.Sprintf("(%d more)", n.More)), view.Text(n.Pool), view.State(string(n.State)), view.Cell{}, view.Cell{},
				view.Text("before this one"))
		}
		table.Add(view.Text(cmp.Or(n.Name, n.Instance)), view.Text(n.Pool), view.State(string(n.State)), view.Text(view.Age(d.now, n.Since)),
			view.Text(timeLeft(n)), view.Text(d.words(message)))
	}
	d.table(table)
	for _, n := range nodes {
		for _, b := range n.Blocked {
			why := strings.TrimSuffix(b.Why+" ("+strings.Join(b.Budgets, ", ")+")", " ()")
			d.say("  %s: pod %s waits: %s", cmp.Or(n.Name, n.Instance), b.Pod, d.words(why))
		}
	}
}

// timeLeft returns the estimate of a drain, or "blocked" if it has none.
func timeLeft(n status.Node) string {
	switch {
	case n.EstimateSeconds != nil:
		return view.Duration(time.Duration(*n.EstimateSeconds) * time.Second)
	case len(n.Blocked) > 0:
		return "blocked"
	}
	return "-"
}

// deletion shows the result for resources that Kubernetes created in the account.
func (d *display) deletion(deletion *status.Deletion) {
	if deletion == nil {
		return
	}
	for _, part := range []struct {
		what string
		list []string
	}{{"removed", deletion.Removed}, {"retained", deletion.Retained}, {"still there", deletion.Remaining}} {
		for _, resource := range part.list {
			d.say("%s: %s", part.what, d.words(resource))
		}
	}
}

// plan shows the planned changes with their reasons.
func (d *display) plan(changes []status.Change) {
	for _, change := range changes {
		fmt.Fprintln(d.out)
		d.say("%s %s%s", change.Operation, change.Stack, change.Effect.Words())
		for _, reason := range change.Reasons {
			d.say("  %s: %s → %s", reason.Field, quote(reason.Old), quote(reason.New))
		}
	}
}

// statuses shows a row for each cluster. observed is the present state of all clusters, or nil.
func (d *display) statuses(clusters []*status.Cluster, observed *live.Fleet, all bool) {
	table := &view.Table{Columns: []view.Column{{Title: "NAME"}, {Title: "PHASE"}, {Title: "KUBERNETES"}, {Title: "RELEASE"}}}
	if observed != nil {
		table.Columns = append(table.Columns, view.Column{Title: "STACKS"}, view.Column{Title: "NODES"})
	}
	table.Columns = append(table.Columns, view.Column{Title: "CHANGED"}, view.Column{Title: "MESSAGE", Min: 20})
	hidden := 0
	for _, c := range clusters {
		s := c.Status
		if s.Phase == status.Deleted && !all {
			hidden++
			continue
		}
		row := []view.Cell{
			view.Text(c.Metadata.Name), view.State(string(s.Phase)), view.Text(cmp.Or(s.KubernetesVersion, "-")), view.Text(cmp.Or(s.Release, "-")),
		}
		if observed != nil {
			row = append(row, stackCell(observed, c.Metadata.Name), nodeCell(observed, c.Metadata.Name))
		}
		table.Add(append(row, view.Text(view.Age(d.now, s.UpdatedAt)), view.Text(d.words(summary(s))))...)
	}
	table.Write(d.out, d.width, d.color)
	switch {
	case hidden == 1:
		d.say("1 deleted cluster is hidden: `drover status --all` shows it")
	case hidden > 1:
		d.say("%d deleted clusters are hidden: `drover status --all` shows them", hidden)
	}
	if observed == nil {
		return
	}
	if observed.StacksErr != nil {
		d.say("CloudFormation was not read: %s", d.words(observed.StacksErr.Error()))
	}
	if observed.GroupsErr != nil {
		d.say("Auto Scaling was not read: %s", d.words(observed.GroupsErr.Error()))
	}
}

// stackCell counts a cluster's stacks: "6", or "1 of 6 in progress", or "1 of 6 failed".
func stackCell(l *live.Fleet, cluster string) view.Cell {
	if l.StacksErr != nil {
		return view.Text("?")
	}
	total, moving, bad := 0, 0, 0
	for full, deployed := range l.Stacks {
		if owner, _, ok := names.SplitStack(full); !ok || owner != cluster || stack.Absent(deployed.Status) {
			continue
		}
		total++
		switch {
		case stack.InProgress(deployed.Status):
			moving++
		case !stack.Settled(deployed.Status):
			bad++
		}
	}
	switch {
	case bad > 0:
		return view.Cell{Text: fmt.Sprintf("%d of %d failed", bad, total), Tone: view.Bad}
	case moving > 0:
		return view.Cell{Text: fmt.Sprintf("%d of %d in progress", moving, total), Tone: view.Moving}
	}
	return view.Text(fmt.Sprint(total))
}

// nodeCell counts a cluster's instances in service and its desired instances.
func nodeCell(l *live.Fleet, cluster string) view.Cell {
	if l.GroupsErr != nil {
		return view.Text("?")
	}
	serving, desired := 0, 0
	for _, group := range l.Groups {
		if owner, _, ok := names.SplitStack(group.Name); ok && owner == cluster {
			serving, desired = serving+group.Serving(), desired+group.Desired
		}
	}
	cell := view.Cell{Text: fmt.Sprintf("%d/%d", serving, desired), Tone: view.Good}
	if serving < desired {
		cell.Tone = view.Moving
	}
	return cell
}

// summary describes a cluster in one line. It includes the reason if the newest spec is not used.
func summary(s status.Status) string {
	message, accepted := view.FirstLine(headline(s)), s.Condition(status.SpecAccepted)
	if accepted == nil || accepted.Status == "True" || s.Phase == status.Deleted || strings.Contains(s.Message, accepted.Message) {
		return message
	}
	return strings.TrimPrefix(fmt.Sprintf("%s; %s: %s", message, accepted.Reason, view.FirstLine(accepted.Message)), "; ")
}

// headline returns the message of a status. Ready is the result of the last execution; the condition InSync has drift since then.
func headline(s status.Status) string {
	c := s.Condition(status.InSync)
	if s.Phase != status.Ready || c == nil || c.Status != "False" {
		return s.Message
	}
	drift := "not in sync: " + firstLine(c.Message)
	if s.Message == status.AsSpecified {
		return drift
	}
	return s.Message + "; " + drift
}

// firstLine returns the first line of a text and the number of further lines.
func firstLine(text string) string { return view.FirstLine(text) }

// allLines returns a text with all lines after the first indented. The last line often has the next action.
func allLines(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
