package faults

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want Rule
		err  string
	}{
		"a kind alone": {text: "throttle", want: Rule{Kind: Throttle}},
		"matches and chances": {
			text: "throttle service=cloudformation caller=plan p=0.3 for=2m", want: Rule{
				Kind: Throttle, Service: "cloudformation", Caller: "plan", Probability: 0.3, For: 2 * time.Minute,
			},
		},
		"a code": {
			text: "error=ServiceUnavailable status=503 action=Put* nth=3", want: Rule{
				Kind: Error, Code: "ServiceUnavailable", Status: 503, Action: "Put*", Nth: 3,
			},
		},
		"a code by default": {text: "error", want: Rule{Kind: Error, Code: "InternalFailure"}},
		"a call's number": {
			text: "crash-after=2 caller=change count=1", want: Rule{Kind: CrashAfter, Call: 2, Caller: "change", Count: 1},
		},
		"any call": {text: "crash-before p=0.01", want: Rule{Kind: CrashBefore, Probability: 0.01}},
		"words in quotes": {
			text: `drop event="CloudFormation Stack Status Change" p=0.5`, want: Rule{
				Kind: Drop, Event: "CloudFormation Stack Status Change", Probability: 0.5,
			},
		},
		"a duration": {text: "latency=250ms", want: Rule{Kind: Latency, Duration: 250 * time.Millisecond}},
		"a duration by default": {
			text: " reorder   every=1m after=10s", want: Rule{Kind: Reorder, Duration: 2 * time.Second, Every: time.Minute, After: 10 * time.Second},
		},
		"a conflict":   {text: "conflict", want: Rule{Kind: Conflict, Code: "409"}},
		"an execution": {text: "kill machine=converge state=Plan", want: Rule{Kind: Kill, Machine: "converge", State: "Plan"}},
		"a cluster": {
			text: "api-server-down=1m cluster=demo", want: Rule{Kind: APIServerDown, Duration: time.Minute, Cluster: "demo"},
		},
		"an instance": {
			text: "instance-lost pool=workers count=1", want: Rule{Kind: InstanceLost, Pool: "workers", Count: 1},
		},
		"a launch": {
			text: "launch-fails pool=a", want: Rule{Kind: LaunchFails, Code: "InsufficientInstanceCapacity", Pool: "a"},
		},
		"an invocation": {
			text: "lambda-limit function=join for=1h", want: Rule{Kind: LambdaLimit, Function: "join", For: time.Hour},
		},
		"nothing":                   {text: "  ", err: "begins with its kind: one of throttle, error,"},
		"no kind":                   {text: "explode", err: `"explode" is no kind of fault`},
		"a kind that has no value":  {text: "drop=2", err: "drop takes no value"},
		"a kind that needs a value": {text: "latency", err: "latency needs a duration: latency=2s"},
		"a bad value":               {text: "latency=fast", err: "latency=fast is no duration such as 500ms"},
		"a bad number":              {text: "crash-after=0", err: "crash-after=0 is no number from 1 on"},
		"a bad conflict":            {text: "conflict=404", err: "conflict=404: 409 (nothing is written) or 412"},
		"an unknown word": {
			text: "drop color=red", err: `"color" is not known: drop takes stack, cluster, event, rule, p, nth, count, every, after, for`,
		},
		"a word of another moment": {
			text: "drop action=PutObject", err: "drop befalls a delivery, which has no action: it has stack, cluster, event, rule",
		},
		"no word":                       {text: "drop red", err: `"red" is not key=value`},
		"a word without value":          {text: "drop event=", err: `"event=" is not key=value`},
		"a word twice":                  {text: "drop p=1 p=0.5", err: "p is given twice"},
		"a chance beyond certainty":     {text: "drop p=50", err: "p=50 is no probability"},
		"no chance at all":              {text: "drop p=0", err: "p=0 is no probability"},
		"not a number":                  {text: "drop p=NaN", err: "p=NaN is no probability"},
		"a quotation without end":       {text: `drop event="CloudFormation`, err: "a quotation does not end"},
		"a status of something else":    {text: "throttle status=500", err: "takes no code and no status"},
		"a status that is no error":     {text: "error status=200", err: "status 200 is no error"},
		"a negative duration":           {text: "drop for=-1s", err: "for=-1s is no duration"},
		"a call number of another kind": {text: "kill nth=x", err: "nth=x is no number from 1 on"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := Parse(test.text)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				if trimmed := strings.TrimSpace(test.text); trimmed != "" {
					require.ErrorContains(t, err, trimmed[:4], "which of many it is")
				}
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, r)
			again, err := Parse(r.String())
			require.NoError(t, err)
			require.Equal(t, r, again, "String returns what Parse accepts")
		})
	}
}

func TestFaultsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/faults.md")
	require.NoError(t, err)
	rules := regexp.MustCompile(`'([^'\n]+)'`).FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(rules), 4)
	for _, rule := range rules {
		_, err := Parse(rule[1])
		require.NoError(t, err)
	}
	for _, k := range kinds {
		row := regexp.MustCompile("(?m)^\\| `" + string(k.name) + "(=[^`]+)?` \\| .*$").FindString(string(page))
		require.NotEmpty(t, row, k.name)
		if !strings.Contains(row, "the same") {
			for _, word := range wordsOf(k.moment) {
				require.Contains(t, row, "`"+word+"`")
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"throttle p=0.1", `drop event="a b" nth=2`, "error=X status=503", "api-server-down=1m30s", `kill "state=a b"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

func TestMatches(t *testing.T) {
	call := Moment{Kind: Call, Service: "s3", Action: "PutObject", Caller: "report", Cluster: "demo", Number: 2}
	event := Moment{
		Kind: Delivery, Event: "CloudFormation Stack Status Change", Target: "drover-stack-done", Stack: "drover-demo-pool-a", Cluster: "demo",
	}
	tests := map[string]struct {
		rule   string
		moment Moment
		want   bool
	}{
		"everything of its kind":             {"throttle", call, true},
		"no moment of another kind":          {"drop", call, false},
		"one service":                        {"throttle service=s3", call, true},
		"not another":                        {"throttle service=sns", call, false},
		"without regard to case":             {"throttle action=putobject", call, true},
		"the beginning of a name":            {"throttle action=Put*", call, true},
		"the end of a name":                  {"throttle action=*Object", call, true},
		"the middle of a name":               {"throttle action=*Obj*", call, true},
		"both ends do not overlap":           {"throttle action=PutObject*Object", call, false},
		"a cluster":                          {"throttle cluster=demo", call, true},
		"not where it is unknown":            {"throttle stack=network", call, false},
		"a stack by its full name":           {"drop stack=drover-demo-pool-a", event, true},
		"a stack by its kind":                {"drop stack=pool-a", event, true},
		"stacks by what they are":            {"drop stack=pool-*", event, true},
		"no other stack":                     {"drop stack=network", event, false},
		"a rule of the bus":                  {"drop rule=drover-stack-done", event, true},
		"an event":                           {`drop event="CloudFormation *"`, event, true},
		"the call of that number":            {"crash-before=2", call, true},
		"not of another":                     {"crash-before=3", call, false},
		"any call of a function":             {"crash-after", call, true},
		"no call outside a function":         {"crash-after", Moment{Kind: Call, Service: "s3"}, false},
		"a conflict of what has no premiss":  {"conflict", call, false},
		"a conflict of a conditional write":  {"conflict", Moment{Kind: Call, Service: "s3", Conditional: true}, true},
		"an execution in a state":            {"kill machine=converge state=Plan", Moment{Kind: Step, Machine: "converge", State: "Plan"}, true},
		"an instance of a pool":              {"instance-lost pool=a", Moment{Kind: Instances, Pool: "a"}, true},
		"no instance of another pool":        {"instance-lost pool=a", Moment{Kind: Instances, Pool: "b"}, false},
		"the API server of a cluster":        {"api-server-down cluster=demo", Moment{Kind: Cluster, Cluster: "demo"}, true},
		"not the API server of another one":  {"api-server-down cluster=demo", Moment{Kind: Cluster, Cluster: "other"}, false},
		"a star that stands for nothing":     {"throttle service=s3*", call, true},
		"a star in the middle":               {"throttle action=P*t", call, true},
		"two stars in the middle":            {"throttle action=P*O*t", call, true},
		"two stars that do not find theirs":  {"throttle action=P*X*t", call, false},
		"a pattern that is longer than that": {"throttle service=s3s3", call, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := New(1)
			r, err := Parse(test.rule)
			require.NoError(t, err)
			_, err = e.Add(start, r)
			require.NoError(t, err)
			require.Equal(t, test.want, e.Decide(start, test.moment).Kind != "")
		})
	}
}

// struck returns which of n calls, one a second, a rule strikes.
func struck(t *testing.T, seed uint64, rule string, n int) (which []int) {
	t.Helper()
	e := New(seed)
	r, err := Parse(rule)
	require.NoError(t, err)
	_, err = e.Add(start, r)
	require.NoError(t, err)
	for i := 1; i <= n; i++ {
		now := start.Add(time.Duration(i-1) * time.Second)
		if e.Decide(now, Moment{Kind: Call, Service: "s3"}).Kind != "" {
			which = append(which, i)
		}
	}
	return which
}

func TestCounts(t *testing.T) {
	tests := map[string]struct {
		rule string
		want []int
	}{
		"always":                    {"throttle", []int{1, 2, 3, 4, 5, 6}},
		"at most so often":          {"throttle count=2", []int{1, 2}},
		"the n-th time":             {"throttle nth=3", []int{3}},
		"after a time":              {"throttle after=3s", []int{4, 5, 6}},
		"for a time":                {"throttle for=2s", []int{1, 2}},
		"for a time, after a time":  {"throttle after=1s for=2s", []int{2, 3}},
		"every so often":            {"throttle every=2s", []int{1, 3, 5}},
		"the first after a time":    {"throttle after=4s count=1", []int{5}},
		"the n-th after a time":     {"throttle after=2s nth=2", []int{4}},
		"certainly":                 {"throttle p=1", []int{1, 2, 3, 4, 5, 6}},
		"for a time, but n is late": {"throttle for=2s nth=3", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, struck(t, 1, test.rule, 6)) })
	}
}

func TestChances(t *testing.T) {
	which := struck(t, 7, "throttle p=0.25", 10_000)
	require.InDelta(t, 2500, len(which), 150, "a quarter")
	require.Equal(t, which, struck(t, 7, "throttle p=0.25", 10_000), "the same seed, the same faults")
	require.NotEqual(t, which, struck(t, 8, "throttle p=0.25", 10_000), "another seed, others")
}

// The order of events does not change the faults of each.
func TestChancesAreIndependent(t *testing.T) {
	callers := []string{"plan", "change", "report"}
	run := func(order *rand.Rand) map[string]string {
		e := New(42)
		_, err := e.Add(start, Rule{Kind: Throttle, Probability: 0.5})
		require.NoError(t, err)
		left, got := map[string]int{"plan": 30, "change": 30, "report": 30}, map[string]string{}
		for len(left) > 0 {
			caller := callers[order.IntN(len(callers))]
			if left[caller] == 0 {
				delete(left, caller)
				continue
			}
			left[caller]--
			kind := "-"
			if e.Decide(start, Moment{Kind: Call, Caller: caller, Number: order.IntN(9)}).Kind != "" {
				kind = "x"
			}
			got[caller] += kind
		}
		return got
	}
	want := run(rand.New(rand.NewPCG(1, 1)))
	require.NotEqual(t, want["plan"], want["change"])
	for i := range uint64(20) {
		require.Equal(t, want, run(rand.New(rand.NewPCG(i, 2))))
	}
}

func TestSeveralRules(t *testing.T) {
	e := New(1)
	for _, text := range []string{"latency=1s", "throttle nth=2", "latency=2s", "error=Boom status=503"} {
		r, err := Parse(text)
		require.NoError(t, err)
		_, err = e.Add(start, r)
		require.NoError(t, err)
	}
	m := Moment{Kind: Call, Service: "s3"}
	require.Equal(t, Strike{Kind: Error, Rule: 4, Code: "Boom", Status: 503, Delay: 3 * time.Second}, e.Decide(start, m))
	require.Equal(t, Strike{Kind: Throttle, Rule: 2, Delay: 3 * time.Second}, e.Decide(start, m), "the first that strikes, and all latencies")
	require.Equal(t, map[Kind]int{Latency: 4, Throttle: 1, Error: 1}, e.Struck())
	require.True(t, e.Remove(4))
	require.False(t, e.Remove(4))
	require.Equal(t, Strike{Kind: Latency, Rule: 1, Delay: 3 * time.Second}, e.Decide(start, m))
	require.Equal(t, []RuleStatus{
		{ID: 1, Rule: "latency=1s", Matched: 3, Struck: 3},
		{ID: 2, Rule: "throttle nth=2", Matched: 2, Struck: 1, Over: true},
		{ID: 3, Rule: "latency=2s", Matched: 3, Struck: 3},
	}, e.List(start))
	e.Clear()
	require.Equal(t, Strike{}, e.Decide(start, m))
	require.Empty(t, e.List(start))
	require.Equal(t, 6, e.Struck()[Latency], "what struck is not forgotten")
	id, err := e.Add(start, Rule{Kind: Drop})
	require.NoError(t, err)
	require.Equal(t, 5, id, "ids are not used again")
	_, err = e.Add(start, Rule{Kind: Latency})
	require.ErrorContains(t, err, "latency needs a duration")
}

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		strike  Strike
		service string
		want    string
		done    bool
	}{
		"S3's throttling":             {Strike{Kind: Throttle}, "s3", "SlowDown", false},
		"CloudFormation's throttling": {Strike{Kind: Throttle}, "cloudformation", "Throttling", false},
		"others' throttling":          {Strike{Kind: Throttle}, "states", "ThrottlingException", false},
		"an error":                    {Strike{Kind: Error, Code: "Boom"}, "s3", "Boom", false},
		"a conflict":                  {Strike{Kind: Conflict, Code: "409"}, "s3", "ConditionalRequestConflict", false},
		"a write that was a retry":    {Strike{Kind: Conflict, Code: "412"}, "s3", "PreconditionFailed", true},
		"a death before":              {Strike{Kind: CrashBefore}, "s3", "ServiceUnavailable", false},
		"a death after":               {Strike{Kind: CrashAfter}, "s3", "ServiceUnavailable", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, test.strike.Answer(test.service), test.want)
			require.Equal(t, test.done, test.strike.Done())
		})
	}
	require.NoError(t, Strike{Kind: Latency, Delay: time.Second}.Answer("s3"))
	require.NoError(t, Strike{}.Answer("s3"))
	for _, kind := range Kinds() {
		_, ok := kindOf(kind)
		require.True(t, ok)
	}
}
