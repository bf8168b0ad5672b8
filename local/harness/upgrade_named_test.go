package harness

// A spec that names by now what an upgrade by hand makes already.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// names uploads the spec with another release.
func (l *life) names(release string) {
	l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", alarmed), "name: r1", "name: "+release, 1))
}

func TestTheSpecNamesWhatIsUnderWay(t *testing.T) {
	t.Run("it goes on, once", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			arn := l.upgrade(events.Upgrade{Release: "r2"})
			l.step(upgrade.StepControlPlane)
			time.Sleep(time.Minute)
			l.names("r2")
			l.over(arn)
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.upgraded()
			l.sweep()
			l.again()
			l.upgraded()
			require.Len(t, l.executions("upgrade"), 1)
			require.Equal(t, "True", l.Status("demo").Condition(status.Converged).Status)
			require.Len(t, l.Status("demo").Upgrades, 1)
		})
	})
	t.Run("a rollback, too", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			l.names("r2")
			l.settle()
			l.upgraded()
			arn := l.upgrade(events.Upgrade{Rollback: true})
			l.step(upgrade.StepControlPlane)
			l.names("r1")
			l.over(arn)
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.sweep()
			s := l.Status("demo")
			require.Equal(t, "Ready Done Rollback r1", strings.Join([]string{string(s.Phase), s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.To}, " "), s.Message)
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
			require.Len(t, l.executions("upgrade"), 2)
		})
	})
	t.Run("one that stops waits for somebody, as the spec's would", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			arn := l.upgrade(events.Upgrade{Release: "r2"})
			l.step(upgrade.StepControlPlane)
			l.names("r2")
			l.States.Stop(arn, "Aborted", "by a person")
			l.settle()
			l.sweep()
			l.again()
			require.Equal(t, upgrade.Stopped, l.record().State)
			s := l.Status("demo")
			require.Equal(t, status.Stopped, s.Phase, s.Message)
			require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Converged).Reason)
			require.Equal(t, "Stopped Hand", s.Upgrade.Phase+" "+s.Upgrade.Origin)
			require.EqualValues(t, 1, l.record().Number, "nothing began")
			l.names("r2")
			l.settle()
			l.upgraded()
			require.Equal(t, upgrade.OriginSpec, l.record().Origin)
		})
	})
}
