package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// wrongImages are pairs of a pool's family and an image from which its nodes could not join, and what the status says.
var wrongImages = []struct{ family, image, says string }{
	{"AL2023", ec2.ImageID("1.36", "bottlerocket-amd64"), "is an image of Bottlerocket, and not of AL2023"},
	{"AL2023", ec2.ImageID("1.36", "bottlerocket-amd64-fips"), "is an image of Bottlerocket, and not of AL2023"},
	{"AL2023", ec2.ImageID("1.36", "arm64"), "is for arm64, not for amd64"},
	{"AL2023", ec2.ImageID("1.37", "amd64"), "has a kubelet newer than Kubernetes 1.36"},
	{"AL2023", ec2.AL2Image, "is an image of Amazon Linux 2, and not of AL2023"},
	{"AL2023", ec2.WindowsImage, "is an image of Windows, which drover does not support"},
	{"AL2023", ec2.OwnTwoDisks, "has the devices /dev/xvda and /dev/xvdb, as images of Bottlerocket have, and the pool's family is AL2023"},
	{"AL2023", ec2.OwnSDA, "has the root device /dev/sda1, and images of AL2023 have /dev/xvda"},
	{"AL2023", "ami-0123456789abcdef0", "does not exist in this region, or is not shared with this account"},
	{"Bottlerocket", ec2.ImageID("1.36", "amd64"), "is an image of AL2023, and not of Bottlerocket"},
	{"Bottlerocket", ec2.ImageID("1.36", "amd64-nvidia"), "is an image of AL2023, and not of Bottlerocket"},
	{"Bottlerocket", ec2.ImageID("1.36", "bottlerocket-arm64"), "is for arm64, not for amd64"},
	{"Bottlerocket", ec2.ImageID("1.37", "bottlerocket-amd64"), "has a kubelet newer than Kubernetes 1.36"},
	{"Bottlerocket", ec2.ECSImage, "is an image of Bottlerocket without Kubernetes, and not of Bottlerocket"},
	{"Bottlerocket", ec2.WindowsImage, "is an image of Windows, which drover does not support"},
	{"Bottlerocket, variant: FIPS", ec2.ImageID("1.36", "bottlerocket-amd64"), "is of the variant Standard, and not of FIPS"},
	{"Bottlerocket, variant: NvidiaFIPS", ec2.ImageID("1.36", "bottlerocket-amd64-nvidia"), "is of the variant Nvidia, and not of NvidiaFIPS"},
	{"AL2023, variant: Nvidia", ec2.ImageID("1.36", "amd64"), "is of the variant Standard, and not of Nvidia"},
	{"Bottlerocket", ec2.OwnAL2023, "has no device /dev/xvdb, on which Bottlerocket has its data"},
}

// wrongCopies are wrong as well, and only the images that they are copies of show it.
var wrongCopies = []struct{ family, image, says string }{
	{"AL2023", ec2.CopyOf136, "is an image of Bottlerocket, and not of AL2023"},
	{"AL2023", ec2.CopyOf137, "has a kubelet newer than Kubernetes 1.36"},
	{"AL2023", ec2.CopyOfWindows, "is an image of Windows, and not of AL2023"},
	{"Bottlerocket", ec2.CopyOf137, "is an image of AL2023, and not of Bottlerocket"},
}

func withImage(family, image string) string {
	return strings.Replace(harness.Spec("demo", ""), "{name: a,", fmt.Sprintf("{name: a, image: {family: %s}, imageID: %s,", family, image), 1)
}

// No pair of a family and an image that does not fit it reaches a stack: not in the creation of a cluster, and not in a change.
func TestWrongImagesAreRefused(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.Release())
	all := slices.Concat(wrongImages, wrongCopies)
	for i, pair := range all {
		a.Upload("clusters/demo.yaml", withImage(pair.family, pair.image))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, status.Stopped, s.Phase, "%v: %s", pair, s.Message)
		if i < len(wrongImages) {
			require.Contains(t, s.Message, pair.says, pair.image)
		}
		require.Empty(t, a.Stacks("demo"), pair.image)
	}

	// An image of one's own passes, and so does a copy of a fitting one.
	a.Upload("clusters/demo.yaml", withImage("AL2023", ec2.OwnAL2023))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	for _, pair := range all {
		mark := a.Calls.Mark()
		a.Upload("clusters/demo.yaml", withImage(pair.family, pair.image))
		a.Settle()
		s := a.Status("demo")
		require.Equal(t, "ChangeRefused", s.Condition(status.Converged).Reason, "%v: %s", pair, s.Message)
		require.Contains(t, s.Message, "no stack was changed, because nodes could not join from these images:\npool a: "+pair.image, s.Message)
		require.Contains(t, s.Message, pair.says, pair.image)
		for _, call := range a.Calls.Since(mark) {
			require.NotContains(t, call.Action, "ChangeSet", pair.image)
		}
	}
	a.Upload("clusters/demo.yaml", withImage("Bottlerocket", ec2.CopyOf136))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)

	mark := a.Calls.Mark()
	a.Upload("clusters/demo.yaml", strings.Replace(withImage("Bottlerocket", ec2.CopyOf136), "maxSize: 3", "maxSize: 4", 1))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	for _, call := range a.Calls.Since(mark) {
		require.NotEqual(t, "DescribeImages", call.Action, "a pool that keeps its image costs no call")
	}
}
