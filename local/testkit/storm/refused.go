package storm

// What people ask for that there is no way to: specs that cannot be used, and upgrades that cannot be made. Clusters stay as they are, and
// people mend what they wrote.

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// flaw is what makes a spec one that cannot be used. The zero value is none.
type flaw struct {
	// line is one more of the spec; window is what spec.upgrade has as its, and release what it names instead of the one that is meant.
	line, window, release string
}

func (w *wish) broken() bool { return w.flaw != flaw{} }

// unknown is a release that there is not.
const unknown = "r99-0"

// flaws that are refused as a spec is uploaded.
var flaws = map[string][]flaw{
	"break the spec": {{line: "  colour: red\n"}},
	"cron that AWS refuses": {
		{window: `{cron: "0 22 * * 1", duration: 2h}`}, {
			window: `{cron: "0 22 * * 1 *", duration: 2h}`,
		}, {window: `{cron: "0 25 * * ? *", duration: 2h}`},
	},
	"shut window for ever": {{window: `{cron: "0 22 31 2 ? *", duration: 2h}`}, {window: `{cron: "0 22 * * ? 1999", duration: 2h}`}},
}

func someFlaw(r *rand.Rand, kind string) flaw { return flaws[kind][r.IntN(len(flaws[kind]))] }

// fields of spec.upgrade with the flaw in them.
func (f flaw) fields(all []string) []string {
	if f.window == "" {
		return all
	}
	all = slices.DeleteFunc(all, func(field string) bool { return strings.HasPrefix(field, "window: ") })
	return append(all, "window: "+f.window)
}
