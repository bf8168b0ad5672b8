package audit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// launching is Auto Scaling that says why a group got no instance.
type launching struct {
	Groups
	why   string
	err   error
	asked []string
}

func (l *launching) LaunchFailureReason(_ context.Context, group string, _, _ time.Time) (string, error) {
	l.asked = append(l.asked, group)
	return l.why, l.err
}

func TestAuditFindsMissingInstances(t *testing.T) {
	in := func(states ...string) (all []pool.Instance) {
		for _, state := range states {
			all = append(all, pool.Instance{State: state})
		}
		return all
	}
	for name, test := range map[string]struct {
		stack, status string
		instances     []pool.Instance
		why           string
		err           error
		asks          bool
		want          string
	}{
		"that get no instances": {
			stack: "pool-a", status: "UPDATE_COMPLETE", instances: in(pool.InService), why: "no capacity", asks: true,
			want: "pool a has 1 of 2 instances",
		},
		"whose instances leave": {
			stack: "pool-a", status: "UPDATE_COMPLETE", instances: in(pool.InService, pool.TerminatingWait), why: "no capacity", asks: true,
			want: "pool a has 1 of 2 instances",
		},
		"not those that are full": {
			stack: "pool-a", status: "UPDATE_COMPLETE", instances: in(pool.InService, pool.PendingWait), why: "no capacity",
		},
		"not those that change":     {stack: "pool-a", status: "UPDATE_IN_PROGRESS", instances: in(pool.InService), why: "no capacity"},
		"not other stacks":          {stack: names.Addons, status: "UPDATE_COMPLETE", instances: in(pool.InService), why: "no capacity"},
		"not those that soon start": {stack: "pool-a", status: "UPDATE_COMPLETE", instances: in(pool.InService), asks: true},
		"fails":                     {stack: "pool-a", status: "UPDATE_COMPLETE", instances: in(pool.InService), err: errThrottled, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := (&auditFixture{}).run(), &launching{why: test.why, err: test.err}
			r.Groups = l
			r.stacks = map[string]map[string]stack.Deployed{demo: {test.stack: {Status: test.status}}}
			for _, name := range []string{"a", "", names.Addons} {
				r.groups[names.Group(demo, name)] = pool.Group{Name: "g", Desired: 2, Instances: test.instances}
			}
			findings, err := r.missingInstances(t.Context(), demo)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.asks, len(l.asked) == 1)
			if test.want == "" {
				require.Empty(t, findings)
			} else {
				require.Len(t, findings, 1)
				require.Contains(t, findings[0], test.want)
			}
		})
	}
}
