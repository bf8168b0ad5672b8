package storm

// Requests that drover cannot fulfill: invalid specs and impossible upgrades. Clusters keep their state, and users fix
// what they wrote.

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// flaw makes a spec invalid. The zero value is none.
type flaw struct {
	// line is an additional line of the spec, window the spec's upgrade window, release the spec's release.
	line, window, release string
}

func (w *wish) broken() bool { return w.flaw != flaw{} }

// unknownRelease is a release that does not exist.
const unknownRelease = "r99-0"

// flaws that are rejected at the upload.
var flaws = map[string][]flaw{
	"break the spec": {{line: "  color: red\n"}},
	"cron that AWS refuses": {
		{window: `{cron: "0 22 * * 1", duration: 2h}`}, {
			window: `{cron: "0 22 * * 1 *", duration: 2h}`,
		}, {window: `{cron: "0 25 * * ? *", duration: 2h}`},
	},
	"shut window for ever": {{window: `{cron: "0 22 31 2 ? *", duration: 2h}`}, {window: `{cron: "0 22 * * ? 1999", duration: 2h}`}},
}

func someFlaw(r *rand.Rand, kind string) flaw { return flaws[kind][r.IntN(len(flaws[kind]))] }

// fields returns the fields of spec.upgrade with the flaw.
func (f flaw) fields(all []string) []string {
	if f.window == "" {
		return all
	}
	all = slices.DeleteFunc(all, func(field string) bool { return strings.HasPrefix(field, "window: ") })
	return append(all, "window: "+f.window)
}
