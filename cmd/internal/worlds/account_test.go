package worlds

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/status"
)

// Each command on a new cluster, in order, in one account.
func TestCluster(t *testing.T) {
	needEmptyAccount(t)
	t.Run("doctor before drover is deployed", examineEmptyAccount)
	needAccount(t)
	const demo = "examples/clusters/demo.yaml"

	t.Run("status without clusters", func(t *testing.T) {
		require.Regexp(t, `^NAME +PHASE`, ok(t, "status"))
		require.JSONEq(t, "[]", ok(t, "status", "-o", "json"))
		require.Contains(t, fails(t, "status", "demo"), "cluster demo does not exist in this account and region: check its name, AWS_REGION and "+
			"your credentials; `drover status` lists the clusters, and `drover apply demo.yaml` creates one")
		require.Contains(t, fails(t, "status", "-o", "xml"), "must be json")
		require.Contains(t, fails(t, "status", "--watch"), "give its NAME")
	})
	t.Run("diff requires the release", func(t *testing.T) {
		message := fails(t, "diff", demo)
		require.Contains(t, message, "ReleaseUnusable")
		require.Contains(t, message, "1.36-1")
	})
	t.Run("apply does not upload an invalid spec", func(t *testing.T) {
		require.Contains(t, fails(t, "apply", clitest.Write(t, "demo.yaml", "kind: Cluster")), "demo.yaml:1")
		require.Contains(t, fails(t, "status", "demo"), "cluster demo does not exist")
	})
	t.Run("apply fails without the release", func(t *testing.T) {
		// It does not wait for an upload of the release.
		r := drover(t, "apply", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "1.36-1", "1.36-8")), "--watch")
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Stderr, "releases/1.36-8.yaml")
	})
	t.Run("apply uploads a release", func(t *testing.T) {
		require.Contains(t, ok(t, "apply", "examples/releases/1.36-1.yaml"), "uploaded release 1.36-1")
	})
	t.Run("apply checks a release", func(t *testing.T) {
		require.Contains(t, ok(t, "apply", "examples/releases/1.36-1.yaml", "--watch"), "\nrelease 1.36-1 can be used\n")
		bad := clitest.Write(t, "1.36-9.yaml", example(t, "releases/1.36-1.yaml", "1.36-1", "1.36-9", "ami-00000000000013601",
			"ami-0123456789abcdef0"))
		r := drover(t, "apply", bad, "--watch")
		require.Equal(t, 1, r.Code, r.Stdout)
		require.Contains(t, r.Stdout, "Images blocks: ")
		require.Contains(t, r.Stdout, "ami-0123456789abcdef0 for amd64 does not exist")
		require.Contains(t, r.Stderr, "drover: release 1.36-9 cannot be used")
		require.Regexp(t, `Images blocks: (.*\n)+release 1.36-9 cannot be used|its verdict is pending: drover apply .* --watch`,
			ok(t, "apply", bad))
	})
	t.Run("diff lists the stacks to create, in order", func(t *testing.T) {
		out := finds(t, "diff", clitest.Write(t, "other.yaml", example(t, "clusters/demo.yaml", "name: demo", "name: other")))
		require.Contains(t, out, "other would be created at release 1.36-1 (Kubernetes 1.36): 6 stacks would change")
		require.Contains(t, out, "Create drover-other-pool-workers\n  pool workers: nodes 2 (min 2, max 4), ")
		require.Less(t, strings.Index(out, "Create drover-other-network"), strings.Index(out, "Create drover-other-control-plane"))
		require.Less(t, strings.Index(out, "Create drover-other-control-plane"), strings.Index(out, "Create drover-other-pool-workers"))
	})
	t.Run("apply creates nothing while the account has no room", createWithoutRoom)
	t.Run("apply --watch prints events until the cluster is Ready", func(t *testing.T) {
		// The latency ensures that a stack still changes at the first read, a second after the upload, also on a slow machine.
		late, err := faults.Parse("latency=5s service=cloudformation action=CreateChangeSet stack=drover-demo-addons-on-nodes")
		require.NoError(t, err)
		rule, err := cloud.Faults.Add(time.Now(), late)
		require.NoError(t, err)
		out := ok(t, "apply", demo, "--watch")
		require.True(t, cloud.Faults.Remove(rule))
		require.Contains(t, out, "uploaded "+demo+" to s3://drover-specs-000000000000-us-east-1/clusters/demo.yaml")
		for _, line := range []string{"stack control-plane is CREATE_COMPLETE", "demo is Ready"} {
			require.Contains(t, out, line)
		}
		require.Regexp(t, `will create \S+: spec\.`, out)
		require.NotContains(t, out, "\x1b", "no terminal, no control sequences")
	})
	t.Run("completion offers existing names", func(t *testing.T) {
		require.Equal(t, "demo\n:4\n", ok(t, "__complete", "status", ""))
		require.Equal(t, ":4\n", ok(t, "__complete", "status", "x"))
		require.ElementsMatch(t, []string{"workers", "spot", ":4"}, strings.Fields(ok(t, "__complete", "roll", "demo", "")))
		require.Contains(t, ok(t, "__complete", "upgrade", "demo", "--to", "1.36"), "1.36-1\n")
	})
	t.Run("fleet", showFleet)
	t.Run("page", showPage)
	t.Run("status", func(t *testing.T) {
		require.Regexp(t, `(?m)^demo +Ready +1\.36 +1\.36-1 `, ok(t, "status"))
		out := ok(t, "status", "demo")
		for _, line := range []string{
			"demo is Ready: ", "Kubernetes 1.36, release 1.36-1, templates v1, status last changed ", "endpoint https://", "UpToDate", "pool-spot",
		} {
			require.Contains(t, out, line)
		}
		var one status.Cluster
		require.NoError(t, json.Unmarshal([]byte(ok(t, "status", "demo", "-o", "json")), &one))
		require.Equal(t, status.Ready, one.Status.Phase)
		require.Len(t, one.Status.Stacks, 6)
		var all []status.Cluster
		require.NoError(t, json.Unmarshal([]byte(ok(t, "status", "-o", "json")), &all))
		require.Equal(t, []status.Cluster{one}, all)
		require.Contains(t, ok(t, "status", "demo", "--watch"), "demo is Ready")
		require.NotContains(t, out, one.Status.PlannedVersion)
		require.Contains(t, ok(t, "status", "demo", "-v"), "spec version "+one.Status.PlannedVersion)
	})
	t.Run("status --live prints once without a terminal", func(t *testing.T) {
		mark := cloud.Calls.Mark()
		out := ok(t, "status", "demo", "--live")
		require.Regexp(t, `(?m)^pool-workers +(CREATE|UPDATE)_COMPLETE +\d+[smh]$`, out)
		require.Regexp(t, `(?m)^workers +\? +2 +2$`, out, "this cluster has no access entry for the caller")
		require.Contains(t, out, "the cluster was not read: you may not list its nodes")
		require.NotContains(t, out, "\x1b")
		require.Regexp(t, `(?m)^demo +Ready +1\.36 +1\.36-1 +6 +\d/\d +`, ok(t, "status", "--live"))
		for _, call := range cloud.Calls.Since(mark) {
			require.False(t, call.Mutating, "status called %s %s", call.Service, call.Action)
		}
		require.Contains(t, fails(t, "status", "demo", "--live", "--watch"), "exclude each other")
	})
	t.Run("diff of an existing cluster", func(t *testing.T) {
		mark := cloud.Calls.Mark()
		require.Regexp(t, `^demo: no changes\n\nwarning: spec\.controlPlane\.access: it is empty.*\n$`, ok(t, "diff", demo))
		require.Contains(t, ok(t, "diff", demo, "-o", "yaml"), "changes: []\ncluster: demo\n")
		paused := ok(t, "diff", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "spec:\n", "spec:\n  paused: true\n")))
		require.Contains(t, paused, "\nnote: spec.paused is true")
		changed := clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "maxSize: 4", "maxSize: 5"))
		out := finds(t, "diff", changed)
		require.Contains(t, out, "1 stack would change:")
		require.Contains(t, out, "Update drover-demo-pool-workers")
		require.Contains(t, out, "maxSize: 4 → 5")
		refused := clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "10.0.0.0/16", "10.9.0.0/16"))
		require.Contains(t, fails(t, "diff", refused), "a VPC's CIDR cannot change")
		image := clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "minSize: 2", "imageID: ami-0123456789abcdef0\n      minSize: 2"))
		require.Contains(t, fails(t, "diff", image), "pool workers: ami-0123456789abcdef0 does not exist in this region")
		identity := clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "spec:\n", "spec:\n  podIdentities:\n"+
			"    - {namespace: shop, serviceAccount: checkout, policies: [AmazonS3FullAccess]}\n"))
		require.Contains(t, fails(t, "diff", identity), "spec.podIdentities[0].policies[0]: Invalid value: \"AmazonS3FullAccess\": "+
			"the cell allows the policies AmazonS3ReadOnlyAccess")
		viewer := viewerWithout(t, "ec2:DescribeImages", "lambda:GetFunctionConfiguration")
		r := runWith(t, viewer, "diff", image)
		require.Contains(t, r.Stdout, "\nnote: the images of pools were not checked: describing images: ", r.Stderr)
		r = runWith(t, viewer, "diff", identity)
		require.Contains(t, r.Stdout, "\nnote: the settings of the cell were not checked, which say what roles and policies specs may give to "+
			"pods: reading the configuration of function drover-plan: ", r.Stderr)
		for _, call := range cloud.Calls.Since(mark) {
			require.False(t, call.Mutating, "diff called %s %s", call.Service, call.Action)
		}
	})
	t.Run("doctor of an existing cluster", func(t *testing.T) {
		require.Contains(t, ok(t, "doctor", demo), "ClusterExists        demo exists in account 000000000000")
	})
	t.Run("versions", showVersions)
	t.Run("apply --watch ends when a change is refused", func(t *testing.T) {
		refused := clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "10.0.0.0/16", "10.9.0.0/16"))
		r := drover(t, "apply", refused, "--watch")
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Stderr, "demo is Stopped: spec.network.cidr")
		require.Contains(t, fails(t, "status", "demo", "--watch"), "demo is Stopped")
	})
	t.Run("apply without --watch prints the command to follow it", func(t *testing.T) {
		require.Contains(t, ok(t, "apply", demo), "follow it: drover status demo --watch")
		require.Contains(t, ok(t, "apply", demo, "--watch"), "demo is Ready")
	})
	t.Run("delete refuses a protected cluster", func(t *testing.T) {
		require.Contains(t, fails(t, "delete", "absent"), "cluster absent does not exist in this account")
		ok(t, "apply", clitest.Write(t, "demo.yaml", example(t, "clusters/demo.yaml", "deletionProtection: false", "deletionProtection: true")),
			"--watch")
		require.Contains(t, fails(t, "delete", "demo"), "set spec.deletionProtection to false")
		require.Contains(t, ok(t, "status", "demo"), "demo is Ready")
		ok(t, "apply", demo, "--watch")
	})
}

// viewerWithout returns the environment of a role that may do everything but some actions.
func viewerWithout(t *testing.T, actions ...string) map[string]string {
	t.Helper()
	role, err := cloud.Identities.CreateRole(iam.Role{Name: "viewer", Path: "/", TrustDocument: `{"Version": "2012-10-17", "Statement": [` +
		`{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`})
	require.NoError(t, err)
	require.NoError(t, cloud.Identities.PutRolePolicy(role.Name, "viewer", `{"Version": "2012-10-17", "Statement": [`+
		`{"Effect": "Allow", "Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": ["`+strings.Join(actions, `", "`)+
		`"], "Resource": "*"}]}`))
	_, credentials, err := cloud.Identities.AssumeRoleAs(cloud.Identities.RoleARN(role), "viewer", "ec2.amazonaws.com")
	require.NoError(t, err)
	as := maps.Clone(cloud.Environment())
	as["AWS_ACCESS_KEY_ID"], as["AWS_SECRET_ACCESS_KEY"] = credentials.AccessKeyID, credentials.SecretAccessKey
	as["AWS_SESSION_TOKEN"] = credentials.SessionToken
	return as
}
