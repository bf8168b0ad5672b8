package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/doctor"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// account is an account in memory. Each call may fail.
type account struct {
	calls []string
	err   map[string]error
	used  int
}

func (a *account) call(format string, args ...any) error {
	name := fmt.Sprintf(format, args...)
	a.calls = append(a.calls, name)
	return a.err[name]
}

func (a *account) Value(_ context.Context, region, service, code string) (int, bool, error) {
	if region != "eu-central-1" {
		service += " in " + region
	}
	return 5, code != "L-1194D53C", a.call("quota %s %s", service, code)
}

func (a *account) OIDCProviders(context.Context) (int, error) {
	return a.used, a.call("OIDC providers")
}

func (a *account) VPCs(context.Context) (int, error) { return a.used, a.call("VPCs") }

func (a *account) InternetGateways(context.Context) (int, error) { return a.used, a.call("gateways") }

func (a *account) Addresses(context.Context) (int, error) { return a.used, a.call("addresses") }

func (a *account) NATGateways(context.Context) (map[string]int, error) {
	return map[string]int{"b": 5}, a.call("NAT gateways")
}

func (a *account) InstanceTypes(context.Context, []string) (map[string]preflight.InstanceType, error) {
	return map[string]preflight.InstanceType{"m7i.large": {VCPUs: 2}}, a.call("types")
}

func (a *account) Running(context.Context) (map[string]int, error) {
	return map[string]int{"L-1216C47A": 4}, a.call("running")
}

func (a *account) Clusters(context.Context) (int, error) { return a.used, a.call("clusters") }

func (a *account) Images(_ context.Context, ids []string) (map[string]preflight.Image, error) {
	return map[string]preflight.Image{"ami-1": {ID: "ami-1", Architecture: "x86_64", State: "available"}}, a.call("images %v", ids)
}

func (a *account) Catalog(context.Context) ([]preflight.Version, error) {
	return []preflight.Version{{Version: "1.36", Status: "STANDARD_SUPPORT"}}, a.call("versions")
}

func (a *account) Compat(_ context.Context, addons []string) (upgrade.Compat, error) {
	return upgrade.Compat{"coredns": {{Version: "v1", Kubernetes: []string{"1.36"}}}}, a.call("add-ons %v", addons)
}

func (a *account) Find(_ context.Context, principal string) (string, error) {
	return principal, a.call("find %s", principal)
}

func (a *account) Roles(context.Context) (int, int, error) { return a.used, 1000, a.call("roles") }

func (a *account) Concurrency(context.Context) (int, int, error) {
	return 1000, 900, a.call("concurrency")
}

func (a *account) Zones(context.Context) (map[string]string, error) {
	return map[string]string{"a": "az1", "b": "az2"}, a.call("zones")
}

func (a *account) Subnets(_ context.Context, vpcs []string) (map[string]doctor.Subnet, error) {
	return map[string]doctor.Subnet{"s": {VPC: "vpc-1", Zone: "a", ZoneID: "az1"}}, a.call("subnets of %v", vpcs)
}

func (a *account) PublicSubnets(_ context.Context, subnets map[string]doctor.Subnet) (map[string]bool, error) {
	return map[string]bool{}, a.call("public subnets of %d", len(subnets))
}

func (a *account) collector() *Collector {
	return &Collector{
		Account: "111122223333", Region: "eu-central-1", Now: time.Now, Quotas: a, Networks: a, Capacity: a, EKS: a, Identities: a, Functions: a,
	}
}

const (
	admins  = "arn:aws:iam::111122223333:role/admins"
	foreign = "arn:aws:iam::444455556666:role/admins"
)

func demo() *api.Cluster {
	return &api.Cluster{Metadata: api.Metadata{Name: "demo"}, Spec: api.ClusterSpec{
		KubernetesVersion: "1.36", Addons: []api.Addon{{Name: "coredns", Version: "v1"}},
		ControlPlane: api.ControlPlane{Access: []api.AccessEntry{{PrincipalARN: admins}, {PrincipalARN: foreign}}},
		Network:      api.Network{Zones: []string{"a", "b"}, NATGateways: api.NATPerZone},
		Pools: []api.Pool{
			{Name: "x", InstanceTypes: []string{"m7i.large"}, MinSize: 1, MaxSize: 1, ImageID: "ami-1", Architecture: api.AMD64},
		},
	}}
}

// denial is AWS's answer to a call that is not allowed.
type denial struct{ code string }

func (d *denial) Error() string        { return "request 1: " + d.code }
func (d *denial) ErrorCode() string    { return d.code }
func (d *denial) ErrorMessage() string { return "you may not" }

func TestExamine(t *testing.T) {
	t.Run("reads each fact once, in a fixed order", func(t *testing.T) {
		a := &account{}
		_, err := a.collector().Examine(t.Context(), demo())
		require.NoError(t, err)
		require.Equal(t, []string{
			"types", "quota vpc L-F678F1CE", "VPCs", "quota vpc L-A4707A72", "gateways", "quota ec2 L-0263D0A3", "addresses",
			"quota vpc L-FE5A380F", "NAT gateways", "quota eks L-1194D53C", "clusters", "roles", "quota ec2 L-1216C47A",
			"running", "concurrency", "zones", "versions", "add-ons [coredns]", "images [ami-1]", "find " + admins,
		}, a.calls)
	})
	t.Run("compares them", func(t *testing.T) {
		found, err := (&account{used: 5}).collector().Examine(t.Context(), demo())
		require.NoError(t, err)
		levels := map[string]doctor.Level{}
		for _, f := range found {
			levels[f.Check+" "+f.Message] = f.Level
		}
		require.Equal(t, map[string]doctor.Level{
			"VPCQuota 5 of 5 VPCs are used; needed: 1":                                                                   doctor.Blocks,
			"GatewayQuota 5 of 5 internet gateways are used; needed: 1":                                                  doctor.Blocks,
			"AddressQuota 5 of 5 Elastic IP addresses are used; needed: 2":                                               doctor.Blocks,
			"NATGatewayQuota 0 of 5 NAT gateways in a are used; needed: 1":                                               doctor.OK,
			"NATGatewayQuota 5 of 5 NAT gateways in b are used; needed: 1":                                               doctor.Blocks,
			"ClusterQuota Service Quotas has no value for EKS clusters (L-1194D53C)":                                     doctor.Warning,
			"RoleQuota 5 of 1000 IAM roles are used; needed: 2":                                                          doctor.OK,
			"LambdaConcurrency 900 of 1000 concurrent executions of Lambda are not reserved; needed: 20":                 doctor.OK,
			"ZonesAccepted EKS accepts the zones of the networks":                                                        doctor.OK,
			"VersionOffered EKS offers the Kubernetes versions":                                                          doctor.OK,
			"AddonsCompatible EKS offers the add-ons in their versions":                                                  doctor.OK,
			"Images the images of the pools exist and fit":                                                               doctor.OK,
			"PrincipalsExist the principals of access entries exist; not checked, because they are in other accounts: 1": doctor.OK,
			"InstanceTypesExist the region has every instance type of the pools":                                         doctor.OK,
			"OnDemandQuota 4 of 5 vCPUs of on-demand instances are used; needed: 2":                                      doctor.Blocks,
		}, levels)
	})
	t.Run("reads quotas of IAM where they are", func(t *testing.T) {
		for region, want := range map[string]struct {
			calls []string
			level doctor.Level
		}{
			"eu-central-1":  {[]string{"quota iam in us-east-1 L-858F3967", "OIDC providers"}, doctor.Blocks},
			"us-gov-west-1": {[]string{"OIDC providers"}, doctor.Warning},
		} {
			a, cluster := &account{used: 5}, demo()
			cluster.Spec.ControlPlane.OIDCProvider = true
			collector := a.collector()
			collector.Region = region
			found, err := collector.Examine(t.Context(), cluster)
			require.NoError(t, err)
			require.Subset(t, a.calls, want.calls)
			require.Equal(t, region != "eu-central-1", !slices.Contains(a.calls, "quota iam in us-east-1 L-858F3967"))
			at := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Check == doctor.ProviderQuota })
			require.Equal(t, want.level, found[at].Level, found[at])
		}
	})
	t.Run("reads nothing that a cluster does not need", func(t *testing.T) {
		a, c := &account{}, demo()
		c.Spec.Network, c.Spec.Pools = api.Network{Existing: &api.ExistingNetwork{VPCID: "vpc-1"}}, nil
		_, err := a.collector().Examine(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, []string{
			"quota eks L-1194D53C", "clusters", "roles", "concurrency", "zones", "subnets of [vpc-1]", "versions", "add-ons [coredns]",
			"find " + admins,
		}, a.calls)
	})
	for _, call := range []string{
		"types", "quota vpc L-F678F1CE", "VPCs", "NAT gateways", "clusters", "roles", "running", "concurrency", "zones",
	} {
		t.Run("fails when AWS does not answer: "+call, func(t *testing.T) {
			a := &account{err: map[string]error{call: errors.New("throttled")}}
			c := a.collector()
			c.Lenient = true
			_, err := c.Examine(t.Context(), demo())
			require.ErrorIs(t, err, a.err[call])
		})
	}
}

func TestDeniedCalls(t *testing.T) {
	denied := func(call string) *account {
		return &account{err: map[string]error{call: fmt.Errorf("w: %w", &denial{"UnauthorizedOperation"})}}
	}
	t.Run("fail the examination of drover", func(t *testing.T) {
		a := denied("VPCs")
		_, err := a.collector().Examine(t.Context(), demo())
		require.ErrorIs(t, err, a.err["VPCs"])
	})
	for call, checks := range map[string][]string{
		"VPCs": {doctor.VPCQuota}, "quota vpc L-F678F1CE": {doctor.VPCQuota},
		"types": {doctor.InstanceTypesExist, doctor.OnDemandQuota, doctor.SpotQuota},
		"roles": {doctor.RoleQuota}, "concurrency": {doctor.LambdaConcurrency}, "zones": {doctor.ZonesAccepted},
		"versions": {doctor.VersionOffered}, "add-ons [coredns]": {doctor.AddonsCompatible}, "images [ami-1]": {doctor.Images},
		"find " + admins: {doctor.PrincipalsExist},
	} {
		t.Run("are warnings for a user: "+call, func(t *testing.T) {
			c := denied(call).collector()
			c.Lenient = true
			found, err := c.ExamineAll(t.Context(), []doctor.Cluster{{Resolved: demo()}})
			require.NoError(t, err)
			var warned []string
			for _, f := range found {
				if f.Message == "it could not be checked: you may not" {
					require.Equal(t, doctor.Warning, f.Level)
					warned = append(warned, f.Check)
				}
			}
			require.Equal(t, checks, warned)
		})
	}
}

func (a *account) Exists(context.Context, string) (bool, error) { return true, a.call("plan function") }

// parameters are those of an account whose CDK is bootstrapped.
type parameters struct{ *account }

func (p parameters) Value(_ context.Context, name string) (string, error) {
	return "21", p.call("parameter %s", name)
}

func TestDeployment(t *testing.T) {
	t.Run("is read for the command only", func(t *testing.T) {
		a := &account{}
		found, err := a.collector().Examine(t.Context(), demo())
		require.NoError(t, err)
		for _, f := range found {
			require.NotContains(t, []string{doctor.Bootstrap, doctor.ServiceLinkedRoles}, f.Check)
		}
	})
	const eks = "find arn:aws:iam::111122223333:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"
	t.Run("has a bootstrap and roles", func(t *testing.T) {
		a := &account{}
		c := a.collector()
		c.Parameters = parameters{a}
		found, err := c.ExamineAll(t.Context(), nil)
		require.NoError(t, err)
		require.Contains(t, found, doctor.Finding{Check: doctor.Bootstrap, Level: doctor.OK, Message: "the CDK is bootstrapped with version 21"})
		require.Contains(t, found, doctor.Finding{Check: doctor.ServiceLinkedRoles, Level: doctor.OK, Message: "the service-linked roles exist"})
		require.Contains(t, a.calls, eks)
	})
	for call, check := range map[string]string{
		"parameter /cdk-bootstrap/hnb659fds/version": doctor.Bootstrap, "plan function": doctor.Bootstrap, eks: doctor.ServiceLinkedRoles,
	} {
		t.Run("that may not be read is a warning: "+call, func(t *testing.T) {
			a := &account{err: map[string]error{call: &denial{"AccessDenied"}}}
			c := a.collector()
			c.Parameters, c.Lenient = parameters{a}, true
			found, err := c.ExamineAll(t.Context(), nil)
			require.NoError(t, err)
			require.Contains(t, found, doctor.Finding{Check: check, Level: doctor.Warning, Message: "it could not be checked: you may not",
				Fix: "allow the call, or check it yourself"})
		})
	}
}
