package cli

// Log lines of drover's functions about one cluster.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/names"
)

// functions of drover, in the order in which they process a spec. A test compares them with the deployed functions.
var functions = []string{
	"admit", "publish", "rollout", "plan", "change", "stackevent", "prepare", "join", "drain", "upgrade", "clean", "report", "sweep",
	"fleet",
}

func logsCommand() *cobra.Command {
	var only, since string
	var followed bool
	cmd := &cobra.Command{
		Use:   "logs CLUSTER",
		Short: "Show the log lines of drover's functions that concern a cluster",
		Long: `Shows the log lines of drover's functions that name a cluster or its stacks, ` +
			`and the other lines of the same invocations: also what a
function prints when it crashes. An invocation that works on many clusters, such as a sweep, shows only the lines that name this one.

It reads all lines of the functions in the period from CloudWatch Logs (logs:FilterLogEvents), so a short --since is fast.`,
		Example: `  drover logs demo
  drover logs demo --function plan --since 24h
  drover logs demo --follow`,
		Annotations:       ExitCodes("the lines are printed, if there are any", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			from, err := sinceTime(since, time.Now())
			if err != nil {
				return err
			}
			chosen := functions
			if only != "" {
				name := strings.TrimPrefix(only, names.Prefix)
				if !slices.Contains(functions, name) {
					return fmt.Errorf("--function %s: drover has no such function: choose one of %s", only, strings.Join(functions, ", "))
				}
				chosen = []string{name}
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if err := verifyKnown(ctx, c, args[0]); err != nil {
				return err
			}
			return showLogs(ctx, cmd.OutOrStdout(), newFunctionLogs(c, args[0]), chosen, from, followed)
		},
	}
	cmd.Flags().StringVar(&only, "function", "", "show one function only: "+strings.Join(functions, ", "))
	completeFlag(cmd, "function", cobra.FixedCompletions(functions, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&since, "since", defaultSince, sinceUsage)
	cmd.Flags().BoolVarP(&followed, "follow", "f", false, "continue with new lines until you interrupt it")
	return cmd
}

// ingestionDelay bounds the time until a line is readable in CloudWatch Logs. Each read starts this long before the previous read.
const ingestionDelay = 2 * time.Minute

// showLogs prints lines, the oldest first. If followed is true, it continues with new lines until ctx ends.
func showLogs(ctx context.Context, out io.Writer, logs *functionLogs, chosen []string, since time.Time, followed bool) error {
	seen, polls := map[string]bool{}, followPolls(out)
	for {
		began := time.Now()
		lines, err := logs.readAll(ctx, chosen, since)
		if followed && ctx.Err() != nil {
			return nil
		}
		if err := polls.next(ctx, err); err != nil {
			return err
		}
		if err == nil {
			since = slices.MaxFunc([]time.Time{since, began.Add(-ingestionDelay)}, time.Time.Compare)
		}
		slices.SortStableFunc(lines, func(a, b logLine) int { return a.Time.Compare(b.Time) })
		for _, l := range lines {
			if !seen[l.id] {
				seen[l.id] = true
				fmt.Fprintf(out, "%s  %-10s  %s\n", l.Time.UTC().Format(timeFormat), l.function, l.text())
			}
		}
		if !followed || sleep(ctx, followInterval) != nil {
			return nil
		}
	}
}

// functionLogs reads the logs of drover's functions for one cluster.
type functionLogs struct {
	client  *cloudwatchlogs.Client
	cluster string
	mention *regexp.Regexp
}

func newFunctionLogs(c *Cell, cluster string) *functionLogs {
	return &functionLogs{client: cloudwatchlogs.NewFromConfig(c.cfg), cluster: cluster, mention: mentions(cluster)}
}

// readAll reads the lines of several functions since a time.
func (f *functionLogs) readAll(ctx context.Context, functions []string, since time.Time) (lines []logLine, err error) {
	for _, function := range functions {
		found, err := f.read(ctx, function, since)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

// mentions returns a pattern for texts that name a cluster, by a stack, an S3 key or its EKS cluster.
func mentions(cluster string) *regexp.Regexp {
	name := regexp.QuoteMeta(cluster)
	stacks := strings.Join([]string{
		names.Network, names.ControlPlane, names.NodeAddons, names.Addons, names.Identities, names.Capabilities, names.PoolPrefix + `[a-z0-9-]+`,
	}, "|")
	return regexp.MustCompile(`(^|[^a-z0-9-])(` + names.Prefix + name + `(-(` + stacks + `))?|cluster ` + name + `|clusters/` + name +
		`\.yaml|[a-z]+/` + name + `\.json)($|[^a-z0-9-])`)
}

// logLine is one line of a function's log.
type logLine struct {
	Time  time.Time
	Level string
	// Message is the event, or the complete line if the log is not JSON. Fields has the other fields.
	Message  string
	Fields   map[string]any
	function string
	// request is the id of the invocation.
	request, stream, id string
	raw                 string
	// platform reports whether Lambda wrote the line.
	platform bool
}

// hidden lists the fields that every line has or that a column shows.
var hidden = []string{"time", "level", "msg", "step", "requestId", "cluster"}

// text formats the line: level, event and fields.
func (l logLine) text() string {
	parts := []string{strings.TrimSpace(l.Level + " " + l.Message)}
	for _, key := range slices.Sorted(maps.Keys(l.Fields)) {
		if slices.Contains(hidden, key) {
			continue
		}
		value, ok := l.Fields[key].(string)
		if !ok {
			body, _ := json.Marshal(l.Fields[key]) // a value from JSON always encodes
			value = string(body)
		} else if value == "" || strings.ContainsAny(value, " \"\n") {
			value = fmt.Sprintf("%q", value)
		}
		parts = append(parts, key+"="+value)
	}
	return strings.Join(parts, " ")
}

// read returns the lines of a function about the cluster, the oldest first. A function that never ran has no log group.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
func (f *functionLogs) read(ctx context.Context, function string, since time.Time) ([]logLine, error) {
	group := names.FunctionLogs(function)
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(f.client, &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &group, StartTime: aws.Int64(since.UnixMilli()),
	})
	var all []logLine
	requests := map[string]string{} // the current invocation of each stream
	for pages.HasMorePages() {      // an empty page may precede others
		page, err := pages.NextPage(ctx)
		var absent *types.ResourceNotFoundException
		if errors.As(err, &absent) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log group %s: %w", group, err)
		}
		for _, e := range page.Events {
			l := parseLine(aws.ToString(e.Message))
			l.function, l.stream, l.id = function, aws.ToString(e.LogStreamName), aws.ToString(e.EventId)
			l.Time = time.UnixMilli(aws.ToInt64(e.Timestamp))
			if l.request == "" {
				l.request = requests[l.stream]
			}
			requests[l.stream] = l.request
			all = append(all, l)
		}
	}
	return f.filterLines(all), nil
}

// filterLines keeps the lines that name the cluster. It also keeps the other lines of their invocations, unless the invocation names
// another cluster.
func (f *functionLogs) filterLines(all []logLine) []logLine {
	matching, foreign := map[string]bool{}, map[string]bool{}
	for _, l := range all {
		if f.isAboutCluster(l) {
			matching[l.request] = true
		} else if other, _ := l.Fields["cluster"].(string); other != "" && other != f.cluster {
			foreign[l.request] = true
		}
	}
	return slices.DeleteFunc(all, func(l logLine) bool {
		if _, metric := l.Fields["_aws"]; metric { // a CloudWatch metric
			return true
		}
		if f.isAboutCluster(l) {
			return false
		}
		other, _ := l.Fields["cluster"].(string)
		return l.request == "" || !matching[l.request] || foreign[l.request] || other != "" || l.platform && l.Level == ""
	})
}

// isAboutCluster reports whether a line names the cluster.
func (f *functionLogs) isAboutCluster(l logLine) bool {
	if cluster, ok := l.Fields["cluster"].(string); ok {
		return cluster == f.cluster
	}
	return !l.platform && f.mention.MatchString(l.raw)
}

// platformRequest matches the request in text lines that Lambda wrote.
var platformRequest = regexp.MustCompile(`^(START|END|REPORT) RequestId: (\S+)`)

// parseLine parses a line of a function or of Lambda, in JSON or text.
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html
func parseLine(raw string) logLine {
	l := logLine{Message: strings.TrimRight(raw, "\n"), raw: raw}
	if match := platformRequest.FindStringSubmatch(raw); match != nil {
		l.platform, l.request = true, match[2]
		if strings.Contains(raw, "Status: ") {
			l.Level = "ERROR"
		}
		return l
	}
	var fields map[string]any
	if json.Unmarshal([]byte(raw), &fields) != nil || fields == nil {
		return l
	}
	l.Fields = fields
	text := func(key string) string { s, _ := fields[key].(string); return s }
	if kind := text("type"); strings.HasPrefix(kind, "platform.") {
		record, _ := fields["record"].(map[string]any)
		l.platform, l.Message = true, kind
		l.request, _ = record["requestId"].(string)
		if status, _ := record["status"].(string); kind == "platform.report" && status != "success" {
			l.Level = "ERROR"
		}
		return l
	}
	l.Level, l.request = text("level"), text("requestId")
	if message, ok := fields["msg"].(string); ok {
		l.Message = message
	} else {
		l.Message = ""
	}
	return l
}
