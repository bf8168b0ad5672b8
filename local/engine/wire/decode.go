package wire

// Parameters. Each protocol is first decoded to JSON-like values. Then one strict binder fills the operation's struct.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

func parseJSON(body []byte) (map[string]any, error) {
	params := map[string]any{}
	if len(bytes.TrimSpace(body)) == 0 {
		return params, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return nil, Errorf("SerializationException", "the body is not a JSON object: %v", err)
	}
	if d.More() {
		return nil, Errorf("SerializationException", "there is text after the body's JSON object")
	}
	if params == nil {
		params = map[string]any{}
	}
	return params, nil
}

// parseQuery decodes A.member.1.B=x to {"A": {"member": {"1": {"B": "x"}}}}. The binder turns member and numbers into
// lists.
func parseQuery(query url.Values, body []byte) (action string, params map[string]any, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, Errorf("MalformedQueryString", "the body is no query string: %v", err)
	}
	for k, v := range query {
		if !strings.HasPrefix(k, "X-Amz-") {
			form[k] = append(form[k], v...)
		}
	}
	params = map[string]any{}
	for name, values := range form {
		if len(values) != 1 {
			return "", nil, Errorf("MalformedQueryString", "the parameter %s occurs %d times", name, len(values))
		}
		switch name {
		case "Action":
			action = values[0]
			continue
		case "Version":
			continue
		}
		at := params
		parts := strings.Split(name, ".")
		for i, part := range parts {
			if i == len(parts)-1 {
				if _, ok := at[part].(map[string]any); ok {
					if values[0] == "" { // Tags= next to Tags.member.1=…
						continue
					}
					return "", nil, Errorf("MalformedQueryString", "the parameter %s is a value and a structure", name)
				}
				at[part] = values[0]
				continue
			}
			next, ok := at[part].(map[string]any)
			if !ok {
				if text, taken := at[part].(string); taken && text != "" {
					return "", nil, Errorf("MalformedQueryString", "the parameter %s is a value and a structure", name)
				}
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
	}
	if action == "" {
		return "", nil, &Error{Code: "MissingAction", Message: "the request has no Action", Status: 400}
	}
	return action, params, nil
}

// maxCBOR is CloudWatch's limit. It also limits nesting to what the recursive decoder can process.
const maxCBOR = 1 << 20

func parseCBOR(body []byte) (map[string]any, error) {
	if len(body) == 0 {
		return map[string]any{}, nil
	}
	if len(body) > maxCBOR {
		return nil, &Error{Code: "RequestEntityTooLarge", Message: "the body is larger than 1 MB", Status: 413}
	}
	v, err := cbor.Decode(body)
	if err != nil {
		return nil, Errorf("SerializationException", "the body is not CBOR: %v", err)
	}
	params, ok := fromCBOR(v).(map[string]any)
	if !ok {
		return nil, Errorf("SerializationException", "the body is not a CBOR map")
	}
	return params, nil
}

func fromCBOR(v cbor.Value) any {
	switch v := v.(type) {
	case cbor.Map:
		m := map[string]any{}
		for k, x := range v {
			m[k] = fromCBOR(x)
		}
		return m
	case cbor.List:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = fromCBOR(x)
		}
		return list
	case cbor.String:
		return string(v)
	case cbor.Slice:
		return []byte(v)
	case cbor.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10))
	case cbor.NegInt:
		return json.Number("-" + strconv.FormatUint(uint64(v), 10))
	case cbor.Float32:
		return json.Number(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case cbor.Float64:
		return json.Number(strconv.FormatFloat(float64(v), 'g', -1, 64))
	case cbor.Bool:
		return bool(v)
	case *cbor.Tag:
		return fromCBOR(v.Value) // tag 1: seconds since the epoch, as in JSON
	}
	return nil
}

// binder fills Go values. In the Query protocol, numbers and booleans are text, and lists are numbered
// maps. In the REST protocol, path and query parameters, which are text, accompany JSON members.
type binder struct {
	service                     string
	queryProtocol, restProtocol bool
}

var timeType, rawType = reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage]()

func (b binder) bindStruct(params map[string]any, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("Decode needs a pointer to a struct, not %T", into)
	}
	return b.fields("", params, v.Elem())
}

func (b binder) fields(path string, params map[string]any, v reflect.Value) error {
	fields := fieldsByName(v.Type())
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f, ok := fields[strings.ToLower(name)]
		if !ok {
			return Unsupported(b.service, "the parameter "+path+name)
		}
		if err := b.bind(path+name, params[name], v.FieldByIndex(f.index)); err != nil {
			return err
		}
	}
	return nil
}

func (b binder) bind(path string, param any, v reflect.Value) error {
	if param == nil {
		return nil
	}
	wrong := func(want string) error {
		return Errorf("ValidationException", "the parameter %s must be %s, not %s", path, want, describe(param))
	}
	switch {
	case v.Type() == timeType:
		t, ok := parseTime(param)
		if !ok {
			return wrong("a timestamp")
		}
		v.Set(reflect.ValueOf(t))
		return nil
	case v.Type() == rawType:
		raw, err := json.Marshal(param)
		if err != nil {
			return wrong("a document")
		}
		v.SetBytes(raw)
		return nil
	}
	text, isText := param.(string)
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return b.bind(path, param, v.Elem())
	case reflect.Interface:
		v.Set(reflect.ValueOf(param))
	case reflect.String:
		if !isText {
			return wrong("a string")
		}
		v.SetString(text)
	case reflect.Bool:
		value, ok := param.(bool)
		if isText && (b.queryProtocol || b.restProtocol) {
			parsed, err := strconv.ParseBool(text)
			value, ok = parsed, err == nil
		}
		if !ok {
			return wrong("a boolean")
		}
		v.SetBool(value)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		if number, ok := param.(json.Number); ok {
			text = number.String()
		} else if !isText || !b.queryProtocol && !b.restProtocol {
			return wrong("a number")
		}
		return b.bindNumber(text, v, wrong)
	case reflect.Slice:
		return b.bindSlice(path, param, v, wrong)
	case reflect.Map:
		return b.bindMap(path, param, v, wrong)
	case reflect.Struct:
		params, ok := param.(map[string]any)
		if isText && b.queryProtocol && text == "" {
			return nil
		}
		if !ok {
			return wrong("a structure")
		}
		return b.fields(path+".", params, v)
	default:
		return fmt.Errorf("the field for %s has the type %s, which no protocol has", path, v.Type())
	}
	return nil
}

func (b binder) bindNumber(text string, v reflect.Value, wrong func(string) error) error {
	if v.Kind() == reflect.Float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return wrong("a number")
		}
		v.SetFloat(f)
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		// An integer in JSON may be 1e3 or 1.0.
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return wrong("an integer")
		}
		n = int64(f)
	}
	if v.OverflowInt(n) {
		return wrong("an integer that fits")
	}
	v.SetInt(n)
	return nil
}

func (b binder) bindSlice(path string, param any, v reflect.Value, wrong func(string) error) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		switch p := param.(type) {
		case []byte:
			v.SetBytes(p)
			return nil
		case string:
			decoded, err := base64.StdEncoding.DecodeString(p)
			if err != nil {
				return wrong("base64")
			}
			v.SetBytes(decoded)
			return nil
		}
		return wrong("bytes")
	}
	var list []any
	switch p := param.(type) {
	case []any:
		list = p
	case string:
		switch {
		case b.queryProtocol && p == "": // an empty list of the Query protocol
		case b.restProtocol: // a query parameter that occurs once
			list = []any{p}
		default:
			return wrong("a list")
		}
	case map[string]any:
		if !b.queryProtocol {
			return wrong("a list")
		}
		if member, ok := p["member"].(map[string]any); ok && len(p) == 1 {
			p = member
		}
		var ok bool
		if list, ok = listOfNumbered(p); !ok {
			return wrong("a list")
		}
	default:
		return wrong("a list")
	}
	slice := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, p := range list {
		if err := b.bind(fmt.Sprintf("%s[%d]", path, i), p, slice.Index(i)); err != nil {
			return err
		}
	}
	v.Set(slice)
	return nil
}

// listOfNumbered decodes {"1": a, "2": b}. AWS uses the numbers only as an order.
func listOfNumbered(m map[string]any) ([]any, bool) {
	numbers := make([]int, 0, len(m))
	for k := range m {
		n, err := strconv.Atoi(k)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	list := make([]any, len(numbers))
	for i, n := range numbers {
		list[i] = m[strconv.Itoa(n)]
	}
	return list, true
}

func (b binder) bindMap(path string, param any, v reflect.Value, wrong func(string) error) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("the field for %s has the type %s, which no protocol has", path, v.Type())
	}
	m, ok := param.(map[string]any)
	if !ok {
		if text, isText := param.(string); isText && b.queryProtocol && text == "" {
			return nil
		}
		return wrong("a map")
	}
	if b.queryProtocol && len(m) > 0 {
		entries, wrapped := m["entry"].(map[string]any)
		if !wrapped {
			entries = m // flat
		}
		list, ok := listOfNumbered(entries)
		if !ok {
			return wrong("a map")
		}
		m = map[string]any{}
		for _, e := range list {
			key, value, ok := keyAndValue(e)
			if !ok {
				return wrong("a map of entries with key and value")
			}
			m[key] = value
		}
	}
	out := reflect.MakeMapWithSize(v.Type(), len(m))
	for k, p := range m {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := b.bind(path+"."+k, p, value); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(k).Convert(v.Type().Key()), value)
	}
	v.Set(out)
	return nil
}

// keyAndValue reads an entry of a map of the Query protocol: key and value, or Name or Key and Value as in SQS.
func keyAndValue(entry any) (key string, value any, ok bool) {
	pair, _ := entry.(map[string]any)
	for _, name := range []string{"key", "Name", "Key"} {
		if key, ok = pair[name].(string); ok {
			break
		}
	}
	if value = pair["value"]; value == nil {
		value = pair["Value"]
	}
	return key, value, ok
}

func parseTime(param any) (time.Time, bool) {
	switch p := param.(type) {
	case json.Number:
		f, err := p.Float64()
		if err != nil {
			return time.Time{}, false
		}
		seconds, fraction := math.Modf(f)
		return time.Unix(int64(seconds), int64(math.Round(fraction*1e6))*1e3).UTC(), true
	case string:
		if f, err := strconv.ParseFloat(p, 64); err == nil {
			return parseTime(json.Number(strconv.FormatFloat(f, 'f', -1, 64)))
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05", "2006-01-02"} {
			if t, err := time.Parse(layout, p); err == nil {
				return t.UTC(), true
			}
		}
	}
	return time.Time{}, false
}

func describe(param any) string {
	switch p := param.(type) {
	case string:
		return fmt.Sprintf("%q", p)
	case map[string]any:
		return "a structure"
	case []any:
		return "a list"
	case []byte:
		return "bytes"
	}
	return fmt.Sprint(param)
}
