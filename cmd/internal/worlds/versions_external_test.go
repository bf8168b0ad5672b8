package worlds

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/testkit/harness"
)

// The table shows the version that EKS runs. It also shows the version in the stack if that differs.
func TestVersionsOfAControlPlaneThatWasMovedElsewhere(t *testing.T) {
	synctest.Test(t, testControlPlaneDrift)
}

func testControlPlaneDrift(t *testing.T) {
	a := harness.StartWith(t, harness.Options{Bubble: true})
	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.35", "r1"))
	a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	row := func() (line string) {
		t.Helper()
		fleet, err := cli.ReadFleet(t.Context(), cli.NewCell(a.Config(), "aws", "111122223333"))
		require.NoError(t, err)
		var b strings.Builder
		cli.PrintVersions(&b, fleet)
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "demo     control plane") {
				return line
			}
		}
		return ""
	}
	require.Regexp(t, `^demo +control plane +1\.35 +- +- +2027-`, row())
	_, err := a.EKS.UpdateClusterVersion(t.Context(), a.Admin(), eks.UpdateClusterVersionInput{Name: "drover-demo", Version: "1.36"})
	require.NoError(t, err)
	time.Sleep(eks.UpdateTakes + time.Minute)
	require.Regexp(t, `^demo +control plane +1\.36 \(deployed with 1\.35\) +- +- +2027-08-03`, row())
	// The upgrade that repairs the drift has a target, although EKS runs that version already.
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", "  upgrade: {window: {cron: \"0 1 1 1 ? 2090\", duration: 4h}}\n"),
		"name: r1", "name: r2", 1))
	a.Settle()
	require.Regexp(t, `^demo +control plane +1\.36 \(deployed with 1\.35\) +1\.36 +- +`, row())

	// An external change deletes the EKS cluster.
	_, err = a.EKS.UpdateClusterConfig(t.Context(), a.Admin(), eks.UpdateClusterConfigInput{
		Name: "drover-demo", DeletionProtection: aws.Bool(false),
	})
	require.NoError(t, err)
	time.Sleep(10 * time.Minute)
	_, err = a.EKS.DeleteCluster(t.Context(), a.Admin(), eks.NamedInput{Name: "drover-demo"})
	require.NoError(t, err)
	time.Sleep(20 * time.Minute)
	require.Regexp(t, `^demo +control plane +- \(deployed with 1\.35\) +`, row())
}
