package api

// Suggestions for unknown fields.

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// insteadOf returns the rest of the message about an unknown field: where a field of that name exists, a similar name, or the list of
// fields.
func (d *document) insteadOf(name string, fields []Rules) string {
	if places := fieldPlaces(reflect.TypeOf(d.object).Elem())[name]; len(places) > 0 && len(places) <= maxPlaces {
		return ": the field is " + strings.Join(places, " or ")
	}
	if suggestion := didYouMean(name, fields); suggestion != "" {
		return suggestion
	}
	var all []string
	for _, f := range fields {
		all = append(all, f.Name)
	}
	return ": the fields here are " + strings.Join(all, ", ")
}

// maxPlaces is how many places of a field are named. A name with more places, such as "name", gives no hint.
const maxPlaces = 2

// placesOf caches fieldPlaces by type.
var placesOf sync.Map

// fieldPlaces returns the places of each field below a type by its name, such as spec.pools[].minSize. Each call returns the same map.
func fieldPlaces(t reflect.Type) map[string][]string {
	if cached, ok := placesOf.Load(t); ok {
		return cached.(map[string][]string)
	}
	places := map[string][]string{}
	var collect func(t reflect.Type, path string)
	collect = func(t reflect.Type, path string) {
		switch t.Kind() {
		case reflect.Pointer:
			collect(t.Elem(), path)
		case reflect.Slice:
			collect(t.Elem(), path+"[]")
		case reflect.Struct:
			for i, f := range fieldsOf(t) {
				below := strings.TrimPrefix(path+"."+f.Name, ".")
				places[f.Name] = append(places[f.Name], below)
				if !f.Partial { // its fields have their places where they are required
					collect(t.Field(i).Type, below)
				}
			}
		}
	}
	collect(t, "")
	placesOf.Store(t, places)
	return places
}

// didYouMean suggests the field that an unknown one probably means: one that differs in at most two letters.
func didYouMean(name string, fields []Rules) string {
	best, distance := "", 3
	for _, f := range fields {
		if n := editDistance(strings.ToLower(name), strings.ToLower(f.Name)); n < distance && n < len(f.Name)/2 {
			best, distance = f.Name, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(`, did you mean "%s"?`, best)
}

// editDistance returns the number of letters to add, drop or replace to get from a to b.
func editDistance(a, b string) int {
	if len(a) > 100 {
		return len(a) // too long for a typing error
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
