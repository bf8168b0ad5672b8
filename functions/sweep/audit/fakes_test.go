package audit

import (
	"context"
	"time"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/store"
)

// auditOf returns an audit of an account.
func auditOf(a *sweeptest.Account) Audit {
	sweeptest.Quiet()
	machine := sweeptest.Machine{Account: a}
	return Audit{
		State: sweeptest.State{Account: a}, Executions: sweeptest.Executions{Account: a}, Stacks: sweeptest.Stacks{Account: a},
		DrainNode: machine, Upgrade: machine, Now: func() time.Time { return noon },
	}
}

type noGroups struct {
	Groups
	err error
}

func (g noGroups) All(context.Context) ([]pool.Group, error) { return nil, g.err }

// auditOfAgenda returns an audit of an account in which work is due. The clusters have specs.
func auditOfAgenda(a sweeptest.Agenda, specs ...string) Audit {
	h := auditOf(a.Account)
	h.State, h.Snapshot, h.Groups = a, a.Account, noGroups{}
	var entries []store.Entry
	for _, cluster := range specs {
		entries = append(entries, store.Entry{Key: "clusters/" + cluster + ".yaml", Modified: noon.Add(-time.Hour)})
	}
	h.Specs = sweeptest.Specs{Listed: sweeptest.Listed{"clusters/": entries}}
	return h
}

func due(cluster string, ago time.Duration) store.Due {
	return store.Due{Cluster: cluster, At: noon.Add(-ago)}
}
