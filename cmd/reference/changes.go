package main

// The effect of changing a field. The command changes it in an example, renders both specs, and plans the change. A new field is in the
// table as soon as an example has it.

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/templates"
)

// changes are the effects of a change, by the path of the field.
type changes map[string]string

// baselines are the examples in which fields are changed. The first one that has the field is used.
var baselines = []string{"everything", "existing-network", "scheduled", "demo", "minimal"}

// untriedFields are the fields without another value to try.
var untriedFields = changes{
	"apiVersion":                "there is one",
	"kind":                      "there is one",
	"spec.poolDefaults":         "that of the field, for each pool that does not state it",
	"spec.release.name":         "each default that differs between the releases does what its field does",
	"spec.pools[].architecture": "**rolls**: pool, with the image and the instance types that go with it",
	"spec.templateVersion": "each stack that the other templates render differently is updated; " +
		"pools are **rolled** when nodes would be launched differently",
}

// effect of a change on kinds of stacks. All pools are "pool".
type effect struct {
	refused                        []string // the alternatives
	made, deleted, rolled, changed map[string]bool
}

// readChanges tries every field of a cluster.
func readChanges(examples string) (changes, error) {
	var bases []*base
	for _, name := range baselines {
		b, err := readBase(examples, name)
		if err != nil {
			return nil, err
		}
		bases = append(bases, b)
	}
	out := maps.Clone(untriedFields)
	for path, field := range fieldsOf(reflect.TypeFor[api.Cluster](), "") {
		for _, b := range bases {
			text, forbidden, err := b.try(path, field)
			if err != nil {
				return nil, err
			}
			if text == "" {
				if out[path] == "" && forbidden != "" {
					out[path] = forbidden
				}
				continue
			}
			if untriedFields[path] != "" {
				return nil, fmt.Errorf("%s can be tried: %s", path, text)
			}
			out[path] = text
			break
		}
	}
	return out, nil
}

// base is an example with its resolved spec and its rendered stacks.
type base struct {
	document []byte
	release  *api.Release
	before   *api.Cluster
	stacks   map[string]render.Stack
}

func readBase(examples, name string) (*base, error) {
	document, err := os.ReadFile(filepath.Join(examples, "clusters", name+".yaml"))
	if err != nil {
		return nil, err
	}
	b := &base{document: document, stacks: map[string]render.Stack{}}
	var named struct {
		Spec struct{ Release struct{ Name string } }
	}
	if err := yaml.Unmarshal(document, &named); err != nil {
		return nil, err
	}
	body, err := os.ReadFile(filepath.Join(examples, "releases", named.Spec.Release.Name+".yaml"))
	if err != nil {
		return nil, err
	}
	var errs api.Errors
	if b.release, errs = api.ReadRelease(named.Spec.Release.Name, body, api.Options{TemplateVersions: templates.Versions()}); errs != nil {
		return nil, errs.Err()
	}
	var out *render.Output
	if b.before, out, err = b.render(document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, stack := range out.Stacks {
		b.stacks[stack.Name] = stack
	}
	return b, nil
}

// forbidden matches the field and the reason in validation's error about a forbidden value.
var forbidden = regexp.MustCompile(`: (spec\.\S+): Forbidden: (.+)`)

// render reads, resolves and renders a spec. It returns the same errors as drover.
func (b *base) render(document []byte) (*api.Cluster, *render.Output, error) {
	cluster, errs := api.ReadCluster("spec", document, api.Options{TemplateVersions: templates.Versions()})
	if errs != nil {
		return nil, nil, errs.Err()
	}
	resolved, errs := api.Resolve(cluster, b.release)
	if errs == nil {
		errs = api.Validate(resolved, api.Options{TemplateVersions: templates.Versions()})
	}
	if errs != nil {
		return nil, nil, errs.Err()
	}
	// A time after every rollAt.
	rollAt, _ := plan.RollAt(resolved, nil, nil, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	out, err := render.Render(render.Cluster{
		Cell: render.Cell{
			Partition: "aws", Region: "us-east-1", Account: "111122223333", StateBucket: names.StateBucket("111122223333", "us-east-1"),
		},
		Resolved: resolved, RollAt: rollAt, Relay: render.UnknownRelay,
	})
	return resolved, out, err
}

// try changes one field in every known way. text is empty if the example lacks the field, or if no other value is valid. Then forbidden may
// contain the reason.
func (b *base) try(path string, field reflect.StructField) (text, forbidden string, err error) {
	var texts []string
	for _, how := range ways(path, field) {
		e, did, err := b.change(path, how, true)
		if err == nil && !did {
			e, did, err = b.change(path, how, false)
		}
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", path, err)
		}
		if !did && len(e.refused) > 0 {
			forbidden = e.String()
		}
		if text := e.String(); did && !slices.Contains(texts, how.name+text) {
			texts = append(texts, how.name+text)
		}
	}
	return sentence(texts), forbidden, nil
}

// change makes the first valid change of a way that changes the resolved spec. did is false if no such change exists.
func (b *base) change(path string, how way, strict bool) (e effect, did bool, err error) {
	var original any
	if err := yaml.Unmarshal(b.document, &original); err != nil {
		return e, false, err
	}
	for n := 0; ; n++ {
		var document any
		_ = yaml.Unmarshal(b.document, &document) // as above
		tried, more := edit(document, strings.Split(path, "."), strict, func(v any) (any, bool) { return how.other(v, n) })
		if !more {
			return e, false, nil
		}
		if reflect.DeepEqual(tried, original) {
			continue
		}
		body, err := yaml.Marshal(tried)
		if err != nil {
			return e, false, err
		}
		after, out, err := b.render(body)
		if why := forbidden.FindStringSubmatch(fmt.Sprint(err)); err != nil && why != nil && digits.ReplaceAllString(why[1], "") == path {
			e.refused = []string{why[2]} // unless something else is valid
		}
		if err != nil || reflect.DeepEqual(after, b.before) {
			continue // not valid, or the same
		}
		e, err = b.effect(after, out)
		return e, true, err
	}
}

// effect compares the rendered stacks and the plan. It returns an error if a stack differs without a planned change,
// or if the plan does not name the changed field. In both cases a checksum or the diff of specs omits the field.
func (b *base) effect(after *api.Cluster, out *render.Output) (effect, error) {
	e := effect{made: map[string]bool{}, deleted: map[string]bool{}, rolled: map[string]bool{}, changed: map[string]bool{}}
	if after.Metadata.Name != b.before.Metadata.Name {
		e.refused = append(e.refused, "another name is another cluster, in another file")
		return e, nil
	}
	p := plan.Compute(b.input(after, out))
	for _, reason := range p.Refused {
		_, instead, _ := strings.Cut(strings.TrimSuffix(reason.New, ")"), "(")
		if !slices.Contains(e.refused, instead) {
			e.refused = append(e.refused, instead)
		}
	}
	now := map[string]render.Stack{}
	for _, stack := range out.Stacks {
		now[stack.Name] = stack
	}
	desired, differs := map[string]bool{}, map[string]bool{}
	for _, stack := range out.Stacks {
		desired[stack.Name] = true
		old, found := b.stacks[stack.Name]
		differs[stack.Name] = !reflect.DeepEqual(withoutPace(old), withoutPace(stack))
		switch {
		case !found:
			e.made[kindOf(stack.Name)] = true
		case replacesNodes(nodeParts(old, b.stacks), nodeParts(stack, now)):
			e.rolled[kindOf(stack.Name)] = true
		case differs[stack.Name], !reflect.DeepEqual(nodeParts(old, b.stacks), nodeParts(stack, now)): // also by an output of another stack
			e.changed[kindOf(stack.Name)] = true
		}
	}
	for name := range b.stacks {
		if !desired[name] {
			e.deleted[kindOf(name)], differs[name] = true, true
		}
	}
	for _, change := range p.Changes {
		if !differs[change.Stack] {
			return e, fmt.Errorf("stack %s is planned to change and does not differ: %v", change.Stack, change.Reasons)
		}
		delete(differs, change.Stack)
		rolls := replacesNodes(nodeParts(b.stacks[change.Stack], b.stacks), nodeParts(now[change.Stack], now))
		if planned := change.Effect; change.Operation == plan.Update && planned != "" && rolls != (planned == status.ReplacesNodes) {
			return e, fmt.Errorf("the planned effect on stack %s is %q, but it rolls: %t: plan.Effect is wrong about %v", change.Stack,
				planned, rolls, change.Reasons)
		}
		for _, reason := range change.Reasons {
			if strings.HasPrefix(reason.Field, "checksum.") {
				return e, fmt.Errorf("the plan has no reason why stack %s changes: plan.Diff omits the field", change.Stack)
			}
		}
	}
	for name, different := range differs {
		if different {
			return e, fmt.Errorf("stack %s differs and is not planned to change: plan.Checksum omits the field", name)
		}
	}
	return e, nil
}

// input of a plan from the base to another spec. All stacks of the base are deployed.
func (b *base) input(after *api.Cluster, out *render.Output) plan.Input {
	in := plan.Input{
		Cluster: after.Metadata.Name, New: after, Old: map[string]*api.Cluster{}, Desired: out.Stacks, Deployed: map[string]stack.Deployed{},
	}
	subnets := map[string]string{"PrivateSubnetIds": strings.Join(b.before.Spec.Network.Zones, ",")} // one for each zone
	for name, desired := range b.stacks {
		tags := maps.Clone(desired.Tags)
		if name == names.ControlPlane {
			tags[names.TagRelease] = in.Release
		}
		if desired.Pace != nil {
			tags[names.TagTemplate] = desired.TemplateKey
		}
		tags[names.TagChecksum] = plan.Checksum(desired, tags)
		deployed := stack.Deployed{
			Status: "CREATE_COMPLETE", Tags: tags, Parameters: map[string]string{}, TerminationProtection: desired.Protected,
		}
		for _, parameter := range desired.Parameters {
			deployed.Parameters[parameter.Name] = parameter.Value
			if from := parameter.From; from != nil && from.Stack == names.Network {
				deployed.Parameters[parameter.Name], _ = from.Value(subnets)
			}
		}
		if name == names.Network {
			deployed.Outputs = subnets
		}
		if desired.Pace != nil {
			maps.Copy(deployed.Parameters, desired.Pace.WithoutReplacement(nil))
			deployed.Outputs = map[string]string{render.Nodes: desired.Nodes.Sum(deployed.Parameters)}
		}
		in.Old[name], in.Deployed[name] = b.before, deployed
	}
	return in
}

// withoutPace is a stack without the settings that only affect the pace of a later roll.
func withoutPace(stack render.Stack) render.Stack {
	if stack.Pace != nil {
		stack.Pace = &render.Pace{MaxSize: stack.Pace.MaxSize}
	}
	return stack
}

func kindOf(stack string) string {
	if strings.HasPrefix(stack, names.PoolPrefix) {
		return "pool"
	}
	return stack
}

// outputs and resources of a template.
type template struct {
	Outputs   map[string]any
	Resources map[string]struct {
		Type       string
		Properties map[string]any
	}
}

// parsedTemplates has the templates that read returned. Most changes leave most stacks as they are.
var parsedTemplates = map[string]template{}

// read parses a stack's template, which must not be changed.
func read(stack render.Stack) template {
	t, ok := parsedTemplates[string(stack.Template)]
	if !ok {
		_ = yaml.Unmarshal(stack.Template, &t) // the tests of the templates show that they are YAML
		parsedTemplates[string(stack.Template)] = t
	}
	return t
}

// nodes are the parts of a stack's template that decide about its nodes.
type nodes struct {
	data    map[string]any // of launch templates, without tags and monitoring
	rollAt  string
	subnets []any
}

// nodeParts returns the parts of a stack's template that decide about its nodes, with the values of parameters, also from outputs of other
// stacks. Tags and monitoring reach new nodes only, except the time of a roll.
func nodeParts(stack render.Stack, all map[string]render.Stack) nodes {
	t, values := read(stack), map[string]any{}
	for _, p := range stack.Parameters {
		values[p.Name] = p.Value
		if p.From != nil {
			values[p.Name] = read(all[p.From.Stack]).Outputs[p.From.Output]
			if subnets := subnetsIn(values[p.Name]); len(p.From.Items) > 0 {
				picked := make([]any, len(p.From.Items))
				for i, item := range p.From.Items {
					picked[i] = subnets[item]
				}
				values[p.Name] = picked
			}
		} else if p.Name == render.SubnetIDs {
			values[p.Name] = list(p.Value)
		}
	}
	parts := nodes{data: map[string]any{}, rollAt: stack.Tags[names.TagRollAt]}
	for id, r := range t.Resources {
		switch r.Type {
		case "AWS::EC2::LaunchTemplate":
			data := fillReferences(r.Properties["LaunchTemplateData"], values).(map[string]any)
			delete(data, "TagSpecifications")
			delete(data, "Monitoring")
			parts.data[id] = data
		case "AWS::AutoScaling::AutoScalingGroup":
			parts.subnets = subnetsIn(fillReferences(r.Properties["VPCZoneIdentifier"], values))
		}
	}
	return parts
}

func list(text string) (values []any) {
	for value := range strings.SplitSeq(text, ",") {
		values = append(values, value)
	}
	return values
}

// subnetsIn returns the elements of a list of subnets, also if it is an output that joins them.
func subnetsIn(v any) []any {
	if output, ok := v.(map[string]any); ok {
		join, _ := output["Value"].(map[string]any)
		v = join["Fn::Join"]
		if parts, ok := v.([]any); ok && len(parts) == 2 {
			v = parts[1]
		}
	}
	subnets, _ := v.([]any)
	return subnets
}

// replacesNodes reports whether a change between two stacks replaces nodes: other data, another roll, or a removed subnet.
func replacesNodes(before, after nodes) bool {
	removed := func(subnet any) bool {
		return !slices.ContainsFunc(after.subnets, func(s any) bool { return reflect.DeepEqual(s, subnet) })
	}
	return !reflect.DeepEqual(before.data, after.data) || before.rollAt != after.rollAt || slices.ContainsFunc(before.subnets, removed)
}

// fillReferences replaces references to parameters by their values.
func fillReferences(v any, values map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		if name, ok := v["Ref"].(string); ok {
			return values[name]
		}
		out := map[string]any{}
		for key, value := range v {
			out[key] = fillReferences(value, values)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fillReferences(v[i], values)
		}
		return out
	}
	return v
}

// String describes the effect. A field without an effect is read by drover only.
func (e effect) String() string {
	if len(e.refused) > 0 {
		return "**refused**: " + strings.Join(e.refused, "; ")
	}
	var parts []string
	add := func(what string, stacks map[string]bool) {
		if len(stacks) > 0 {
			parts = append(parts, what+strings.Join(slices.Sorted(maps.Keys(stacks)), ", "))
		}
	}
	add("makes: ", e.made)
	add("deletes, drained first: ", e.deleted)
	add("**rolls**: ", e.rolled)
	add("in place: ", e.changed)
	if len(parts) == 0 {
		return "read by drover only"
	}
	return strings.Join(parts, "; ")
}

// sentence joins the effects of the ways to change a field. It lists equal effects once.
func sentence(texts []string) string {
	same := map[string]bool{}
	for _, s := range texts {
		_, text, _ := strings.Cut(s, "\x00")
		same[text] = true
	}
	if len(same) == 1 {
		return slices.Collect(maps.Keys(same))[0]
	}
	return strings.ReplaceAll(strings.Join(texts, ". "), "\x00", ": ")
}
