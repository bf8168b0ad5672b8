package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// markdownOf returns the field reference of a kind: a section for each object, under its path.
func markdownOf(kind reflect.Type, docs comments, done changes) []byte {
	var b bytes.Buffer
	name := strings.ToLower(kind.Name())
	fmt.Fprintf(&b, "<!-- Generated from shared/api by go run ./cmd/reference. -->\n\n# %s\n\n%s\n\n", kind.Name(), docs[kind.Name()])
	folder, file := name+"s", "<name>"
	if name == api.ChannelsName {
		folder, file = "releases", name
	}
	samples := folder
	switch kind.Name() {
	case api.KindDecision:
		file, samples = "<rollout>/<name>", "rollouts"
	case api.KindFreeze:
		samples = "rollouts"
	}
	fmt.Fprintf(&b, "A file `%s/%s.yaml` in the specs bucket, at most %d MiB of YAML without anchors, aliases, tags and unknown fields.\n",
		folder, file, api.MaxFile>>20)
	if ofFleets(kind.Name()) {
		b.WriteString("See [fleets](../fleet.md).\n")
	}
	fmt.Fprintf(&b, "Examples: [examples/%s](../../examples/%s). For editors, the same as [JSON Schema](%s.schema.json):\nstart the file "+
		"with `# yaml-language-server: $schema=<path or URL of the schema>`.\n", samples, samples, name)
	if done != nil {
		b.WriteString(aboutChanges)
	}
	section(&b, kind, "", api.Rules{}, docs, done)
	return b.Bytes()
}

// ofFleets reports whether a kind is one of those for many clusters.
func ofFleets(kind string) bool {
	return kind == api.KindRollout || kind == api.KindDecision || kind == api.KindFreeze
}

// aboutChanges explains the last column.
const aboutChanges = `
The last column says what a change does to a cluster that is there, found by rendering and planning it. In place: the stacks named are
updated, and no node is replaced. Rolls: the nodes of the pool are replaced, as its drain settings and budgets allow. Refused: nothing is
changed, and the status says what to do instead. Read by drover only: no stack changes.
`

// section describes an object and then its inner objects.
func section(b *bytes.Buffer, t reflect.Type, path string, rules api.Rules, docs comments, done changes) {
	if path != "" {
		fmt.Fprintf(b, "\n## %s\n\n%s\n", path, docs[t.Name()])
	}
	if done == nil {
		b.WriteString("\n| Field | Type | Description |\n|---|---|---|\n")
	} else {
		b.WriteString("\n| Field | Type | Description | A change |\n|---|---|---|---|\n")
	}
	type inner struct {
		t     reflect.Type
		path  string
		rules api.Rules
	}
	var within []inner
	for i := range t.NumField() {
		f := t.Field(i)
		r := api.RulesOf(f)
		if r.Name == "name" && rules.ObjectName != nil {
			r.Format = rules.ObjectName
		}
		here := strings.TrimPrefix(path+"."+r.Name, ".")
		does := done[here]
		kind, object := typeName(f.Type)
		if object != nil {
			if elem(f.Type).Kind() == reflect.Slice {
				here += "[]"
			}
			if r.Partial { // it has the fields of spec.pools[]
				here = strings.TrimSuffix(here, "Defaults") + "s[]"
			} else {
				within = append(within, inner{object, here, r})
			}
			kind = fmt.Sprintf("[%s](#%s)", kind, anchor(here))
		}
		text := docs.field(t, f, "`"+r.Name+"`")
		if mayBeDefaults[t] && r.Required && r.Name != "name" {
			r.Required, text = false, text+" **Required**, here or in `spec.poolDefaults`."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |", r.Name, kind, cell(strings.TrimSpace(text+" "+facts(f.Type, r))))
		if done != nil {
			fmt.Fprintf(b, " %s |", cell(does))
		}
		b.WriteString("\n")
	}
	for _, w := range within {
		section(b, w.t, w.path, w.rules, docs, done)
	}
}

const amountName = "number or percentage"

// typeName returns the name of a type for users, and the object type within it, if any.
func typeName(t reflect.Type) (string, reflect.Type) {
	t = elem(t)
	if t == reflect.TypeFor[api.Amount]() {
		return amountName, nil
	}
	if name, object, ok := outputType(t); ok {
		return name, object
	}
	switch t.Kind() {
	case reflect.Struct:
		return "object", t
	case reflect.Slice:
		name, object := typeName(t.Elem())
		if name == amountName {
			return "list of numbers or percentages", nil
		}
		return "list of " + name + "s", object
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return "map of strings", nil
		}
		if t.Elem().Kind() == reflect.Int {
			return "map of whole numbers", nil
		}
		return "any object", nil
	case reflect.Bool:
		return "true or false", nil
	case reflect.Int:
		return "whole number", nil
	}
	return "string", nil
}

// facts describes the rules of a field in sentences.
func facts(t reflect.Type, r api.Rules) string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.Required {
		say("**Required.**")
	}
	if len(r.Enum) > 0 {
		say("One of %s.", quoteAll(r.Enum))
	}
	switch {
	case r.Min != nil && r.Max != nil:
		say("Between %d and %d.", *r.Min, *r.Max)
	case r.Min != nil:
		say("At least %d.", *r.Min)
	}
	if r.MinItems != nil {
		say("At least %d.", *r.MinItems)
	}
	if r.MaxItems != nil {
		say("At most %d.", *r.MaxItems)
	}
	if r.Keys != nil {
		say("Each key must be %s.", meaning(r.Keys))
	}
	if r.Format != nil {
		subject := "Must"
		if kind := elem(t).Kind(); kind == reflect.Slice || kind == reflect.Map {
			subject = "Each value must"
		}
		say("%s be %s.", subject, meaning(r.Format))
	}
	if r.Unique {
		by := ""
		if len(r.UniqueBy) > 0 {
			by = " by " + quoteAll(r.UniqueBy)
		}
		say("No two alike%s.", by)
	}
	if r.Default != nil {
		say("Default: %s.", quoteAll(r.Default))
	}
	return strings.Join(list, " ")
}

func meaning(f *api.Format) string {
	if f.MaxLength > 0 {
		return fmt.Sprintf("%s; at most %d characters", f.Means, f.MaxLength)
	}
	return f.Means
}

func quoteAll(list []string) string { return "`" + strings.Join(list, "`, `") + "`" }

// anchor is the fragment that Markdown renderers give a heading.
func anchor(heading string) string {
	return strings.NewReplacer(".", "", "[", "", "]", "").Replace(strings.ToLower(heading))
}

// cell escapes characters that end a table's cell or start HTML.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }
