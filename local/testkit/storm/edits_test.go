package storm

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Each edit is a valid spec, and the plan knows its effect on the nodes of a pool.
func TestEffectsOfEdits(t *testing.T) {
	const inPlace, replaces, none = status.InPlace, status.ReplacesNodes, status.Effect("")
	edits := []struct {
		name   string
		edit   func(*edits)
		effect status.Effect
	}{
		{"third zone", func(e *edits) { e.thirdZone = true }, inPlace},
		{"defaults", func(e *edits) { e.defaults++ }, inPlace},
		{"log days", func(e *edits) { e.logDays = 30 }, none},
		{"tags", func(e *edits) { e.tags++ }, inPlace},
		{"monitored", func(e *edits) { e.monitored = true }, inPlace},
		{"hops", func(e *edits) { e.hops = 2 }, replaces},
		{"eviction", func(e *edits) { e.eviction = 200 }, replaces},
		{"volume", func(e *edits) { e.volume = 10 }, replaces},
		{"proxied", func(e *edits) { e.proxied = true }, replaces},
		{"trusting", func(e *edits) { e.trusting = true }, replaces},
		{"bottlerocket", func(e *edits) { e.bottlerocket = true }, replaces},
		{"one zone", func(e *edits) { e.oneZone = true }, replaces},
	}
	p, want, effects := quiet(), map[string]status.Effect{}, map[string]status.Effect{}
	p.acts = p.acts[:1]
	spec, last := *p.acts[0].spec, "create"
	for i, e := range edits {
		e.edit(&spec.edits)
		edited := spec
		want[e.name] = e.effect
		p.acts = append(p.acts, act{at: time.Duration(i+1) * time.Hour, cluster: "c0", what: e.name, spec: &edited})
		p.last["c0"] = &edited
	}
	p.breakAtBegin = func(w *world) {
		instead(w, "plan", func(ctx context.Context, _ aws.Config, payload []byte, next awslambda.Handler) ([]byte, error) {
			answer, err := next.Invoke(ctx, payload)
			for _, a := range p.acts {
				if a.spec == w.desired["c0"] {
					last = a.what
				}
			}
			for _, change := range w.Status("c0").Plan {
				if change.Stack == names.PoolStack("a") && last != "create" {
					effects[last] = change.Effect
				}
			}
			return answer, err
		})
	}
	o := run(t, 1, p, false)
	require.Empty(t, o.Violations, strings.Join(o.Story, "\n"))
	maps.DeleteFunc(want, func(_ string, effect status.Effect) bool { return effect == none })
	require.Equal(t, want, effects)
	require.NotZero(t, o.Checks[14])
}
