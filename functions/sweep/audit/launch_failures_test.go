package audit

// What is recorded of pools that get no instances, of control planes that EKS moved, and of stacks whose events were lost.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// launching is Auto Scaling that says why a group got no instance.
type launching struct {
	Groups
	why   string
	err   error
	asked []string
}

func (l *launching) Refused(_ context.Context, group string, _, _ time.Time) (string, error) {
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
			"pool-a", "UPDATE_COMPLETE", in(pool.InService), "no capacity", nil, true, "pool a has 1 of 2 instances",
		},
		"whose instances leave": {
			"pool-a", "UPDATE_COMPLETE", in(pool.InService, pool.TerminatingWait), "no capacity", nil, true,
			"pool a has 1 of 2 instances",
		},
		"not those that are full": {
			"pool-a", "UPDATE_COMPLETE", in(pool.InService, pool.PendingWait), "no capacity", nil, false, "",
		},
		"not those that change":     {"pool-a", "UPDATE_IN_PROGRESS", in(pool.InService), "no capacity", nil, false, ""},
		"not other stacks":          {names.Addons, "UPDATE_COMPLETE", in(pool.InService), "no capacity", nil, false, ""},
		"not those that soon start": {"pool-a", "UPDATE_COMPLETE", in(pool.InService), "", nil, true, ""},
		"or fails":                  {"pool-a", "UPDATE_COMPLETE", in(pool.InService), "", errThrottled, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := (&audited{}).round(), &launching{why: test.why, err: test.err}
			r.Groups = l
			r.stacks = map[string]map[string]stack.Deployed{demo: {test.stack: {Status: test.status}}}
			for _, name := range []string{"a", "", names.Addons} {
				r.groups[names.Group(demo, name)] = pool.Group{Name: "g", Desired: 2, Instances: test.instances}
			}
			findings, err := drift{r}.missingInstances(t.Context(), demo)
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

// eksAnswers is what EKS says of a control plane.
type eksAnswers struct {
	is    preflight.ControlPlane
	err   error
	asked int
}

func (e *eksAnswers) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	e.asked++
	return e.is, e.err
}

// coded is an error of AWS.
type coded string

func (c coded) Error() string     { return string(c) }
func (c coded) ErrorCode() string { return string(c) }

func TestAuditComparesTheControlPlane(t *testing.T) {
	for name, test := range map[string]struct {
		deployed string
		eks      eksAnswers
		err      error
		want     []string
	}{
		"with its stack": {"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.36"}}, nil, nil},
		"that EKS moved": {
			"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.37"}}, nil, []string{"EKS runs Kubernetes 1.37"},
		},
		"that was deleted":             {"1.36", eksAnswers{err: coded("ResourceNotFoundException")}, nil, []string{"EKS has no cluster"}},
		"not when EKS does not answer": {"1.36", eksAnswers{err: errThrottled}, errThrottled, nil},
		"with its issues, each of them once": {
			"1.36", eksAnswers{is: preflight.ControlPlane{Version: "1.36", Issues: []string{"role", "key", "role"}}}, nil,
			[]string{"control plane: key", "control plane: role"},
		},
		"not when there is none": {"", eksAnswers{err: errThrottled}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := (&audited{}).round()
			r.EKS = &test.eks
			outputs := map[string]string{"KubernetesVersion": test.deployed}
			r.stacks = map[string]map[string]stack.Deployed{demo: {names.ControlPlane: {Status: "UPDATE_COMPLETE", Outputs: outputs}}}
			findings, err := drift{r}.controlPlaneDrift(t.Context(), demo)
			require.ErrorIs(t, err, test.err)
			require.Len(t, findings, len(test.want))
			for i, want := range test.want {
				require.Contains(t, findings[i], want)
			}
		})
	}
}

func TestAuditRecordsStatusesOfStacks(t *testing.T) {
	early, late := noon.Add(-time.Hour), noon.Add(time.Second)
	waits := &status.Waits{Message: "drains"}
	for name, test := range map[string]struct {
		recorded status.Stack
		listed   string
		during   func(*status.Status)
		want     status.Stack
		writes   bool
	}{
		"whose events were lost": {
			status.Stack{Status: "UPDATE_IN_PROGRESS", Reason: "before", Waits: waits}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_COMPLETE", Since: noon, ReportedAt: noon, Waits: waits}, true,
		},
		"that were deleted outside drover": {
			status.Stack{Status: "CREATE_COMPLETE"}, "", nil,
			status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, true,
		},
		"not as deleted outside drover when they were being deleted": {
			status.Stack{Status: "DELETE_IN_PROGRESS"}, "", nil, status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon}, true,
		},
		"as deleted outside drover when that began so": {
			status.Stack{Status: "DELETE_IN_PROGRESS", External: true}, "", nil,
			status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, true,
		},
		"not as external when they exist": {
			status.Stack{Status: "DELETE_IN_PROGRESS", External: true}, "DELETE_FAILED", nil,
			status.Stack{Status: "DELETE_FAILED", Since: noon, ReportedAt: noon}, true,
		},
		"not when they are right": {
			status.Stack{Status: "UPDATE_COMPLETE", Since: early}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_COMPLETE", Since: early}, false,
		},
		"not over a newer event": {
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late}, false,
		},
		"not over an event of the same second": {
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon}, false,
		},
		"not over an event that arrives first": {
			status.Stack{Status: "UPDATE_COMPLETE"}, "UPDATE_IN_PROGRESS",
			func(s *status.Status) {
				s.Stacks[0] = status.Stack{Name: names.Addons, Status: "UPDATE_FAILED", ReportedAt: late}
			},
			status.Stack{Status: "UPDATE_FAILED", ReportedAt: late}, true,
		},
		"not over a status that is written first": {
			status.Stack{Status: "UPDATE_COMPLETE"}, "UPDATE_IN_PROGRESS", func(s *status.Status) { s.UpdatedAt = late },
			status.Stack{Status: "UPDATE_COMPLETE"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.recorded.Name, test.want.Name = names.Addons, names.Addons
			read := &status.Status{Stacks: []status.Stack{test.recorded}}
			a := &audited{status: &status.Status{Stacks: []status.Stack{test.recorded}}, during: test.during}
			r := a.round()
			if test.listed != "" {
				r.stacks = map[string]map[string]stack.Deployed{demo: {names.Addons: {Status: test.listed}}}
			}
			require.NoError(t, drift{r}.syncStatuses(t.Context(), demo, read))
			require.Equal(t, test.want, a.status.Stacks[0])
			require.Equal(t, test.writes, len(a.calls) > 0)
		})
	}
}

func TestAuditRetriesAFailedCluster(t *testing.T) {
	again := []string{"start: it is time to try again 2026-11-26T12:00:00Z"}
	for name, test := range map[string]struct {
		execution string
		running   bool
		failing   map[string]error
		want      []string
	}{
		"whose execution is over":           {"x", false, nil, again},
		"without an execution":              {"", true, map[string]error{"running": errThrottled}, again},
		"not while its execution runs":      {"x", true, nil, nil},
		"not when its execution is unknown": {"x", false, map[string]error{"running": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &audited{running: test.running, failing: test.failing}
			err := repairs{a.round()}.retry(t.Context(), demo, &status.Status{Execution: test.execution})
			require.Equal(t, test.failing != nil && test.want == nil, err != nil)
			require.Equal(t, test.want, a.calls)
		})
	}
}
