package faults

// A rule: what fails, where and how often.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind of fault.
type Kind string

// The kinds of faults, grouped by the moments at which they occur.
const (
	// Calls to AWS.
	Throttle Kind = "throttle" // rejected as throttled
	Error    Kind = "error"    // rejected with Rule.Code
	Latency  Kind = "latency"  // answered Rule.Duration later
	Conflict Kind = "conflict" // a conditional write to S3 conflicts: Rule.Code 409 or 412
	// CrashBefore and CrashAfter kill the calling function at the Rule.Call-th call of its invocation: before the call is
	// performed, or after it and before its answer.
	CrashBefore Kind = "crash-before"
	CrashAfter  Kind = "crash-after"
	// Deliveries of events.
	Drop      Kind = "drop"
	Duplicate Kind = "duplicate"
	Reorder   Kind = "reorder" // delivered Rule.Duration later, after the events that follow
	// Executions: aborted as by an operator.
	Kill Kind = "kill"
	// Clusters: the API server is killed, and restarted after Rule.Duration.
	APIServerDown Kind = "api-server-down"
	// Instances: terminated without Auto Scaling.
	InstanceLost Kind = "instance-lost"
	// Updates of a cluster's version: EKS fails them with Rule.Code, and the cluster keeps its version.
	UpdateFails Kind = "update-fails"
	// Instances that boot: their kubelet has the version Rule.Code.
	KubeletVersion Kind = "kubelet-version"
	// Launches of instances by Auto Scaling: EC2 rejects them with Rule.Code.
	LaunchFails Kind = "launch-fails"
	// Invocations of functions: the account is at its concurrency limit, because of other functions.
	LambdaLimit Kind = "lambda-limit"
)

// MomentKind is the kind of a moment.
type MomentKind string

// The kinds of moments.
const (
	Call      MomentKind = "call"      // a call is about to be performed
	Delivery  MomentKind = "delivery"  // an event is about to be delivered to a rule's target
	Step      MomentKind = "step"      // an execution entered a state
	Cluster   MomentKind = "cluster"   // a periodic moment of a cluster with an API server
	Instances MomentKind = "instances" // a periodic moment of an instance
	Update    MomentKind = "update"    // EKS is about to replace the servers of a control plane
	Boot      MomentKind = "boot"      // a kubelet is about to register its node
	Launch    MomentKind = "launch"    // EC2 is about to launch an instance of a group
	Invoke    MomentKind = "invoke"    // Lambda is about to run a function
)

// kind describes a kind of fault.
type kind struct {
	name   Kind
	moment MomentKind
	// value is the type of the kind's own value, as in latency=2s: "duration", "code", "reason", "number", "conflict" or
	// empty. def is the default.
	value, def string
	needed     bool
}

var kinds = []kind{
	{name: Throttle, moment: Call},
	{name: Error, moment: Call, value: "code", def: "InternalFailure"},
	{name: Latency, moment: Call, value: "duration", needed: true},
	{name: Conflict, moment: Call, value: "conflict", def: "409"},
	{name: CrashBefore, moment: Call, value: "number"},
	{name: CrashAfter, moment: Call, value: "number"},
	{name: Drop, moment: Delivery},
	{name: Duplicate, moment: Delivery},
	{name: Reorder, moment: Delivery, value: "duration", def: "2s"},
	{name: Kill, moment: Step},
	{name: APIServerDown, moment: Cluster, value: "duration", def: "30s"},
	{name: InstanceLost, moment: Instances},
	{name: UpdateFails, moment: Update, value: "reason", def: "Unknown"},
	{name: KubeletVersion, moment: Boot, value: "reason", needed: true},
	{name: LaunchFails, moment: Launch, value: "reason", def: "InsufficientInstanceCapacity"},
	{name: LambdaLimit, moment: Invoke},
}

// Kinds returns all kinds of faults.
func Kinds() (all []Kind) {
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

func kindOf(name Kind) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// Rule defines a fault. Conditions ignore case, * matches anything, and an empty condition matches all.
type Rule struct {
	Kind Kind
	// Code of an Error, a Conflict, an UpdateFails or a LaunchFails, or the version of a KubeletVersion. Status is the HTTP
	// status of an Error; 0 means 500.
	Code   string
	Status int
	// Duration of Latency, Reorder and APIServerDown.
	Duration time.Duration
	// Call is the number of the call of an invocation that crashes, from 1; 0 means any.
	Call int

	// Service (signing name), Action (for S3 the IAM action) and Caller (a function such as change) of calls.
	Service, Action, Caller string
	// Stack, with or without drover-<cluster>- before it, and Cluster.
	Stack, Cluster string
	// Event is the detail-type of a delivery. Target is the name of the rule that delivers it.
	Event, Target string
	// Machine and State of steps. Machine has no prefix drover-.
	Machine, State string
	// Pool of instances that exist, boot or are launched. Action of updates is VersionUpdate or VersionRollback.
	Pool string
	// Function that is invoked, such as change.
	Function string

	// Probability that the rule strikes at a matching moment; 0 means always.
	Probability float64
	// Nth restricts the rule to the n-th matching moment, from 1; 0 means every one.
	Nth int
	// Count limits the number of strikes. Every is the least time between two strikes. 0 means no limit.
	Count int
	Every time.Duration
	// After is the time from the addition of the rule until it takes effect. For is how long it is in effect. 0 means
	// immediately and forever.
	After, For time.Duration
}

// Moment is a point at which a fault may occur. Unknown and inapplicable fields are empty.
type Moment struct {
	Kind                                                                                   MomentKind
	Service, Action, Caller, Stack, Cluster, Event, Target, Machine, State, Pool, Function string
	// Number of a call within its function's invocation, from 1; 0 if no function calls.
	Number int
	// Conditional reports whether this is a write to S3 with If-Match or If-None-Match.
	Conditional bool
}

// Strike is the decision at a moment. The zero Strike is no fault.
type Strike struct {
	// Kind is empty if there is no fault, and Latency if the only fault is a Delay.
	Kind Kind
	// Rule is the ID of the rule that struck.
	Rule   int
	Code   string
	Status int
	// Delay is how much later a call is answered (the sum of all Latency rules), how long a reordered event is held, or how
	// long an API server is down.
	Delay time.Duration
}

// fields are the conditions by their words, with the moments that have them.
var fields = []struct {
	word   string
	of     []MomentKind
	rule   func(*Rule) *string
	moment func(Moment) string
}{
	{"service", []MomentKind{Call}, func(r *Rule) *string { return &r.Service }, func(m Moment) string { return m.Service }},
	{"action", []MomentKind{Call, Update}, func(r *Rule) *string { return &r.Action }, func(m Moment) string { return m.Action }},
	{"caller", []MomentKind{Call}, func(r *Rule) *string { return &r.Caller }, func(m Moment) string { return m.Caller }},
	{"stack", []MomentKind{Call, Delivery}, func(r *Rule) *string { return &r.Stack }, func(m Moment) string { return m.Stack }},
	{"cluster", []MomentKind{Call, Delivery, Step, Cluster, Instances, Update, Boot, Launch}, func(r *Rule) *string {
		return &r.Cluster
	}, func(m Moment) string { return m.Cluster }},
	{"event", []MomentKind{Delivery}, func(r *Rule) *string { return &r.Event }, func(m Moment) string { return m.Event }},
	{"rule", []MomentKind{Delivery}, func(r *Rule) *string { return &r.Target }, func(m Moment) string { return m.Target }},
	{"machine", []MomentKind{Step}, func(r *Rule) *string { return &r.Machine }, func(m Moment) string { return m.Machine }},
	{"state", []MomentKind{Step}, func(r *Rule) *string { return &r.State }, func(m Moment) string { return m.State }},
	{"pool", []MomentKind{Instances, Boot, Launch}, func(r *Rule) *string { return &r.Pool }, func(m Moment) string { return m.Pool }},
	{"function", []MomentKind{Invoke}, func(r *Rule) *string { return &r.Function }, func(m Moment) string { return m.Function }},
}

// matches reports whether a rule's conditions match a moment. It ignores chances and counts.
func (r *Rule) matches(m Moment) bool {
	k, ok := kindOf(r.Kind)
	if !ok || k.moment != m.Kind || r.Kind == Conflict && !m.Conditional {
		return false
	}
	if crash := r.Kind == CrashBefore || r.Kind == CrashAfter; crash && (m.Number == 0 || r.Call != 0 && r.Call != m.Number) {
		return false
	}
	for _, f := range fields {
		want, got := *f.rule(r), f.moment(m)
		if like(want, got) || f.word == "stack" && m.Cluster != "" && like("drover-"+m.Cluster+"-"+want, got) {
			continue
		}
		return false
	}
	return true
}

// like matches a text with a pattern in which * matches anything. An empty pattern matches all.
func like(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(strings.ToLower(pattern), "*")
	text = strings.ToLower(text)
	if len(parts) == 1 {
		return text == parts[0]
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// check rejects a rule that could match no moment or has no effect.
func (r Rule) check() error {
	k, ok := kindOf(r.Kind)
	if !ok {
		return fmt.Errorf("%q is no kind of fault: one of %s", r.Kind, join(Kinds()))
	}
	for _, f := range fields {
		if *f.rule(&r) != "" && !slices.Contains(f.of, k.moment) {
			return fmt.Errorf("%s befalls a %s, which has no %s: it has %s", r.Kind, k.moment, f.word, strings.Join(wordsOf(k.moment), ", "))
		}
	}
	switch {
	case r.Duration < 0 || r.After < 0 || r.For < 0 || r.Every < 0:
		return fmt.Errorf("%s: a duration is negative", r.Kind)
	case r.Duration != 0 && k.value != "duration":
		return fmt.Errorf("%s takes no duration", r.Kind)
	case r.Duration == 0 && k.value == "duration":
		return fmt.Errorf("%s needs a duration: %s=2s", r.Kind, r.Kind)
	case r.Code != "" && k.value != "code" && k.value != "reason" && k.value != "conflict", r.Status != 0 && k.value != "code":
		return fmt.Errorf("%s takes no code and no status", r.Kind)
	case r.Code == "" && (k.value == "code" || k.value == "reason"):
		return fmt.Errorf("%s needs a value: %s=%s", r.Kind, r.Kind, cmp.Or(k.def, example))
	case r.Status != 0 && (r.Status < 400 || r.Status > 599):
		return fmt.Errorf("status %d is no error: from 400 to 599", r.Status)
	case k.value == "conflict" && r.Code != "409" && r.Code != "412":
		return fmt.Errorf("conflict=%s: 409 (nothing is written) or 412 (it is written, and a retry finds it there)", r.Code)
	case r.Call != 0 && k.value != "number":
		return fmt.Errorf("%s takes no call number", r.Kind)
	case r.Call < 0 || r.Nth < 0 || r.Count < 0:
		return fmt.Errorf("%s: a number is negative: they count from 1", r.Kind)
	case !(r.Probability >= 0 && r.Probability <= 1):
		return fmt.Errorf("p=%v is no probability: from 0 to 1", r.Probability)
	}
	return nil
}

// example is a value for the kind that has no default.
const example = "v1.33.9-eks-0e3cf2b"

func wordsOf(w MomentKind) (words []string) {
	for _, f := range fields {
		if slices.Contains(f.of, w) {
			words = append(words, f.word)
		}
	}
	return words
}

func join(all []Kind) string {
	var names []string
	for _, k := range all {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
