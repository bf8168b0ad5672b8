package asl

// The functions that Step Functions adds to JSONata, and replacements for those of gnata that differ from JSONata.
// https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html#jsonata-functions-provided-by-sfn

import (
	"context"
	"crypto/md5"  // #nosec G501 -- an algorithm that $hash offers
	"crypto/sha1" // #nosec G505 -- likewise
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/recolabs/gnata"
)

// baseEnvironment has all functions. Each evaluation clones it, so that evaluations do not share variables.
var baseEnvironment = gnata.NewCustomEnv(map[string]gnata.CustomFunc{
	"partition": partition,
	"range":     numberRange,
	"hash":      hashOf,
	"random":    random,
	"uuid":      func([]any, any) (any, error) { return uuid.NewString(), nil },
	"parse":     parseJSON,
	"eval": func([]any, any) (any, error) {
		return nil, fmt.Errorf("$eval is not part of the JSONata of Step Functions")
	},
})

// jsonataFunctions are the functions of JSONata 2.0.6. gnata has more, which AWS rejects.
// https://docs.jsonata.org/2.0.0/string-functions and its sibling pages
var jsonataFunctions = strings.Fields(`sum count max min average string substring substringBefore substringAfter lowercase
	uppercase length trim pad match contains replace split join formatNumber formatBase formatInteger parseInteger number floor
	ceil round abs sqrt power random boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse
	each error assert type sort shuffle distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent
	decodeUrl eval toMillis fromMillis clone now millis`)

// corrections make gnata behave like JSONata: $filter unwraps a single result, $match names the index, $now is in
// milliseconds. $distinct remains gnata's, which unwraps a single distinct value. JSONata does so for values collected
// by a path, but not for an array from the input.
var corrections = map[string]string{
	"filter": `function($a, $f) { ($r := $gnata_filter($a, $f); $count($r) = 1 ? $r[0] : $r) }`,
	"match": `function($s, $p, $l) { $map($gnata_match($s, $p, $l), function($m) { {"match": $m.match, "index": $m.start, ` +
		`"groups": $m.groups} }) }`,
	"now":   `function($p, $z) { $fromMillis($millis(), $p, $z) }`,
	"clone": `function($x) { $x }`,
}

func init() {
	own := slices.Concat(jsonataFunctions, []string{"partition", "range", "hash", "random", "uuid", "parse"})
	var foreign []string
	baseEnvironment.Range(func(name string, _ any) {
		if !slices.Contains(own, name) {
			foreign = append(foreign, name)
		}
	})
	for _, name := range foreign {
		baseEnvironment.Bind(name, nil)
	}
	for name, lambda := range corrections {
		original, _ := baseEnvironment.Lookup(name)
		baseEnvironment.Bind("gnata_"+name, original)
		compiled, err := gnata.Compile(lambda)
		if err != nil {
			panic(err)
		}
		f, err := compiled.EvalWithCustomFuncs(context.Background(), nil, baseEnvironment)
		if err != nil {
			panic(err)
		}
		baseEnvironment.Bind(name, f)
	}
}

// partition splits an array into arrays of at most size elements.
func partition(args []any, _ any) (any, error) {
	if len(args) != 2 || args[0] == nil {
		return nil, argumentError("partition", "an array and a size", args)
	}
	array, ok := args[0].([]any)
	if !ok {
		array = []any{args[0]}
	}
	size, ok := integer(args[1])
	if !ok || size < 1 {
		return nil, argumentError("partition", "an array and a positive integer", args)
	}
	parts := []any{}
	for len(array) > size {
		parts = append(parts, array[:size:size])
		array = array[size:]
	}
	if len(array) > 0 {
		parts = append(parts, array)
	}
	return parts, nil
}

// maxRange limits the result of $range, as States.ArrayRange does.
const maxRange = 1000

// numberRange returns the integers from first to last, both included, by step.
func numberRange(args []any, _ any) (any, error) {
	if len(args) != 3 {
		return nil, argumentError("range", "first, last and step", args)
	}
	first, ok1 := integer(args[0])
	last, ok2 := integer(args[1])
	step, ok3 := integer(args[2])
	if !ok1 || !ok2 || !ok3 || step == 0 {
		return nil, argumentError("range", "three integers, the last not zero", args)
	}
	list := []any{}
	for n := first; step > 0 && n <= last || step < 0 && n >= last; n += step {
		if len(list) == maxRange {
			return nil, fmt.Errorf("$range makes at most %d numbers", maxRange)
		}
		list = append(list, float64(n))
	}
	return list, nil
}

var algorithms = map[string]func() hash.Hash{
	"MD5": md5.New, "SHA-1": sha1.New, "SHA-256": sha256.New, "SHA-384": sha512.New384, "SHA-512": sha512.New,
}

// hashOf returns the hexadecimal hash of a string.
func hashOf(args []any, _ any) (any, error) {
	if len(args) != 2 {
		return nil, argumentError("hash", "a string and an algorithm", args)
	}
	data, ok1 := args[0].(string)
	name, ok2 := args[1].(string)
	algorithm, ok3 := algorithms[name]
	if !ok1 || !ok2 || !ok3 {
		return nil, argumentError("hash", "a string and one of MD5, SHA-1, SHA-256, SHA-384, SHA-512", args)
	}
	h := algorithm()
	h.Write([]byte(data))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// random returns a number from 0 up to 1, the same for the same seed.
func random(args []any, _ any) (any, error) {
	if len(args) == 0 {
		return rand.Float64(), nil // #nosec G404 -- no secret
	}
	seed, ok := integer(args[0])
	if !ok || len(args) > 1 {
		return nil, argumentError("random", "at most a seed, an integer", args)
	}
	return rand.New(rand.NewPCG(uint64(seed), 0)).Float64(), nil // #nosec G404 G115 -- no secret; any bits do
}

// parseJSON returns the value of a JSON text.
func parseJSON(args []any, _ any) (any, error) {
	if len(args) != 1 {
		return nil, argumentError("parse", "a string", args)
	}
	if args[0] == nil {
		return nil, nil
	}
	text, ok := args[0].(string)
	if !ok || !json.Valid([]byte(text)) {
		return nil, argumentError("parse", "a string that is JSON", args)
	}
	return gnata.DecodeJSON(json.RawMessage(text))
}

func argumentError(function, want string, args []any) error {
	return fmt.Errorf("$%s takes %s, not %v", function, want, args)
}

func integer(v any) (int, bool) {
	var f float64
	switch n := v.(type) {
	case float64:
		f = n
	case json.Number:
		var err error
		if f, err = n.Float64(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return int(f), f == float64(int(f))
}
