package planner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

const privateSpec = specWithoutPools + "  controlPlane: {endpoint: {public: false}}\n"

// deployedCluster is a cluster whose planned changes are deployed.
type deployedCluster struct {
	*cluster
	stacks map[string]stack.Deployed
	put    map[string]string
	code   string
	// deleted reports that the relay was deleted outside drover. unknown is the error of looking for it. lookups are the functions looked for.
	deleted bool
	unknown error
	lookups []string
}

// functionsOf are the functions of a cluster's stack.
type functionsOf struct{ *deployedCluster }

func (f functionsOf) Exists(_ context.Context, function string) (bool, error) {
	f.lookups = append(f.lookups, function)
	return !f.deleted, f.unknown
}

func (d *deployedCluster) ListCluster(context.Context, string, []string) (map[string]stack.Deployed, error) {
	return d.stacks, nil
}

func (d *deployedCluster) Owners(context.Context, []string) (map[string]string, error) {
	return nil, nil
}

func (d *deployedCluster) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return nil, "", nil
}

func (d *deployedCluster) Rolls(context.Context, string) (map[string]time.Time, error) {
	return nil, nil
}

func (d *deployedCluster) AddDue(context.Context, string, time.Time) error { return nil }

func (*deployedCluster) Compat(context.Context, []string) (upgrade.Compat, error) { return nil, nil }

func (*deployedCluster) SettingBounds(context.Context, string, string) (*preflight.SettingBounds, error) {
	return &preflight.SettingBounds{}, nil
}

func (d *deployedCluster) Offered(context.Context) ([]string, error) { return []string{"1.36"}, nil }

func (d *deployedCluster) Exists(context.Context, string) (bool, error) {
	return len(d.stacks) > 0, nil
}

func (d *deployedCluster) Describe(context.Context, string) (pool.Group, bool, error) {
	return pool.Group{}, false, nil
}

func (d *deployedCluster) PutOnce(_ context.Context, key string, body []byte) error {
	d.put[key], d.objects[key] = string(body), string(body)
	return nil
}

// codeOf is the code of relays whose file has that content.
func codeOf(content string) render.RelayCode {
	return render.RelayCode{Architecture: "arm64", SHA256: names.SHA256([]byte(content))}
}

// plan plans with a version of drover whose relays have that code.
func (d *deployedCluster) plan(t *testing.T, code, spec string) Outcome {
	t.Helper()
	d.objects[names.ClusterSpec("demo")] = spec
	d.put = map[string]string{}
	p := d.planner()
	p.State, p.Stacks, p.Groups, p.EKS, p.Relay, p.Functions = d, d, d, d, codeOf(code), functionsOf{d}
	p.RelayFile = func() ([]byte, error) { return []byte(d.code), nil }
	d.code = code
	outcome, err := p.Plan(t.Context(), Request{Cluster: "demo"})
	require.NoError(t, err)
	_, err = p.Persist(t.Context(), &outcome)
	require.NoError(t, err)
	return outcome
}

// deploy deploys what was planned.
func (d *deployedCluster) deploy(o Outcome) {
	for _, change := range o.Plan.Changes {
		now := stack.Deployed{
			Name: change.Stack, Status: "CREATE_COMPLETE", Tags: change.Tags, TerminationProtection: change.Protected,
			Outputs: map[string]string{}, Parameters: map[string]string{},
		}
		for _, p := range change.Parameters {
			now.Parameters[p.Name] = p.Value
			if p.From != nil {
				now.Parameters[p.Name] = "out"
			}
		}
		switch change.Stack {
		case names.Network:
			now.Outputs = map[string]string{"PrivateSubnetIds": "out", "VpcId": "out"}
		case names.ControlPlane:
			now.Outputs = map[string]string{
				"KubernetesVersion": "1.36", "ClusterName": "out", "ClusterEndpoint": "out", "ClusterCertificateAuthority": "out",
			}
			if o.work.resolved.Spec.ControlPlane.Endpoint.NeedsRelay() {
				now.Outputs[stack.OutputRelay] = o.work.desired.Relay.String()
			}
		}
		d.stacks[change.Stack] = now
	}
}

func TestRelayCode(t *testing.T) {
	start := func(t *testing.T, spec string) *deployedCluster {
		t.Helper()
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		d.deploy(d.plan(t, "one", spec))
		return d
	}
	relayKeys := func(d *deployedCluster) (keys []string) {
		for key := range d.put {
			if strings.HasPrefix(key, names.RelayCodes) {
				keys = append(keys, key)
			}
		}
		return keys
	}

	t.Run("is written when a cluster first needs it", func(t *testing.T) {
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		o := d.plan(t, "one", privateSpec)
		require.Equal(t, "one", d.put[codeOf("one").Key()])
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Contains(t, d.put[change.TemplateKey], codeOf("one").Key())
	})

	t.Run("is not written for a public cluster", func(t *testing.T) {
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		d.plan(t, "one", specWithoutPools)
		require.Empty(t, relayKeys(d))
	})

	t.Run("stays when another drover is deployed", func(t *testing.T) {
		d := start(t, privateSpec)
		require.Empty(t, d.plan(t, "one", privateSpec).Plan.RelayOutdated)
		o := d.plan(t, "two", privateSpec)
		require.Empty(t, o.Plan.Changes)
		require.Len(t, o.Plan.RelayOutdated, 1)
		require.Contains(t, o.Plan.RelayOutdated[0], "the relay drover-demo-relay has the code of another version of drover")
		require.Empty(t, relayKeys(d))
	})

	t.Run("is updated when the control plane changes", func(t *testing.T) {
		d := start(t, privateSpec)
		o := d.plan(t, "two", privateSpec+"  tags: {team: a}\n")
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Contains(t, change.Reasons, status.Reason{
			Field: "relay.code", Old: codeOf("one").SHA256[:12], New: codeOf("two").SHA256[:12],
		})
		require.Contains(t, d.put[change.TemplateKey], codeOf("two").Key())
		require.Equal(t, []string{codeOf("two").Key()}, relayKeys(d))
		require.Empty(t, o.Plan.RelayOutdated)
		d.deploy(o)
		require.Empty(t, d.plan(t, "two", privateSpec+"  tags: {team: a}\n").Plan.Changes)
	})

	t.Run("stays when something of another stack changes", func(t *testing.T) {
		d := start(t, privateSpec)
		pools := privateSpec + "  pools: [{name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}]\n"
		o := d.plan(t, "two", pools)
		_, found := o.Plan.Find(names.ControlPlane)
		require.False(t, found)
		require.NotEmpty(t, o.Plan.Changes)
	})

	t.Run("stays when a repair needs no new template", func(t *testing.T) {
		d := start(t, privateSpec)
		control := d.stacks[names.ControlPlane]
		control.TerminationProtection = !control.TerminationProtection
		d.stacks[names.ControlPlane] = control
		o := d.plan(t, "two", privateSpec)
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Len(t, change.Reasons, 1)
		require.Contains(t, d.put[change.TemplateKey], codeOf("one").Key())
	})

	t.Run("comes with an endpoint that is no longer open", func(t *testing.T) {
		d := start(t, specWithoutPools)
		o := d.plan(t, "two", privateSpec)
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Equal(t, plan.Update, change.Operation)
		require.Contains(t, d.put[change.TemplateKey], codeOf("two").Key())
		d.deploy(o)
		o = d.plan(t, "two", specWithoutPools)
		change, found = o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.NotContains(t, d.put[change.TemplateKey], "AWS::Lambda::Function")
		require.Empty(t, relayKeys(d))
	})

	t.Run("is not looked for without a relay", func(t *testing.T) {
		d := start(t, specWithoutPools)
		d.plan(t, "one", privateSpec)
		require.Empty(t, d.lookups)
	})

	t.Run("is not blamed on the spec if drover has none", func(t *testing.T) {
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		d.plan(t, "one", privateSpec)
		p := d.planner()
		p.State, p.Stacks, p.Groups, p.EKS, p.Functions, p.Relay = d, d, d, d, functionsOf{d}, render.RelayCode{}
		_, err := p.Plan(t.Context(), Request{Cluster: "demo"})
		require.ErrorIs(t, err, render.ErrNoRelayCode)
	})

	t.Run("is not written if the file is another", func(t *testing.T) {
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		o := d.plan(t, "one", privateSpec)
		p := d.planner()
		p.State, p.Relay = d, codeOf("one")
		for _, file := range []func() ([]byte, error){
			func() ([]byte, error) { return []byte("two"), nil }, func() ([]byte, error) { return nil, errors.New("no such file") },
		} {
			p.RelayFile = file
			_, err := p.Persist(t.Context(), &o)
			require.ErrorContains(t, err, "the code of relays")
		}
	})
}

// CloudFormation may be unable to delete the security group during an update: see render.
func TestRelayOfAnEndpointThatBecomesOpen(t *testing.T) {
	const group = "AWS::EC2::SecurityGroup\n"
	d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
	d.deploy(d.plan(t, "one", privateSpec))
	open := func(more string) string {
		t.Helper()
		change, found := d.plan(t, "two", specWithoutPools+more).Plan.Find(names.ControlPlane)
		require.True(t, found)
		template := d.put[change.TemplateKey]
		require.NotContains(t, template, "AWS::Lambda::Function")
		require.NotContains(t, template, stack.OutputRelay+":")
		require.Contains(t, template, group)
		require.Contains(t, template, "RelayRole:")
		require.Contains(t, template, stack.OutputRelayGroup+":")
		return template
	}
	opened := open("")
	outputs := d.stacks[names.ControlPlane].Outputs
	delete(outputs, stack.OutputRelay)
	outputs[stack.OutputRelayGroup] = "sg-1"
	require.Equal(t, opened, open("  tags: {team: a}\n"), "the group stays")
	change, found := d.plan(t, "two", privateSpec).Plan.Find(names.ControlPlane)
	require.True(t, found)
	require.Empty(t, change.RepairKey)
	require.Contains(t, d.put[change.TemplateKey], "AWS::Lambda::Function")
	require.NotContains(t, d.put[change.TemplateKey], stack.OutputRelayGroup)
	delete(outputs, stack.OutputRelayGroup)
	change, found = d.plan(t, "two", specWithoutPools).Plan.Find(names.ControlPlane)
	require.True(t, found)
	require.NotContains(t, d.put[change.TemplateKey], group, "of a cluster that had no relay")
}

func TestDeletedRelay(t *testing.T) {
	start := func(t *testing.T) *deployedCluster {
		t.Helper()
		d := &deployedCluster{cluster: withSpec(t), stacks: map[string]stack.Deployed{}}
		d.deploy(d.plan(t, "one", privateSpec))
		d.deleted = true
		return d
	}
	reason := status.Reason{Field: plan.RelayFunction, Old: "absent", New: "present"}

	t.Run("is removed from the stack and added again", func(t *testing.T) {
		d := start(t)
		o := d.plan(t, "two", privateSpec)
		require.Equal(t, []string{"drover-demo-relay"}, d.lookups)
		require.Len(t, o.Plan.Changes, 1)
		change := o.Plan.Changes[0]
		require.Equal(t, names.ControlPlane, change.Stack)
		require.Equal(t, []status.Reason{reason}, change.Reasons)
		require.NotContains(t, d.put[change.RepairKey], "AWS::Lambda::Function")
		require.Contains(t, d.put[change.RepairKey], codeOf("one").String(), "the cluster still has a relay")
		require.Contains(t, d.put[change.TemplateKey], "AWS::Lambda::Function")
		require.Contains(t, d.put[change.TemplateKey], codeOf("one").Key(), "a repair restores what was deployed")
		require.Equal(t, d.stacks[names.ControlPlane].Tags[names.TagChecksum], change.Checksum)
	})

	t.Run("is added again after the first update of a repair", func(t *testing.T) {
		d := start(t)
		d.stacks[names.ControlPlane].Tags[names.TagChecksum] = names.ChecksumRepair
		o := d.plan(t, "one", privateSpec)
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Empty(t, change.RepairKey)
		require.Contains(t, d.put[change.TemplateKey], "AWS::Lambda::Function")
		require.Empty(t, d.lookups)
	})

	t.Run("is not looked for while the stack changes", func(t *testing.T) {
		d := start(t)
		control := d.stacks[names.ControlPlane]
		control.Status = "UPDATE_IN_PROGRESS"
		d.stacks[names.ControlPlane] = control
		d.plan(t, "one", privateSpec)
		require.Empty(t, d.lookups)
	})

	t.Run("is not recreated for an endpoint that becomes open", func(t *testing.T) {
		d := start(t)
		o := d.plan(t, "one", specWithoutPools)
		change, found := o.Plan.Find(names.ControlPlane)
		require.True(t, found)
		require.Empty(t, change.RepairKey)
		require.Empty(t, d.lookups)
	})

	t.Run("stops planning if Lambda does not say", func(t *testing.T) {
		d := start(t)
		d.unknown = errors.New("throttled")
		p := d.planner()
		p.State, p.Stacks, p.Groups, p.EKS, p.Relay, p.Functions = d, d, d, d, codeOf("one"), functionsOf{d}
		_, err := p.Plan(t.Context(), Request{Cluster: "demo"})
		require.ErrorIs(t, err, d.unknown)
	})
}
