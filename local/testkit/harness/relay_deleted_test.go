package harness

// A relay that was deleted outside drover.

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// private creates a Ready private cluster.
func (l *life) private(more string) {
	l.t.Helper()
	l.create(privateEndpoint + more)
	l.phase(status.Ready)
}

// privateLife runs a test with a Ready private cluster.
func privateLife(t *testing.T, test func(l *life)) {
	bubble(t, func(a *Account) {
		l := &life{a}
		l.private("")
		test(l)
	})
}

// hasRelay asserts that the cluster is Ready and has its relay.
func (l *life) hasRelay() {
	l.t.Helper()
	l.phase(status.Ready)
	require.Equal(l.t, 1, l.relays())
}

// deleteRelay deletes the function outside drover.
func (a *Account) deleteRelay() {
	a.t.Helper()
	_, err := awslambda.NewFromConfig(a.Config()).DeleteFunction(a.t.Context(),
		&awslambda.DeleteFunctionInput{FunctionName: aws.String(names.Relay("demo"))})
	require.NoError(a.t, err)
}

// relays counts the functions of clusters.
func (a *Account) relays() int { return len(a.Lambda.Tagged(a.t.Context())) }

func TestDeletedRelay(t *testing.T) {
	t.Run("is found and recreated by the audit", func(t *testing.T) {
		privateLife(t, func(l *life) {
			node := l.instance()
			l.deleteRelay()
			require.Zero(t, l.relays())
			require.NoError(t, l.AuditNow())
			in := l.Status("demo").Condition(status.InSync)
			require.NotNil(t, in)
			require.Contains(t, in.Message, "the relay drover-demo-relay was deleted outside drover: drover recreates it")
			l.settle()
			l.hasRelay()
			l.audited()
			require.Equal(t, "True", l.Status("demo").Condition(status.InSync).Status)
			require.Equal(t, node, l.instance(), "a healthy node stays")
			l.terminate()
			l.settle()
			l.phase(status.Ready)
			require.NotEqual(t, node, l.instance())
		})
	})

	t.Run("is recreated before a new spec is applied", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.deleteRelay()
			l.change(privateEndpoint + "  tags: {team: a}\n")
			l.hasRelay()
			l.audited()
			require.Nil(t, l.Status("demo").Condition(status.InSync))
		})
	})

	t.Run("is recreated after an update that failed with it", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.Upload(names.ClusterSpec("demo"), Spec("demo", privateEndpoint+"  tags: {team: a}\n"))
			l.changing(names.ControlPlane)
			l.deleteRelay()
			l.Until("the rollback fails", func() bool { return l.Stacks("demo")[names.ControlPlane] == stack.UpdateRollbackFailed })
			l.settle()
			l.again()
			l.hasRelay()
			l.audited()
			require.Nil(t, l.Status("demo").Condition(status.InSync))
		})
	})

	t.Run("holds a drain until it is recreated", func(t *testing.T) {
		privateLife(t, func(l *life) {
			node := l.instance()
			l.deleteRelay()
			l.terminate()
			time.Sleep(5 * time.Minute)
			require.Equal(t, node, l.instance(), "the node stays")
			require.Contains(t, fmt.Sprintf("%+v", l.Status("demo").Nodes), "RelayMissing")
			l.audited()
			l.hasRelay()
			require.NotEqual(t, node, l.instance())
		})
	})
}
