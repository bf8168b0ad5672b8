package pool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutdated(t *testing.T) {
	current := Instance{ID: "i", State: InService, TemplateVersion: "2", Type: "m7i.large", Zone: "a"}
	with := func(change func(*Instance)) Instance { i := current; change(&i); return i }
	for name, c := range map[string]struct {
		instance Instance
		outdated bool
	}{
		"current":                      {current, false},
		"another template version":     {with(func(i *Instance) { i.TemplateVersion = "1" }), true},
		"a deleted template version":   {with(func(i *Instance) { i.TemplateVersion = "" }), true},
		"another type":                 {with(func(i *Instance) { i.Type = "m6i.large" }), true},
		"another zone":                 {with(func(i *Instance) { i.Zone = "c" }), true},
		"another version, launching":   {with(func(i *Instance) { i.State, i.TemplateVersion = PendingWait, "1" }), true},
		"another version, terminating": {with(func(i *Instance) { i.State, i.TemplateVersion = TerminatingWait, "1" }), false},
	} {
		g := Group{TemplateVersion: "2", Types: []string{"m7i.large"}, Zones: []string{"a", "b"}, Instances: []Instance{c.instance}}
		require.Equal(t, c.outdated, len(g.ToRefresh()) == 1, name)
	}
	require.Empty(t, Group{
		TemplateVersion: "2", Instances: []Instance{current},
	}.ToRefresh(), "the template says which types, and no zones are known")
	require.Len(t, Group{Instances: []Instance{current}}.ToRefresh(), 1, "the group's template version is unknown")
}
