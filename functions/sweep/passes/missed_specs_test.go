package passes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestSweepAdmitsSpecs(t *testing.T) {
	at := noon.Add(-time.Hour)
	spec := func(cluster string, modified time.Time) store.Entry {
		return store.Entry{Key: names.ClusterSpec(cluster), Modified: modified}
	}
	document := func(cluster string, modified time.Time) store.Entry {
		return store.Entry{Key: names.Status(cluster), Modified: modified}
	}
	for name, test := range map[string]struct {
		specs, statuses []store.Entry
		observed        string
		failing         map[string]error
		want            []string
	}{
		"that no status is about": {specs: []store.Entry{spec("a", at)}, want: []string{"admit a"}},
		"not while they are new":  {specs: []store.Entry{spec("a", noon)}},
		"not when a status is newer": {
			specs: []store.Entry{spec("a", at)}, statuses: []store.Entry{document("a", at.Add(time.Second))},
		},
		"not when a status is about them": {
			specs: []store.Entry{spec("a", at)}, statuses: []store.Entry{document("a", at)}, observed: "v1",
		},
		"when a status of then is of another": {
			specs: []store.Entry{spec("a", at)}, statuses: []store.Entry{document("a", at)}, observed: "v0", want: []string{"admit a"},
		},
		"not when that status is not read": {
			specs: []store.Entry{spec("a", at)}, statuses: []store.Entry{document("a", at)}, observed: "v0",
			failing: map[string]error{"status": errThrottled},
		},
		"not what is no cluster's": {specs: []store.Entry{{Key: names.ClusterSpecs + "readme.txt", Modified: at}}},
		"each, whatever fails for another": {
			specs: []store.Entry{spec("a", at), spec("b", at)}, failing: map[string]error{"admit a": errThrottled},
			want: []string{"admit a", "admit b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: status.Status{ObservedVersion: test.observed}, Failing: test.failing}
			h := depsOf(s)
			h.State = sweeptest.ListedState{State: sweeptest.State{Account: s}, Listed: sweeptest.Listed{names.Statuses: test.statuses}}
			h.Specs, h.Admit, h.EventGrace = sweeptest.Specs{
				Listed: sweeptest.Listed{names.ClusterSpecs: test.specs}, Version: "v1",
			}, s, 5*time.Minute
			err := h.missedSpecs().Run(t.Context())
			require.Equal(t, test.failing != nil, err != nil)
			require.Equal(t, test.want, s.Calls)
		})
	}
}
