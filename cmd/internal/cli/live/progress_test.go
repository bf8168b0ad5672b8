package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/pool"
)

func TestPoolProgress(t *testing.T) {
	in := func(state, version string) pool.Instance {
		return pool.Instance{ID: "i-" + state + version, State: state, TemplateVersion: version}
	}
	group := func(desired int, version string, instances ...pool.Instance) pool.Group {
		return pool.Group{Desired: desired, TemplateVersion: version, Instances: instances}
	}
	for name, c := range map[string]struct {
		group     pool.Group
		rollsBack bool
		changing  bool
		want      string
	}{
		"is empty when all nodes are in service": {group: group(2, "1", in("InService", "1"), in("InService", "1"))},
		"counts replaced nodes during a roll": {
			group: group(4, "2", in("InService", "2"), in("InService", "2"), in("InService", "1"), in("Terminating:Wait", "1"),
				in("Pending:Wait", "2")),
			want: "2 of 4 nodes replaced, 1 joining, 1 draining", changing: true,
		},
		"continues until the last drain ends": {
			group: group(2, "2", in("InService", "2"), in("InService", "2"), in("Terminating:Wait", "1")), want: "2 of 2 nodes replaced, 1 draining",
		},
		"takes the newest template during an instance refresh": {
			group: group(3, "1", in("InService", "2"), in("InService", "1"), in("InService", "1")), want: "1 of 3 nodes replaced", changing: true,
		},
		"takes the group's template during a rollback": {
			group: group(3, "9", in("InService", "10"), in("InService", "9"), in("InService", "9")), want: "2 of 3 nodes replaced", changing: true,
			rollsBack: true,
		},
		"names nodes that were not replaced": {
			group: group(2, "2", in("InService", "1"), in("InService", "2")), want: "1 node with an older template",
		},
		"counts missing nodes":            {group: group(3, "1", in("InService", "1")), want: "2 missing"},
		"takes a deleted template as old": {group: group(1, "3", in("InService", "")), want: "0 of 1 node replaced", changing: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, ProgressOf(c.group, nil, false, c.rollsBack).Words(c.changing))
		})
	}
	t.Run("counts nodes that are not Ready in Kubernetes", func(t *testing.T) {
		g := group(2, "1", in("InService", "1"), pool.Instance{ID: "i-2", State: "InService", TemplateVersion: "1"})
		p := ProgressOf(g, []pool.NodeHealth{{Instance: "i-InService1", Ready: true}, {Instance: "i-2"}}, true, false)
		require.Equal(t, 1, p.Ready)
		require.Equal(t, "1 not Ready", p.Words(false))
	})
}

func TestOperationWords(t *testing.T) {
	o := cloudformation.Operation{Done: 3, InProgress: []string{"A", "B", "C", "D", "E"}}
	require.Equal(t, "3 resources done, A, B, C, 2 more in progress", OperationWords("CREATE_IN_PROGRESS", o))
	require.Equal(t, "1 resource done", OperationWords("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", cloudformation.Operation{Done: 1}))
	require.Empty(t, OperationWords("UPDATE_COMPLETE", o))
}
