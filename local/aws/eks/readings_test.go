package eks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/kms"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
)

// allowing returns a policy that allows actions, each as "action resource" or "action resource service" for iam:PassRole.
func allowing(actions ...string) string {
	var statements []string
	for _, a := range actions {
		parts := strings.Fields(a)
		s := `{"Effect":"Allow","Action":"` + parts[0] + `","Resource":"` + parts[1] + `"`
		if len(parts) > 2 {
			s += `,"Condition":{"StringEquals":{"iam:PassedToService":"` + parts[2] + `"}}`
		}
		statements = append(statements, s+"}")
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

func TestEntryRoles(t *testing.T) {
	for name, c := range map[string]struct {
		other         bool
		kind, denied  string
		passed, cross bool
	}{
		"strict: a STANDARD entry needs PassRole":           {kind: standardEntry, denied: "iam:PassRole"},
		"strict: with it, it is created":                    {kind: standardEntry, passed: true},
		"strict: a role of another account is never passed": {kind: standardEntry, cross: true},
		"other: a STANDARD entry needs none":                {other: true, kind: standardEntry},
		"other: a node's entry needs PassRole":              {other: true, kind: linuxEntry, denied: "iam:PassRole"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 1e6)
			b.config.Readings = questions.Readings{questions.EntryRoles: c.other}
			b.cluster(t, "demo")
			principal := b.role(t, "principal", "ec2.amazonaws.com")
			actions := []string{"eks:CreateAccessEntry *"}
			if c.passed {
				actions = append(actions, "iam:PassRole "+principal+" ec2.amazonaws.com")
			}
			if c.cross {
				principal = "arn:aws:iam::999999999999:role/principal"
			}
			caller, _ := b.assume(t, "caller", allowing(actions...))
			_, err := b.CreateAccessEntry(t.Context(), caller, CreateAccessEntryInput{
				ClusterName: "demo", PrincipalArn: principal, Type: c.kind,
			})
			if c.denied != "" {
				require.ErrorContains(t, err, c.denied)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestAddonIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		other   bool
		allowed []string
		denied  map[string]bool
	}{
		"strict: each action needs the association too": {
			allowed: []string{"eks:CreateAddon cluster", "eks:UpdateAddon addon", "eks:DeleteAddon addon"},
			denied:  map[string]bool{"create": true, "update": true, "delete": true},
		},
		"strict: with the association they are allowed": {allowed: []string{
			"eks:CreateAddon cluster", "eks:UpdateAddon addon", "eks:DeleteAddon addon", "eks:CreateAddon podidentityassociation",
			"eks:UpdateAddon podidentityassociation", "eks:DeleteAddon podidentityassociation",
		}},
		"other: cluster and add-on are enough": {
			other: true, allowed: []string{"eks:CreateAddon cluster", "eks:UpdateAddon addon", "eks:DeleteAddon addon"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 1e6)
			b.config.Readings = questions.Readings{questions.AddonIdentities: c.other}
			b.cluster(t, "demo")
			pods := b.role(t, "pods", "pods.eks.amazonaws.com")
			actions := []string{"iam:GetRole " + pods, "iam:PassRole " + pods, "eks:CreatePodIdentityAssociation *"}
			for _, a := range c.allowed {
				actions = append(actions, strings.Replace(a, " ", " "+b.arn(""), 1)+"/*")
			}
			caller, _ := b.assume(t, "caller", allowing(actions...))
			create := CreateAddonInput{ClusterName: "demo", AddonName: "vpc-cni", PodIdentityAssociations: []AddonPodIdentity{
				{ServiceAccount: "aws-node", RoleArn: pods},
			}}
			check := func(what string, err error) {
				if c.denied[what] {
					require.ErrorContains(t, err, "podidentityassociation/demo/", what)
				} else {
					require.NoError(t, err, what)
				}
			}
			_, err := b.CreateAddon(t.Context(), caller, create)
			check("create", err)
			if c.denied["create"] {
				_, err = b.CreateAddon(t.Context(), b.admin, create)
				require.NoError(t, err)
			}
			b.awaitAddon(t, "demo", "vpc-cni")
			_, err = b.UpdateAddon(t.Context(), caller, UpdateAddonInput{
				AddonInput: AddonInput{"demo", "vpc-cni"}, PodIdentityAssociations: &create.PodIdentityAssociations,
			})
			check("update", err)
			b.awaitAddon(t, "demo", "vpc-cni")
			_, err = b.DeleteAddon(t.Context(), caller, DeleteAddonInput{AddonInput: AddonInput{"demo", "vpc-cni"}})
			check("delete", err)
		})
	}
}

// awaitAddon waits until an add-on does not change.
func (b *testbed) awaitAddon(t *testing.T, cluster, name string) {
	t.Helper()
	require.NoError(t, b.wait(t.Context(), func() (bool, error) {
		c, err := b.find(cluster)
		if err != nil {
			return false, err
		}
		return c.addons[name].Status == active, nil
	}))
}

// The grant of EKS on a cluster's key.
func TestKeyGrants(t *testing.T) {
	const condition = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["eks:CreateCluster","iam:PassRole",` +
		`"iam:CreateServiceLinkedRole","ec2:DescribeSubnets","kms:DescribeKey"],"Resource":"*"},` +
		`{"Effect":"Allow","Action":"kms:CreateGrant","Resource":"*",` +
		`"Condition":{"Bool":{"kms:GrantIsForAWSResource":"true"}}}]}`
	for name, c := range map[string]struct{ other, named, denied bool }{
		"strict: the condition of AWS resources denies it": {denied: true},
		"strict: a key policy that names the caller":       {named: true},
		"other: the condition is met":                      {other: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 1e6)
			keys := kms.New(b.identities, &clock.Clock{})
			keys.Readings = questions.Readings{questions.KeyGrants: c.other}
			b.config.Keys = keys
			caller, _ := b.assume(t, "caller", condition)
			properties := map[string]any{}
			if c.named {
				properties["KeyPolicy"] = map[string]any{"Version": "2012-10-17", "Statement": []any{
					map[string]any{"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": map[string]any{"AWS": testAccount}},
					map[string]any{
						"Effect": "Allow", "Action": "kms:CreateGrant", "Resource": "*", "Principal": map[string]any{"AWS": caller.RoleARN()},
					},
				}}
			}
			key, err := keys.Resources()["AWS::KMS::Key"].Create(t.Context(), resource.Request{Caller: b.admin, Properties: properties})
			require.NoError(t, err)
			in := b.input("demo")
			in.EncryptionConfig = []EncryptionConfig{{Resources: []string{"secrets"}}}
			in.EncryptionConfig[0].Provider.KeyArn = key.Attributes["Arn"].(string)
			_, err = b.CreateCluster(t.Context(), caller, in)
			if c.denied {
				require.ErrorContains(t, err, "kms:CreateGrant")
				return
			}
			require.NoError(t, err)
		})
	}
}
