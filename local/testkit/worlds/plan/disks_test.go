package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// No key with which EC2 creates no disk, and no instance type without disks of its own, reaches a stack.
func TestWrongDisksOfPoolsAreRefused(t *testing.T) {
	lives.Run(t, func(l *lives.Life) {
		with := func(fields string) string {
			return strings.Replace(harness.Spec("demo", ""), "instanceTypes: [m7i.large]", fields, 1)
		}
		l.CreateCluster("")
		root := func(key string) string { return `instanceTypes: [m7i.large], rootVolume: {kmsKeyARN: "` + key + `"}` }
		volume := func(key string) string {
			return `instanceTypes: [m7i.large], volumes: [{device: /dev/xvdb, sizeGiB: 9, kmsKeyARN: "` + key + `"}]`
		}
		const prefix = "arn:aws:kms:" + harness.Region + ":" + harness.ID + ":key/"
		lost := prefix + "lost"
		all := map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": harness.ID}, "Action": "kms:*", "Resource": "*"}
		off := harness.KeyPolicy(all)
		off["Enabled"] = false
		disabled := prefix + l.CreateResource("AWS::KMS::Key", off)
		for spec, says := range map[string]string{
			with(root(disabled)): "because EC2 could create no disks with these keys:\n" +
				"pool a: kmsKeyARN: " + disabled + " is not enabled: its state is Disabled\nEnable the key, or name another",
			with(volume(lost)): "pool a: kmsKeyARN: " + lost + " does not exist",
			with("instanceTypes: [m6id.large, m7i.large], localStorage: RAID0"): "because instances lack local disks (NVMe instance " +
				"store):\n" +
				"pool a: localStorage: RAID0 needs a disk of an instance, and m7i.large has 0\n",
			with("instanceTypes: [m6id.24xlarge, m6id.large], localStorage: RAID10"): "pool a: localStorage: RAID10 needs 4 disks of an " +
				"instance, and m6id.large has 1\n",
		} {
			mark := l.Calls.Mark()
			l.Upload(names.ClusterSpec("demo"), spec)
			l.SettleAll()
			require.Contains(t, l.Status("demo").Message, says)
			require.Equal(t, "ChangeRefused", l.Status("demo").Condition(status.Converged).Reason)
			for _, call := range l.Calls.Since(mark) {
				require.NotContains(t, call.Action, "ChangeSet", says)
			}
		}

		fields := "instanceTypes: [m6id.large], localStorage: RAID0"
		l.Upload(names.ClusterSpec("demo"), with(fields))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		mark := l.Calls.Mark()
		l.Upload(names.ClusterSpec("demo"), strings.Replace(with(fields), "maxSize: 3", "maxSize: 4", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		for _, call := range l.Calls.Since(mark) {
			require.NotEqual(t, "DescribeInstanceTypes", call.Action, "a pool that keeps its instance types costs no call")
		}
	})
}
