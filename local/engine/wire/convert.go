package wire

// Conversion of results without a protocol: a client in the same process gets a result as it would decode it.

import (
	"reflect"
	"strings"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
)

// ResultSink is an http.ResponseWriter of a client in the same process.
type ResultSink interface {
	// Accept takes a result that would otherwise be encoded in the protocol. It returns false if it must be encoded.
	Accept(result any, format Protocol) bool
}

// ResultAs returns a result as the SDK would decode it from the protocol, where as is a pointer to the SDK's struct. The
// returned value shares no mutable data with the result. It returns false if a member of the result is missing in the
// struct or has another type there.
func ResultAs(result any, format Protocol, as reflect.Type) (any, bool) {
	tag, ok := map[Protocol]string{Query: "xml", JSON10: "json", JSON11: "json", RESTJSON: "json"}[format]
	if !ok || as.Kind() != reflect.Pointer || as.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	to := reflect.New(as.Elem())
	from := reflect.ValueOf(result)
	for from.IsValid() && from.Kind() == reflect.Pointer {
		from = from.Elem()
	}
	if from.IsValid() {
		if from.Kind() != reflect.Struct {
			return nil, false
		}
		converter := structConverterOf(conversion{from.Type(), as.Elem(), tag})
		if converter == nil {
			return nil, false
		}
		converter(from, to.Elem())
	}
	return to.Interface(), true
}

// conversion is from one struct type to another. The tag names the members.
type conversion struct {
	from, to reflect.Type
	tag      string
}

// converter sets a value from another.
type converter func(from, to reflect.Value)

var converters sync.Map // converters of structs by conversion; nil if there is none

func structConverterOf(h conversion) converter {
	if cached, ok := converters.Load(h); ok {
		return cached.(converter)
	}
	c := structConverter(h)
	converters.Store(h, c)
	return c
}

// converterFor returns the converter from one type to another, or nil.
func converterFor(h conversion) converter {
	from, to := h.from, h.to
	switch {
	case from.Kind() == reflect.Pointer:
		inner := converterFor(conversion{from.Elem(), to, h.tag})
		if inner == nil || from.Elem().Kind() == reflect.Pointer {
			return nil
		}
		return func(from, to reflect.Value) { inner(from.Elem(), to) } // nil is not sent
	case to.Kind() == reflect.Pointer:
		inner := converterFor(conversion{from, to.Elem(), h.tag})
		if inner == nil {
			return nil
		}
		return func(from, to reflect.Value) {
			to.Set(reflect.New(to.Type().Elem()))
			inner(from, to.Elem())
		}
	case from == timeType && to == timeType:
		return timeConverter(h.tag)
	case from == rawType, from == timeType, to == timeType, from.Kind() == reflect.String && from.Name() == "Number":
		return nil
	}
	switch from.Kind() {
	case reflect.Struct:
		if to.Kind() == reflect.Struct {
			return structConverterOf(h)
		}
	case reflect.Slice:
		return listConverter(h)
	case reflect.Map:
		return mapConverter(h)
	case reflect.String:
		if to.Kind() == reflect.String {
			return func(from, to reflect.Value) { to.SetString(from.String()) }
		}
	case reflect.Bool:
		if to.Kind() == reflect.Bool {
			return func(from, to reflect.Value) { to.SetBool(from.Bool()) }
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if to.Kind() == reflect.Int32 || to.Kind() == reflect.Int64 {
			return func(from, to reflect.Value) { to.SetInt(from.Int()) }
		}
	}
	return nil
}

// timeConverter truncates to the millisecond, as protocols do.
func timeConverter(tag string) converter {
	if tag == "json" {
		return func(from, to reflect.Value) {
			to.Set(reflect.ValueOf(smithytime.ParseEpochSeconds(float64(from.Interface().(time.Time).UnixMilli()) / 1000)))
		}
	}
	return func(from, to reflect.Value) {
		to.Set(reflect.ValueOf(time.UnixMilli(from.Interface().(time.Time).UnixMilli()).UTC()))
	}
}

func structConverter(h conversion) converter {
	type member struct {
		fieldOf
		to        int
		converter converter
	}
	var members []member
	for _, f := range fieldsOf(h.from, h.tag) {
		found := false
		for i := range h.to.NumField() {
			to := h.to.Field(i)
			if !to.IsExported() || !strings.EqualFold(to.Name, f.name) {
				continue
			}
			m := member{f, i, converterFor(conversion{h.from.FieldByIndex(f.index).Type, to.Type, h.tag})}
			if m.converter == nil {
				return nil
			}
			members, found = append(members, m), true
		}
		if !found {
			return nil
		}
	}
	return func(from, to reflect.Value) {
		for i := range members {
			m := &members[i]
			value := from.FieldByIndex(m.index)
			if !m.omits(value) && !(m.flat && value.Len() == 0) {
				m.converter(value, to.Field(m.to))
			}
		}
	}
}

// listConverter also converts an empty list, because it is sent.
func listConverter(h conversion) converter {
	if h.to.Kind() != reflect.Slice || h.from.Elem().Kind() == reflect.Uint8 || h.from.Elem().Kind() == reflect.Pointer {
		return nil
	}
	inner := converterFor(conversion{h.from.Elem(), h.to.Elem(), h.tag})
	if inner == nil {
		return nil
	}
	return func(from, to reflect.Value) {
		n := from.Len()
		list := reflect.MakeSlice(to.Type(), n, n)
		for i := range n {
			inner(from.Index(i), list.Index(i))
		}
		to.Set(list)
	}
}

// mapConverter converts JSON objects. Other protocols encode maps in several ways.
func mapConverter(h conversion) converter {
	if h.tag != "json" || h.to.Kind() != reflect.Map || h.to.Key().Kind() != reflect.String || h.from.Elem().Kind() == reflect.Pointer {
		return nil
	}
	inner := converterFor(conversion{h.from.Elem(), h.to.Elem(), h.tag})
	if inner == nil {
		return nil
	}
	return func(from, to reflect.Value) {
		result := reflect.MakeMapWithSize(to.Type(), from.Len())
		for entries := from.MapRange(); entries.Next(); {
			value := reflect.New(to.Type().Elem()).Elem()
			inner(entries.Value(), value)
			result.SetMapIndex(entries.Key().Convert(to.Type().Key()), value)
		}
		to.Set(result)
	}
}
