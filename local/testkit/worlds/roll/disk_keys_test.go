package roll_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// scalingRole is the service-linked role of Auto Scaling.
const scalingRole = "arn:aws:iam::" + harness.ID + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"

// diskKey creates a KMS key whose policy has further statements.
func (l *life) diskKey(more ...any) (arn string) {
	own := map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": harness.ID}, "Action": "kms:*", "Resource": "*"}
	return "arn:aws:kms:" + harness.Region + ":" + harness.ID + ":key/" +
		l.CreateResource("AWS::KMS::Key", harness.KeyPolicy(append([]any{own}, more...)...))
}

// withKey returns a spec whose disks have a key.
func withKey(arn string) string {
	return strings.Replace(harness.Spec("demo", lives.Unprotected), "maxSize: 3", `maxSize: 3, rootVolume: {kmsKeyARN: "`+arn+
		`"}, volumes: [{device: /dev/xvdb, sizeGiB: 20, kmsKeyARN: "`+arn+`"}]`, 1)
}

// Auto Scaling may use a key only if its policy names the service-linked role. No API says so before: the roll fails, and the status has
// the statements that the policy lacks. With exactly those the next roll succeeds.
func TestKeyThatAutoScalingMayNotUse(t *testing.T) {
	lives.Run(t, func(started *lives.Life) {
		l := &life{started}
		l.CreateCluster(lives.Unprotected)
		before := l.Group("demo", "a").Instances
		l.Upload(names.ClusterSpec("demo"), withKey(l.diskKey()))
		l.SettleAll()
		s := l.Status("demo")
		require.Equal(t, status.Failed, s.Phase, s.Message)
		require.Contains(t, s.Message, "Termination Reason: Client.InternalError: Client error on launch")
		require.Contains(t, s.Message, "the KMS key of the volumes or the image must allow Auto Scaling's service-linked role to use it")
		_, list, found := strings.Cut(s.Message, "\nstatements for its key policy: ")
		require.True(t, found, s.Message)
		list, _, _ = strings.Cut(list, "\n")
		require.Contains(t, list, scalingRole)
		require.Contains(t, l.Group("demo", "a").Instances, before[0], "the node stays")

		good := l.diskKey(statements(t, list)...)
		l.Upload(names.ClusterSpec("demo"), withKey(good))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		volumes, err := ec2api.NewFromConfig(l.Config()).DescribeVolumes(l.T.Context(), &ec2api.DescribeVolumesInput{})
		require.NoError(t, err)
		require.Len(t, volumes.Volumes, 2*len(l.Group("demo", "a").Instances))
		for _, v := range volumes.Volumes {
			require.Equal(t, good, aws.ToString(v.KmsKeyId))
			require.True(t, aws.ToBool(v.Encrypted))
		}
		for _, i := range l.Group("demo", "a").Instances {
			require.NotEqual(t, before[0].ID, i.ID)
		}
	})
}

// statements reads the statements of a message, as an operator pastes them.
func statements(t *testing.T, list string) (parsed []any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte("["+list+"]"), &parsed))
	return parsed
}
