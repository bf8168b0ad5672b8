package wire

// Handing over: who is in the same process may have a result as a client reads it, and nobody has to write and read it.

import (
	"reflect"
	"strings"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
)

// Taker is an http.ResponseWriter of somebody in the same process.
type Taker interface {
	// Take a result that would be written in that protocol; false when it has to be.
	Take(result any, format Protocol) bool
}

// Handed is a result as the SDK reads it into a struct to which as points, once it was written in that protocol. It
// shares nothing that could change. It is false for results that say anything that the struct has no member for, or
// another type.
func Handed(result any, format Protocol, as reflect.Type) (any, bool) {
	tag, known := map[Protocol]string{Query: "xml", JSON10: "json", JSON11: "json", RESTJSON: "json"}[format]
	if !known || as.Kind() != reflect.Pointer || as.Elem().Kind() != reflect.Struct {
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
		hand := handOf(handing{from.Type(), as.Elem(), tag})
		if hand == nil {
			return nil, false
		}
		hand(from, to.Elem())
	}
	return to.Interface(), true
}

// handing is from one type to another, of which the members have the names of a tag.
type handing struct {
	from, to reflect.Type
	tag      string
}

// hand sets a value as another says.
type hand func(from, to reflect.Value)

var hands sync.Map // of handings of structs; nil is one that cannot be

func handOf(h handing) hand {
	if known, ok := hands.Load(h); ok {
		return known.(hand)
	}
	made := handStruct(h)
	hands.Store(h, made)
	return made
}

// between is how a value of a type becomes one of another, nil when it cannot.
func between(h handing) hand {
	from, to := h.from, h.to
	switch {
	case from.Kind() == reflect.Pointer:
		inner := between(handing{from.Elem(), to, h.tag})
		if inner == nil || from.Elem().Kind() == reflect.Pointer {
			return nil
		}
		return func(from, to reflect.Value) { inner(from.Elem(), to) } // nil is not sent
	case to.Kind() == reflect.Pointer:
		inner := between(handing{from, to.Elem(), h.tag})
		if inner == nil {
			return nil
		}
		return func(from, to reflect.Value) {
			to.Set(reflect.New(to.Type().Elem()))
			inner(from, to.Elem())
		}
	case from == timeType && to == timeType:
		return handTime(h.tag)
	case from == rawType, from == timeType, to == timeType, from.Kind() == reflect.String && from.Name() == "Number":
		return nil
	}
	switch from.Kind() {
	case reflect.Struct:
		if to.Kind() == reflect.Struct {
			return handOf(h)
		}
	case reflect.Slice:
		return handList(h)
	case reflect.Map:
		return handMap(h)
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

// handTime is to the millisecond, as it is written.
func handTime(tag string) hand {
	if tag == "json" {
		return func(from, to reflect.Value) {
			to.Set(reflect.ValueOf(smithytime.ParseEpochSeconds(float64(from.Interface().(time.Time).UnixMilli()) / 1000)))
		}
	}
	return func(from, to reflect.Value) {
		to.Set(reflect.ValueOf(time.UnixMilli(from.Interface().(time.Time).UnixMilli()).UTC()))
	}
}

func handStruct(h handing) hand {
	type member struct {
		fieldOf
		to   int
		hand hand
	}
	var members []member
	for _, f := range fieldsOf(h.from, h.tag) {
		known := false
		for i := range h.to.NumField() {
			to := h.to.Field(i)
			if !to.IsExported() || !strings.EqualFold(to.Name, f.name) {
				continue
			}
			m := member{f, i, between(handing{h.from.FieldByIndex(f.index).Type, to.Type, h.tag})}
			if m.hand == nil {
				return nil
			}
			members, known = append(members, m), true
		}
		if !known {
			return nil
		}
	}
	return func(from, to reflect.Value) {
		for i := range members {
			m := &members[i]
			value := from.FieldByIndex(m.index)
			if !m.omits(value) && !(m.flat && value.Len() == 0) {
				m.hand(value, to.Field(m.to))
			}
		}
	}
}

// handList makes a list also of an empty one: it is sent.
func handList(h handing) hand {
	if h.to.Kind() != reflect.Slice || h.from.Elem().Kind() == reflect.Uint8 || h.from.Elem().Kind() == reflect.Pointer {
		return nil
	}
	inner := between(handing{h.from.Elem(), h.to.Elem(), h.tag})
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

// handMap is of objects in JSON. Other protocols have them in many ways.
func handMap(h handing) hand {
	if h.tag != "json" || h.to.Kind() != reflect.Map || h.to.Key().Kind() != reflect.String || h.from.Elem().Kind() == reflect.Pointer {
		return nil
	}
	inner := between(handing{h.from.Elem(), h.to.Elem(), h.tag})
	if inner == nil {
		return nil
	}
	return func(from, to reflect.Value) {
		made := reflect.MakeMapWithSize(to.Type(), from.Len())
		for entries := from.MapRange(); entries.Next(); {
			value := reflect.New(to.Type().Elem()).Elem()
			inner(entries.Value(), value)
			made.SetMapIndex(entries.Key().Convert(to.Type().Key()), value)
		}
		to.Set(made)
	}
}
