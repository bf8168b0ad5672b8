package render

// Which fields of a spec change which stacks. The test changes each field alone. It fails for a new field that reaches no template, or
// the wrong one.

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// changes lists the stacks that a field changes: the first match for its path. nil is none.
var changes = []struct {
	path   string
	stacks []string
}{
	{`^metadata\.name$`, []string{
		names.Network, names.ControlPlane, names.Addons, names.Identities, names.Capabilities, "pool-workers", "pool-batch", names.NodeAddons,
	}},
	{`^(apiVersion|kind|metadata\..*|spec\.release\.name|spec\.paused|spec\.fleet\..*|spec\.upgrade\..*|spec\.poolDefaults)$`, nil},
	{`^spec\.kubernetesVersion$`, []string{names.ControlPlane}},
	// Each gateway of the full cluster has an address.
	{`^spec\.network\.(natAddresses\(key\)|zones\[2\]|natGateways)$`, []string{"refused"}},
	// The first two zones are those of a pool.
	{`^spec\.network\.zones\[[01]\]$`, []string{"refused"}},
	// Nodes with a proxy reach the ranges of the network without it.
	{`^spec\.network\.(cidr|secondaryCIDRs\[\d\]|endpoints\[\d\])$`, []string{names.Network, "pool-workers"}},
	{`^spec\.network\.`, []string{names.Network}},
	{`^spec\.controlPlane\.serviceCIDR$`, []string{names.ControlPlane, "pool-workers", "pool-batch"}},
	{`^spec\.controlPlane\.zonalShift$`, []string{names.ControlPlane, "pool-workers", "pool-batch"}},
	{`^spec\.controlPlane\.`, []string{names.ControlPlane}},
	{`^spec\.pools\[0\]\.name$`, []string{"pool-workers", "pool-workersx"}},
	{`^spec\.pools\[1\]\.name$`, []string{"pool-batch", "pool-batchx"}},
	// The time and order of replacements are not part of a node's configuration: see plan.RollAt and plan.Plan.
	{`^spec\.pools\[\d\]\.(rollAt|update\.order)$`, nil},
	{`^spec\.pools\[0\]\.`, []string{"pool-workers"}},
	// Bottlerocket has settings for known fields only.
	{`^spec\.pools\[1\]\.kubelet\(key\)`, []string{"refused"}},
	{`^spec\.pools\[1\]\.`, []string{"pool-batch"}},
	{`^spec\.addons\[0\]\.name$`, []string{names.Addons, names.NodeAddons}},
	{`^spec\.addons\[1\]\.name$`, []string{names.Addons, names.NodeAddons}},
	// Without the pod identity agent, the CNI gets its permissions from the nodes. Other tests check that.
	{`^spec\.addons\[2\]\.name$`, []string{"refused"}},
	{`^spec\.addons\[\d\]\.podIdentities\[\d\]\.policies`, []string{"refused"}},
	{`^spec\.addons\[[012]\]\.`, []string{names.Addons}},
	{`^spec\.addons\[[3-9]\]\.`, []string{names.NodeAddons}},
	// One of the pools states another value.
	{`^spec\.tags\.cost-center$`, []string{
		names.Network, names.ControlPlane, names.Addons, names.Identities, names.Capabilities, "pool-batch", names.NodeAddons,
	}},
	{`^spec\.tags`, []string{
		names.Network, names.ControlPlane, names.Addons, names.Identities, names.Capabilities, "pool-workers", "pool-batch", names.NodeAddons,
	}},
	// An identity has one of these.
	{`^spec\.podIdentities\[([123]\]\.roleARN|[01]\]\.preset)$`, []string{"refused"}},
	{`^spec\.podIdentities\[`, []string{names.Identities}},
	// Only Argo CD has a configuration.
	{`^spec\.capabilities\[(0\]\.type|1\]\.argoCD)$`, []string{"refused"}},
	{`^spec\.capabilities\[`, []string{names.Capabilities}},
	{`^spec\.templateVersion$`, []string{"refused"}},
	{`^spec\.deletionProtection$`, []string{names.Network, names.ControlPlane}},
}

// others are other values for fields with a grammar, by path.
var others = map[string]any{
	"spec.pools[0].update.strategy":        api.RollingUpdate,
	"spec.pools[1].update.strategy":        api.InstanceRefresh,
	"spec.pools[0].update.maxUnavailable":  api.Amount("2"),
	"spec.pools[1].update.maxUnavailable":  api.Amount("2"),
	"spec.pools[0].update.maxSurge":        api.Amount("2"),
	"spec.pools[1].update.maxSurge":        api.Amount("2"),
	"spec.pools[0].update.pauseTime":       "3m",
	"spec.pools[1].update.pauseTime":       "3m",
	"spec.network.cidr":                    "10.1.0.0/16",
	"spec.network.secondaryCIDRs[0]":       "100.66.0.0/16",
	"spec.network.secondaryCIDRs[1]":       "100.66.0.0/16",
	"spec.pools[0].zones[0]":               "eu-central-1c",
	"spec.pools[0].zones[1]":               "eu-central-1c",
	"spec.network.zones[2]":                "eu-central-1d",
	"spec.network.natGateways":             api.NATSingle,
	"spec.controlPlane.settings.nodePorts": "30000-31001",
	"spec.controlPlane.supportType":        api.SupportStandard,
	"spec.controlPlane.serviceCIDR":        "172.22.0.0/16",
	"spec.pools[1].image.family":           api.AL2023,
	"spec.pools[0].drain.timeout":          "3h",
	"spec.pools[0].drain.podGracePeriod":   "11m",
	"spec.pools[0].drain.loadBalancerWait": "91s",
	"spec.pools[1].drain.timeout":          "3h",
	"spec.pools[1].drain.podGracePeriod":   "11m",
	"spec.pools[1].drain.loadBalancerWait": "91s",
	"spec.pools[0].caBundle":               rootCertificate + rootCertificate,
	"spec.pools[1].caBundle":               rootCertificate + rootCertificate,
	"spec.podIdentities[2].preset":         api.PresetLoadBalancerController,
	"spec.podIdentities[3].preset":         api.PresetClusterAutoscaler,
	"spec.pools[0].files[0].mode":          "0600",
	"spec.pools[0].files[1].mode":          "0600",
}

func TestFieldsChangeTheirStacks(t *testing.T) {
	before := map[string]Stack{}
	for _, stack := range render(t, resolve(t, fullCluster())).Stacks {
		before[stack.Name] = stack
	}
	for i := range leaves(resolve(t, fullCluster()).Resolved) {
		in := resolve(t, fullCluster())
		field := leaves(in.Resolved)[i]
		t.Run(field.path, func(t *testing.T) {
			at := slices.IndexFunc(changes, func(c struct {
				path   string
				stacks []string
			}) bool {
				return regexp.MustCompile(c.path).MatchString(field.path)
			})
			require.GreaterOrEqual(t, at, 0, "list the stacks that the field changes")
			field.set(another(t, field))
			out, err := Render(in)
			if slices.Equal(changes[at].stacks, []string{"refused"}) {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			var changed []string
			for _, stack := range out.Stacks {
				if !reflect.DeepEqual(stack, before[stack.Name]) {
					changed = append(changed, stack.Name)
				}
			}
			for name := range before {
				if !slices.ContainsFunc(out.Stacks, func(s Stack) bool { return s.Name == name }) {
					changed = append(changed, name)
				}
			}
			require.ElementsMatch(t, changes[at].stacks, changed)
			for _, name := range changed {
				if strings.HasSuffix(field.path, ".maxSize") || strings.Contains(field.path, ".update.max") ||
					strings.Contains(field.path, "].zones[") {
					require.Equal(t, string(before[name].Template), string(templateOf(out, name)), "the field is a parameter")
					continue
				}
				// Only the template decides whether nodes are replaced, not tags and parameters.
				if strings.HasPrefix(name, names.PoolPrefix) {
					require.NotEqual(t, string(before[name].Template), string(templateOf(out, name)))
				}
			}
		})
	}
}

func templateOf(out *Output, name string) []byte {
	for _, stack := range out.Stacks {
		if stack.Name == name {
			return stack.Template
		}
	}
	return nil
}

// another returns another value for a field.
func another(t *testing.T, field leaf) reflect.Value {
	v := field.get()
	if other, ok := others[field.path]; ok {
		return reflect.ValueOf(other)
	}
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(v.String() + "x").Convert(v.Type())
	case reflect.Int:
		return reflect.ValueOf(int(v.Int()) + 1)
	case reflect.Bool:
		return reflect.ValueOf(!v.Bool())
	case reflect.Float64:
		return reflect.ValueOf(v.Float() + 1)
	case reflect.Pointer:
		switch v.Type().Elem().Kind() {
		case reflect.Bool:
			other := v.IsNil() || !v.Elem().Bool()
			return reflect.ValueOf(&other)
		case reflect.Struct:
			require.True(t, v.IsNil())
			if v.Type() == reflect.TypeFor[*api.ExistingNetwork]() {
				t.Skip("another network has no stack at all: see TestAnExistingNetworkHasNoStack")
			}
			return reflect.New(v.Type().Elem())
		}
	}
	require.Fail(t, fmt.Sprintf("no other value for a %s", v.Type()))
	return v
}

// The full cluster must have every field, or the test above misses some.
func TestFullClusterHasEveryField(t *testing.T) {
	set := map[string]bool{}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				field := v.Type().Field(i)
				key := field.Name
				if path != "" {
					key = path + "." + field.Name
				}
				if _, ok := set[key]; !ok {
					set[key] = false
				}
				set[key] = set[key] || !v.Field(i).IsZero()
				walk(key, v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		}
	}
	walk("", reflect.ValueOf(*fullCluster()))
	// A network of its own excludes an existing one, and subnets of it.
	delete(set, "Spec.ControlPlane.Subnets")
	// A paused cluster renders like others.
	delete(set, "Spec.Network.Existing")
	delete(set, "Spec.Pools.Subnets")
	delete(set, "Spec.Paused")
	// A resolved spec has the defaults in its pools.
	delete(set, "Spec.PoolDefaults")
	for field, isSet := range set {
		require.True(t, isSet, field)
	}
}
