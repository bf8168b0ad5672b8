package api

// Decoding is strict, and reports all errors at once. The YAML is parsed into nodes, which have positions. They are decoded along the Go
// types. It expands nothing: anchors, aliases, merge keys and tags are rejected.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of a file.
const (
	// MaxFile is the maximum size of a spec or release, in bytes.
	MaxFile = 1 << 20
	// maxDepth is the maximum nesting. The deepest field of a spec is at 7; the rest is for the configuration of add-ons.
	maxDepth = 32
	// maxValues is the maximum number of keys, values, lists and objects. A hundred large pools have less than a tenth of it.
	maxValues = 50_000
)

// DecodeCluster reads a cluster's spec strictly. The cluster is nil if the form of the file is wrong. Validate checks its values.
func DecodeCluster(file string, data []byte) (*Cluster, Errors) {
	d := decode(file, data, KindCluster)
	if len(d.errs) > 0 {
		return nil, d.errors()
	}
	c := d.object.(*Cluster)
	c.Spec.PoolDefaults = nil // the pools have them
	return c, nil
}

// DecodeRelease reads a release strictly, like DecodeCluster.
func DecodeRelease(file string, data []byte) (*Release, Errors) {
	d := decode(file, data, KindRelease)
	if len(d.errs) > 0 {
		return nil, d.errors()
	}
	return d.object.(*Release), nil
}

// DecodeChannels reads channels strictly, like DecodeCluster.
func DecodeChannels(file string, data []byte) (*Channels, Errors) {
	d := decode(file, data, KindChannels)
	if len(d.errs) > 0 {
		return nil, d.errors()
	}
	return d.object.(*Channels), nil
}

// KindOf returns the kind that a file states. It is "" if the file states none or cannot be read.
func KindOf(data []byte) string {
	if len(data) > MaxFile || !utf8.Valid(data) {
		return ""
	}
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return ""
	}
	_, kind := lookup(doc.Content[0], "kind")
	if kind == nil || kind.Kind != yaml.ScalarNode {
		return ""
	}
	return kind.Value
}

// document is a file during decoding.
type document struct {
	file string
	// lines of the file. The library counts one more if the last line has no end.
	lines  int
	object any
	errs   field.ErrorList
	// at holds the position of each error in errs.
	at []place
	// places holds the position of each field in the file, by path.
	places map[string]place
}

// decode reads a file of a kind. The object holds what could be read, even if there are errors.
func decode(file string, data []byte, kind string) *document {
	d := &document{file: file, places: map[string]place{}}
	d.object = newObject(kind)
	root := d.parse(data)
	if root == nil || !d.expectKind(root, kind) {
		return d
	}
	if kind == KindCluster && !fillPools(root) {
		why := fmt.Sprintf("with spec.poolDefaults in every pool, the file has more than %d values", maxValues)
		d.fail(place{1, 1}, whole(field.Forbidden(nil, why)))
		return d
	}
	d.value(nil, root, reflect.ValueOf(d.object).Elem(), Rules{}, 1)
	return d
}

// newObject returns an empty object of a kind. A file that states none is read as a cluster.
func newObject(kind string) any {
	switch kind {
	case KindRelease:
		return &Release{}
	case KindChannels:
		return &Channels{}
	case KindRollout:
		return &Rollout{}
	case KindDecision:
		return &Decision{}
	case KindFreeze:
		return &Freeze{}
	}
	return &Cluster{}
}

// parse returns the root of the file's only document, or nil if the file cannot be parsed.
func (d *document) parse(data []byte) *yaml.Node {
	start := place{1, 1}
	d.lines = 1 + len(lineEnd.FindAllIndex(data[:min(len(data), MaxFile)], -1))
	if len(data) > MaxFile {
		d.fail(start, whole(field.TooLong(nil, "", MaxFile)))
		return nil
	}
	if !utf8.Valid(data) {
		d.fail(notUTF8(data), whole(field.Invalid(nil, field.OmitValueType{}, "not YAML: it is not UTF-8")))
		return nil
	}
	reader := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && isNull(doc.Content[0]):
		d.fail(start, whole(field.Required(nil, "the file is empty")))
		return nil
	case err != nil:
		d.syntax(err, data)
		return nil
	}
	switch err := reader.Decode(&next); {
	case err == nil:
		why := "more than one document: a file holds one object"
		if isNull(next.Content[0]) {
			why = "a second document, which is empty: remove the line --- that begins it"
		}
		d.fail(place{next.Line, next.Column}, whole(field.Forbidden(nil, why)))
	case !errors.Is(err, io.EOF):
		d.syntax(err, data)
	}
	root := doc.Content[0]
	if count(root) > maxValues {
		d.fail(start, whole(field.TooMany(nil, count(root), maxValues)))
		return nil
	}
	if root.Kind != yaml.MappingNode {
		d.fail(place{
			root.Line, root.Column,
		}, whole(field.TypeInvalid(nil, shownValue(root, false), "must be an object with apiVersion, kind, metadata and spec")))
		return nil
	}
	return root
}

// expectKind reports whether the rest of the file can be read as the kind. A missing kind is reported later, like any missing field.
func (d *document) expectKind(root *yaml.Node, kind string) bool {
	ok := true
	for name, want := range map[string]string{"apiVersion": GroupVersion, "kind": kind} {
		if _, node := lookup(root, name); node != nil && node.Kind == yaml.ScalarNode && node.Value != want {
			d.fail(place{node.Line, node.Column}, field.NotSupported(field.NewPath(name), node.Value, []string{want}))
			ok = false
		}
	}
	return ok
}

var (
	lineEnd = regexp.MustCompile(`\r\n|[\r\n\x{85}\x{2028}\x{2029}]`) // the line ends of YAML 1.1
	atLine  = regexp.MustCompile(`line (\d+): `)
	// The library's parser counts lines from 0 in its errors, its scanner from 1. These are the parser's errors.
	fromZero = regexp.MustCompile(`did not find expected (<|node content|'-' indicator|key|',' or)`)
)

// tabIndent matches a line that is indented with a tab.
var tabIndent = regexp.MustCompile(`^ *\t`)

// syntax reports the YAML parser's error. For a tab, the parser only states that it cannot start a token.
func (d *document) syntax(err error, data []byte) {
	at, message := place{line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := atLine.FindStringSubmatch(message); m != nil {
		at.line, _ = strconv.Atoi(m[1])
		if fromZero.MatchString(message) {
			at.line++
		}
		message = strings.Replace(message, m[0], "", 1)
	}
	if lines := lineEnd.Split(string(data), -1); at.line <= len(lines) && tabIndent.MatchString(lines[at.line-1]) {
		message = "the line is indented with a tab: YAML takes spaces only; replace each tab with spaces"
	}
	if strings.HasPrefix(message, "unknown anchor") {
		message = "anchors and aliases are not allowed: write the value out where it is used"
	}
	d.fail(at, whole(field.Invalid(nil, field.OmitValueType{}, "not YAML: "+message)))
}

// value reads a node into a Go value. It reports errors and reads the rest.
func (d *document) value(path *field.Path, node *yaml.Node, out reflect.Value, rules Rules, depth int) {
	if path != nil {
		if _, ok := d.places[path.String()]; !ok {
			d.places[path.String()] = place{node.Line, node.Column}
		}
	}
	if !d.plain(path, node, depth) {
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		target := reflect.New(out.Type().Elem())
		before := len(d.errs)
		d.value(path, node, target.Elem(), rules, depth)
		if len(d.errs) == before || target.Elem().Kind() == reflect.Struct {
			out.Set(target)
		}
	case reflect.Struct:
		d.structure(path, node, out, rules, depth)
	case reflect.Map:
		d.mapping(path, node, out, rules, depth)
	case reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			d.wrongType(path, node, rules, "must be a list")
			return
		}
		list := reflect.MakeSlice(out.Type(), len(node.Content), len(node.Content))
		for i, item := range node.Content {
			d.value(path.Index(i), item, list.Index(i), rules.ofItem(), depth+1)
		}
		out.Set(list)
	case reflect.Interface:
		if v, ok := d.anything(path, node, rules, depth); ok && v != nil {
			out.Set(reflect.ValueOf(v))
		}
	default:
		d.scalar(path, node, out, rules)
	}
}

// plain rejects YAML that drover does not support, and implausibly deep nesting.
func (d *document) plain(path *field.Path, node *yaml.Node, depth int) bool {
	at := place{node.Line, node.Column}
	switch {
	case depth > maxDepth:
		d.fail(at, on(path, field.Forbidden(path, fmt.Sprintf("nested more than %d levels deep", maxDepth))))
	case node.Kind == yaml.AliasNode, node.Anchor != "":
		d.fail(at, on(path, field.Forbidden(path, "anchors and aliases are not allowed: write the value out where it is used")))
	case node.Style&yaml.TaggedStyle != 0:
		d.fail(at, on(path, field.Forbidden(path, "tags are not allowed: put a string that starts with '!' in quotes")))
	default:
		return true
	}
	return false
}

// structure reads an object with known fields.
func (d *document) structure(path *field.Path, node *yaml.Node, out reflect.Value, rules Rules, depth int) {
	if node.Kind != yaml.MappingNode {
		d.wrongType(path, node, rules, "must be an object")
		return
	}
	fields := fieldsOf(out.Type())
	seen, given := map[string]int{}, map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !d.key(path, key, seen, child) {
			continue
		}
		here := child(path, key.Value)
		index := slices.IndexFunc(fields, func(r Rules) bool { return r.Name == key.Value })
		if index < 0 || slices.Contains(rules.Without, key.Value) {
			why := unsupportedField(out.Type(), key.Value)
			if index >= 0 {
				why = "it cannot have a default"
			}
			if why == "" {
				allowed := slices.DeleteFunc(slices.Clone(fields), func(f Rules) bool { return slices.Contains(rules.Without, f.Name) })
				why = "unknown field" + d.insteadOf(key.Value, allowed)
			}
			d.fail(place{key.Line, key.Column}, field.Forbidden(here, why))
			continue
		}
		d.locateAtKey(here, key, value)
		if isNull(value) {
			continue // like an absent field
		}
		given[key.Value] = true
		d.value(here, value, out.Field(index), fields[index].within(rules), depth+1)
	}
	for _, f := range fields {
		if f.within(rules).Required && !given[f.Name] {
			d.fail(d.placeOf(child(path, f.Name).String()), field.Required(child(path, f.Name), ""))
		}
	}
}

// mapping reads an object whose keys are data.
func (d *document) mapping(path *field.Path, node *yaml.Node, out reflect.Value, rules Rules, depth int) {
	if node.Kind != yaml.MappingNode {
		d.wrongType(path, node, rules, "must be an object")
		return
	}
	free := out.Type().Elem().Kind() == reflect.Interface
	subscript := (*field.Path).Key
	if free {
		subscript = child
	}
	m, seen := reflect.MakeMap(out.Type()), map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !d.key(path, key, seen, subscript) {
			continue
		}
		here := subscript(path, key.Value)
		d.locateAtKey(here, key, value)
		item := reflect.New(out.Type().Elem()).Elem()
		d.value(here, value, item, rules, depth+1)
		m.SetMapIndex(reflect.ValueOf(key.Value).Convert(out.Type().Key()), item)
	}
	out.Set(m)
}

// key reports whether a mapping's key is a string that did not occur before.
func (d *document) key(path *field.Path, key *yaml.Node, seen map[string]int, subscript func(*field.Path, string) *field.Path) bool {
	at := place{key.Line, key.Column}
	switch {
	case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
		d.fail(at, on(path, field.Forbidden(path, "merge keys are not allowed: write the fields out")))
		return false
	case key.Kind != yaml.ScalarNode && key.Kind != yaml.AliasNode:
		d.fail(at, on(path, field.TypeInvalid(path, field.OmitValueType{}, "a key must be a string")))
		return false
	case !d.plain(path, key, 0):
		return false
	case !isString(key):
		d.fail(at, on(path, field.TypeInvalid(path, raw(key.Value), "a key must be a string: put it in quotes")))
		return false
	}
	if line, ok := seen[key.Value]; ok {
		err := field.Duplicate(subscript(path, key.Value), shorten(key.Value))
		err.Detail = fmt.Sprintf("already on line %d", line)
		d.fail(at, err)
		return false
	}
	seen[key.Value] = key.Line
	return true
}

// scalar reads a string, number or truth value.
func (d *document) scalar(path *field.Path, node *yaml.Node, out reflect.Value, rules Rules) {
	isScalar := node.Kind == yaml.ScalarNode
	if out.Type() == reflect.TypeFor[Amount]() {
		// A quoted number is a string.
		number := isScalar && node.Tag == "!!int"
		if !number && !(isScalar && isString(node) && strings.HasSuffix(node.Value, "%")) || !amountPattern.MatchString(node.Value) {
			d.wrongType(path, node, rules, amountMeans)
			return
		}
		out.SetString(node.Value)
		return
	}
	switch out.Kind() {
	case reflect.String:
		switch {
		case isScalar && isString(node):
			out.SetString(node.Value)
		case isScalar && !isNull(node):
			d.wrongType(path, node, rules, "must be a string: put it in quotes")
		default:
			d.wrongType(path, node, rules, "must be a string")
		}
	case reflect.Bool:
		if !isScalar || node.Tag != "!!bool" || (node.Value != "true" && node.Value != "false") {
			d.wrongType(path, node, rules, "must be true or false")
			return
		}
		out.SetBool(node.Value == "true")
	case reflect.Int:
		n, err := strconv.ParseInt(node.Value, 10, 32)
		if !isScalar || node.Tag != "!!int" || err != nil || strconv.FormatInt(n, 10) != node.Value {
			d.wrongType(path, node, rules, "must be a whole number")
			return
		}
		if n == 0 && rules.Min != nil && *rules.Min > 0 {
			// Later checks cannot distinguish 0 from absent.
			d.fail(place{node.Line, node.Column}, field.Invalid(path, n, atLeast(*rules.Min)))
			return
		}
		out.SetInt(n)
	default:
		panic(fmt.Sprintf("%s: fields of type %s cannot be decoded", path, out.Type()))
	}
}

// anything reads the configuration of an add-on, which drover passes to EKS as JSON. Only EKS knows its fields.
func (d *document) anything(path *field.Path, node *yaml.Node, rules Rules, depth int) (any, bool) {
	switch node.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		d.mapping(path, node, reflect.ValueOf(&m).Elem(), rules, depth)
		return m, true
	case yaml.SequenceNode:
		list := []any{}
		d.value(path, node, reflect.ValueOf(&list).Elem(), rules, depth)
		return list, true
	}
	switch {
	case isString(node):
		return node.Value, true
	case isNull(node):
		return nil, true
	case node.Tag == "!!bool":
		return strings.EqualFold(node.Value, "true"), true
	}
	if n, err := strconv.ParseInt(node.Value, 10, 64); err == nil && strconv.FormatInt(n, 10) == node.Value {
		return n, true
	}
	// A whole number that is too large for an integer would silently lose digits as a float.
	isFloat := node.Tag == "!!float" && strings.ContainsAny(node.Value, ".eE")
	if x, err := strconv.ParseFloat(node.Value, 64); err == nil && isFloat && !math.IsInf(x, 0) && !math.IsNaN(x) {
		return x, true
	}
	d.wrongType(path, node, rules, "must be a number that JSON can hold")
	return nil, false
}

func (d *document) wrongType(path *field.Path, node *yaml.Node, rules Rules, detail string) {
	d.fail(place{node.Line, node.Column}, on(path, field.TypeInvalid(path, shownValue(node, rules.Secret), detail)))
}

func (d *document) fail(at place, err *field.Error) {
	d.errs, d.at = append(d.errs, err), append(d.at, at)
}

// errors returns the errors of the file's form.
func (d *document) errors() (errs Errors) {
	for i, e := range d.errs {
		errs = append(errs, d.error(d.at[i], e))
	}
	return errs.sortedByLine().withoutFilled()
}

func (d *document) error(at place, err *field.Error) *Error {
	return &Error{File: d.file, Line: min(at.line, d.lines), Column: at.column, Cause: err}
}

// locate adds positions to the errors of later checks.
func (d *document) locate(errs Errors) (located Errors) {
	for _, e := range errs {
		cause := d.moveToRelease(e.Cause)
		located = append(located, d.error(d.placeOf(cause.Field), cause))
	}
	return located.sortedByLine()
}

// moveToRelease assigns an error of the Kubernetes version to the release, if the spec states only the release.
func (d *document) moveToRelease(e *field.Error) *field.Error {
	const version, release = "spec.kubernetesVersion", "spec.release.name"
	_, statesVersion := d.places[version]
	if _, statesRelease := d.places[release]; e.Field != version || statesVersion || !statesRelease {
		return e
	}
	why := e.Detail
	if e.Type != field.ErrorTypeForbidden {
		why = e.ErrorBody()
	}
	return &field.Error{Type: field.ErrorTypeForbidden, Field: release, Detail: "the release's Kubernetes version: " + why}
}

// locateAtKey returns the position of an object's or list's key, which is easier to find, and that of a scalar's value.
func (d *document) locateAtKey(path *field.Path, key, value *yaml.Node) {
	if value.Kind != yaml.ScalarNode {
		d.places[path.String()] = place{key.Line, key.Column}
	}
}

// placeOf returns the position of a field, or of the nearest one in the file that contains it.
func (d *document) placeOf(path string) place {
	for path != "" {
		if at, ok := d.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{1, 1}
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

// whole returns an error about the whole file.
func whole(err *field.Error) *field.Error {
	err.Field = ""
	return err
}

// on returns whole if there is no path.
func on(path *field.Path, err *field.Error) *field.Error {
	if path == nil {
		return whole(err)
	}
	return err
}
