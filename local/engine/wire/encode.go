package wire

// Results and errors, encoded for each protocol.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aws/smithy-go/encoding/cbor"
)

// send encodes everything before it writes, so that it can still send an error instead.
func (s *Service) send(w http.ResponseWriter, format Protocol, c *Call, result any) error {
	status := http.StatusOK
	header := http.Header{}
	if r, ok := result.(*Response); ok {
		if r.Status != 0 {
			status = r.Status
		}
		maps.Copy(header, r.Header)
		result = r.Body
		if r.Stream != nil {
			maps.Copy(w.Header(), header)
			w.Header().Set("X-Amzn-Requestid", c.RequestID)
			w.WriteHeader(status)
			r.Stream(flushingWriter{w, http.NewResponseController(w)})
			return nil
		}
	}
	if t, ok := w.(ResultSink); ok && status == http.StatusOK && len(header) == 0 && t.Accept(result, format) {
		w.Header().Set("X-Amzn-Requestid", c.RequestID)
		w.WriteHeader(status)
		return nil
	}
	var body []byte
	var err error
	contentType := ""
	x := encoders.Get().(*xmlEncoder)
	defer encoders.Put(x) // after its bytes are written
	switch raw := result.(type) {
	case []byte:
		body = raw
	case json.RawMessage:
		body = raw
	default:
		body, contentType, err = s.encode(x, format, c, result)
	}
	if err != nil {
		return err
	}
	if header.Get("Content-Type") == "" && contentType != "" {
		header.Set("Content-Type", contentType)
	}
	maps.Copy(w.Header(), header)
	w.Header().Set("X-Amzn-Requestid", c.RequestID)
	if format == CBOR {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client disconnected
	return nil
}

// flushingWriter sends each write to the client at once.
type flushingWriter struct {
	io.Writer
	controller *http.ResponseController
}

func (f flushingWriter) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.controller.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) { // a client in this process that reads the body at its end
		err = nil
	}
	return n, err
}

func (s *Service) encode(x *xmlEncoder, format Protocol, c *Call, result any) (body []byte, contentType string, err error) {
	switch format {
	case Query, EC2Query:
		x.Reset()
		x.ec2, x.err = format == EC2Query, nil
		x.raw(xml.Header)
		x.raw("<" + c.Action + `Response xmlns="` + s.namespace() + `">`)
		if format == EC2Query {
			x.element("requestId", c.RequestID)
			x.members(result)
		} else {
			// Empty results are sent too, because the clients of operations with a result expect one.
			x.raw("<" + c.Action + "Result>")
			if result != nil {
				x.members(result)
			}
			x.raw("</" + c.Action + "Result>")
			x.raw("<ResponseMetadata>")
			x.element("RequestId", c.RequestID)
			x.raw("</ResponseMetadata>")
		}
		x.raw("</" + c.Action + "Response>")
		return x.Bytes(), "text/xml", x.err
	case CBOR:
		tree, err := toTree(reflect.ValueOf(result))
		if err != nil {
			return nil, "", err
		}
		if tree == nil {
			tree = map[string]any{}
		}
		return cbor.Encode(toCBOR(tree)), "application/cbor", nil
	}
	tree, err := toTree(reflect.ValueOf(result))
	if err != nil {
		return nil, "", err
	}
	if tree == nil {
		if format == RESTJSON {
			return nil, "", nil
		}
		tree = map[string]any{}
	}
	body, err = json.Marshal(timesToSeconds(tree))
	return body, contentTypeOf(format), err
}

func contentTypeOf(format Protocol) string {
	switch format {
	case JSON10:
		return "application/x-amz-json-1.0"
	case JSON11:
		return "application/x-amz-json-1.1"
	case CBOR:
		return "application/cbor"
	case RESTJSON:
		return "application/json"
	}
	return "text/xml"
}

func (s *Service) namespace() string {
	return "http://" + s.Name + ".amazonaws.com/doc/" + s.Version + "/"
}

func (s *Service) sendError(w http.ResponseWriter, format Protocol, requestID string, e *Error) {
	fault := "Sender"
	if e.Status >= 500 {
		fault = "Receiver"
	}
	h := w.Header()
	h.Set("X-Amzn-Requestid", requestID)
	h.Set("Content-Type", contentTypeOf(format))
	var body []byte
	switch format {
	case Query:
		x := &xmlEncoder{}
		x.raw(`<ErrorResponse xmlns="` + s.namespace() + `"><Error>`)
		x.element("Type", fault)
		x.element("Code", e.Code)
		x.element("Message", e.Message)
		x.raw("</Error>")
		x.element("RequestId", requestID)
		x.raw("</ErrorResponse>")
		body = x.Bytes()
	case EC2Query:
		x := &xmlEncoder{}
		x.raw(xml.Header + "<Response><Errors><Error>")
		x.element("Code", e.Code)
		x.element("Message", e.Message)
		x.raw("</Error></Errors>")
		x.element("RequestID", requestID)
		x.raw("</Response>")
		body = x.Bytes()
	case CBOR:
		h.Set("Smithy-Protocol", "rpc-v2-cbor")
		h.Set("X-Amzn-Query-Error", e.Code+";"+fault)
		body = cbor.Encode(cbor.Map{"__type": cbor.String(e.Code), "message": cbor.String(e.Message)})
	default:
		members := map[string]string{"__type": e.Code, "message": e.Message}
		if format == RESTJSON {
			h.Set("X-Amzn-Errortype", e.Code)
			members = map[string]string{"message": e.Message, "Type": "User"}
			if e.Status >= 500 {
				members["Type"] = "Service"
			}
			if e.Reason != "" {
				members["Reason"] = e.Reason
			}
		} else {
			h.Set("X-Amzn-Query-Error", e.Code+";"+fault)
		}
		body, _ = json.Marshal(members) // strings can always be encoded
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body)
}

// omits reports whether a value is not sent: nil pointers, nil maps, zero times, and zero values of fields with
// omitempty.
func (f *fieldOf) omits(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return value.IsNil()
	case reflect.Slice:
		return f.omitEmpty && value.Len() == 0
	case reflect.Struct:
		if value.Type() == timeType && value.Interface().(time.Time).IsZero() {
			return true
		}
	}
	return f.omitEmpty && value.IsZero()
}

// toTree converts a result to maps, slices, strings, numbers, bools and times.
func toTree(v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	if v.Type() == timeType {
		return v.Interface(), nil
	}
	if v.Type() == rawType {
		var document any
		d := json.NewDecoder(bytes.NewReader(v.Bytes()))
		d.UseNumber()
		if err := d.Decode(&document); err != nil {
			return nil, fmt.Errorf("encoding a document: %w", err)
		}
		return document, nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return toTree(v.Elem())
	case reflect.Struct:
		m := map[string]any{}
		for _, f := range fieldsOf(v.Type(), "json") {
			value := v.FieldByIndex(f.index)
			if f.omits(value) {
				continue
			}
			x, err := toTree(value)
			if err != nil {
				return nil, err
			}
			m[f.name] = x
		}
		return m, nil
	case reflect.Map:
		m := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			x, err := toTree(it.Value())
			if err != nil {
				return nil, err
			}
			m[it.Key().String()] = x
		}
		return m, nil
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Bytes(), nil
		}
		list := make([]any, v.Len())
		for i := range list {
			x, err := toTree(v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = x
		}
		return list, nil
	case reflect.String:
		if n, ok := v.Interface().(json.Number); ok {
			return n, nil
		}
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	}
	return nil, fmt.Errorf("a result has the type %s, which no protocol has", v.Type())
}

// timesToSeconds converts times to JSON's form: seconds since the epoch, to the millisecond.
func timesToSeconds(tree any) any {
	switch t := tree.(type) {
	case time.Time:
		return json.Number(strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64))
	case map[string]any:
		for k, v := range t {
			t[k] = timesToSeconds(v)
		}
	case []any:
		for i, v := range t {
			t[i] = timesToSeconds(v)
		}
	}
	return tree
}

func toCBOR(tree any) cbor.Value {
	switch t := tree.(type) {
	case map[string]any:
		m := cbor.Map{}
		for k, v := range t {
			m[k] = toCBOR(v)
		}
		return m
	case []any:
		list := cbor.List{}
		for _, v := range t {
			list = append(list, toCBOR(v))
		}
		return list
	case time.Time:
		return &cbor.Tag{ID: 1, Value: cbor.Float64(float64(t.UnixMilli()) / 1000)}
	case string:
		return cbor.String(t)
	case []byte:
		return cbor.Slice(t)
	case bool:
		return cbor.Bool(t)
	case int64:
		if t < 0 {
			return cbor.NegInt(uint64(-t))
		}
		return cbor.Uint(uint64(t))
	case float64:
		return cbor.Float64(t)
	}
	return &cbor.Nil{}
}

// xmlEncoder writes the XML of the Query protocols:
//
//   - struct fields by their xml tag or name;
//   - lists as member (EC2: item) elements, or repeated with the option flat;
//   - maps as entry elements of key and value, or as repeated elements of Name and Value with the option flat.
type xmlEncoder struct {
	bytes.Buffer
	ec2 bool
	err error
}

// encoders are reused, because an account's answers often have the same size.
var encoders = sync.Pool{New: func() any { return &xmlEncoder{} }}

func (x *xmlEncoder) raw(s string) { x.WriteString(s) }

func (x *xmlEncoder) element(name, text string) {
	x.open(name)
	if plain(text) {
		x.raw(text)
	} else if err := xml.EscapeText(&x.Buffer, []byte(text)); err != nil && x.err == nil {
		x.err = err
	}
	x.end(name)
}

func (x *xmlEncoder) open(name string) {
	x.raw("<")
	x.raw(name)
	x.raw(">")
}

func (x *xmlEncoder) end(name string) {
	x.raw("</")
	x.raw(name)
	x.raw(">")
}

// plain reports whether a text needs no escapes in XML.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' {
			return false
		}
	}
	return true
}

func (x *xmlEncoder) members(result any) {
	v := reflect.ValueOf(result)
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return
	}
	if v.Kind() != reflect.Struct {
		x.err = fmt.Errorf("a result is of type %s, which is no structure", v.Type())
		return
	}
	x.structMembers(v)
}

func (x *xmlEncoder) structMembers(v reflect.Value) {
	for _, f := range fieldsOf(v.Type(), "xml") {
		value := v.FieldByIndex(f.index)
		if f.omits(value) {
			continue
		}
		name := f.name
		if x.ec2 && !f.named {
			name = lowerFirst(name)
		}
		switch {
		case f.flat && value.Kind() == reflect.Slice:
			for i := range value.Len() {
				x.value(name, value.Index(i))
			}
			continue
		case f.flat && value.Kind() == reflect.Map:
			x.entries(name, "Name", "Value", value)
			continue
		}
		x.value(name, value)
	}
}

func lowerFirst(s string) string {
	r := []rune(s)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

func (x *xmlEncoder) value(name string, v reflect.Value) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Type() == timeType {
		x.element(name, v.Interface().(time.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		x.element(name, v.String())
	case reflect.Bool:
		x.element(name, strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x.element(name, strconv.FormatInt(v.Int(), 10))
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); f == math.Trunc(f) && math.Abs(f) < 1e15 {
			x.element(name, strconv.FormatFloat(f, 'f', 1, 64))
		} else {
			x.element(name, strconv.FormatFloat(f, 'g', -1, 64))
		}
	case reflect.Struct:
		x.open(name)
		x.structMembers(v)
		x.end(name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			x.element(name, base64.StdEncoding.EncodeToString(v.Bytes()))
			return
		}
		item := "member"
		if x.ec2 {
			item = "item"
		}
		x.open(name)
		for i := range v.Len() {
			x.value(item, v.Index(i))
		}
		x.end(name)
	case reflect.Map:
		x.open(name)
		x.entries("entry", "key", "value", v)
		x.end(name)
	default:
		if x.err == nil {
			x.err = fmt.Errorf("a result has the type %s, which no protocol has", v.Type())
		}
	}
}

// entries writes a map in order, with an element for each entry.
func (x *xmlEncoder) entries(name, key, value string, v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		x.open(name)
		x.element(key, k.String())
		x.value(value, v.MapIndex(k))
		x.end(name)
	}
}
