package harness

// A cell whose settings allow specs to give roles and policies to pods.

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/names"
)

const (
	// WorkloadSettings are the settings of the cell with Options.Workloads: those of the tests of infra.
	WorkloadSettings = `{"workloadRoles":["arn:aws:iam::` + ID + `:role/workloads/*","arn:aws:iam::` + ID + `:role/capability-*"],` +
		`"workloadPolicies":["AmazonS3ReadOnlyAccess"],"workloadBoundary":"arn:aws:iam::` + ID + `:policy/workloads",` +
		`"identityCenter":"` + IdentityCenter + `"}`
	// IdentityCenter is the instance of IAM Identity Center that specs may name.
	IdentityCenter = "arn:aws:sso:::instance/ssoins-0123456789abcdef"
	// CapabilityRole is a role that specs may give to capabilities. OtherCapabilityRole is another one.
	CapabilityRole      = "arn:aws:iam::" + ID + ":role/capability-gitops"
	OtherCapabilityRole = "arn:aws:iam::" + ID + ":role/capability-other"
	// WorkloadRole is a role that specs may give to pods. It may get the objects of a bucket.
	WorkloadRole = "arn:aws:iam::" + ID + ":role/workloads/checkout"
	// OtherRole trusts pods, and the settings do not name it.
	OtherRole = "arn:aws:iam::" + ID + ":role/payroll"
	// WorkloadBucket is the bucket of WorkloadRole.
	WorkloadBucket = "orders"
)

// podTrust lets EKS Pod Identity assume a role. https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html
const podTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},` +
	`"Action":["sts:AssumeRole","sts:TagSession"]}]}`

// capabilityTrust lets EKS Capabilities assume a role. https://docs.aws.amazon.com/eks/latest/userguide/capability-role.html
const capabilityTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"capabilities.eks.amazonaws.com"},` +
	`"Action":["sts:AssumeRole","sts:TagSession"]}]}`

// addWorkloads adds what infra synthesizes for the settings, and what they name.
func (a *Account) addWorkloads(written *iam.Definitions) {
	a.t.Helper()
	const policy = names.Prefix + Region + "-cloudformation-workloads"
	written.Policies[policy] = a.golden("workloads.json")
	role := written.Roles[names.Role(Region, "cloudformation")]
	role.Managed = append(role.Managed, policy)
	written.Roles[names.Role(Region, "cloudformation")] = role
	// The boundary allows to read objects, in every bucket but drover's.
	written.Policies["workloads"] = json.RawMessage(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject",` +
		`"Resource":"arn:aws:s3:::` + WorkloadBucket + `/*"}]}`)
	for _, name := range []string{"capability-gitops", "capability-other"} {
		_, err := a.Identities.CreateRole(iam.Role{Name: name, TrustDocument: capabilityTrust})
		require.NoError(a.t, err)
	}
	for path, name := range map[string]string{"/workloads/": "checkout", "/": "payroll"} {
		_, err := a.Identities.CreateRole(iam.Role{Name: name, Path: path, TrustDocument: podTrust})
		require.NoError(a.t, err)
		require.NoError(a.t, a.Identities.PutRolePolicy(name, "orders", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",`+
			`"Action":"s3:GetObject","Resource":"arn:aws:s3:::`+WorkloadBucket+`/*"}]}`))
	}
}
