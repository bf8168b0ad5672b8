package resource

// Decoding of resolved properties to Go structs, as strictly as CloudFormation validates them with resource schemas: an
// unknown key or a wrong type is an error with its path. A string with a number or boolean is accepted for it, because
// parameters and intrinsic functions return strings.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Tag is an element of a resource's Tags property.
type Tag struct{ Key, Value string }

// Decode fills the struct to which into points. Its fields have the names of the properties.
func Decode(properties map[string]any, into any) error {
	return decode("#", properties, reflect.ValueOf(into).Elem())
}

func decode(path string, value any, into reflect.Value) error {
	wrong := func(expected string) error {
		return fmt.Errorf("%s: expected type: %s, found: %s", path, expected, typeName(value))
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return decode(path, value, into.Elem())
	case reflect.Interface:
		if value != nil {
			into.Set(reflect.ValueOf(value))
		}
		return nil
	case reflect.String:
		switch v := value.(type) {
		case string:
			into.SetString(v)
		case bool:
			into.SetString(strconv.FormatBool(v))
		case float64:
			into.SetString(strconv.FormatFloat(v, 'f', -1, 64))
		case int:
			into.SetString(strconv.Itoa(v))
		default:
			return wrong("String")
		}
	case reflect.Bool:
		switch v := value.(type) {
		case bool:
			into.SetBool(v)
		case string:
			if v != "true" && v != "false" {
				return wrong("Boolean")
			}
			into.SetBool(v == "true")
		default:
			return wrong("Boolean")
		}
	case reflect.Int:
		switch v := value.(type) {
		case int:
			into.SetInt(int64(v))
		case float64:
			if v != math.Trunc(v) {
				return wrong("Integer")
			}
			into.SetInt(int64(v))
		case string:
			n, err := strconv.Atoi(v)
			if err != nil {
				return wrong("Integer")
			}
			into.SetInt(int64(n))
		default:
			return wrong("Integer")
		}
	case reflect.Slice:
		items, ok := value.([]any)
		if !ok {
			return wrong("JSONArray")
		}
		into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
		for i, item := range items {
			if err := decode(fmt.Sprintf("%s/%d", path, i), item, into.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		m, ok := value.(map[string]any)
		if !ok {
			return wrong("JSONObject")
		}
		into.Set(reflect.ValueOf(m))
	case reflect.Struct:
		m, ok := value.(map[string]any)
		if !ok {
			return wrong("JSONObject")
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			field := into.FieldByName(key)
			if !field.IsValid() {
				return fmt.Errorf("%s: extraneous key [%s] is not permitted", path, key)
			}
			if err := decode(path+"/"+key, m[key], field); err != nil {
				return err
			}
		}
	default:
		panic("resource: cannot decode into " + into.Type().String())
	}
	return nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "Null"
	case string:
		return "String"
	case bool:
		return "Boolean"
	case float64, int:
		return "Number"
	case []any:
		return "JSONArray"
	default:
		return "JSONObject"
	}
}
